/** Agents and users: who they are, and all that is kept of one of them. */

import type { AgentJson, SessionJson } from "@mneme/client/http";
import { useId, useState } from "preact/hooks";
import { useLoad, usePages } from "../api/load";
import { events } from "../api/services";
import { Badge, Empty, PageHeader, Section, Show, Time } from "../components/basics";
import { type Column, Pages, Table } from "../components/table";
import { Id } from "../components/text";
import { cost, count, num, plural } from "../format";
import type { PageProps } from "../pages";
import { navigate, to } from "../router";
import { Agent, User } from "./agents/Kept";
import "../styles/sessions.css";
import "../styles/context.css";

const LOOKED_AT = 1000;
const SHOWN = 30;

export default function Agents({ rest: [id, user] }: PageProps) {
  if (id === "user" && user) return <User key={user} id={user} />;
  if (id) return <Agent key={id} id={id} />;
  return (
    <>
      <PageHeader title="Agents and users" about="Who acts, and who is served." />
      <AgentList />
      <Users />
    </>
  );
}

function AgentList() {
  const pages = usePages<AgentJson>(async (pageToken, signal) => {
    const page = await events.listAgents({ pageSize: 50, pageToken }, { signal });
    return { items: page.agents ?? [], next: page.nextPageToken };
  }, []);
  return (
    <Section title="Agents">
      <Pages
        of={pages}
        names={["agent", "agents"]}
        empty={
          <Empty title="No agent has been seen yet.">
            <p>An agent is known from its first session that names it as its agent.</p>
          </Empty>
        }
      >
        {(agents) => (
          <Table
            caption="Agents"
            columns={COLUMNS}
            rows={agents}
            keyOf={(agent) => agent.id ?? ""}
          />
        )}
      </Pages>
    </Section>
  );
}

const COLUMNS: readonly Column<AgentJson>[] = [
  {
    name: "Agent",
    cell: (agent) => (
      <>
        <Id value={agent.id ?? ""} href={to("agents", agent.id ?? "")} />
        {agent.name && <span class="fine"> {agent.name}</span>}
      </>
    ),
  },
  { name: "Last seen", cell: (agent) => <Time value={agent.lastSeenAt} /> },
  { name: "Sessions", right: true, cell: (agent) => count(agent.sessionCount) },
  { name: "Tool calls", right: true, wide: true, cell: (agent) => count(agent.toolCallCount) },
  {
    name: "Errors",
    right: true,
    wide: true,
    cell: (agent) =>
      num(agent.errorCount) ? <Badge tone="bad">{count(agent.errorCount)}</Badge> : "0",
  },
  { name: "Cost", right: true, wide: true, cell: (agent) => cost(agent.totalCostUsd) },
];

interface Served {
  readonly id: string;
  readonly sessions: number;
  readonly last: string;
}

/** Users are known by what serves them: the latest sessions tell of the latest. */
function Users() {
  const latest = useLoad(
    async (signal) =>
      served((await events.listSessions({ pageSize: LOOKED_AT }, { signal })).sessions ?? []),
    [],
  );
  return (
    <Section
      title="Users"
      about={`Those of the latest ${count(LOOKED_AT)} sessions. Any other is found by the id.`}
      actions={<GoTo />}
    >
      <Show of={latest} lines={4}>
        {(users) =>
          users.length === 0 ? (
            <p class="muted">No session names the user it serves.</p>
          ) : (
            <ul class="users">
              {users.slice(0, SHOWN).map((user) => (
                <li key={user.id}>
                  <a href={to("agents", "user", user.id)}>{user.id}</a>
                  <span class="fine">
                    {plural(user.sessions, "session")}, <Time value={user.last} />
                  </span>
                </li>
              ))}
              {users.length > SHOWN && <li class="fine">and {count(users.length - SHOWN)} more</li>}
            </ul>
          )
        }
      </Show>
    </Section>
  );
}

function served(sessions: readonly SessionJson[]): Served[] {
  const users = new Map<string, Served>();
  for (const { userId, startedAt = "" } of sessions) {
    if (!userId) continue;
    const known = users.get(userId);
    // The newest session comes first.
    users.set(userId, {
      id: userId,
      sessions: (known?.sessions ?? 0) + 1,
      last: known?.last ?? startedAt,
    });
  }
  return [...users.values()];
}

function GoTo() {
  const id = useId();
  const [user, setUser] = useState("");
  return (
    <form
      class="go"
      onSubmit={(event) => {
        event.preventDefault();
        if (user.trim()) navigate(to("agents", "user", user.trim()));
      }}
    >
      <label for={id} class="hidden">
        A user's id
      </label>
      <input
        id={id}
        placeholder="A user's id"
        autoComplete="off"
        value={user}
        onInput={(event) => setUser(event.currentTarget.value)}
      />
      <button type="submit">Show</button>
    </form>
  );
}
