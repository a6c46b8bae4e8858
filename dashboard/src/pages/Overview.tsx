/** Overview: whether all is well, what it costs, and what happened last. */

import type {
  CostAnalysisJson,
  ErrorPatternsJson,
  ListSessionsResponseJson,
  PerformanceTrendsJson,
  ReflectRequestJson,
  TrendTestJson,
} from "@mneme/client/http";
import { type Loaded, useLoad } from "../api/load";
import { admin, events, reflect } from "../api/services";
import { Badge, Figure, PageHeader, Section, Show, Time, type Tone } from "../components/basics";
import { Bars, Columns, Lines } from "../components/chart";
import {
  AgentFilter,
  Filters,
  TextFilter,
  TIME_FILTERS,
  TimeFilter,
  timeKey,
  timeRange,
} from "../components/filters";
import { Table } from "../components/table";
import { bytes, cost, count, duration, num, percent, plural, short, spanStart } from "../format";
import { carrying, eventHref } from "../links";
import { filter, narrowing } from "../router";
import { lineOf, overTime, TIMED } from "./insights/series";
import { NoSessions, SESSION_COLUMNS } from "./sessions/parts";
import "../styles/overview.css";

const NAMES = ["agent", "project", ...TIME_FILTERS] as const;
const LATEST = 6;

export default function Overview() {
  const stats = useLoad((signal) => admin.getStats({}, { signal }), []);
  const inputs = [filter("agent"), filter("project"), timeKey()];
  const asked = narrowing({ agentId: "agent", project: "project" });
  const latest = useLoad(
    (signal) => events.listSessions({ ...asked, ...timeRange(), pageSize: LATEST }, { signal }),
    inputs,
  );
  const analysis = (request: ReflectRequestJson, signal: AbortSignal) =>
    inTurn(() => reflect.reflect({ ...asked, ...timeRange(), ...request }, { signal }), signal);
  const performance = useLoad(
    async (signal) =>
      (await analysis({ analysis: "ANALYSIS_PERFORMANCE_TRENDS" }, signal)).performanceTrends ?? {},
    inputs,
  );
  const failures = useLoad(
    async (signal) =>
      (await analysis({ analysis: "ANALYSIS_ERROR_PATTERNS", limit: 5 }, signal)).errorPatterns ??
      {},
    inputs,
  );
  const costs = useLoad(
    async (signal) =>
      (await analysis({ analysis: "ANALYSIS_COST_ANALYSIS", limit: 6 }, signal)).costAnalysis ?? {},
    inputs,
  );
  const nothing = stats.data && num(stats.data.tenant?.sessionCount) === 0;
  return (
    <>
      <PageHeader title="Overview" about="What your agents do, how it goes, and what it costs." />
      {nothing ? (
        <div class="card">
          <NoSessions filtered={false} />
        </div>
      ) : (
        <>
          <Filters names={NAMES}>
            <TimeFilter all="All time" />
            <TextFilter name="project" label="Project" />
            <AgentFilter />
          </Filters>
          <Health
            latest={current(latest)}
            performance={current(performance)}
            failures={current(failures)}
            costs={current(costs)}
          />
          <Latest latest={latest} />
          <div class="grid">
            <Activity performance={performance} />
            <Failures failures={failures} />
            <Latency performance={performance} />
            <Costs costs={costs} />
          </div>
        </>
      )}
      <Show of={stats} lines={2}>
        {({ tenant = {}, server = {} }) => (
          <p class="fine kept">
            Tenant <strong>{tenant.tenantId}</strong> keeps {plural(tenant.eventCount, "event")} of{" "}
            {plural(tenant.sessionCount, "session")} and{" "}
            {plural(tenant.memoryCount, "memory", "memories")}
            {num(tenant.pendingCount) > 0 && `, ${count(tenant.pendingCount)} not embedded yet`}, in{" "}
            {bytes(tenant.diskBytes)}. Mneme {server.version}, {server.embeddingModel}, up since{" "}
            <Time value={server.startedAt} exact />.
          </p>
        )}
      </Show>
    </>
  );
}

