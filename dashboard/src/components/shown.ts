/**
 * Stored text as it is shown: characters that turn the direction of what follows are told, not obeyed,
 * and each text has its own direction. Done where elements are made, so that no page can forget it.
 */

import { options } from "preact";

// Those of Unicode's bidirectional algorithm that cannot be seen (UAX #9): marks, embeddings,
// overrides, isolates.
const CONTROLS = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;
const TOLD = ["title", "aria-label", "alt", "placeholder"] as const;
/** Elements whose text is none of a page's, or whose direction is another's. */
const NOT_OF_TEXT = new Set(["option", "title", "style", "script", "text", "tspan", "svg"]);

/** Return a text with its bidirectional controls as "⟨U+202E⟩". */
export function shown(text: string): string {
  return text.replace(CONTROLS, (control) => `⟨U+${hex(control)}⟩`);
}

function hex(character: string): string {
  return (character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0");
}

/** Have every element show its texts so, from now on. */
export function showControls(): void {
  const before = options.vnode;
  options.vnode = (vnode) => {
    if (typeof vnode.type === "string")
      made(vnode as { type: string; props: Record<string, unknown> });
    before?.(vnode);
  };
}

function made({ type, props }: { type: string; props: Record<string, unknown> }): void {
  for (const name of TOLD) {
    const value = props[name];
    if (typeof value === "string") props[name] = shown(value);
  }
  const { children } = props;
  const texts = Array.isArray(children) ? children.flat(Number.POSITIVE_INFINITY) : [children];
  const typed = type === "input" || type === "textarea";
  if (!typed && !texts.some((child) => typeof child === "string" && child.trim())) return;
  if (!typed) props["children"] = told(children);
  if (props["dir"] === undefined && !NOT_OF_TEXT.has(type)) props["dir"] = "auto";
}

function told(children: unknown): unknown {
  if (typeof children === "string") return shown(children);
  return Array.isArray(children) ? children.map(told) : children;
}
