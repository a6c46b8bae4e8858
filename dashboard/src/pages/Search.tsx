/** Search: what bears on a question, as one types. */

import type { RecallRequestJson, RecallResponseJson, RecallResultJson } from "@mneme/client/http";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { useLoad } from "../api/load";
import { recall } from "../api/services";
import { Badge, Empty, PageHeader, ScoreBar, Show, Time, type Tone } from "../components/basics";
import {
  AgentFilter,
  Filters,
  TextFilter,
  TIME_FILTERS,
  TimeFilter,
  timeKey,
  timeRange,
} from "../components/filters";
import { announce } from "../components/live";
import { Table } from "../components/table";
import { count, type Numeric, num, plural, word } from "../format";
import { sourceHref } from "../links";
import { filter, narrowing, setQuery, to, withQuery } from "../router";
import "../styles/search.css";

const NAMES = ["agent", "project", "user", ...TIME_FILTERS] as const;
const SCOPES = [
  ["", "Everything"],
  ["event", "Events"],
  ["session", "Sessions"],
  ["lesson", "Lessons"],
  ["reflection", "Reflections"],
  ["knowledge", "Knowledge"],
  ["memory", "Memories"],
  ["episode", "Episodes"],
  ["skill", "Skills"],
] as const;
const TYPING_MS = 200;
const LIMIT = 20;
const MOST = 100;
const PREVIEW = 420;

export default function Search() {
  const query = filter("q");
  const limit = Math.min(MOST, Number(filter("limit")) || LIMIT);
  const request: RecallRequestJson = {
    query,
    ...(filter("scope") && { scopes: [filter("scope")] }),
    ...narrowing({ agentId: "agent", project: "project", userId: "user" }),
    ...timeRange(),
    limit,
    explain: true,
  };
  const inputs = [query, filter("scope"), limit, ...NAMES.slice(0, 3).map(filter), timeKey()];
  const found = useLoad<RecallResponseJson | null>(
    async (signal) => (query ? await recall.recall(request, { signal }) : null),
    inputs,
  );
  const total = found.data?.results?.length;
  useEffect(() => {
    if (query && total !== undefined && !found.loading) announce(plural(total, "result"));
  }, [query, total, found.loading]);
  return (
    <>
      <PageHeader title="Search" about="By meaning and by words, in all that is kept." />
      <Field />
      <nav class="chips" aria-label="Where to look">
        {SCOPES.map(([scope, name]) => (
          <a
            key={scope}
            href={withQuery({ scope, limit: "" })}
            aria-current={filter("scope") === scope ? "true" : undefined}
          >
            {name}
          </a>
        ))}
      </nav>
      <Filters names={NAMES}>
        <AgentFilter />
        <TextFilter name="project" label="Project" />
        <TextFilter name="user" label="User" />
        <TimeFilter />
      </Filters>
      {query ? (
        <Show of={found} lines={8}>
          {(answer) => answer && <Results answer={answer} request={request} key={inputs.join()} />}
        </Show>
      ) : (
        <Empty title="What do you want to know?">
          <p>
            Ask as you would ask a colleague: “why was the buyer charged twice” finds what bears on
            it, in other words, too.
          </p>
        </Empty>
      )}
    </>
  );
}

function Field() {
  const id = useId();
  const query = filter("q");
  const [typed, setTyped] = useState(query);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => {
    if (!filter("q")) field.current?.focus({ preventScroll: true });
    return () => clearTimeout(timer.current);
  }, []);
  // What an address brings is shown; what is being typed is not overtaken by it.
  useEffect(() => {
    setTyped((now) => (now.trim() === query ? now : query));
  }, [query]);
  const ask = (text: string, wait: number): void => {
    clearTimeout(timer.current);
    timer.current = setTimeout(() => setQuery({ q: text.trim(), limit: "" }), wait);
  };
  return (
    <search class="search-field">
      <form
        onSubmit={(event) => {
          event.preventDefault();
          ask(typed, 0);
        }}
      >
        <label for={id} class="hidden">
          Search
        </label>
        <input
          id={id}
          ref={field}
          data-search
          type="search"
          maxLength={8000}
          autoComplete="off"
          placeholder="A question, an error, a word"
          value={typed}
          onInput={(event) => {
            setTyped(event.currentTarget.value);
            ask(event.currentTarget.value, TYPING_MS);
          }}
        />
        <button type="submit" class="primary">
          Search
        </button>
      </form>
    </search>
  );
}

