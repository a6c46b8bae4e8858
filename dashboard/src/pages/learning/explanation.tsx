/** Why an action is chosen, or is not: in sentences, by the parts of the state, and what would change it. */

import type {
  ActionJson,
  CounterfactualJson,
  ExplanationJson,
  FeatureImportanceJson,
  StateJson,
} from "@mneme/client/http";
import { useLoad } from "../../api/load";
import { learning } from "../../api/services";
import { Show } from "../../components/basics";
import { Chart } from "../../components/chart";
import { num, percent } from "../../format";
import { signed } from "../insights/evidence";
import { figure, nameOf } from "./values";

export function Explained(props: {
  sessionId: string;
  state: StateJson;
  action: ActionJson | undefined;
  version: string;
}) {
  const { sessionId, state, action, version } = props;
  const asked = useLoad(
    (signal) => learning.explain({ sessionId, state, ...(action && { action }) }, { signal }),
    [version, nameOf(action)],
  );
  return <Show of={asked}>{({ explanation }) => explanation && <Reasons of={explanation} />}</Show>;
}

function Reasons({ of }: { of: ExplanationJson }) {
  const { decisionPath = [], featureImportance = [], counterfactuals = [] } = of;
  return (
    <div class="stack">
      <div>
        <h3 class="learned">
          Why {nameOf(of.action) === nameOf(of.chosenAction) ? "" : "not "}
          {nameOf(of.action)}
        </h3>
        <ul class="points">
          {decisionPath.map((sentence) => (
            <li key={sentence}>{sentence}</li>
          ))}
        </ul>
      </div>
      {featureImportance.length > 0 && <Parts of={of} parts={featureImportance} />}
      {counterfactuals.length > 0 && (
        <div>
          <h3>What would change it</h3>
          <ul class="points">
            {counterfactuals.map((one) => (
              <li key={JSON.stringify(one.changes)}>
                <Change of={one} />
              </li>
            ))}
          </ul>
        </div>
      )}
    </div>
  );
}

function Change({ of }: { of: CounterfactualJson }) {
  const changes = (of.changes ?? []).map((one) => `${one.feature} ${one.value || "absent"}`);
  return (
    <>
      With <code>{changes.join(", ")}</code> it chooses{" "}
      <strong>{nameOf(of.predictedAction)}</strong>, {percent(of.confidence, 0)} sure.
    </>
  );
}

/** What each part of the state adds or takes, from the middle to either side. */
function Parts({ of, parts }: { of: ExplanationJson; parts: readonly FeatureImportanceJson[] }) {
  const most = Math.max(...parts.map((part) => Math.abs(num(part.importance))), Number.MIN_VALUE);
  return (
    <div>
      <h3>What speaks for it</h3>
      <p class="fine">
        Parts of: {of.measure}. That is {figure(of.score)} here, and {figure(of.typical)} on average
        in states that were recorded; the parts add up to the difference
        {of.method === "ATTRIBUTION_METHOD_SAMPLED" && ", as far as samples of them tell"}.
      </p>
      <Chart
        title="What each part of the state contributes"
        head={["Part", "Value", "Contributes"]}
        rows={parts.map((part) => [part.feature, part.value || "–", signed(part.importance)])}
      >
        <ul class="bars">
          {parts.map((part) => {
            const length = (num(part.importance) / most) * 50;
            return (
              <li key={part.feature}>
                <span class="bar-name" title={`${part.feature} ${part.value}`}>
                  {part.feature} <span class="muted">{part.value}</span>
                </span>
                <svg viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">
                  <rect width="100" height="10" class="bar-rest" />
                  <rect
                    x={Math.min(50, 50 + length)}
                    width={Math.abs(length)}
                    height="10"
                    class={length < 0 ? "bar-bad" : "bar-fill"}
                  />
                </svg>
                <span class="bar-value">{signed(part.importance)}</span>
              </li>
            );
          })}
        </ul>
      </Chart>
    </div>
  );
}
