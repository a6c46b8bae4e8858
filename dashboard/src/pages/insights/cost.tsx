/** What models cost: by model, over time, by agent and by tool. */

import type { CostAnalysisJson, CostShareJson } from "@mneme/client/http";
import { Empty, Figure, Section } from "../../components/basics";
import { Bars, Columns } from "../../components/chart";
import { Table } from "../../components/table";
import { Text } from "../../components/text";
import { cost, count, num, percent, plural, short, spanStart } from "../../format";
import { placeOf, TrendLine } from "./evidence";

/** The analysis. */
export function CostView({ of }: { of: CostAnalysisJson }) {
  if (!num(of.totalCostUsd) && !num(of.totalInputTokens)) {
    return (
      <Empty title="No cost was recorded in this span.">
        <p>Costs come with events: of models with `cost_usd`, or with tokens and a known price.</p>
      </Empty>
    );
  }
  const priced = !num(of.unpricedEvents);
  const known = num(of.totalCostUsd) > 0 || num(of.costedSessions) > 0;
  return (
    <>
      <div class="figures">
        <Figure
          name="In all"
          value={known ? cost(of.totalCostUsd) : "not known"}
          note={num(of.estimatedCostUsd) ? `${cost(of.estimatedCostUsd)} of it estimated` : ""}
        />
        <Figure
          name="For a session"
          value={num(of.costedSessions) ? cost(of.averageCostPerSession) : "not known"}
          note={`of ${plural(of.costedSessions, "session")}`}
        />
        <Figure name="Tokens in" value={short(of.totalInputTokens)} />
        <Figure name="Tokens out" value={short(of.totalOutputTokens)} />
        {num(of.unpricedEvents) > 0 && (
          <Figure name="Without a price" value={plural(of.unpricedEvents, "event")} tone="warn" />
        )}
      </div>
      <div class="grid">
        <Section title="By model">
          <Shares title="Cost by model" name="Model" shares={of.byModel} priced={priced} />
        </Section>
        <Section title="Over time">
          <Columns
            title="Cost over time"
            names={["From", "Cost"]}
            points={(of.overTime ?? []).map((point) => ({
              label: spanStart(point.startTime, num(of.bucketSeconds)),
              value: num(point.costUsd),
              bad: 0,
            }))}
            format={cost}
          />
          <ul class="claims">
            <TrendLine
              name="Cost of a session"
              of={of.costPerSession}
              format={cost}
              seconds={num(of.bucketSeconds)}
            />
          </ul>
        </Section>
        <Section title="By agent">
          <Shares title="Cost by agent" name="Agent" shares={of.byAgent} priced={priced} />
        </Section>
        <Section title="By label">
          <Shares title="Cost by label" name="Label" shares={of.byTag} priced={priced} />
        </Section>
      </div>
      <Section title="Most expensive">
        <Table
          caption="Most expensive"
          rows={of.mostExpensive ?? []}
          keyOf={(row) => row.eventId ?? ""}
          columns={[
            { name: "What", cell: (row) => <Text value={row.description ?? ""} /> },
            { name: "Model", wide: true, cell: (row) => row.model || "–" },
            {
              name: "Session",
              cell: (row) => (
                <a href={placeOf(row.sessionId ?? "", row.eventId)}>{row.sessionId}</a>
              ),
            },
            { name: "Cost", right: true, cell: (row) => cost(row.costUsd) },
          ]}
        />
      </Section>
    </>
  );
}

/** Shares of the cost; unless all models have a price, what cost nothing cost what is not known. */
function Shares(props: {
  title: string;
  name: string;
  shares: readonly CostShareJson[] | undefined;
  priced: boolean;
}) {
  const shares = props.shares ?? [];
  if (shares.length === 0) return <p class="muted">None is known.</p>;
  return (
    <>
      <Bars
        title={props.title}
        names={[props.name, "Cost"]}
        bars={shares.map((one) => ({ name: one.key || "unknown", value: num(one.costUsd) }))}
        format={(value) => (value || props.priced ? cost(value) : "not known")}
      />
      <p class="fine">
        {shares[0]?.key || "unknown"}:{" "}
        {num(shares[0]?.costUsd) > 0 && `${percent(shares[0]?.share, 0)} of all, `}
        {count(shares[0]?.eventCount)} calls.
      </p>
    </>
  );
}
