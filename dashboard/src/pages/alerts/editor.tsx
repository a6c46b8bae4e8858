/** The form that rules are written with. */

import type { AlertConditionJson, AlertRuleJson, AlertTrendJson } from "@mneme/client/http";
import { useId, useState } from "preact/hooks";
import { type ApiError, asApiError } from "../../api/errors";
import { alerts } from "../../api/services";
import { ErrorBox } from "../../components/basics";
import { Dialog } from "../../components/dialog";
import { Field } from "../../components/field";
import { num } from "../../format";
import { Trial } from "./trial";
import { CONDITIONS, conditionOf, scopeOf, sentence, TRENDS } from "./wording";

/** What can be changed, as update masks name it. */
const FIELDS = [
  "name",
  "condition",
  "threshold",
  "resolveThreshold",
  "minEvents",
  "windowMinutes",
  "scope",
  "notifyChannels",
  "pattern",
  "trend",
] as const;

interface Draft {
  readonly name: string;
  readonly condition: AlertConditionJson;
  readonly threshold: string;
  readonly resolve: string;
  readonly minEvents: string;
  readonly window: string;
  readonly agent: string;
  readonly project: string;
  readonly tags: string;
  readonly channels: string;
  readonly pattern: string;
  readonly trend: AlertTrendJson;
}

/** Asks for a new rule. */
export function RuleDialog(props: { onClose: () => void; onSaved: (rule: AlertRuleJson) => void }) {
  return (
    <Dialog title="New rule" wide onClose={props.onClose}>
      <RuleForm onCancel={props.onClose} onSaved={props.onSaved} />
    </Dialog>
  );
}

/** Fields for a new rule, or for one that is changed: only what differs is sent. */
export function RuleForm(props: {
  rule?: AlertRuleJson;
  onCancel: () => void;
  onSaved: (rule: AlertRuleJson) => void;
}) {
  const before = draftOf(props.rule ?? {});
  const [draft, setDraft] = useState(before);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<ApiError>();
  const set =
    <K extends keyof Draft>(name: K) =>
    (value: Draft[K]) =>
      setDraft({ ...draft, [name]: value });
  const rule = ruleOf(draft);
  const known = conditionOf(draft.condition);
  const ready = !known.threshold || draft.threshold.trim() !== "";
  const mask = differing(ruleOf(before), rule);
  const save = async (event: Event): Promise<void> => {
    event.preventDefault();
    setBusy(true);
    setError(undefined);
    try {
      props.onSaved(await saved(rule, mask, props.rule?.id));
    } catch (failed) {
      setError(asApiError(failed));
      setBusy(false);
    }
  };
  return (
    <form class="stack" onSubmit={save}>
      <Field label="Name" value={draft.name} onInput={set("name")} required />
      <div class="pair">
        <Choice
          label="What it watches"
          value={draft.condition}
          choices={CONDITIONS.map((one) => [one.value, one.name])}
          onChange={set("condition")}
        />
        {known.threshold && (
          <Amount
            label={known.threshold}
            value={draft.threshold}
            onInput={set("threshold")}
            max={draft.condition === "ALERT_CONDITION_ERROR_RATE_EXCEEDS" ? 100 : undefined}
            required
          />
        )}
        {!known.now && (
          <Amount
            label="Within, in minutes"
            value={draft.window}
            onInput={set("window")}
            min={1}
            max={43_200}
            whole
            required
          />
        )}
      </div>
      {draft.condition === "ALERT_CONDITION_ERROR_PATTERN_EXCEEDS" && (
        <Field
          label="What the errors say"
          value={draft.pattern}
          onInput={set("pattern")}
          placeholder="a part of the message"
          max={300}
          required
        />
      )}
      {draft.condition === "ALERT_CONDITION_TREND_EXCEEDS" && (
        <Choice label="Which trend" value={draft.trend} choices={TRENDS} onChange={set("trend")} />
      )}
      {!known.now && (
        <div class="pair">
          <Field label="Agent" value={draft.agent} onInput={set("agent")} placeholder="any" />
          <Field label="Project" value={draft.project} onInput={set("project")} placeholder="any" />
          <Field
            label="Labels"
            value={draft.tags}
            onInput={set("tags")}
            placeholder="any, or: a, b"
            max={2000}
          />
        </div>
      )}
      <Field
        label="Whom it tells, one a line"
        value={draft.channels}
        onInput={set("channels")}
        placeholder={"https://hooks.example.com/mneme\nmailto:ops@example.com"}
        rows={2}
      />
      {known.threshold && <Finer draft={draft} set={set} share={known.share ?? false} />}
      {ready && (
        <p class="preview-line">
          <span class="field-label">It triggers when</span> {beginningLower(sentence(rule))}
          {!known.now && <span class="muted"> · looks at {scopeOf(rule)}</span>}
        </p>
      )}
      <Trial rule={rule} ready={ready} />
      {error && <ErrorBox error={error} />}
      <div class="buttons">
        <button type="button" onClick={props.onCancel}>
          Cancel
        </button>
        <button type="submit" class="primary" disabled={busy || mask.length === 0}>
          {busy ? "Saving…" : "Save"}
        </button>
      </div>
    </form>
  );
}