interface ResultsProps {
  readonly answer: RecallResponseJson;
  readonly request: RecallRequestJson;
}

function Results({ answer, request }: ResultsProps) {
  const { results = [], searchedCount, confidence } = answer;
  if (results.length === 0) return <Nothing answer={answer} />;
  const unsure = typeof confidence === "number" && confidence < 0.2;
  const limit = request.limit ?? LIMIT;
  return (
    <>
      <p class="fine found">
        {plural(results.length, "result")} of {plural(searchedCount, "memory", "memories")} searched
        {answer.wordsOnly && "; by words alone, the model did not answer in time"}
        {answer.partial && "; an index is being rebuilt, something may be missing"}
        {unsure && "; probably nothing here answers the question"}
      </p>
      <ol class="results" aria-label="Results">
        {results.map((result) => (
          <Result
            key={`${result.sourceType} ${result.sourceId}`}
            result={result}
            request={request}
          />
        ))}
      </ol>
      {results.length >= limit && limit < MOST && (
        <p class="paging">
          <span />
          <button
            type="button"
            onClick={() => setQuery({ limit: String(Math.min(MOST, limit + 30)) })}
          >
            Show more
          </button>
        </p>
      )}
    </>
  );
}

function Nothing({ answer }: { answer: RecallResponseJson }) {
  switch (answer.outcome) {
    case "RECALL_OUTCOME_NOTHING_STORED":
      return (
        <Empty title="Nothing of this kind is kept yet.">
          <p>
            Look everywhere instead, or import sessions with <code>mneme import</code>.
          </p>
        </Empty>
      );
    case "RECALL_OUTCOME_NOTHING_MATCHES_FILTERS":
      return (
        <Empty title="Nothing passes the filters.">
          <p>Take a filter away, or widen the time.</p>
        </Empty>
      );
    default:
      return (
        <Empty title="Nothing bears on that.">
          <p>Say it in other words, or look everywhere.</p>
        </Empty>
      );
  }
}

const TONES: Readonly<Record<string, Tone>> = {
  event: "plain",
  session: "info",
  lesson: "good",
  reflection: "good",
  knowledge: "good",
  memory: "warn",
};

function Result({ result, request }: { result: RecallResultJson; request: RecallRequestJson }) {
  const [open, setOpen] = useState(false);
  const { sourceType = "", sessionId, text = "", copies } = result;
  const href = sourceHref(result);
  const kind = result.metadata?.["event_type"];
  const cut = text.length > PREVIEW ? `${text.slice(0, PREVIEW)}…` : text;
  return (
    <li class="card result">
      <p class="result-head">
        <Badge tone={TONES[sourceType] ?? "plain"}>{sourceType}</Badge>
        {typeof kind === "string" && <span class="fine">{kind}</span>}
        <Time value={result.timestamp} />
        <ScoreBar value={Number(result.score ?? 0)} label="Score" />
      </p>
      <p class="result-text">
        {href ? (
          <a href={href}>{marked(cut, request.query ?? "")}</a>
        ) : (
          marked(cut, request.query ?? "")
        )}
      </p>
      <p class="fine about-line">
        {sessionId && sourceType !== "session" && (
          <a href={to("sessions", sessionId)}>{sessionId}</a>
        )}
        {result.agentId && <span>{result.agentId}</span>}
        {Number(copies ?? 1) > 1 && <span>{count(copies)} times</span>}
        {result.newer && <span>a newer one says almost the same</span>}
        <button type="button" class="link" aria-expanded={open} onClick={() => setOpen(!open)}>
          Why this score
        </button>
      </p>
      {open && <Terms result={result} />}
    </li>
  );
}

