/** One lesson: what it says, changed in place, put away and brought back. */

import type { LessonJson } from "@mneme/client/http";
import { useState } from "preact/hooks";
import { type ApiError, asApiError } from "../../api/errors";
import { useLoad } from "../../api/load";
import { learn } from "../../api/services";
import { ErrorBox, Facts, Show, Time } from "../../components/basics";
import { announce } from "../../components/live";
import { May } from "../../components/may";
import { Id, Json, Text } from "../../components/text";
import { plural } from "../../format";
import { to, withQuery } from "../../router";
import { ImportanceBadge } from "../Lessons";
import { LessonForm } from "./editor";

/** The lesson beside the list. */
export function LessonDetail({ id, onChange }: { id: string; onChange: () => void }) {
  const loaded = useLoad(
    (signal) => learn.getLesson({ lessonId: id, peek: true }, { signal }),
    [id],
  );
  const [editing, setEditing] = useState(false);
  const changed = (text: string): void => {
    setEditing(false);
    announce(text);
    loaded.reload();
    onChange();
  };
  return (
    <section class="card detail" aria-label="The lesson">
      <p class="detail-close">
        <a href={withQuery({ lesson: "" })}>Close</a>
      </p>
      <Show of={loaded}>
        {({ lesson }) =>
          lesson &&
          (editing ? (
            <LessonForm
              lesson={lesson}
              onCancel={() => setEditing(false)}
              onSaved={() => changed("Lesson saved")}
            />
          ) : (
            <Shown lesson={lesson} onEdit={() => setEditing(true)} onChange={changed} />
          ))
        }
      </Show>
    </section>
  );
}

function Shown(props: {
  lesson: LessonJson;
  onEdit: () => void;
  onChange: (text: string) => void;
}) {
  const { lesson } = props;
  const [error, setError] = useState<ApiError>();
  const [busy, setBusy] = useState(false);
  const archived = Boolean(lesson.archivedAt);
  const move = async (): Promise<void> => {
    setBusy(true);
    setError(undefined);
    const asked = { lessonId: lesson.id ?? "", etag: lesson.etag ?? "" };
    try {
      await (archived ? learn.unarchiveLesson(asked) : learn.archiveLesson(asked));
      props.onChange(archived ? "Lesson restored" : "Lesson archived");
    } catch (failed) {
      setError(asApiError(failed));
    }
    setBusy(false);
  };
  return (
    <div class="stack">
      <div>
        <h2 class="title">{lesson.title}</h2>
        <ImportanceBadge lesson={lesson} />
      </div>
      <Text value={lesson.content ?? ""} />
      {error && <ErrorBox error={error} />}
      <May scope="write">
        <div class="actions">
          {!archived && (
            <button type="button" onClick={props.onEdit}>
              Edit
            </button>
          )}
          <button type="button" onClick={move} disabled={busy}>
            {archived ? "Restore" : "Archive"}
          </button>
        </div>
      </May>
      <Facts
        of={[
          ["Category", lesson.category],
          ["Agent", lesson.agentId],
          ["Project", lesson.project],
          ["Labels", lesson.tags?.join(", ")],
          [
            "From session",
            lesson.sourceSessionId && <Id value={lesson.sourceSessionId} href={sourceOf(lesson)} />,
          ],
          ["Read", plural(lesson.accessCount, "time")],
          ["Last read", lesson.lastAccessedAt && <Time value={lesson.lastAccessedAt} />],
          ["Created", <Time key="created" value={lesson.createdAt} exact />],
          ["Changed", <Time key="changed" value={lesson.updatedAt} exact />],
          ["Archived", lesson.archivedAt && <Time value={lesson.archivedAt} exact />],
          ["Id", <Id key="id" value={lesson.id ?? ""} />],
        ]}
      />
      {lesson.context && Object.keys(lesson.context).length > 0 && (
        <div>
          <h3>Context</h3>
          <Json value={lesson.context} />
        </div>
      )}
    </div>
  );
}

function sourceOf(lesson: LessonJson): string {
  const event = lesson.sourceEventId;
  const session = to("sessions", lesson.sourceSessionId ?? "");
  return event ? `${session}?event=${encodeURIComponent(event)}` : session;
}
