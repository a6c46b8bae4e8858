/** Which tool follows which: a flow, and what comes before errors and before success. */

import type { SequenceCountJson, SequenceEffectJson, ToolSequencesJson } from "@mneme/client/http";
import { Badge, Empty, Section } from "../../components/basics";
import { Bars, Chart } from "../../components/chart";
import { Table } from "../../components/table";
import { count, num, percent } from "../../format";
import { between, chance, Evidence, Steps } from "./evidence";

const ROW = 34;
const WIDTH = 440;
const SIDE = 132;
const MOST = 14;
/** Letters of a name that there is room for. */
const NAME = 15;

/** The analysis. */
export function SequencesView({ of }: { of: ToolSequencesJson }) {
  const tools = of.tools ?? [];
  if (tools.length === 0) return <Empty title="No tool was called in this span." />;
  const pairs = (of.common ?? []).filter((one) => one.tools?.length === 2);
  return (
    <>
      <div class="grid">
        <Section
          title="What follows what"
          about="The most frequent steps from one tool to the next."
        >
          {pairs.length ? <Flow pairs={pairs.slice(0, MOST)} /> : <p>No two calls come again.</p>}
        </Section>
        <Section title="Calls by tool" about="What failed is at the front of a bar.">
          <Bars
            title="Calls by tool"
            names={["Tool", "Calls"]}
            bars={tools.map((one) => ({
              name: one.tool ?? "",
              value: num(one.count),
              bad: num(one.failed),
            }))}
            format={count}
          />
        </Section>
      </div>
      <Section
        title="Frequent sequences"
        about={`A session has ${num(of.averageLength).toFixed(1)} calls on average.`}
      >
        <Table
          caption="Frequent sequences"
          rows={of.common ?? []}
          keyOf={(row) => (row.tools ?? []).join(" ")}
          columns={[
            { name: "Sequence", cell: (row) => <Steps tools={row.tools} /> },
            { name: "Times", right: true, cell: (row) => count(row.count) },
            { name: "Sessions", right: true, cell: (row) => count(row.sessions) },
            { name: "Of all", right: true, wide: true, cell: (row) => percent(row.support, 0) },
          ]}
        />
      </Section>
      <Effects title="Before errors" effects={of.beforeErrors} />
      <Effects title="In sessions that succeed" effects={of.beforeSuccess} />
      <Effects title="In sessions that fail" effects={of.beforeFailure} />
      {(of.loops ?? []).length > 0 && (
        <Section title="The same call again and again">
          <ul class="claims">
            {of.loops?.map((one) => (
              <li key={`${one.tool} ${one.arguments}`}>
                <code>{one.tool}</code>, up to {count(one.longestRun)} times in a row.{" "}
                <Evidence sessions={one.sessionIds} />
              </li>
            ))}
          </ul>
        </Section>
      )}
    </>
  );
}

function Effects(props: { title: string; effects: readonly SequenceEffectJson[] | undefined }) {
  // What never led there says nothing of it.
  const rows = (props.effects ?? []).filter((one) => num(one.effectCount) > 0);
  if (rows.length === 0) return null;
  return (
    <Section title={props.title}>
      <Table
        caption={props.title}
        rows={rows}
        keyOf={(row) => `${row.tools?.join(" ")} ${row.effect}`}
        columns={[
          { name: "Sequence", cell: (row) => <Steps tools={row.tools} /> },
          {
            name: "Times",
            right: true,
            cell: (row) => `${count(row.effectCount)} of ${count(row.count)}`,
          },
          {
            name: "Than usual",
            right: true,
            wide: true,
            cell: (row) => `${num(row.lift).toFixed(1)} ×`,
          },
          {
            name: "Between",
            right: true,
            wide: true,
            cell: (row) => between(row.liftInterval, (value) => `${num(value).toFixed(1)} ×`),
          },
          { name: "Chance", right: true, wide: true, cell: (row) => chance(row.qValue) },
          {
            name: "Verdict",
            cell: (row) =>
              row.sure ? <Badge tone="info">sure</Badge> : <Badge>may be chance</Badge>,
          },
        ]}
      />
    </Section>
  );
}

/** Tools at the left, what follows them at the right, a band as wide as it is frequent between. */
function Flow({ pairs }: { pairs: readonly SequenceCountJson[] }) {
  const left = placed(pairs.map((pair) => pair.tools?.[0] ?? ""));
  const right = placed(pairs.map((pair) => pair.tools?.[1] ?? ""));
  const most = Math.max(...pairs.map((pair) => num(pair.count)), 1);
  const height = Math.max(left.size, right.size) * ROW;
  return (
    <Chart
      title="What follows what"
      head={["Tool", "Next", "Times"]}
      rows={pairs.map((pair) => [pair.tools?.[0], pair.tools?.[1], count(pair.count)])}
    >
      <svg viewBox={`0 0 ${WIDTH} ${height}`} class="flow" aria-hidden="true">
        {pairs.map((pair) => {
          const from = (left.get(pair.tools?.[0] ?? "") ?? 0) * ROW + ROW / 2;
          const until = (right.get(pair.tools?.[1] ?? "") ?? 0) * ROW + ROW / 2;
          const [start, end] = [SIDE, WIDTH - SIDE];
          const middle = WIDTH / 2;
          return (
            <path
              key={pair.tools?.join(" ")}
              d={`M${start} ${from}C${middle} ${from} ${middle} ${until} ${end} ${until}`}
              stroke-width={1.5 + (num(pair.count) / most) * (ROW * 0.5)}
            >
              <title>{`${pair.tools?.join(" then ")}: ${count(pair.count)}`}</title>
            </path>
          );
        })}
        <Names at={SIDE - 8} anchor="end" names={left} />
        <Names at={WIDTH - SIDE + 8} anchor="start" names={right} />
      </svg>
    </Chart>
  );
}

function Names(props: { at: number; anchor: "start" | "end"; names: Map<string, number> }) {
  return (
    <>
      {[...props.names].map(([name, row]) => (
        <text
          key={name}
          x={props.at}
          y={row * ROW + ROW / 2}
          text-anchor={props.anchor}
          dy="0.35em"
        >
          {name.length > NAME ? `${name.slice(0, NAME - 1)}…` : name}
        </text>
      ))}
    </>
  );
}

function placed(names: readonly string[]): Map<string, number> {
  return new Map([...new Set(names)].map((name, at) => [name, at]));
}