/** What keeps a rule from crying wolf; most do without. */
function Finer(props: {
  draft: Draft;
  set: (name: "resolve" | "minEvents") => (value: string) => void;
  share: boolean;
}) {
  const { draft, set } = props;
  const { now } = conditionOf(draft.condition);
  return (
    <details open={draft.resolve !== "" || (!now && num(draft.minEvents) > 1)}>
      <summary>When the value wavers</summary>
      <div class="pair finer">
        <Amount
          label={props.share ? "Resolves at most at, in percent" : "Resolves at most at"}
          value={draft.resolve}
          onInput={set("resolve")}
          placeholder="the threshold"
        />
        {!now && (
          <Amount
            label="Only with as many events at least"
            value={draft.minEvents}
            onInput={set("minEvents")}
            placeholder="1"
            min={1}
            whole
          />
        )}
      </div>
    </details>
  );
}

function Choice<T extends string>(props: {
  label: string;
  value: T;
  choices: readonly (readonly [T, string])[];
  onChange: (value: T) => void;
}) {
  const id = useId();
  return (
    <div class="field">
      <label for={id}>{props.label}</label>
      <select
        id={id}
        value={props.value}
        onChange={(event) => props.onChange(event.currentTarget.value as T)}
      >
        {props.choices.map(([value, text]) => (
          <option key={value} value={value}>
            {text}
          </option>
        ))}
      </select>
    </div>
  );
}

function Amount(props: {
  label: string;
  value: string;
  onInput: (value: string) => void;
  placeholder?: string;
  min?: number;
  max?: number | undefined;
  whole?: boolean;
  required?: boolean;
}) {
  const id = useId();
  return (
    <div class="field">
      <label for={id}>{props.label}</label>
      <input
        id={id}
        type="number"
        inputMode={props.whole ? "numeric" : "decimal"}
        step={props.whole ? 1 : "any"}
        min={props.min ?? 0}
        max={props.max}
        value={props.value}
        required={props.required ?? false}
        placeholder={props.placeholder ?? ""}
        onInput={(event) => props.onInput(event.currentTarget.value)}
      />
    </div>
  );
}

function draftOf(rule: AlertRuleJson): Draft {
  const condition = rule.condition ?? "ALERT_CONDITION_ERROR_RATE_EXCEEDS";
  const share = conditionOf(condition).share ? 100 : 1;
  const shown = (value: number): string => String(tidy(value * share));
  return {
    name: rule.name ?? "",
    condition,
    threshold: rule.id ? shown(num(rule.threshold)) : "",
    resolve: rule.resolveThreshold === undefined ? "" : shown(num(rule.resolveThreshold)),
    minEvents: num(rule.minEvents) > 1 ? String(rule.minEvents) : "",
    window: String(num(rule.windowMinutes) || 60),
    agent: rule.scope?.agentId ?? "",
    project: rule.scope?.project ?? "",
    tags: (rule.scope?.tags ?? []).join(", "),
    channels: (rule.notifyChannels ?? []).join("\n"),
    pattern: rule.pattern ?? "",
    trend: rule.trend ?? "ALERT_TREND_SUCCESS_RATE",
  };
}

/** Return what a draft says, without what its condition has no use for. */
function ruleOf(draft: Draft): AlertRuleJson {
  const known = conditionOf(draft.condition);
  const share = known.share ? 100 : 1;
  const scope = {
    agentId: draft.agent.trim(),
    project: draft.project.trim(),
    tags: parts(draft.tags, ","),
  };
  return {
    name: draft.name.trim(),
    condition: draft.condition,
    threshold: known.threshold ? tidy(num(draft.threshold) / share) : 0,
    ...(known.threshold &&
      draft.resolve.trim() && { resolveThreshold: tidy(num(draft.resolve) / share) }),
    ...(known.threshold && !known.now && { minEvents: num(draft.minEvents) || 1 }),
    ...(!known.now && { windowMinutes: num(draft.window), scope }),
    notifyChannels: parts(draft.channels, /\s+/),
    ...(draft.condition === "ALERT_CONDITION_ERROR_PATTERN_EXCEEDS" && { pattern: draft.pattern }),
    ...(draft.condition === "ALERT_CONDITION_TREND_EXCEEDS" && { trend: draft.trend }),
  };
}

function beginningLower(text: string): string {
  return text.charAt(0).toLowerCase() + text.slice(1);
}

/** Take away what binary fractions add: 0.07 × 100 is 7. */
function tidy(value: number): number {
  return Number(value.toPrecision(12));
}

function parts(text: string, between: string | RegExp): string[] {
  const all = text.split(between).map((part) => part.trim());
  return [...new Set(all.filter(Boolean))];
}

function differing(before: AlertRuleJson, after: AlertRuleJson): string[] {
  return FIELDS.filter((name) => JSON.stringify(before[name]) !== JSON.stringify(after[name]));
}

async function saved(rule: AlertRuleJson, mask: readonly string[], id?: string) {
  if (id === undefined) return (await alerts.createAlertRule(rule)).rule ?? {};
  const updated = await alerts.updateAlertRule({ rule: { ...rule, id }, updateMask: mask.join() });
  return updated.rule ?? {};
}
