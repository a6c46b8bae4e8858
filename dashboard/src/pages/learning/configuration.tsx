/** How a session is set: its algorithm and what each key of its config means. */

import type {
  AlgorithmKeyJson,
  LearningMetricsJson,
  LearningSessionJson,
} from "@mneme/client/http";
import { useLoad } from "../../api/load";
import { learning } from "../../api/services";
import { Facts, Section, Show, Time } from "../../components/basics";
import { Table } from "../../components/table";
import { bytes, count, duration, durationMs, percent } from "../../format";
import { describe, nameOf } from "./values";

const NAMED = 12;

export function Configuration(props: {
  session: LearningSessionJson;
  metrics: LearningMetricsJson;
}) {
  const { session, metrics } = props;
  const { algorithm = "" } = session;
  const described = useLoad(
    (signal) => learning.listAlgorithms({ algorithm }, { signal }),
    [algorithm],
  );
  return (
    <Section title="Configuration">
      <div class="stack">
        <Facts of={factsOf(session, metrics)} />
        <Show of={described}>
          {({ algorithms = [] }) => (
            <div class="stack">
              {algorithms[0]?.summary && <p>{algorithms[0].summary}</p>}
              <Keys config={session.config ?? {}} keys={algorithms[0]?.keys ?? []} />
              {algorithms[0]?.source && <p class="fine">After {algorithms[0].source}</p>}
            </div>
          )}
        </Show>
      </div>
    </Section>
  );
}

function factsOf(session: LearningSessionJson, metrics: LearningMetricsJson) {
  const took = durationMs(metrics.trainingTime);
  return [
    ["States", describe(session.stateSpace)],
    ["Actions", actionsOf(session)],
    [
      "Learns",
      session.learning === "LEARNING_MODE_BACKGROUND" ? "soon after a call" : "within a call",
    ],
    ["Explores", metrics.explorationRate !== undefined && percent(metrics.explorationRate)],
    ["Corrections", count(metrics.updates)],
    ["Time spent learning", took !== undefined && duration(took)],
    ["Seed", session.seed ?? "0"],
    ["Recorded steps take", bytes(session.experienceBytes)],
    ["Started", <Time key="started" value={session.createdAt} exact />],
    ["Changed", <Time key="changed" value={session.updatedAt} exact />],
    ["Ended", session.endedAt && <Time key="ended" value={session.endedAt} exact />],
  ].filter(([, value]) => value !== false) as [string, preact.ComponentChild][];
}

function actionsOf(session: LearningSessionJson): string {
  const known = session.knownActions ?? [];
  if (known.length === 0) return describe(session.actionSpace);
  const more = known.length > NAMED ? ` and ${count(known.length - NAMED)} more` : "";
  return known.slice(0, NAMED).map(nameOf).join(", ") + more;
}

function Keys(props: { config: object; keys: readonly AlgorithmKeyJson[] }) {
  const { keys } = props;
  const rows = Object.entries(props.config).map(([name, value]) => {
    const at = keys.findIndex((one) => one.name === name);
    return { name, value: String(value), key: keys[at], at };
  });
  // As the algorithm has them: what counts most comes first.
  rows.sort((a, b) => a.at - b.at);
  if (rows.length === 0) return <p class="muted">There is nothing to set.</p>;
  return (
    <Table
      caption="Config"
      rows={rows}
      keyOf={(row) => row.name}
      columns={[
        { name: "Key", cell: (row) => <code>{row.name}</code> },
        { name: "Value", right: true, cell: (row) => row.value },
        { name: "Unless set", right: true, wide: true, cell: (row) => defaultOf(row.key) },
        { name: "What it sets", wide: true, cell: (row) => row.key?.meaning ?? "–" },
      ]}
    />
  );
}

function defaultOf(key: AlgorithmKeyJson | undefined): string {
  return key?.text ?? String(key?.number ?? "–");
}
