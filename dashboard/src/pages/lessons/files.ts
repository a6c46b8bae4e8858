/** Lessons as files: written as JSON, read again, and what reading one in would change. */

import type { LessonFilterJson, LessonJson } from "@mneme/client/http";
import { learn } from "../../api/services";

const BATCH = 500;
const KEPT = [
  "id", "title", "content", "category", "importance", "agentId", "project", "tags", "context",
  "sourceSessionId", "sourceEventId",
] as const satisfies readonly (keyof LessonJson)[]; // biome-ignore format: a list of names.

/** What becomes of a lesson of a file. */
export type Fate = "new" | "same" | "differs" | "invalid";

/** A lesson of a file, and what becomes of it. */
export interface Planned {
  readonly lesson: LessonJson;
  readonly fate: Fate;
  /** Which fields differ, or what is missing. */
  readonly why: string;
}

/** What to do with lessons that are there already and say something else. */
export type OnConflict = "SKIP" | "REPLACE";

/** Write the lessons that pass a filter and are wanted to a file of the browser; return how many. */
export async function exportLessons(
  filter: LessonFilterJson,
  isWanted: (lesson: LessonJson) => boolean,
): Promise<number> {
  const lessons = (await everyLesson(filter)).filter(isWanted);
  const url = URL.createObjectURL(
    new Blob([`${JSON.stringify(lessons, null, 2)}\n`], { type: "application/json" }),
  );
  const link = document.createElement("a");
  link.href = url;
  link.download = `lessons-${new Date().toISOString().slice(0, 10)}.json`;
  link.click();
  URL.revokeObjectURL(url);
  return lessons.length;
}

async function everyLesson(filter: LessonFilterJson): Promise<LessonJson[]> {
  const lessons: LessonJson[] = [];
  for await (const { lesson } of learn.exportLessons({ filter })) if (lesson) lessons.push(lesson);
  return lessons;
}

/**
 * Read a file: a list in JSON, an object with a list `lessons`, or a lesson on each line.
 *
 * @throws Error when it is none of these; the message says what it is.
 */
export function parseLessons(text: string): LessonJson[] {
  const found = listOf(text);
  if (found.length === 0) throw new Error("The file has no lessons.");
  if (found.some((one) => typeof one !== "object" || one === null || Array.isArray(one))) {
    throw new Error("The file has something among its lessons that is no object.");
  }
  return found as LessonJson[];
}

function listOf(text: string): readonly unknown[] {
  try {
    const value: unknown = JSON.parse(text);
    if (Array.isArray(value)) return value;
    const { lessons } = value as { lessons?: unknown };
    return Array.isArray(lessons) ? lessons : [value];
  } catch {
    return text
      .split("\n")
      .filter((line) => line.trim())
      .map(lineOf);
  }
}

function lineOf(line: string, at: number): unknown {
  try {
    return JSON.parse(line);
  } catch {
    throw new Error(`The file is not JSON: line ${at + 1} cannot be read.`);
  }
}

/** Tell what importing these would change. */
export async function plan(lessons: readonly LessonJson[]): Promise<Planned[]> {
  const known = new Map<string, LessonJson>();
  for (const lesson of await everyLesson({ includeArchived: true })) {
    known.set(lesson.id ?? "", lesson);
  }
  return lessons.map((lesson) => planned(lesson, known.get(lesson.id ?? "")));
}

function planned(lesson: LessonJson, known: LessonJson | undefined): Planned {
  const missing = (["title", "content"] as const).filter((name) => !lesson[name]);
  if (missing.length) return { lesson, fate: "invalid", why: `has no ${missing.join(" and no ")}` };
  if (!known) return { lesson, fate: "new", why: "" };
  const differing = KEPT.filter((name) => plainly(lesson, name) !== plainly(known, name));
  return { lesson, fate: differing.length ? "differs" : "same", why: differing.join(", ") };
}

function plainly(lesson: LessonJson, name: (typeof KEPT)[number]): string {
  if (name === "importance") {
    const said = String(lesson.importance ?? "").replace("IMPORTANCE_", "");
    return said.toUpperCase() || "NORMAL";
  }
  if (name === "category") return lesson.category || "general";
  const value = lesson[name];
  const empty = value === undefined || value === "" || (Array.isArray(value) && !value.length);
  return empty || JSON.stringify(value) === "{}" ? "" : sorted(value);
}

function sorted(value: unknown): string {
  return JSON.stringify(value, (_key, inner: unknown) =>
    typeof inner === "object" && inner !== null && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)))
      : inner,
  );
}

/** Import what was planned; return what became of it. */
export async function importPlanned(
  all: readonly Planned[],
  onConflict: OnConflict,
): Promise<{ created: number; replaced: number; unchanged: number; skipped: number }> {
  const done = { created: 0, replaced: 0, unchanged: 0, skipped: 0 };
  const lessons = all.filter((one) => one.fate !== "invalid").map((one) => sendable(one.lesson));
  for (let at = 0; at < lessons.length; at += BATCH) {
    const answer = await learn.importLessons({
      lessons: lessons.slice(at, at + BATCH),
      onConflict: `IMPORT_CONFLICT_${onConflict}`,
    });
    done.created += answer.createdCount ?? 0;
    done.replaced += answer.replacedCount ?? 0;
    done.unchanged += answer.unchangedCount ?? 0;
    done.skipped += answer.skippedCount ?? 0;
  }
  return done;
}

/** REST writes importances as words, and sends null for what is not set. */
function sendable(lesson: LessonJson): LessonJson {
  const said = Object.fromEntries(
    Object.entries(lesson).filter(([, value]) => value !== null),
  ) as LessonJson;
  const importance = said.importance;
  if (!importance) return said;
  const name = `IMPORTANCE_${String(importance).replace("IMPORTANCE_", "").toUpperCase()}`;
  return { ...said, importance: name as typeof importance };
}
