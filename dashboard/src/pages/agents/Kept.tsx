/** All that is kept of one user, or of one agent. */

import type { AgentJson, EpisodeJson, MemoryJson, SessionJson } from "@mneme/client/http";
import { useState } from "preact/hooks";
import { useLoad, usePages } from "../../api/load";
import { events, memories, skills } from "../../api/services";
import { Badge, Figure, PageHeader, Section, Show, Time } from "../../components/basics";
import { Pages, Table } from "../../components/table";
import { Text } from "../../components/text";
import { cost, count, date, num } from "../../format";
import { to } from "../../router";
import { SESSION_COLUMNS } from "../sessions/parts";
import { Forget, type Whose } from "./Forget";

const PAGE = 20;

/** The page of a user. */
export function User({ id }: { id: string }) {
  return (
    <>
      <Crumbs />
      <PageHeader title={id} about="All that is kept of this user." />
      <Everything whose={{ kind: "user", id }} />
    </>
  );
}

/** The page of an agent. */
export function Agent({ id }: { id: string }) {
  const agent = useLoad((signal) => find(id, signal), [id]);
  return (
    <>
      <Crumbs />
      <PageHeader
        title={agent.data?.name || id}
        about={agent.data?.name ? id : "An agent."}
        actions={<a href={`/insights?${new URLSearchParams({ agent: id })}`}>Insights about it</a>}
      />
      <Show of={agent} lines={2}>
        {(known) => (known ? <AgentFigures agent={known} /> : null)}
      </Show>
      <Everything whose={{ kind: "agent", id }} />
    </>
  );
}

function Crumbs() {
  return (
    <p class="crumbs">
      <a href="/agents">Agents and users</a>
    </p>
  );
}

/** Agents are only listed, by id. */
async function find(id: string, signal: AbortSignal): Promise<AgentJson | null> {
  let pageToken = "";
  do {
    const page = await events.listAgents({ pageSize: 1000, pageToken }, { signal });
    const found = page.agents?.find((agent) => agent.id === id);
    if (found) return found;
    pageToken = page.nextPageToken ?? "";
  } while (pageToken);
  return null;
}

function AgentFigures({ agent }: { agent: AgentJson }) {
  return (
    <div class="figures">
      <Figure name="Sessions" value={count(agent.sessionCount)} />
      <Figure name="Events" value={count(agent.eventCount)} />
      <Figure name="Tool calls" value={count(agent.toolCallCount)} />
      <Figure
        name="Errors"
        value={count(agent.errorCount)}
        tone={num(agent.errorCount) ? "bad" : "good"}
      />
      <Figure name="Cost" value={cost(agent.totalCostUsd)} />
      <Figure
        name="Last seen"
        value={agent.lastSeenAt ? date(agent.lastSeenAt) : "–"}
        note={agent.firstSeenAt && `first on ${date(agent.firstSeenAt)}`}
      />
    </div>
  );
}

function Everything({ whose }: { whose: Whose }) {
  const [round, setRound] = useState(0);
  const of = whose.kind === "user" ? { userId: whose.id } : { agentId: whose.id };
  const hidden = whose.kind === "user" ? "User" : "Agent";
  const inputs = [whose.kind, whose.id, round];
  const sessions = usePages<SessionJson>(async (pageToken, signal) => {
    const page = await events.listSessions({ ...of, pageSize: PAGE, pageToken }, { signal });
    return { items: page.sessions ?? [], next: page.nextPageToken, total: num(page.totalSize) };
  }, inputs);
  const remembered = usePages<MemoryJson>(async (pageToken, signal) => {
    const page = await memories.listMemories(
      { filter: of, includeSuperseded: true, pageSize: PAGE, pageToken },
      { signal },
    );
    return { items: page.memories ?? [], next: page.nextPageToken, total: num(page.totalSize) };
  }, inputs);
  const attempts = usePages<EpisodeJson>(async (pageToken, signal) => {
    const page = await skills.listEpisodes({ filter: of, pageSize: PAGE, pageToken }, { signal });
    return { items: page.episodes ?? [], next: page.nextPageToken, total: num(page.totalSize) };
  }, inputs);
  return (
    <>
      <Section title="Sessions">
        <Pages of={sessions} names={["session", "sessions"]} empty={<None what="session" />}>
          {(items) => (
            <Table
              caption="Sessions"
              columns={SESSION_COLUMNS.filter((column) => column.name !== hidden)}
              rows={items}
              keyOf={(session) => session.id ?? ""}
            />
          )}
        </Pages>
      </Section>
      <Section title="Memories">
        <Pages of={remembered} names={["memory", "memories"]} empty={<None what="memory" />}>
          {(items) => (
            <ul class="evidence">
              {items.map((memory) => (
                <li key={memory.id}>
                  <Text value={memory.text ?? ""} />
                  <p class="fine">
                    <a href={to("memories", memory.id ?? "")}>
                      <Time value={memory.since} exact />
                    </a>
                    {memory.supersededBy && (
                      <>
                        {" "}
                        <Badge>replaced</Badge>
                      </>
                    )}
                  </p>
                </li>
              ))}
            </ul>
          )}
        </Pages>
      </Section>
      <Section title="Episodes">
        <Pages of={attempts} names={["episode", "episodes"]} empty={<None what="episode" />}>
          {(items) => (
            <ul class="evidence">
              {items.map((episode) => (
                <li key={episode.id}>
                  <a href={to("episodes", episode.id ?? "")}>{episode.task}</a>{" "}
                  <Badge tone={episode.success ? "good" : "bad"}>
                    {episode.success ? "succeeded" : "failed"}
                  </Badge>
                </li>
              ))}
            </ul>
          )}
        </Pages>
      </Section>
      <Forget key={whose.id} whose={whose} onForgotten={() => setRound(round + 1)} />
    </>
  );
}

function None({ what }: { what: string }) {
  return <p class="muted">No {what} is kept.</p>;
}
