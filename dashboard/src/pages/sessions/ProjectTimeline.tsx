/** Sessions by time, with what came of them, and the earlier ones that they resemble. */

import type { TimelineEntryJson } from "@mneme/client/http";
import { usePages } from "../../api/load";
import { context } from "../../api/services";
import { Badge, Time, type Tone } from "../../components/basics";
import { timeKey, timeRange } from "../../components/filters";
import { Pages } from "../../components/table";
import { Text } from "../../components/text";
import { date, percent, plural, word } from "../../format";
import { filter, narrowing, to } from "../../router";
import { NoSessions, StatusBadge } from "./parts";

/** The timeline of a project, or of all. */
export function ProjectTimeline() {
  const inputs = [filter("project"), filter("agent"), timeKey()];
  const pages = usePages<TimelineEntryJson>(async (pageToken, signal) => {
    const page = await context.getTimeline(
      {
        ...narrowing({ project: "project", agentId: "agent" }),
        ...timeRange(),
        links: 2,
        pageSize: 25,
        pageToken,
      },
      { signal },
    );
    return { items: page.entries ?? [], next: page.nextPageToken };
  }, inputs);
  const filtered = inputs.some((value) => value.replaceAll("|", ""));
  return (
    <Pages of={pages} names={["session", "sessions"]} empty={<NoSessions filtered={filtered} />}>
      {(entries) => (
        <ol class="timeline">
          {entries.map((entry, at) => (
            <Entry
              key={entry.session?.id}
              entry={entry}
              day={dayOf(entry) === dayOf(entries[at - 1]) ? "" : dayOf(entry)}
            />
          ))}
        </ol>
      )}
    </Pages>
  );
}

function dayOf(entry: TimelineEntryJson | undefined): string {
  return entry?.session?.startedAt ? date(entry.session.startedAt) : "";
}

function Entry({ entry: { session = {}, summary, related = [] }, day }: EntryProps) {
  const outcome = word(summary?.outcome, "OUTCOME_");
  const tone: Tone = outcome === "success" ? "good" : outcome === "failure" ? "bad" : "plain";
  return (
    <li>
      {day && <h2 class="day">{day}</h2>}
      <article class="card">
        <div class="card-header">
          <h3>
            <a href={to("sessions", session.id ?? "")}>
              {(summary?.summary ?? "").split("\n")[0]?.slice(0, 160) || session.id}
            </a>
          </h3>
          <div class="actions">
            {outcome && outcome !== "unknown" ? (
              <Badge tone={tone}>{outcome}</Badge>
            ) : (
              <StatusBadge session={session} />
            )}
          </div>
        </div>
        <p class="fine about-line">
          <Time value={session.startedAt} exact />
          <span>{session.agentName || session.agentId}</span>
          <span>{session.project}</span>
          <span>{plural(session.eventCount, "event")}</span>
        </p>
        {summary?.summary?.includes("\n") && (
          <details>
            <summary>Summary</summary>
            <Text value={summary.summary} />
          </details>
        )}
        {related.length > 0 && (
          <p class="fine">
            Resembles{" "}
            {related.map((link, at) => (
              <span key={link.sessionId}>
                {at > 0 && ", "}
                <a href={to("sessions", link.sessionId ?? "")}>{link.sessionId}</a> (
                {percent(link.similarity, 0)})
              </span>
            ))}
          </p>
        )}
      </article>
    </li>
  );
}

interface EntryProps {
  readonly entry: TimelineEntryJson;
  readonly day: string;
}
