/** Tells those who do not see the page what has changed on it. */

import { signal } from "@preact/signals";

const said = signal("");

/** Say something once, politely: "12 sessions found", "Lesson archived". */
export function announce(text: string): void {
  // The same text again is only spoken when it differs.
  said.value = said.peek() === text ? `${text}\u00a0` : text;
}

/** Where it is said; the frame has it once. */
export function LiveRegion() {
  return (
    <div class="hidden" role="status" aria-live="polite">
      {said.value}
    </div>
  );
}
