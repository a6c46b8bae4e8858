/** Recent sessions beside earlier ones. */

import type { ComparisonJson, ErrorChangeJson, SessionComparisonJson } from "@mneme/client/http";
import { Badge, Empty, Figure, Section } from "../../components/basics";
import { Table } from "../../components/table";
import { Text } from "../../components/text";
import { count, date, num, plural, time } from "../../format";
import { between, chance, Outcome, signed, TrendBadge } from "./evidence";

/** The analysis. */
export function ComparisonView({ of }: { of: SessionComparisonJson }) {
  if (!num(of.recentCount) || !num(of.earlierCount)) {
    return <Empty title="There are too few sessions to compare." />;
  }
  return (
    <>
      <div class="figures">
        <Figure name="Recent sessions" value={count(of.recentCount)} />
        <Figure name="Earlier sessions" value={count(of.earlierCount)} />
        {of.splitTime && (
          <Figure name="Divided at" value={date(of.splitTime)} note={time(of.splitTime)} />
        )}
      </div>
      <Section title="What differs">
        <Table
          caption="What differs"
          rows={of.comparisons ?? []}
          keyOf={(row) => row.measure ?? ""}
          columns={[
            { name: "Measure", cell: (row) => row.measure?.replaceAll("_", " ") },
            {
              name: "Recent",
              right: true,
              cell: (row) => (num(row.recentCount) ? figure(row.recentMean) : "–"),
            },
            {
              name: "Earlier",
              right: true,
              cell: (row) => (num(row.earlierCount) ? figure(row.earlierMean) : "–"),
            },
            {
              name: "Difference",
              right: true,
              wide: true,
              cell: (row) => (compared(row) ? signed(row.difference) : "–"),
            },
            {
              name: "Between",
              right: true,
              wide: true,
              cell: (row) => between(row.differenceInterval, signed),
            },
            {
              name: "Chance",
              right: true,
              wide: true,
              cell: (row) => (compared(row) ? chance(row.qValue) : "–"),
            },
            { name: "Verdict", cell: (row) => <Verdict of={row} /> },
          ]}
        />
      </Section>
      <div class="grid">
        <Changes title="New errors" none="No error is new." of={of.newErrors} />
        <Changes title="Errors that are gone" none="None is gone." of={of.goneErrors} />
      </div>
      {of.outcomes?.map((by) => (
        <Section key={by.dimension} title={`How sessions end, by ${by.dimension}`}>
          <Table
            caption={`How sessions end, by ${by.dimension}`}
            rows={by.groups ?? []}
            keyOf={(row) => row.key ?? ""}
            columns={[
              { name: by.dimension ?? "", cell: (row) => row.key || "–" },
              { name: "Outcome", cell: (row) => <Outcome of={row.outcome} /> },
            ]}
          />
        </Section>
      ))}
    </>
  );
}

/** Whether both sides have the measure: what nobody recorded is not 0. */
function compared({ recentCount, earlierCount }: ComparisonJson): boolean {
  return num(recentCount) > 0 && num(earlierCount) > 0;
}

/** That no difference is shown does not say that there is none; not each is for good or bad. */
function Verdict({ of }: { of: ComparisonJson }) {
  if (!compared(of)) return <span class="muted">–</span>;
  if (!of.differs) return <Badge>unclear</Badge>;
  const valued = of.trend === "TREND_IMPROVING" || of.trend === "TREND_DEGRADING";
  return valued ? <TrendBadge trend={of.trend} /> : <Badge tone="info">differs</Badge>;
}

function Changes(props: {
  title: string;
  none: string;
  of: readonly ErrorChangeJson[] | undefined;
}) {
  const errors = props.of ?? [];
  return (
    <Section title={props.title}>
      {errors.length === 0 ? (
        <p class="muted">{props.none}</p>
      ) : (
        <ul class="claims">
          {errors.map((one) => (
            <li key={`${one.toolName} ${one.template}`}>
              <Text value={one.template ?? ""} mono />
              <p class="fine">
                {[one.toolName, plural(one.sessions, "session")].filter(Boolean).join(", ")}, chance{" "}
                {chance(one.qValue)}
              </p>
            </li>
          ))}
        </ul>
      )}
    </Section>
  );
}

function figure(value: number | string | undefined): string {
  return num(value).toLocaleString(undefined, { maximumSignificantDigits: 3 });
}
