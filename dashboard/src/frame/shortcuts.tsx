/** Keys that work on every page. `?` shows them. */

import { useEffect, useState } from "preact/hooks";
import { Dialog } from "../components/dialog";
import { PAGES } from "../pages";
import { navigate } from "../router";

const CHORD_MS = 1500;

/** Listens; shows the list when it is asked for. */
export function Shortcuts() {
  const [shown, setShown] = useState(false);
  useEffect(() => {
    let begun = 0;
    const pressed = (event: KeyboardEvent): void => {
      if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
      if (document.querySelector("dialog[open]")) return;
      const chord = Date.now() - begun < CHORD_MS;
      begun = 0;
      if (chord) {
        const page = PAGES.find((candidate) => candidate.key === event.key);
        if (page) navigate(`/${page.name}`);
      } else if (event.key === "g") {
        begun = Date.now();
      } else if (event.key === "/") {
        event.preventDefault();
        search();
      } else if (event.key === "?") {
        setShown(true);
      }
    };
    document.addEventListener("keydown", pressed);
    return () => document.removeEventListener("keydown", pressed);
  }, []);
  if (!shown) return null;
  return (
    <Dialog title="Keys" onClose={() => setShown(false)}>
      <dl class="keys">
        <Key keys={["/"]} does="Search" />
        {PAGES.map((page) => (
          <Key key={page.name} keys={["g", page.key]} does={page.title} />
        ))}
        <Key keys={["j", "k"]} does="Next and previous event of a session" />
        <Key keys={["Esc"]} does="Close" />
      </dl>
    </Dialog>
  );
}

function Key({ keys, does }: { keys: readonly string[]; does: string }) {
  return (
    <div>
      <dt>
        {keys.map((name) => (
          <kbd key={name}>{name}</kbd>
        ))}
      </dt>
      <dd>{does}</dd>
    </div>
  );
}

/** To the search field of this page, or else to the page that searches. */
function search(): void {
  const field = document.querySelector<HTMLInputElement>("main [data-search]");
  if (field) field.select();
  else navigate("/search");
}

/** Whether keys are text to what has the focus. */
export function isTyping(target: EventTarget | null): boolean {
  return target instanceof Element && target.matches("input, textarea, select, [contenteditable]");
}
