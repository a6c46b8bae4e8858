/** Sessions: the list, and a project's timeline; below them, one session. */

import type { OutcomeJson, SessionJson, SessionStatusJson } from "@mneme/client/http";
import { usePages } from "../api/load";
import { events } from "../api/services";
import { PageHeader } from "../components/basics";
import {
  AgentFilter,
  ChoiceFilter,
  Filters,
  TextFilter,
  TIME_FILTERS,
  TimeFilter,
  timeKey,
  timeRange,
} from "../components/filters";
import { Pages, Table } from "../components/table";
import { num } from "../format";
import type { PageProps } from "../pages";
import { filter, narrowing, withQuery } from "../router";
import { Session } from "./session/Session";
import { ProjectTimeline } from "./sessions/ProjectTimeline";
import { NoSessions, SESSION_COLUMNS } from "./sessions/parts";
import "../styles/sessions.css";

const NAMES = ["agent", "user", "project", "status", "tag", "outcome", ...TIME_FILTERS] as const;
const OUTCOMES = [
  ["", "Any"],
  ["success", "Success"],
  ["partial", "Partial"],
  ["failure", "Failure"],
] as const;
const STATUSES = [
  ["", "Any"],
  ["active", "Active"],
  ["completed", "Completed"],
  ["error", "Failed"],
] as const;

export default function Sessions({ rest: [id] }: PageProps) {
  if (id) return <Session key={id} id={id} />;
  const timeline = filter("view") === "timeline";
  return (
    <>
      <PageHeader title="Sessions" about="Every run of an agent, most recently started first." />
      <nav class="tabs" aria-label="Views">
        <a href={withQuery({ view: "" })} aria-current={timeline ? undefined : "page"}>
          List
        </a>
        <a href={withQuery({ view: "timeline" })} aria-current={timeline ? "page" : undefined}>
          Timeline
        </a>
      </nav>
      <Filters names={NAMES}>
        <TextFilter name="project" label="Project" />
        <AgentFilter />
        {!timeline && (
          <>
            <TextFilter name="user" label="User" />
            <TextFilter name="tag" label="Label" />
            <ChoiceFilter name="status" label="Status" choices={STATUSES} />
            <ChoiceFilter name="outcome" label="Outcome" choices={OUTCOMES} />
          </>
        )}
        <TimeFilter />
      </Filters>
      {timeline ? <ProjectTimeline /> : <SessionList />}
    </>
  );
}

function SessionList() {
  const inputs = [...NAMES.slice(0, 6).map(filter), timeKey()];
  const pages = usePages<SessionJson>(async (pageToken, signal) => {
    const status = filter("status").toUpperCase();
    const outcome = filter("outcome").toUpperCase();
    const page = await events.listSessions(
      {
        ...narrowing({ agentId: "agent", userId: "user", project: "project" }),
        ...(filter("tag") && { tags: [filter("tag")] }),
        ...(status && { status: `SESSION_STATUS_${status}` as SessionStatusJson }),
        ...(outcome && { outcome: `OUTCOME_${outcome}` as OutcomeJson }),
        ...timeRange(),
        pageSize: 50,
        pageToken,
      },
      { signal },
    );
    return { items: page.sessions ?? [], next: page.nextPageToken, total: num(page.totalSize) };
  }, inputs);
  const filtered = inputs.some((value) => value.replaceAll("|", ""));
  return (
    <div class="card">
      <Pages of={pages} names={["session", "sessions"]} empty={<NoSessions filtered={filtered} />}>
        {(sessions) => (
          <Table
            caption="Sessions"
            columns={SESSION_COLUMNS}
            rows={sessions}
            keyOf={(session) => session.id ?? ""}
          />
        )}
      </Pages>
    </div>
  );
}
