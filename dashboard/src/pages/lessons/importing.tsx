/** Reads lessons in from a file; shows what that will change before anything is changed. */

import { useId, useState } from "preact/hooks";
import { type ApiError, asApiError } from "../../api/errors";
import { Badge, ErrorBox, Loading, type Tone } from "../../components/basics";
import { Dialog } from "../../components/dialog";
import { announce } from "../../components/live";
import { Table } from "../../components/table";
import { count, plural } from "../../format";
import {
  type Fate,
  importPlanned,
  type OnConflict,
  type Planned,
  parseLessons,
  plan,
} from "./files";

const WORDS: Readonly<Record<Fate, readonly [string, Tone]>> = {
  new: ["new", "good"],
  same: ["there already", "plain"],
  differs: ["differs", "warn"],
  invalid: ["cannot be read", "bad"],
};
const SHOWN = 100;

/** Asks for a file, shows the plan, and carries it out. */
export function ImportDialog(props: { onClose: () => void; onImported: () => void }) {
  const id = useId();
  const [planned, setPlanned] = useState<readonly Planned[]>();
  const [reading, setReading] = useState(false);
  const [error, setError] = useState<ApiError>();
  const read = async (file: File | undefined): Promise<void> => {
    if (!file) return;
    setReading(true);
    setError(undefined);
    setPlanned(undefined);
    try {
      setPlanned(await plan(parseLessons(await file.text())));
    } catch (failed) {
      setError(asApiError(failed));
    }
    setReading(false);
  };
  return (
    <Dialog title="Import lessons" onClose={props.onClose} wide>
      <div class="stack">
        <div class="field">
          <label for={id}>A file of lessons in JSON, as “Export” writes it</label>
          <input
            id={id}
            type="file"
            accept=".json,.ndjson,.jsonl,application/json"
            onChange={(event) => void read(event.currentTarget.files?.[0])}
          />
        </div>
        {reading && <Loading />}
        {error && <ErrorBox error={error} />}
        {planned && (
          <Plan
            planned={planned}
            onClose={props.onClose}
            onImported={(text) => {
              announce(text);
              props.onImported();
              props.onClose();
            }}
          />
        )}
      </div>
    </Dialog>
  );
}

function Plan(props: {
  planned: readonly Planned[];
  onClose: () => void;
  onImported: (text: string) => void;
}) {
  const [onConflict, setOnConflict] = useState<OnConflict>("SKIP");
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<ApiError>();
  const counted = (fate: Fate): number => props.planned.filter((one) => one.fate === fate).length;
  const changing = counted("new") + (onConflict === "REPLACE" ? counted("differs") : 0);
  const run = async (): Promise<void> => {
    setBusy(true);
    setError(undefined);
    try {
      const done = await importPlanned(props.planned, onConflict);
      const parts = [`${count(done.created)} created`, `${count(done.replaced)} replaced`];
      props.onImported(`Lessons imported: ${parts.join(", ")}`);
    } catch (failed) {
      setError(asApiError(failed));
      setBusy(false);
    }
  };
  return (
    <>
      <p>
        {plural(props.planned.length, "lesson")} in the file: {count(counted("new"))} new,{" "}
        {count(counted("same"))} there already, {count(counted("differs"))} with other content,{" "}
        {count(counted("invalid"))} that cannot be read.
      </p>
      {counted("differs") > 0 && (
        <fieldset>
          <legend class="field-label">Those that are here with other content</legend>
          {CHOICES.map(([value, text]) => (
            <label key={value} class="toggle">
              <input
                type="radio"
                name="conflict"
                checked={onConflict === value}
                onChange={() => setOnConflict(value)}
              />
              {text}
            </label>
          ))}
        </fieldset>
      )}
      <PlanTable planned={props.planned} />
      {error && <ErrorBox error={error} />}
      <div class="buttons">
        <button type="button" onClick={props.onClose}>
          Cancel
        </button>
        <button type="button" class="primary" onClick={run} disabled={busy || changing === 0}>
          {busy ? "Importing…" : `Import ${plural(changing, "lesson")}`}
        </button>
      </div>
    </>
  );
}

const CHOICES = [
  ["SKIP", "stay as they are here"],
  ["REPLACE", "become as in the file"],
] as const;

function PlanTable({ planned }: { planned: readonly Planned[] }) {
  const order: readonly Fate[] = ["invalid", "differs", "new", "same"];
  const rows = [...planned].sort((a, b) => order.indexOf(a.fate) - order.indexOf(b.fate));
  return (
    <>
      <Table
        caption="What will change"
        rows={rows.slice(0, SHOWN)}
        keyOf={(row) => String(rows.indexOf(row))}
        columns={[
          { name: "Lesson", cell: (row) => row.lesson.title || row.lesson.id || "–" },
          {
            name: "What becomes of it",
            cell: ({ fate }) => <Badge tone={WORDS[fate][1]}>{WORDS[fate][0]}</Badge>,
          },
          { name: "Why", cell: (row) => row.why || "–" },
        ]}
      />
      {rows.length > SHOWN && <p class="muted">{count(rows.length - SHOWN)} more are not shown.</p>}
    </>
  );
}
