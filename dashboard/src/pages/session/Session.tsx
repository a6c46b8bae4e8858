/** One session: what was done, step by step, and whether its record is whole. */

import type { SessionJson } from "@mneme/client/http";
import { useEffect } from "preact/hooks";
import { useLoad } from "../../api/load";
import { events as api } from "../../api/services";
import { Badge, Empty, ErrorBox, Figure, Loading, PageHeader, Show } from "../../components/basics";
import { Toggle } from "../../components/filters";
import { Id, Json } from "../../components/text";
import { cost, count, duration, num, plural, short } from "../../format";
import { filter, to, withQuery } from "../../router";
import { OutcomeBadge, StatusBadge, sessionMs } from "../sessions/parts";
import { useEvents } from "./follow";
import { isError, messageOf, rowsOf, type Step, stepsOf, stepWith } from "./steps";
import { hidden, Timeline } from "./Timeline";

const REFRESH_MS = 1500;
const ENDED_MS = 4000;

/** The page of one session. */
export function Session({ id }: { id: string }) {
  const session = useLoad(
    async (signal) => (await api.getSession({ sessionId: id }, { signal })).session ?? {},
    [id],
  );
  return (
    <>
      <p class="crumbs">
        <a href="/sessions">Sessions</a>
      </p>
      {session.data ? (
        <>
          {session.error && <ErrorBox error={session.error} retry={session.reload} />}
          <Loaded id={id} session={session.data} reload={session.reload} />
        </>
      ) : session.error ? (
        <>
          <PageHeader title={id} />
          <ErrorBox error={session.error} retry={session.reload} />
        </>
      ) : (
        <Loading lines={8} />
      )}
    </>
  );
}

function Loaded(props: { id: string; session: SessionJson; reload: () => void }) {
  const { id, session, reload } = props;
  const active = session.status === "SESSION_STATUS_ACTIVE";
  const chosenId = filter("event");
  const followed = useEvents(id, active, chosenId);
  const known = followed.events?.length ?? 0;
  useEffect(() => {
    if (!active) return;
    // Its figures follow its events at once. That it ended is no event: that has to be asked.
    const behind = known > num(session.eventCount);
    const timer = setInterval(() => document.hidden || reload(), behind ? REFRESH_MS : ENDED_MS);
    return () => clearInterval(timer);
  }, [active, known, session.eventCount]);
  const steps = stepsOf(followed.events ?? []);
  const partial = followed.more !== undefined;
  const chosen = chosenId ? stepWith(steps, chosenId) : undefined;
  const rows = rowsOf(steps, filter("all") === "1", chosen?.event.id ?? "", partial);
  return (
    <>
      <PageHeader
        title={firstWords(steps) || id}
        about={<About session={session} />}
        actions={
          <>
            {followed.live && <Badge tone="info">Live</Badge>}
            <StatusBadge session={session} />
            <OutcomeBadge session={session} />
          </>
        }
      />
      <Figures session={session} />
      <Verified id={id} count={num(session.eventCount)} />
      <Errors steps={steps} partial={partial} />
      <section class="card" aria-label="What happened">
        <div class="card-header">
          <h2>What happened</h2>
          <div class="actions">
            <span class="fine">{hidden(rows)}</span>
            <Toggle name="all" label="Show everything" />
          </div>
        </div>
        {followed.events === undefined && !followed.error && <Loading lines={8} />}
        {followed.events?.length === 0 && !followed.error && (
          <Empty title="Nothing was recorded in this session.">
            <p>
              {active ? "What its agent records appears here by itself." : "It ended as it began."}
            </p>
          </Empty>
        )}
        {rows.length > 0 && <Timeline rows={rows} chosen={chosen} />}
        {followed.error && <ErrorBox error={followed.error} />}
        {chosenId && !chosen && followed.events && !followed.loading && (
          <p class="fine">The event that the address names is not among those loaded.</p>
        )}
        {followed.more && (
          <p class="paging">
            <span role="status">
              {plural(known, "event")} of {count(session.eventCount)}
            </span>
            <button type="button" onClick={followed.more} disabled={followed.loading}>
              Load more
            </button>
          </p>
        )}
      </section>
      {session.metadata && Object.keys(session.metadata).length > 0 && (
        <details class="card">
          <summary>What else was noted about the session</summary>
          <Json value={session.metadata} />
        </details>
      )}
    </>
  );
}

