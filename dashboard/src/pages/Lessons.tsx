/** Lessons: what agents are told the next time, by category; one of them beside the list. */

import type { LessonFilterJson, LessonJson } from "@mneme/client/http";
import { useEffect, useState } from "preact/hooks";
import { useLoad, usePages } from "../api/load";
import { learn } from "../api/services";
import { Badge, Empty, PageHeader, Show, type Tone } from "../components/basics";
import { ChoiceFilter, Filters, TextFilter, Toggle } from "../components/filters";
import { announce } from "../components/live";
import { May } from "../components/may";
import { Pages } from "../components/table";
import { count, num, plural, word } from "../format";
import type { PageProps } from "../pages";
import { filter, narrowing, navigate, setQuery, withQuery } from "../router";
import { LessonDetail } from "./lessons/detail";
import { LessonDialog } from "./lessons/editor";
import { exportLessons } from "./lessons/files";
import { ImportDialog } from "./lessons/importing";
import "../styles/remember.css";

const NAMES = ["q", "category", "importance", "agent", "project", "tag", "archived"] as const;
const IMPORTANCES = [
  ["", "Any"],
  ["critical", "Critical"],
  ["high", "High"],
  ["normal", "Normal"],
  ["low", "Low"],
] as const;
const SIMILAR = 10;

export default function Lessons({ rest }: PageProps) {
  const [asked, setAsked] = useState<"new" | "import">();
  const [round, setRound] = useState(0);
  const changed = (): void => setRound((before) => before + 1);
  const [linked] = rest;
  // One address for a lesson beside the list: the list stays when another is chosen.
  useEffect(() => {
    if (linked) navigate(`/lessons?lesson=${encodeURIComponent(linked)}`, { replace: true });
  }, [linked]);
  const close = (): void => setAsked(undefined);
  return (
    <>
      <PageHeader
        title="Lessons"
        about="What was learned, and what agents are told before they begin."
        actions={
          <>
            <May scope="write">
              <button type="button" onClick={() => setAsked("import")}>
                Import
              </button>
            </May>
            <ExportButton />
            <May scope="write">
              <button type="button" class="primary" onClick={() => setAsked("new")}>
                New lesson
              </button>
            </May>
          </>
        }
      />
      <LessonFilters />
      <div class={filter("lesson") ? "split open" : "split"}>
        <LessonList round={round} />
        {filter("lesson") && (
          <LessonDetail key={filter("lesson")} id={filter("lesson")} onChange={changed} />
        )}
      </div>
      {asked === "new" && (
        <LessonDialog
          onClose={close}
          onSaved={(lesson) => {
            close();
            changed();
            announce("Lesson created");
            setQuery({ lesson: lesson.id });
          }}
        />
      )}
      {asked === "import" && <ImportDialog onClose={close} onImported={changed} />}
    </>
  );
}

function LessonFilters() {
  return (
    <Filters names={NAMES}>
      <TextFilter name="q" label="Search" placeholder="words, or what it is about" wide />
      <TextFilter name="category" label="Category" />
      <ChoiceFilter name="importance" label="Importance" choices={IMPORTANCES} />
      <TextFilter name="agent" label="Agent" />
      <TextFilter name="project" label="Project" />
      <TextFilter name="tag" label="Label" />
      <Toggle name="archived" label="Archived, too" />
    </Filters>
  );
}

/** What the filters say, as calls take it. */
export function lessonFilter(): LessonFilterJson {
  const importance = filter("importance").toUpperCase();
  return {
    ...narrowing({ agentId: "agent", project: "project" }),
    category: filter("category"),
    ...(filter("tag") && { tags: [filter("tag")] }),
    ...(importance && {
      importance: `IMPORTANCE_${importance}` as NonNullable<LessonFilterJson["importance"]>,
    }),
    includeArchived: filter("archived") === "1",
  };
}

function LessonList({ round }: { round: number }) {
  const inputs = [...NAMES.map(filter), round];
  const pages = usePages<LessonJson>(async (pageToken, signal) => {
    const asked = { filter: lessonFilter(), words: filter("q"), pageSize: 500, pageToken };
    const page = await learn.listLessons(asked, { signal });
    return { items: page.lessons ?? [], next: page.nextPageToken, total: num(page.totalSize) };
  }, inputs);
  const filtered = NAMES.some((name) => filter(name));
  return (
    <div class="card list">
      <Pages
        of={pages}
        names={["lesson", "lessons"]}
        empty={
          filter("q") ? <Grouped lessons={[]} round={round} /> : <NoLessons filtered={filtered} />
        }
      >
        {(lessons) => <Grouped lessons={lessons} round={round} />}
      </Pages>
    </div>
  );
}

