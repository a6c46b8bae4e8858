/** Errors that come again: how often, when, after what, with examples. */

import type { ErrorPatternJson, ErrorPatternsJson } from "@mneme/client/http";
import { Badge, Empty, Section, Time } from "../../components/basics";
import { Table } from "../../components/table";
import { Text } from "../../components/text";
import { count, num, percent, plural } from "../../format";
import { Outcome, placeOf, Steps } from "./evidence";

/** The analysis. */
export function ErrorsView({ of }: { of: ErrorPatternsJson }) {
  const patterns = of.patterns ?? [];
  if (patterns.length === 0) {
    return <Empty title="No error was recorded in this span." />;
  }
  return (
    <>
      <Section
        title="Recurring errors"
        about={`${plural(of.errorCount, "error")} of ${plural(of.patternCount, "kind")}, most frequent first.`}
      >
        <Table
          caption="Recurring errors"
          rows={patterns}
          keyOf={(row) => `${row.toolName} ${row.template}`}
          columns={[
            { name: "Error", cell: (row) => <Text value={row.template ?? ""} mono /> },
            { name: "Tool", wide: true, cell: (row) => row.toolName || "–" },
            { name: "Count", right: true, cell: (row) => count(row.count) },
            {
              name: "Sessions",
              right: true,
              wide: true,
              cell: (row) => count(row.sessionsAffected),
            },
            {
              name: "Of calls",
              right: true,
              wide: true,
              cell: (row) => (row.toolName ? percent(row.rate) : "–"),
            },
            { name: "First seen", wide: true, cell: (row) => <Time value={row.firstSeen} /> },
            { name: "Last seen", cell: (row) => <Time value={row.lastSeen} /> },
          ]}
        />
      </Section>
      {patterns.map((pattern) => (
        <PatternDetails key={`${pattern.toolName} ${pattern.template}`} of={pattern} />
      ))}
    </>
  );
}

function PatternDetails({ of }: { of: ErrorPatternJson }) {
  const preceding = of.preceding ?? [];
  return (
    <details class="card pattern">
      <summary>
        <code>{of.template}</code> <Badge tone="bad">{count(of.count)}</Badge>
      </summary>
      <div class="stack">
        <p>
          How sessions with it end: <Outcome of={of.outcome} />
        </p>
        {preceding.length > 0 && (
          <div>
            <h3>What comes before it</h3>
            <ul class="claims">
              {preceding.map((one) => (
                <li key={one.tools?.join(" ")}>
                  <Steps tools={one.tools} />: {count(one.effectCount)} of {count(one.count)} times,{" "}
                  {num(one.lift).toFixed(1)} times as often as usual
                  {one.sure && (
                    <>
                      {" "}
                      <Badge tone="info">sure</Badge>
                    </>
                  )}
                </li>
              ))}
            </ul>
          </div>
        )}
        <div>
          <h3>Examples</h3>
          <ul class="claims">
            {(of.examples ?? []).map((one) => (
              <li key={one.eventId}>
                <Text value={one.message ?? ""} mono />
                <p class="fine">
                  <a href={placeOf(one.sessionId ?? "", one.eventId)}>{one.sessionId}</a>,{" "}
                  <Time value={one.timestamp} exact />
                </p>
              </li>
            ))}
          </ul>
        </div>
        {(of.recoveries ?? []).length > 0 && (
          <div>
            <h3>What sessions that succeeded did next</h3>
            <ul class="claims">
              {of.recoveries?.map((one) => (
                <li key={`${one.kind} ${one.tools?.join(" ")}`}>
                  {one.kind?.replaceAll("_", " ")} <Steps tools={one.tools} />,{" "}
                  {plural(one.sessions, "session")}
                </li>
              ))}
            </ul>
          </div>
        )}
      </div>
    </details>
  );
}