const SHORTEST = 3;
const COMMON = new Set(
  "and are but for has have how not that the this was what when where why with you".split(" "),
);

/** Mark the words of the question. */
function marked(text: string, query: string) {
  const words = (query.match(/[\p{L}\p{N}_-]+/gu) ?? []).filter(
    (part) => part.length >= SHORTEST && !COMMON.has(part.toLowerCase()),
  );
  if (words.length === 0) return text;
  const known = new Set(words.map((part) => part.toLowerCase()));
  return text
    .split(/([\p{L}\p{N}_-]+)/u)
    .map((part, at) => (known.has(part.toLowerCase()) ? <mark key={at}>{part}</mark> : part));
}

interface StepRow {
  readonly name: string;
  readonly about: string;
  /** What was measured; empty of a step that measures nothing. */
  readonly measured: string;
  /** What stands under the line so far, or is added to it. */
  readonly value: string;
}

/** How a score came to be: its terms, their sum, and how that becomes the score. */
function Terms({ result }: { result: RecallResultJson }) {
  const { terms = [], steps } = result;
  if (!steps || terms.length === 0) {
    return <p class="fine">This score is no sum of terms: it is what was measured.</p>;
  }
  const sum = num(steps.sum);
  const share = Math.max(0, Math.min(1, sum / num(steps.highest)));
  const rows: StepRow[] = terms.map((term) => {
    const [name, about] = TERMS[term.name ?? ""] ?? [word(term.name, ""), ""];
    return { name, about, measured: three(term.value), value: signed(term.contribution) };
  });
  const step = (name: string, value: number, about: string): void => {
    rows.push({ name, about, measured: "", value: three(value) });
  };
  step("Sum", sum, "What ranks the results of a question.");
  step(
    `÷ highest, ${three(steps.highest)}`,
    share,
    "What a memory that fits perfectly would get for this question; from 0 to 1.",
  );
  step(
    `× evidence, ${three(steps.evidence)}`,
    share * num(steps.evidence),
    "How well the best result fits at all: the same for all results of a question.",
  );
  step("√, the score", num(result.score), "The root, so that scores spread evenly.");
  return (
    <Table
      caption="How the score came to be"
      columns={[
        {
          name: "Term",
          cell: (row) => (
            <>
              {row.name} <span class="fine">{row.about}</span>
            </>
          ),
        },
        { name: "Measured", right: true, cell: (row) => row.measured },
        { name: "Adds", right: true, cell: (row) => row.value },
      ]}
      rows={rows}
      keyOf={(row) => row.name}
    />
  );
}

function three(value: Numeric): string {
  return num(value).toFixed(3);
}

function signed(value: Numeric): string {
  return `${num(value) < 0 ? "−" : "+"}${Math.abs(num(value)).toFixed(3)}`;
}

/** The terms in words, and what each tells. docs/recall.md has the formulas. */
const TERMS: Readonly<Record<string, readonly [name: string, about: string]>> = {
  lexical: ["Words", "The question's words in it, beside the best candidate's."],
  dense: ["Meaning", "How near it is to the question in meaning."],
  answer: ["Answers a question", "What was asked just before it is like this question."],
  next: ["What follows", "What was said just after it bears on the question."],
  alone: ["On its own", "Its meaning once more: nothing is said around it that could tell."],
  session_dense: ["Session, meaning", "The nearest of its session in meaning."],
  session_lexical: ["Session, words", "The best of its session by words."],
  passage: ["Passage", "The question's words in what is said around it."],
  events: ["Its events", "What the events of the session come to."],
  author: ["Who said it", "The question names who said it."],
  length: ["Length", "A few words tell little; a page tells anything."],
  date: ["Date", "It is of a day that the question names."],
  failure: ["Failure", "It is an error, and the question speaks of one."],
  importance: ["Importance", "How important it was said to be."],
  recency: ["Recency", "How new it is: decides between equals."],
  repeated: ["Said before", "The same text ranks higher already."],
  newer: ["Newer", "It took the place of an older one that says almost the same."],
};