let before: Promise<unknown> = Promise.resolve();

/**
 * Analyses read every event: one after the other, the first is there early, and a server that is
 * looked at by many is not asked for three at a time by each.
 */
function inTurn<T>(work: () => PromiseLike<T>, signal: AbortSignal): Promise<T> {
  const mine = before.then(() => {
    signal.throwIfAborted();
    return work();
  });
  before = mine.catch(() => undefined);
  return mine;
}

/** What is known under the filters as they are now: what was loaded under others is not of them. */
function current<T>(of: Loaded<T>): Loaded<T> {
  return of.loading || of.error ? { ...of, data: undefined } : of;
}

/** What stands for a figure that is not known: it is on its way, or could not be had. */
function missing({ loading, error }: Loaded<unknown>): string {
  return error && !loading ? "–" : "…";
}

interface HealthProps {
  readonly latest: Loaded<ListSessionsResponseJson>;
  readonly performance: Loaded<PerformanceTrendsJson>;
  readonly failures: Loaded<ErrorPatternsJson>;
  readonly costs: Loaded<CostAnalysisJson>;
}

/** The figures that tell at a glance. */
function Health({ latest, performance, failures, costs }: HealthProps) {
  // Counts and medians are the server's: what is worked out from spans would be of other sessions.
  const { overall = {} } = performance.data ?? {};
  const known = performance.data !== undefined;
  const errors = failures.data && num(failures.data.errorCount);
  const priced = costs.data ? num(costs.data.costedSessions) : 0;
  return (
    <div class="figures">
      <Figure
        name="Sessions"
        href={carrying("/sessions")}
        value={latest.data ? short(latest.data.totalSize) : missing(latest)}
      />
      <Figure
        name="Succeeded"
        value={
          !known
            ? missing(performance)
            : overall.successRate === undefined
              ? "–"
              : percent(overall.successRate, 0)
        }
        note={
          num(overall.knownCount) > 0 && (
            <>
              of {count(overall.knownCount)} that ended{" "}
              <TrendNote test={performance.data?.successRate} />
            </>
          )
        }
      />
      <Figure
        name="Errors"
        href={carrying("/events", { severity: "error" })}
        value={errors === undefined ? missing(failures) : short(errors)}
        tone={errors === undefined ? "plain" : errors ? "bad" : "good"}
        note={<TrendNote test={performance.data?.errorRate} />}
      />
      <Figure
        name="Median latency"
        value={
          !known
            ? missing(performance)
            : overall.latencyP50Ms === undefined
              ? "–"
              : duration(overall.latencyP50Ms)
        }
        note={
          num(overall.timedCount) > 0 && (
            <>
              of {plural(overall.timedCount, "timed event")}{" "}
              <TrendNote test={performance.data?.latency} />
            </>
          )
        }
      />
      <Figure
        name="Cost"
        value={costs.data ? cost(costs.data.totalCostUsd) : missing(costs)}
        note={
          priced > 0
            ? `${cost(costs.data?.averageCostPerSession)} a session, of ${count(priced)} priced`
            : ""
        }
      />
    </div>
  );
}

const TRENDS: Readonly<Record<string, readonly [string, Tone]>> = {
  TREND_IMPROVING: ["getting better", "good"],
  TREND_DEGRADING: ["getting worse", "bad"],
  TREND_STABLE: ["no trend", "plain"],
};

function TrendNote({ test }: { test: TrendTestJson | undefined }) {
  const [text, tone] = TRENDS[test?.trend ?? ""] ?? [];
  if (!text) return null;
  if (test?.small) return <span>a small change</span>;
  return tone === "plain" ? <span>{text}</span> : <Badge tone={tone ?? "plain"}>{text}</Badge>;
}