/** What the session is about: the first thing that was said, cut to a heading. */
function firstWords(steps: readonly Step[]): string {
  const text = steps.find(({ kind, noise }) => kind === "message" && !noise)?.event.text ?? "";
  const line = text.trim().split("\n")[0] ?? "";
  return line.length > 110 ? `${line.slice(0, 108).trimEnd()}…` : line;
}

function About({ session }: { session: SessionJson }) {
  const { agentId, agentName, userId, project, tags = [] } = session;
  return (
    <span class="about-line">
      <Id value={session.id ?? ""} />
      {agentId && <a href={to("agents", agentId)}>{agentName || agentId}</a>}
      {project && <a href={`/sessions?${new URLSearchParams({ project })}`}>{project}</a>}
      {userId && <a href={to("agents", "user", userId)}>{userId}</a>}
      {tags.map((tag) => (
        <a key={tag} href={`/sessions?${new URLSearchParams({ tag })}`} class="tag">
          {tag}
        </a>
      ))}
    </span>
  );
}

function Figures({ session }: { session: SessionJson }) {
  const errors = num(session.errorCount);
  const tokens = num(session.totalInputTokens) + num(session.totalOutputTokens);
  return (
    <div class="figures tight">
      <Figure name="Took" value={duration(sessionMs(session))} />
      <Figure name="Events" value={count(session.eventCount)} />
      <Figure name="Tool calls" value={count(session.toolCallCount)} />
      <Figure name="Errors" value={count(errors)} tone={errors ? "bad" : "good"} />
      <Figure name="Tokens" value={short(tokens)} />
      <Figure name="Cost" value={cost(session.totalCostUsd)} />
    </div>
  );
}

/** The errors of the session, to go to. */
function Errors({ steps, partial }: { steps: readonly Step[]; partial: boolean }) {
  const failed = steps.filter((step) => step.failed);
  if (failed.length === 0) return null;
  return (
    <section class="card errors" aria-label="Errors">
      <h2>
        {plural(failed.length, "error")}
        {partial && " among the events loaded"}
      </h2>
      <ul>
        {failed.slice(0, 12).map((step) => {
          const event = step.answer && isError(step.answer) ? step.answer : step.event;
          return (
            <li key={event.id}>
              <a href={withQuery({ event: event.id })}>
                {event.name && <code>{event.name}</code>} {messageOf(event).slice(0, 200)}
              </a>
            </li>
          );
        })}
      </ul>
      {failed.length > 12 && <p class="fine">and {failed.length - 12} more below</p>}
    </section>
  );
}

/** Whether the chain of hashes holds. */
function Verified({ id, count: events }: { id: string; count: number }) {
  const checked = useLoad(
    (signal) => api.verifyEvents({ sessionId: id }, { signal }),
    [id, events],
  );
  return (
    <div class="verified">
      <Show of={checked} lines={1}>
        {({ valid, headHash = "", brokenChains = [], eventsChecked, eventsForgotten }) =>
          valid ? (
            <p>
              <Badge tone="good">Record verified</Badge>{" "}
              <span class="fine">
                {plural(eventsChecked, "event")} hashed anew, each fits the one before
                {num(eventsForgotten) > 0 && `; ${count(eventsForgotten)} forgotten`}
                {headHash && (
                  <>
                    ; the last hash is <Id value={headHash} />
                  </>
                )}
              </span>
            </p>
          ) : (
            <div class="error-box" role="alert">
              <p>
                <strong>The record of this session was changed.</strong>
              </p>
              {brokenChains.map((chain) => (
                <p key={chain.eventId}>
                  At place {count(chain.sequence)}: {chain.reason}
                </p>
              ))}
            </div>
          )
        }
      </Show>
    </div>
  );
}