/** The lessons whose title or content has all the words that were typed, and what means the same. */
function Grouped({ lessons, round }: { lessons: readonly LessonJson[]; round: number }) {
  const typed = filter("q");
  return (
    <>
      {typed && lessons.length === 0 && (
        <p class="muted">
          No lesson that passes the filters has all the words “{typed}” in its title or content.
        </p>
      )}
      {byCategory(lessons).map(([category, group]) => (
        <section class="group" key={category} aria-label={`Category ${category}`}>
          <h2>
            {category} <span class="muted">{count(group.length)}</span>
          </h2>
          <ul class="rows">
            {group.map((lesson) => (
              <LessonRow key={lesson.id} lesson={lesson} />
            ))}
          </ul>
        </section>
      ))}
      {typed && <Similar typed={typed} shown={lessons} round={round} />}
    </>
  );
}

function Similar(props: { typed: string; shown: readonly LessonJson[]; round: number }) {
  const asked = { query: props.typed, filter: lessonFilter(), limit: SIMILAR, peek: true };
  const found = useLoad(
    (signal) => learn.searchLessons(asked, { signal }),
    [JSON.stringify(asked), props.round],
  );
  const shown = new Set(props.shown.map((lesson) => lesson.id));
  return (
    <Show of={found} lines={2}>
      {({ results }) => {
        const others = (results ?? []).filter((one) => !shown.has(one.lesson?.id));
        if (others.length === 0) return null;
        return (
          <section class="group" aria-label="Similar in meaning">
            <h2>
              Similar in meaning <span class="muted">{count(others.length)}</span>
            </h2>
            <ul class="rows">
              {others.map(
                (one) => one.lesson && <LessonRow key={one.lesson.id} lesson={one.lesson} />,
              )}
            </ul>
          </section>
        );
      }}
    </Show>
  );
}

function LessonRow({ lesson }: { lesson: LessonJson }) {
  const chosen = filter("lesson") === lesson.id;
  return (
    <li>
      <a
        class="row"
        href={withQuery({ lesson: lesson.id })}
        aria-current={chosen ? "true" : undefined}
      >
        <span class="row-title">{lesson.title}</span>
        <ImportanceBadge lesson={lesson} />
        <span class="row-text">{lesson.content}</span>
      </a>
    </li>
  );
}

const TONES: Readonly<Record<string, Tone>> = { critical: "bad", high: "warn", low: "plain" };

/** How important a lesson is, and whether it is put away. */
export function ImportanceBadge({ lesson }: { lesson: LessonJson }) {
  const importance = word(lesson.importance, "IMPORTANCE_") || "normal";
  return (
    <span class="badges">
      <Badge tone={TONES[importance] ?? "info"}>{importance}</Badge>
      {lesson.archivedAt && <Badge>archived</Badge>}
    </span>
  );
}

function NoLessons({ filtered }: { filtered: boolean }) {
  if (filtered) {
    return (
      <Empty title="No lesson passes these filters.">
        <p>Take a filter away, or look among what is archived.</p>
      </Empty>
    );
  }
  return (
    <Empty title="No lesson was kept yet.">
      <p>Write the first one with “New lesson”, or let agents keep theirs:</p>
      <pre>
        <code>mneme lessons create "Title" "What to do next time"</code>
      </pre>
    </Empty>
  );
}

function ExportButton() {
  const [busy, setBusy] = useState(false);
  const [failed, setFailed] = useState("");
  const run = async (): Promise<void> => {
    setBusy(true);
    setFailed("");
    try {
      const typed = filter("q");
      const exported = await exportLessons(lessonFilter(), (one) => hasWords(one, typed));
      announce(`Exported ${plural(exported, "lesson")}`);
    } catch (error) {
      setFailed(error instanceof Error ? error.message : String(error));
    }
    setBusy(false);
  };
  return (
    <>
      <button
        type="button"
        onClick={run}
        disabled={busy}
        title="Those that pass the filters and the search"
      >
        {busy ? "Exporting…" : "Export"}
      </button>
      {failed && <span role="alert">{failed}</span>}
    </>
  );
}

function hasWords(lesson: LessonJson, typed: string): boolean {
  const text = `${lesson.title} ${lesson.content}`.toLowerCase();
  return typed
    .toLowerCase()
    .split(/\s+/)
    .every((part) => text.includes(part));
}

function byCategory(lessons: readonly LessonJson[]): [string, LessonJson[]][] {
  const groups = new Map<string, LessonJson[]>();
  for (const lesson of lessons) {
    const category = lesson.category || "general";
    groups.set(category, [...(groups.get(category) ?? []), lesson]);
  }
  return [...groups].sort(([a], [b]) => a.localeCompare(b));
}
