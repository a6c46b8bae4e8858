/** What several pages show of sessions. */

import type { SessionJson } from "@mneme/client/http";
import { Badge, Empty, Time, type Tone } from "../../components/basics";
import type { Column } from "../../components/table";
import { Id } from "../../components/text";
import { cost, count, duration, num, word } from "../../format";
import { to } from "../../router";

/** How a session stands, as a badge. */
export function StatusBadge({ session }: { session: SessionJson }) {
  if (session.system) return <Badge>system</Badge>;
  const status = word(session.status, "SESSION_STATUS_");
  const tone: Tone = status === "error" ? "bad" : status === "active" ? "info" : "plain";
  return <Badge tone={tone}>{status === "error" ? "failed" : status || "unknown"}</Badge>;
}

const OUTCOME_TONES: Record<string, Tone> = { success: "good", partial: "warn", failure: "bad" };

/** How a session turned out, as a badge: that it ended does not say so, but that it failed does. */
export function OutcomeBadge({ session }: { session: SessionJson }) {
  if (session.system) return null;
  const outcome = word(session.outcome, "OUTCOME_");
  const said = outcome && outcome !== "unspecified";
  if (!said && session.status === "SESSION_STATUS_ACTIVE") return null;
  if (outcome === "failure" && session.status === "SESSION_STATUS_ERROR") return null;
  return <Badge tone={OUTCOME_TONES[outcome] ?? "plain"}>{said ? outcome : "unknown"}</Badge>;
}

/** How a session ended: its status, unless the outcome says more; both where they differ. */
function EndBadges({ session }: { session: SessionJson }) {
  const known = word(session.outcome, "OUTCOME_") in OUTCOME_TONES;
  const more = known && session.status === "SESSION_STATUS_COMPLETED";
  return (
    <>
      {!more && <StatusBadge session={session} />} {known && <OutcomeBadge session={session} />}
    </>
  );
}

/** How long a session took, in milliseconds; up to its last event while it is active. */
export function sessionMs(session: SessionJson): number {
  const end = session.endedAt ?? session.lastEventAt;
  if (!end || !session.startedAt) return 0;
  return Math.max(0, new Date(end).getTime() - new Date(session.startedAt).getTime());
}

function Who({ id }: { id: string | undefined }) {
  if (!id) return <span class="muted">–</span>;
  return <Id value={id} href={to("agents", "user", id)} />;
}

/** The columns of a table of sessions. */
export const SESSION_COLUMNS: readonly Column<SessionJson>[] = [
  {
    name: "Session",
    cell: (session) => <Id value={session.id ?? ""} href={to("sessions", session.id ?? "")} />,
  },
  { name: "Status", cell: (session) => <EndBadges session={session} /> },
  { name: "Agent", wide: true, cell: (session) => session.agentName || session.agentId || "–" },
  { name: "User", wide: true, cell: (session) => <Who id={session.userId} /> },
  { name: "Project", wide: true, cell: (session) => session.project || "–" },
  { name: "Started", wide: true, cell: (session) => <Time value={session.startedAt} /> },
  { name: "Took", right: true, wide: true, cell: (session) => duration(sessionMs(session)) },
  { name: "Events", right: true, wide: true, cell: (session) => count(session.eventCount) },
  {
    name: "Errors",
    right: true,
    cell: (session) =>
      num(session.errorCount) ? <Badge tone="bad">{count(session.errorCount)}</Badge> : "0",
  },
  { name: "Cost", right: true, wide: true, cell: (session) => cost(session.totalCostUsd) },
];

/** What to do when there is no session. */
export function NoSessions({ filtered }: { filtered: boolean }) {
  if (filtered) {
    return (
      <Empty title="No session passes these filters.">
        <p>Take a filter away, or widen the time.</p>
      </Empty>
    );
  }
  return (
    <Empty title="No session was recorded yet.">
      <p>Import transcripts, or the sample sessions that come with Mneme:</p>
      <pre>
        <code>mneme import samples/invoices/sessions.jsonl</code>
      </pre>
      <p>Agents record theirs with the Python or TypeScript client, over MCP or OpenTelemetry.</p>
    </Empty>
  );
}
