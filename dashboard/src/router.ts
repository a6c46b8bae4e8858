/** Where the page is: the address is the state, so that it survives a reload and can be shared. */

import { computed, signal } from "@preact/signals";

const address = signal(read());

/** The path, such as `/sessions/s-1`. */
export const path = computed(() => address.value.pathname);

/** The parameters behind the question mark. */
export const query = computed(() => address.value.searchParams);

/** Counts the steps to other paths: what is done once per page listens to it. */
export const arrivals = signal(0);

function read(): URL {
  return new URL(location.href);
}

/** Go to an address of this page. `replace` takes the place of the current one. */
export function navigate(to: string, { replace = false } = {}): void {
  const before = path.peek();
  history[replace ? "replaceState" : "pushState"](null, "", to);
  address.value = read();
  if (path.peek() !== before) arrivals.value++;
}

/** Return the address of this page with these parameters set; empty values are taken out. */
export function withQuery(changes: Readonly<Record<string, string | undefined>>): string {
  const search = new URLSearchParams(query.value);
  for (const [name, value] of Object.entries(changes)) {
    if (value) search.set(name, value);
    else search.delete(name);
  }
  const text = search.toString();
  return path.value + (text && `?${text}`);
}

/** Set filters of the address without leaving a step to go back to. */
export function setQuery(changes: Readonly<Record<string, string | undefined>>): void {
  navigate(withQuery(changes), { replace: true });
}

/** A filter's value as the address has it; empty when it is not set. */
export function filter(name: string): string {
  return query.value.get(name) ?? "";
}

/**
 * The filters by whose or of what something is, for a call: by the field's name, the filter's. One
 * that is not set is left out: a call with a blank one is refused.
 */
export function narrowing<K extends string>(fields: Record<K, string>): { [F in K]?: string } {
  const entries = Object.entries<string>(fields).map(([field, name]) => [field, filter(name)]);
  return notBlank(Object.fromEntries(entries) as Record<K, string>);
}

/** Those of the fields that name something. */
export function notBlank<K extends string>(fields: Record<K, string>): { [F in K]?: string } {
  const entries = Object.entries<string>(fields).filter(([, value]) => value.trim());
  return Object.fromEntries(entries) as { [F in K]?: string };
}

// Browsers take "." and ".." for steps in a path, encoded, too: such a part is marked.
const STEPS = /^~*\.{1,2}$/;

/** Return the address of something below a page: every part is encoded. */
export function to(...parts: readonly string[]): string {
  const marked = parts.map((part) => (STEPS.test(part) ? `~${part}` : part));
  return `/${marked.map(encodeURIComponent).join("/")}`;
}

/** Return the parts of a path, decoded; none of them is empty. */
export function partsOf(pathname: string): string[] {
  return pathname.split("/").filter(Boolean).map(decoded);
}

function decoded(part: string): string {
  try {
    const read = decodeURIComponent(part);
    return STEPS.test(read) ? read.replace("~", "") : read;
  } catch {
    return part;
  }
}

/** Follow the browser's own steps, and turn clicks on links into ours. */
export function startRouter(): () => void {
  address.value = read();
  const stepped = (): void => {
    const before = path.peek();
    address.value = read();
    if (path.peek() !== before) arrivals.value++;
  };
  addEventListener("popstate", stepped);
  document.addEventListener("click", clicked);
  return () => {
    removeEventListener("popstate", stepped);
    document.removeEventListener("click", clicked);
  };
}

function clicked(event: MouseEvent): void {
  const plain = event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey;
  if (event.defaultPrevented || !plain || event.altKey) return;
  const link = (event.target as Element | null)?.closest?.("a");
  if (!link || link.target || link.hasAttribute("download")) return;
  const target = new URL(link.href, location.href);
  if (target.origin !== location.origin || target.pathname.startsWith("/api/")) return;
  if (target.hash && target.pathname === location.pathname) return;
  event.preventDefault();
  navigate(target.pathname + target.search);
}
