import { type DescField, getOption } from "@bufbuild/protobuf";
import { field as rulesOfField, type StringRules } from "./gen/buf/validate/validate_pb.js";

const HALF_A_CHARACTER = /\p{Surrogate}/u;

/**
 * A text as the field takes it: "…" ends one that is too long, and "?" stands for each character
 * that it does not take.
 */
export function fitting(field: DescField, text: string): string {
  const { type } = getOption(field, rulesOfField);
  return type.case === "string" ? fittingText(type.value, text) : text;
}

/** The last of the texts, as many as the field takes, without empty ones. */
export function fittingAll(field: DescField, texts: readonly string[]): string[] {
  const { type } = getOption(field, rulesOfField);
  if (type.case !== "repeated" || type.value.items?.type.case !== "string") {
    return [...texts];
  }
  const rules = type.value.items.type.value;
  const kept = texts.filter((text) => text !== "").slice(-Number(type.value.maxItems));
  return kept.map((text) => fittingText(rules, text));
}

function fittingText(rules: StringRules, text: string): string {
  const pattern = new RegExp(rules.pattern, "u");
  const most = Number(rules.maxLen);
  const characters = [...text];
  const kept = characters.length > most ? [...characters.slice(0, most - 1), "…"] : characters;
  const isTaken = (one: string) => pattern.test(one) && !HALF_A_CHARACTER.test(one);
  return kept.map((one) => (isTaken(one) ? one : "?")).join("");
}
