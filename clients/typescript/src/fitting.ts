/** What a field takes of a text. */
export interface TextLimit {
  /** Characters at most. */
  readonly characters: number;
  /** The regular expression that each of them, and all of them, must match. */
  readonly pattern: string;
}

/** What a field takes of a list of texts. */
export interface TextsLimit extends TextLimit {
  /** Entries at most. */
  readonly entries: number;
}

const HALF_A_CHARACTER = /\p{Surrogate}/u;

/**
 * A text as a field takes it: "…" ends one that is too long, and "?" stands for each character
 * that it does not take.
 */
export function fitting(limit: TextLimit, text: string): string {
  const pattern = new RegExp(limit.pattern, "u");
  const most = limit.characters;
  const characters = [...text];
  const kept = characters.length > most ? [...characters.slice(0, most - 1), "…"] : characters;
  const isTaken = (one: string) => pattern.test(one) && !HALF_A_CHARACTER.test(one);
  return kept.map((one) => (isTaken(one) ? one : "?")).join("");
}

/** The last of the texts, as many as a field takes, without empty ones. */
export function fittingAll(limit: TextsLimit, texts: readonly string[]): string[] {
  const kept = texts.filter((text) => text !== "").slice(-limit.entries);
  return kept.map((text) => fitting(limit, text));
}
