/** Insights: the five analyses of what was recorded, each claim with its figure and its evidence. */

import type { InsightJson, ReflectRequestJson, ReflectResponseJson } from "@mneme/client/http";
import { useLoad } from "../api/load";
import { reflect } from "../api/services";
import { Empty, PageHeader, Section, Show } from "../components/basics";
import {
  Filters,
  TextFilter,
  TIME_FILTERS,
  TimeFilter,
  timeKey,
  timeRange,
} from "../components/filters";
import { date, plural } from "../format";
import { filter, narrowing, withQuery } from "../router";
import { ComparisonView } from "./insights/comparison";
import { CostView } from "./insights/cost";
import { ErrorsView } from "./insights/errors";
import { Evidence, evidence } from "./insights/evidence";
import { SequencesView } from "./insights/sequences";
import { TrendsView } from "./insights/trends";
import "../styles/insights.css";

const TYPES = [
  ["error_patterns", "Error patterns"],
  ["tool_sequences", "Tool sequences"],
  ["cost_analysis", "Costs"],
  ["performance_trends", "Trends"],
  ["session_comparison", "Comparison"],
] as const;
type Type = (typeof TYPES)[number][0];
const NAMES = ["agent", "project", "user", ...TIME_FILTERS] as const;
const LIMIT = 20;

export default function Insights() {
  const type = TYPES.find(([name]) => name === filter("type"))?.[0] ?? "error_patterns";
  const inputs = [type, ...NAMES.slice(0, 3).map(filter), timeKey()];
  const asked = useLoad((signal) => reflect.reflect(requestOf(type), { signal }), inputs);
  return (
    <>
      <PageHeader
        title="Insights"
        about="What the records say: counted, tested, and with the sessions that show it."
      />
      <nav class="tabs" aria-label="Analyses">
        {TYPES.map(([name, text]) => (
          <a
            key={name}
            href={withQuery({ type: name === TYPES[0][0] ? "" : name })}
            aria-current={name === type ? "page" : undefined}
          >
            {text}
          </a>
        ))}
      </nav>
      <Filters names={NAMES}>
        <TextFilter name="agent" label="Agent" />
        <TextFilter name="project" label="Project" />
        <TextFilter name="user" label="User" />
        <TimeFilter all="All time" />
      </Filters>
      <Show of={asked} lines={8}>
        {(answer) =>
          // What was loaded for another analysis stands until the new one is there.
          answer.analysis === `ANALYSIS_${type.toUpperCase()}` && <Answer answer={answer} />
        }
      </Show>
    </>
  );
}

function requestOf(type: Type): ReflectRequestJson {
  return {
    analysis: `ANALYSIS_${type.toUpperCase() as Uppercase<Type>}`,
    ...narrowing({ agentId: "agent", project: "project", userId: "user" }),
    limit: LIMIT,
    ...timeRange(),
  };
}

function Answer({ answer }: { answer: ReflectResponseJson }) {
  const { metadata, insights = [] } = answer;
  if (!metadata?.sessionsAnalyzed || metadata.sessionsAnalyzed === "0") {
    return (
      <Empty title="No session is in this span.">
        <p>Widen the time, take a filter away, or record sessions first.</p>
      </Empty>
    );
  }
  return (
    <>
      <p class="fine basis">
        From {plural(metadata.sessionsAnalyzed, "session")} and{" "}
        {plural(metadata.eventsAnalyzed, "event")}
        {metadata.startTime && metadata.endTime
          ? `, ${date(metadata.startTime)} to ${date(metadata.endTime)}`
          : ""}
        .{metadata.truncated ? " There was more than one analysis reads." : ""}
      </p>
      <Section title="What stands out">
        {insights.length === 0 ? (
          <p class="muted">Nothing in this span is sure enough to be said.</p>
        ) : (
          <ul class="claims">
            {insights.map((insight) => (
              <Claim key={insight.summary} insight={insight} />
            ))}
          </ul>
        )}
        {answer.caveat && <p class="fine">{answer.caveat}</p>}
        {metadata.notes?.map((note) => (
          <p class="fine" key={note}>
            {note}
          </p>
        ))}
      </Section>
      {answer.errorPatterns && <ErrorsView of={answer.errorPatterns} />}
      {answer.toolSequences && <SequencesView of={answer.toolSequences} />}
      {answer.costAnalysis && <CostView of={answer.costAnalysis} />}
      {answer.performanceTrends && <TrendsView of={answer.performanceTrends} />}
      {answer.sessionComparison && <ComparisonView of={answer.sessionComparison} />}
    </>
  );
}

function Claim({ insight }: { insight: InsightJson }) {
  return (
    <li>
      <p>{insight.summary}</p>
      <p class="fine">
        {insight.qValue !== undefined && <>{evidence(insight.qValue)}. </>}
        <Evidence sessions={insight.sessionIds} events={insight.eventIds} />
      </p>
    </li>
  );
}
