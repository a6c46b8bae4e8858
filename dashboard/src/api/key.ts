/** The key that calls carry. It is kept for this tab alone, and never in an address. */

import { signal } from "@preact/signals";

const NAME = "mneme-key";

/** The key; empty when none is known. */
export const key = signal("");

/** Whether the server refused a call for want of a (better) key. */
export const signInNeeded = signal(false);

/** Whether somebody asked to sign in, though the server has not. */
export const signInWanted = signal(false);

/** A key that an address brought while this tab has another: somebody has to choose. */
export const offered = signal("");

/**
 * Take the key that this tab has, or else that of the address's fragment, which is removed at once. A
 * link does not replace a key unasked: it may be another's, who would read what is written from then on.
 */
export function takeKey(): void {
  key.value = read();
  takeGiven();
}

/**
 * Take the key of an address that is put into this tab later, too: where only the fragment is
 * another, browsers load nothing anew, so that the key would stay in sight and open nothing.
 * `opened` is called when another key is used from then on.
 */
export function followKey(opened: () => void): () => void {
  const changed = (): void => {
    if (takeGiven()) opened();
  };
  addEventListener("hashchange", changed);
  return () => removeEventListener("hashchange", changed);
}

/** Return whether another key is used from now on. */
function takeGiven(): boolean {
  const given = new URLSearchParams(location.hash.slice(1)).get("key")?.trim();
  if (given === undefined) return false;
  history.replaceState(history.state, "", location.pathname + location.search);
  if (!given || given === key.value) return false;
  if (key.value) {
    offered.value = given;
    return false;
  }
  keepKey(given);
  return true;
}

/** Use this key from now on; an empty one signs out. */
export function keepKey(value: string): void {
  key.value = value.trim();
  try {
    if (key.value) sessionStorage.setItem(NAME, key.value);
    else sessionStorage.removeItem(NAME);
  } catch {
    // Storage is forbidden: the key lives until the page is left.
  }
}

function read(): string {
  try {
    return sessionStorage.getItem(NAME) ?? "";
  } catch {
    return "";
  }
}
