/** The page, opened at an address, in a tab without a key. */

import { render } from "@testing-library/preact";
import { beforeEach } from "vitest";
import { keepKey, offered, signInNeeded } from "../src/api/key";
import { me } from "../src/api/me";
import { App } from "../src/app";
import { showControls } from "../src/components/shown";
import { startRouter } from "../src/router";

showControls();

beforeEach(() => {
  keepKey("");
  signInNeeded.value = false;
  offered.value = "";
  me.value = undefined;
});

export function open(address: string) {
  history.replaceState(null, "", address);
  startRouter();
  return render(<App />);
}
