/** Learning: the sessions that learn what works; below them, one session. */

import type { LearningSessionJson, LearningStatusJson } from "@mneme/client/http";
import { useLoad, usePages } from "../api/load";
import { learning } from "../api/services";
import { Badge, Empty, PageHeader, Time } from "../components/basics";
import { ChoiceFilter, Filters } from "../components/filters";
import { type Column, Pages, Table } from "../components/table";
import { Id } from "../components/text";
import { count, num } from "../format";
import type { PageProps } from "../pages";
import { filter, to } from "../router";
import { LearningSession } from "./learning/Session";
import { figure } from "./learning/values";
import "../styles/learning.css";

const NAMES = ["algorithm", "status"] as const;
const STATUSES = [
  ["", "Any"],
  ["active", "Active"],
  ["ended", "Ended"],
] as const;

export default function Learning({ rest: [id] }: PageProps) {
  if (id) return <LearningSession key={id} id={id} />;
  return (
    <>
      <PageHeader
        title="Learning"
        about="Which action works in which situation, learned from rewards."
      />
      <Filters names={NAMES}>
        <AlgorithmFilter />
        <ChoiceFilter name="status" label="Status" choices={STATUSES} />
      </Filters>
      <div class="card">
        <List />
      </div>
    </>
  );
}

function AlgorithmFilter() {
  const known = useLoad((signal) => learning.listAlgorithms({}, { signal }), []);
  const names = (known.data?.algorithms ?? []).flatMap((one) => one.name ?? []);
  // What the address asks for is a choice before the others are known, and when they never are.
  const shown = new Set([filter("algorithm"), ...names].filter(Boolean));
  const choices = [...shown].map((name) => [name, name] as const);
  return <ChoiceFilter name="algorithm" label="Algorithm" choices={[["", "Any"], ...choices]} />;
}

function List() {
  const inputs = NAMES.map(filter);
  const pages = usePages<LearningSessionJson>(async (pageToken, signal) => {
    const status = filter("status").toUpperCase();
    const page = await learning.listLearningSessions(
      {
        algorithm: filter("algorithm"),
        ...(status && { status: `LEARNING_STATUS_${status}` as LearningStatusJson }),
        pageSize: 50,
        pageToken,
      },
      { signal },
    );
    return { items: page.sessions ?? [], next: page.nextPageToken };
  }, inputs);
  return (
    <Pages
      of={pages}
      names={["session", "sessions"]}
      empty={<None filtered={inputs.some(Boolean)} />}
    >
      {(sessions) => (
        <Table
          caption="Learning sessions"
          columns={COLUMNS}
          rows={sessions}
          keyOf={(session) => session.id ?? ""}
        />
      )}
    </Pages>
  );
}

/** Whether a session is in use. */
export function LearningStatus({ of }: { of: LearningSessionJson }) {
  return of.status === "LEARNING_STATUS_ENDED" ? (
    <Badge>ended</Badge>
  ) : (
    <Badge tone="good">active</Badge>
  );
}

const COLUMNS: readonly Column<LearningSessionJson>[] = [
  {
    name: "Session",
    cell: (session) => <Id value={session.id ?? ""} href={to("learning", session.id ?? "")} />,
  },
  { name: "Algorithm", cell: (session) => <code>{session.algorithm}</code> },
  { name: "Status", wide: true, cell: (session) => <LearningStatus of={session} /> },
  { name: "Steps", right: true, wide: true, cell: (session) => count(session.transitions) },
  {
    name: "Episodes",
    right: true,
    wide: true,
    cell: (session) => count(session.episodesCompleted),
  },
  {
    name: "Mean reward",
    right: true,
    cell: (session) => (num(session.episodesCompleted) ? figure(session.avgReward) : "–"),
  },
  { name: "Changed", wide: true, cell: (session) => <Time value={session.updatedAt} /> },
];

function None({ filtered }: { filtered: boolean }) {
  if (filtered) {
    return (
      <Empty title="No session is like that.">
        <p>Take a filter away.</p>
      </Empty>
    );
  }
  return (
    <Empty title="Nothing is being learned yet.">
      <p>Start a session, ask it for actions, and tell it what came of them:</p>
      <pre>
        <code>mneme learning start thompson which-plan</code>
      </pre>
      <p>In Python and TypeScript, a chooser does all three.</p>
    </Empty>
  );
}
