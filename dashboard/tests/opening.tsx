/** The page, opened at an address, in a tab without a key. */

import { render } from "@testing-library/preact";
import { beforeEach } from "vitest";
import { keepKey, signInNeeded } from "../src/api/key";
import { App } from "../src/app";
import { startRouter } from "../src/router";

beforeEach(() => {
  keepKey("");
  signInNeeded.value = false;
});

export function open(address: string) {
  history.replaceState(null, "", address);
  startRouter();
  return render(<App />);
}
