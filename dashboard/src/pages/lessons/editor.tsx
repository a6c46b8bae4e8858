/** The form that lessons are written with. */

import type { LessonJson } from "@mneme/client/http";
import { useId, useState } from "preact/hooks";
import { type ApiError, asApiError } from "../../api/errors";
import { learn } from "../../api/services";
import { ErrorBox } from "../../components/basics";
import { Dialog } from "../../components/dialog";
import { Field } from "../../components/field";
import { word } from "../../format";

const IMPORTANCES = ["low", "normal", "high", "critical"] as const;
const FIELDS = [
  "title",
  "content",
  "category",
  "importance",
  "agentId",
  "project",
  "tags",
] as const;
type Draft = Record<(typeof FIELDS)[number], string>;

/** Asks for a new lesson. */
export function LessonDialog(props: {
  onClose: () => void;
  onSaved: (lesson: LessonJson) => void;
}) {
  return (
    <Dialog title="New lesson" onClose={props.onClose}>
      <LessonForm onCancel={props.onClose} onSaved={props.onSaved} />
    </Dialog>
  );
}

/** Fields for a new lesson, or for one that is changed: only what differs is sent. */
export function LessonForm(props: {
  lesson?: LessonJson;
  onCancel: () => void;
  onSaved: (lesson: LessonJson) => void;
}) {
  const before = draftOf(props.lesson ?? {});
  const [draft, setDraft] = useState(before);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<ApiError>();
  const set = (name: keyof Draft) => (value: string) => setDraft({ ...draft, [name]: value });
  const changed = FIELDS.filter((name) => draft[name] !== before[name]);
  const save = async (event: Event): Promise<void> => {
    event.preventDefault();
    setBusy(true);
    setError(undefined);
    try {
      props.onSaved(await saved(draft, changed, props.lesson));
    } catch (failed) {
      setError(asApiError(failed));
      setBusy(false);
    }
  };
  return (
    <form class="stack" onSubmit={save}>
      <Field label="Title" value={draft.title} onInput={set("title")} required max={500} />
      <Field label="Content" value={draft.content} onInput={set("content")} required rows={7} />
      <div class="pair">
        <Field
          label="Category"
          value={draft.category}
          onInput={set("category")}
          placeholder="general"
        />
        <Importance value={draft.importance} onChange={set("importance")} />
      </div>
      <div class="pair">
        <Field label="Project" value={draft.project} onInput={set("project")} />
        <Field label="Agent" value={draft.agentId} onInput={set("agentId")} />
      </div>
      <Field label="Labels, with commas between" value={draft.tags} onInput={set("tags")} />
      {error && <ErrorBox error={error} />}
      <div class="buttons">
        <button type="button" onClick={props.onCancel}>
          Cancel
        </button>
        <button type="submit" class="primary" disabled={busy || changed.length === 0}>
          {busy ? "Saving…" : "Save"}
        </button>
      </div>
    </form>
  );
}

function Importance({ value, onChange }: { value: string; onChange: (value: string) => void }) {
  const id = useId();
  return (
    <div class="field">
      <label for={id}>Importance</label>
      <select id={id} value={value} onChange={(event) => onChange(event.currentTarget.value)}>
        {IMPORTANCES.map((one) => (
          <option key={one} value={one}>
            {one}
          </option>
        ))}
      </select>
    </div>
  );
}

function draftOf(lesson: LessonJson): Draft {
  return {
    title: lesson.title ?? "",
    content: lesson.content ?? "",
    category: lesson.category ?? "",
    importance: word(lesson.importance, "IMPORTANCE_") || "normal",
    agentId: lesson.agentId ?? "",
    project: lesson.project ?? "",
    tags: (lesson.tags ?? []).join(", "),
  };
}

async function saved(
  draft: Draft,
  changed: readonly string[],
  lesson: LessonJson | undefined,
): Promise<LessonJson> {
  const values = {
    title: draft.title,
    content: draft.content,
    category: draft.category,
    importance: `IMPORTANCE_${draft.importance.toUpperCase()}` as NonNullable<
      LessonJson["importance"]
    >,
    agentId: draft.agentId,
    project: draft.project,
    tags: draft.tags
      .split(",")
      .map((tag) => tag.trim())
      .filter(Boolean),
  };
  if (!lesson) return (await learn.createLesson(values)).lesson ?? {};
  const update = { ...values, id: lesson.id ?? "", etag: lesson.etag ?? "" };
  const updateMask = changed.join(",");
  return (await learn.updateLesson({ lesson: update, updateMask })).lesson ?? {};
}
