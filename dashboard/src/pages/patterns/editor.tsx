/** The form that patterns are written with. They are not changed: another name is another pattern. */

import type { CreatePatternRequestJson } from "@mneme/client/http";
import { useId, useState } from "preact/hooks";
import { type ApiError, asApiError } from "../../api/errors";
import { memories } from "../../api/services";
import { ErrorBox } from "../../components/basics";
import { Dialog } from "../../components/dialog";
import { Field } from "../../components/field";

const KINDS = [
  ["regex", "A regular expression"],
  ["semantic", "A meaning"],
  ["metadata", "A structure of metadata"],
  ["text", "A structure of texts that are JSON"],
] as const;
type Kind = (typeof KINDS)[number][0];

interface Draft {
  readonly name: string;
  readonly description: string;
  readonly kind: Kind;
  readonly expression: string;
  readonly meaning: string;
  readonly threshold: string;
  readonly schema: string;
}

const EMPTY: Draft = {
  name: "",
  description: "",
  kind: "regex",
  expression: "",
  meaning: "",
  threshold: "0.5",
  schema: "",
};

/** Asks for a new pattern. */
export function PatternDialog(props: { onClose: () => void; onSaved: (name: string) => void }) {
  const [draft, setDraft] = useState(EMPTY);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<ApiError>();
  const set = (name: keyof Draft) => (value: string) => setDraft({ ...draft, [name]: value });
  const save = async (event: Event): Promise<void> => {
    event.preventDefault();
    setBusy(true);
    setError(undefined);
    try {
      const stored = await memories.createPattern(requestOf(draft));
      props.onSaved(stored.pattern?.name ?? draft.name);
    } catch (failed) {
      setError(asApiError(failed));
      setBusy(false);
    }
  };
  return (
    <Dialog title="New pattern" onClose={props.onClose}>
      <form class="stack" onSubmit={save}>
        <Field label="Name" value={draft.name} onInput={set("name")} required />
        <Field
          label="What it is for"
          value={draft.description}
          onInput={set("description")}
          max={2000}
        />
        <KindOf value={draft.kind} onChange={set("kind")} />
        <Sought draft={draft} set={set} />
        {error && <ErrorBox error={error} />}
        <div class="buttons">
          <button type="button" onClick={props.onClose}>
            Cancel
          </button>
          <button type="submit" class="primary" disabled={busy}>
            {busy ? "Saving…" : "Save"}
          </button>
        </div>
      </form>
    </Dialog>
  );
}

function KindOf({ value, onChange }: { value: Kind; onChange: (value: string) => void }) {
  const id = useId();
  return (
    <div class="field">
      <label for={id}>What it looks for</label>
      <select id={id} value={value} onChange={(event) => onChange(event.currentTarget.value)}>
        {KINDS.map(([kind, text]) => (
          <option key={kind} value={kind}>
            {text}
          </option>
        ))}
      </select>
    </div>
  );
}

function Sought(props: { draft: Draft; set: (name: keyof Draft) => (value: string) => void }) {
  const { draft, set } = props;
  if (draft.kind === "regex") {
    return (
      <Field
        label="Expression"
        value={draft.expression}
        onInput={set("expression")}
        placeholder="(?i)order [0-9]+"
        max={2000}
        required
      />
    );
  }
  if (draft.kind === "semantic") {
    return (
      <>
        <Field
          label="What texts should mean"
          value={draft.meaning}
          onInput={set("meaning")}
          rows={3}
          required
        />
        <Threshold value={draft.threshold} onInput={set("threshold")} />
      </>
    );
  }
  return (
    <Field
      label="JSON Schema"
      value={draft.schema}
      onInput={set("schema")}
      placeholder={'{"type": "object", "required": ["order"]}'}
      rows={7}
      required
    />
  );
}

function Threshold({ value, onInput }: { value: string; onInput: (value: string) => void }) {
  const id = useId();
  return (
    <div class="field">
      <label for={id}>Similar at least, 0 to 1</label>
      <input
        id={id}
        type="number"
        min={0}
        max={1}
        step="any"
        value={value}
        required
        onInput={(event) => onInput(event.currentTarget.value)}
      />
    </div>
  );
}

function requestOf(draft: Draft): CreatePatternRequestJson {
  const common = { name: draft.name.trim(), description: draft.description };
  if (draft.kind === "regex") return { ...common, regex: { expression: draft.expression } };
  if (draft.kind === "semantic") {
    return { ...common, semantic: { text: draft.meaning, threshold: Number(draft.threshold) } };
  }
  const target = draft.kind === "text" ? "STRUCTURE_OF_TEXT" : "STRUCTURE_OF_METADATA";
  return { ...common, structural: { schema: schemaOf(draft.schema), target } };
}

function schemaOf(text: string): Record<string, never> {
  let schema: unknown;
  try {
    schema = JSON.parse(text);
  } catch (error) {
    throw new Error(`The schema is no JSON: ${error instanceof Error ? error.message : error}`);
  }
  if (typeof schema !== "object" || schema === null || Array.isArray(schema)) {
    throw new Error("The schema has to be an object of JSON.");
  }
  return schema as Record<string, never>;
}
