import { cleanup, configure } from "@testing-library/preact";
import { afterEach, vi } from "vitest";

// Pages are loaded while a test waits for them, on a machine that may be busy.
configure({ asyncUtilTimeout: 20_000 });

afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
  sessionStorage.clear();
  history.replaceState(null, "", "/");
});