function Activity({ performance }: { performance: Loaded<PerformanceTrendsJson> }) {
  return (
    <Section title="Activity" about="Sessions that began, and errors among what they did.">
      <Show of={performance} lines={5}>
        {({ points = [], bucketSeconds }) => (
          <Columns
            title="Sessions and errors over time"
            names={["From", "Sessions", "Errors"]}
            format={count}
            badShare={false}
            points={points.map((point) => ({
              label: spanStart(point.startTime, num(bucketSeconds)),
              value: num(point.sessionCount),
              bad: num(point.errorCount),
            }))}
          />
        )}
      </Show>
    </Section>
  );
}

function Failures({ failures }: { failures: Loaded<ErrorPatternsJson> }) {
  return (
    <Section
      title="What goes wrong"
      about="Errors, those alike counted together, most frequent first."
      actions={<a href={carrying("/insights")}>All insights</a>}
    >
      <Show of={failures} lines={5}>
        {({ patterns = [] }) =>
          patterns.length === 0 ? (
            <p class="muted">Nothing failed.</p>
          ) : (
            <ol class="failures">
              {patterns.map((pattern) => {
                const example = pattern.examples?.[0];
                return (
                  <li key={`${pattern.toolName} ${pattern.template}`}>
                    <span class="times">{count(pattern.count)}×</span>
                    <span>
                      {pattern.toolName && <code>{pattern.toolName}</code>}{" "}
                      <a href={eventHref(example?.sessionId ?? "", example?.eventId ?? "")}>
                        {(pattern.template ?? "").slice(0, 160)}
                      </a>
                      <span class="fine">
                        {" "}
                        {plural(pattern.sessionsAffected, "session")}, last{" "}
                        <Time value={pattern.lastSeen} />
                      </span>
                    </span>
                  </li>
                );
              })}
            </ol>
          )
        }
      </Show>
    </Section>
  );
}

function Latency({ performance }: { performance: Loaded<PerformanceTrendsJson> }) {
  return (
    <Section title="Latency" about="Of what was timed: tools and models.">
      <Show of={performance} lines={5}>
        {({ points = [], bucketSeconds }) => {
          if (points.every((point) => point.latencyP50Ms === undefined))
            return <p class="muted">Nothing was timed.</p>;
          return (
            <Lines
              title="Latency over time"
              {...overTime(points, num(bucketSeconds))}
              log
              format={duration}
              lines={[
                lineOf("Median", points, (point) => point.latencyP50Ms, TIMED),
                lineOf("95 % are below", points, (point) => point.latencyP95Ms, TIMED),
              ]}
            />
          );
        }}
      </Show>
    </Section>
  );
}

function Costs({ costs }: { costs: Loaded<CostAnalysisJson> }) {
  return (
    <Section title="Cost by model">
      <Show of={costs} lines={5}>
        {({ byModel = [], totalInputTokens, totalOutputTokens, unpricedEvents }) =>
          byModel.length === 0 ? (
            <p class="muted">No cost and no tokens were recorded.</p>
          ) : (
            <>
              <Bars
                title="Cost by model"
                names={["Model", "Cost"]}
                format={(value) => (value || !num(unpricedEvents) ? cost(value) : "not known")}
                bars={byModel.map((share) => ({
                  name: share.key || "not recorded",
                  value: num(share.costUsd),
                }))}
              />
              <p class="fine">
                {short(totalInputTokens)} tokens read, {short(totalOutputTokens)} written.
                {num(unpricedEvents) > 0 &&
                  ` ${plural(unpricedEvents, "event")} of models without a price.`}
              </p>
            </>
          )
        }
      </Show>
    </Section>
  );
}

function Latest({ latest }: { latest: Loaded<ListSessionsResponseJson> }) {
  return (
    <Section
      title="Latest sessions"
      actions={
        <>
          <a href={carrying("/sessions", { status: "error" })}>Failed ones</a>
          <a href={carrying("/sessions")}>All sessions</a>
        </>
      }
    >
      <Show of={latest} lines={6}>
        {({ sessions = [] }) =>
          sessions.length === 0 ? (
            <NoSessions filtered />
          ) : (
            <Table
              caption="Latest sessions"
              columns={SESSION_COLUMNS}
              rows={sessions}
              keyOf={(session) => session.id ?? ""}
            />
          )
        }
      </Show>
    </Section>
  );
}
