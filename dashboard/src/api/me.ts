/** Whose the key is, and what it may do. */

import type { WhoAmIResponseJson } from "@mneme/client/http";
import { signal } from "@preact/signals";
import { admin } from "./services";

/** What a key may do, in the words of pages. */
export type Scope = "read" | "write" | "learn" | "admin";

const MAY: Readonly<Record<Scope, string>> = {
  read: "read",
  write: "change anything",
  learn: "use what learns",
  admin: "administer the server",
};

/** Who is calling; undefined while that is not known: then nothing is kept from anybody. */
export const me = signal<WhoAmIResponseJson | undefined>(undefined);

/** Ask the server who is calling. */
export async function learnWhoIAm(signal: AbortSignal): Promise<void> {
  me.value = await admin.whoAmI({}, { signal });
}

/** The key's scopes, as words. */
export function scopesOf({ scopes = [] }: WhoAmIResponseJson): string[] {
  return scopes.map((scope) => String(scope).replace("KEY_SCOPE_", "").toLowerCase());
}

/** Return why the key may not do what needs a scope; undefined when it may, or nobody knows. */
export function whyNot(scope: Scope): string | undefined {
  const known = me.value;
  if (!known || scopesOf(known).includes(scope)) return undefined;
  const has = scopesOf(known).join(", ") || "none";
  return `This key may not ${MAY[scope]}: that needs the scope ${scope}, and it has ${has}.`;
}
