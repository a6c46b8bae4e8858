/** What the learned policy would have earned in the place of what was done. */

import type { EstimateJson, OffPolicyEvaluationJson } from "@mneme/client/http";
import { useState } from "preact/hooks";
import { type ApiError, asApiError } from "../../api/errors";
import { learning } from "../../api/services";
import { Badge, ErrorBox, Facts, Loading, Section } from "../../components/basics";
import { Chart } from "../../components/chart";
import { announce } from "../../components/live";
import { count, num, percent, plural, word } from "../../format";
import { figure } from "./values";

/** Asked for only when it is wanted: the algorithm is taught anew. */
export function Evaluation({ id }: { id: string }) {
  const [found, setFound] = useState<OffPolicyEvaluationJson>();
  const [error, setError] = useState<ApiError>();
  const [busy, setBusy] = useState(false);
  const run = async (): Promise<void> => {
    setBusy(true);
    setError(undefined);
    try {
      const answer = await learning.getLearningMetrics({
        sessionId: id,
        historySize: 1,
        evaluate: true,
      });
      setFound(answer.evaluation ?? {});
      announce("The estimate is there");
    } catch (failed) {
      setError(asApiError(failed));
    }
    setBusy(false);
  };
  return (
    <Section
      title="What it is worth"
      about="What the policy would have earned in the place of what was done, judged by episodes that it had not learned from. A copy is taught anew for it, which takes a moment; the session does not change."
      actions={
        <button type="button" onClick={() => void run()} disabled={busy}>
          {busy ? "Estimating…" : found ? "Estimate again" : "Estimate"}
        </button>
      }
    >
      {busy && <Loading />}
      {error && <ErrorBox error={error} />}
      {found && !busy && <Verdict of={found} />}
    </Section>
  );
}

function Verdict({ of }: { of: OffPolicyEvaluationJson }) {
  const { gain } = of;
  const judged = num(of.decisions) > 0;
  return (
    <div class="stack">
      {of.refused ? (
        <p>
          <Badge tone="warn">no estimate</Badge> {of.refused}
        </p>
      ) : (
        <p>
          {gain && <GainBadge of={gain} />} {of.summary}
        </p>
      )}
      <Intervals of={of} />
      {num(of.episodes) > 0 && (
        <Facts
          of={[
            ["Judged on", plural(of.episodes, "episode")],
            ["With", judged ? plural(of.decisions, "step") : ""],
            ["Worth as many equal ones", judged ? figure(of.effectiveSampleSize) : ""],
            ["Of its choices, tried", judged ? percent(of.overlap, 0) : ""],
            ["Probabilities", word(of.propensities, "PROPENSITIES_")],
            ["Steps read", `${count(of.stepsRead)}${of.truncated ? ", the newest" : ""}`],
          ]}
        />
      )}
    </div>
  );
}

function GainBadge({ of }: { of: EstimateJson }) {
  if (of.low !== undefined && num(of.low) > 0) return <Badge tone="good">better</Badge>;
  if (of.high !== undefined && num(of.high) < 0) return <Badge tone="bad">worse</Badge>;
  return <Badge>not sure</Badge>;
}

/** Estimates below each other on one scale, each with the interval that it lies in. */
function Intervals({ of }: { of: OffPolicyEvaluationJson }) {
  const rows = (
    [
      ["What was done", of.behaviour],
      ["The policy, by weighted importance sampling", of.weightedImportanceSampling],
      ["The policy, doubly robust", of.doublyRobust],
      ["The policy, by a model of the rewards", of.modelled],
    ] as const
  ).flatMap(([name, estimate]) => (estimate ? [{ name, ...endsOf(estimate) }] : []));
  if (rows.length === 0) return null;
  const least = Math.min(...rows.map((row) => row.low ?? row.value));
  const most = Math.max(...rows.map((row) => row.high ?? row.value));
  // A point in the middle where all are the same.
  const span = most - least || 1;
  const at = (value: number): number => 3 + ((value - least) / span) * 94;
  return (
    <Chart
      title="Reward of an episode, with the interval that it lies in at 95 %"
      head={["Of", "Reward", "From", "To"]}
      rows={rows.map((row) => [row.name, figure(row.value), said(row.low), said(row.high)])}
    >
      <ul class="intervals">
        {rows.map((row) => (
          <li key={row.name}>
            <span>{row.name}</span>
            <svg viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">
              <line x1="0" x2="100" y1="5" y2="5" class="interval-rest" />
              {row.low !== undefined && row.high !== undefined && (
                <line x1={at(row.low)} x2={at(row.high)} y1="5" y2="5" class="interval" />
              )}
              <line x1={at(row.value)} x2={at(row.value)} y1="0" y2="10" class="interval-point" />
            </svg>
            <span class="interval-value">
              <strong>{figure(row.value)}</strong>
              {row.low !== undefined && (
                <span class="muted">
                  {" "}
                  {said(row.low)} to {said(row.high)}
                </span>
              )}
            </span>
          </li>
        ))}
      </ul>
    </Chart>
  );
}

function endsOf({ value, low, high }: EstimateJson) {
  return {
    value: num(value),
    low: low === undefined ? undefined : num(low),
    high: high === undefined ? undefined : num(high),
  };
}

function said(value: number | undefined): string {
  return value === undefined ? "–" : figure(value);
}
