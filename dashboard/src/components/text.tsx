/** What was stored, shown as text. Nothing of it is ever taken for HTML. */

import type { ComponentChild } from "preact";
import { useState } from "preact/hooks";

// An address ends where something turns the direction: what follows is read elsewhere than it stands.
const LINK = /\bhttps?:\/\/[^\s<>"'`\\^{|}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]+/gi;
const TRAILING = ".,;:!?)]";
const FOLDED = 1200;

/**
 * Return the address when it may be opened: only http and https may, and none that names a user:
 * "https://bank.example@elsewhere.example" leads elsewhere than it reads.
 */
export function safeUrl(text: string): string | undefined {
  try {
    const url = new URL(text);
    if (url.username || url.password) return undefined;
    return url.protocol === "http:" || url.protocol === "https:" ? url.href : undefined;
  } catch {
    return undefined;
  }
}

/** Opens in another tab, which learns nothing of this one. */
export function Outside({ url, children }: { url: string; children?: ComponentChild }) {
  const safe = safeUrl(url);
  if (!safe) return <span>{children ?? url}</span>;
  return (
    <a href={safe} target="_blank" rel="noopener noreferrer nofollow">
      {children ?? url}
    </a>
  );
}

/** Return text with its http(s) addresses as links; one that the end cuts off leads nowhere. */
export function linked(text: string, cut = false): ComponentChild[] {
  const parts: ComponentChild[] = [];
  let after = 0;
  for (const match of text.matchAll(LINK)) {
    if (cut && match.index + match[0].length === text.length) break;
    const url = withoutTrailing(match[0]);
    parts.push(text.slice(after, match.index), <Outside url={url} />);
    after = match.index + url.length;
  }
  parts.push(text.slice(after));
  return parts;
}

// Letter by letter from the end: an expression begins anew at every stop of thousands.
function withoutTrailing(url: string): string {
  const unopened = new Map([
    [")", timesIn(url, ")") - timesIn(url, "(")],
    ["]", timesIn(url, "]") - timesIn(url, "[")],
  ]);
  let end = url.length;
  for (; TRAILING.includes(url.charAt(end - 1)); end--) {
    const last = url.charAt(end - 1);
    const left = unopened.get(last);
    if (left === undefined) continue;
    if (left <= 0) break; // It closes what the address opened.
    unopened.set(last, left - 1);
  }
  return url.slice(0, end);
}

function timesIn(text: string, part: string): number {
  return text.split(part).length - 1;
}

/** Stored text with its line breaks; what is long is folded. */
export function Text({ value, mono = false }: { value: string; mono?: boolean }) {
  const [whole, setWhole] = useState(false);
  const folds = value.length > FOLDED * 1.2;
  const cut = folds && !whole;
  return (
    <div class={mono ? "text mono" : "text"}>
      {linked(cut ? value.slice(0, FOLDED) : value, cut)}
      {cut && "…"}
      {folds && (
        <button type="button" class="link" onClick={() => setWhole(!whole)} aria-expanded={whole}>
          {whole ? "Show less" : `Show all ${value.length.toLocaleString()} characters`}
        </button>
      )}
    </div>
  );
}

/** A value of free JSON: text as it is, all else indented. */
export function Json({ value }: { value: unknown }) {
  if (typeof value === "string") return <Text value={value} />;
  return <Text value={JSON.stringify(value, null, 2) ?? ""} mono />;
}

/** An id, in full for the clipboard and the screen reader, cut for the eye. */
export function Id({ value, href }: { value: string; href?: string | undefined }) {
  const cut = <code class="id">{value}</code>;
  return href ? (
    <a href={href} title={value}>
      {cut}
    </a>
  ) : (
    <span title={value}>{cut}</span>
  );
}
