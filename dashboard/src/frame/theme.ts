/** Light, dark, or as the system has it. */

import { signal } from "@preact/signals";

const NAME = "mneme-theme";
export type Theme = "system" | "light" | "dark";

/** What was chosen; `theme.js` applied it before the first paint. */
export const theme = signal<Theme>(
  (document.documentElement.dataset["theme"] as Theme | undefined) ?? "system",
);

/** Choose a theme, from now on and in other tabs. */
export function choose(chosen: Theme): void {
  theme.value = chosen;
  try {
    if (chosen === "system") localStorage.removeItem(NAME);
    else localStorage.setItem(NAME, chosen);
  } catch {
    // Storage is forbidden: it holds until the page is left.
  }
  if (chosen === "system") delete document.documentElement.dataset["theme"];
  else document.documentElement.dataset["theme"] = chosen;
}
