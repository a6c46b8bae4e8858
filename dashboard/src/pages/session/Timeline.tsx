/** The steps of a session, one below the other. */

import { useEffect, useRef, useState } from "preact/hooks";
import { Badge } from "../../components/basics";
import { cost, duration, plural, time } from "../../format";
import { isTyping } from "../../frame/shortcuts";
import { filter, navigate, withQuery } from "../../router";
import { Detail } from "./Detail";
import { costOf, messageOf, msOf, type Row, roleOf, type Step, stepWith, titleOf } from "./steps";

const NARROW = "(max-width: 1080px)";

/** The steps, with the chosen one in full beside them; on a phone, below it. */
export function Timeline({ rows, chosen }: { rows: readonly Row[]; chosen: Step | undefined }) {
  const narrow = useNarrow();
  const shown = rows.filter((row): row is Step => "event" in row);
  useStepping(shown);
  return (
    <div class={chosen && !narrow ? "session-view split" : "session-view"}>
      <ol class="steps" aria-label="Steps">
        {rows.map((row) =>
          "folded" in row ? (
            <Folded key={row.folded[0]?.event.id} steps={row.folded} />
          ) : "leftOut" in row ? (
            <li key={`before ${row.leftOut.event.id}`} class="left-out">
              {plural(row.leftOut.missing, "event")} not loaded
            </li>
          ) : (
            <li key={row.event.id}>
              <Line step={row} chosen={row === chosen} />
              {row === chosen && narrow && <Detail step={row} />}
            </li>
          ),
        )}
      </ol>
      {chosen && !narrow && (
        <aside class="pane" aria-label="The chosen step">
          <Detail key={chosen.event.id} step={chosen} />
        </aside>
      )}
    </div>
  );
}

function Folded({ steps }: { steps: readonly Step[] }) {
  const [open, setOpen] = useState(false);
  const kinds = new Map<string, number>();
  for (const { event } of steps) {
    const name = event.eventType?.replaceAll("_", " ") ?? "";
    kinds.set(name, (kinds.get(name) ?? 0) + 1);
  }
  const named = [...kinds].map(([name, times]) => (times > 1 ? `${times} × ${name}` : name));
  if (open) {
    return (
      <>
        {steps.map((step) => (
          <li key={step.event.id}>
            <Line step={step} chosen={false} />
          </li>
        ))}
      </>
    );
  }
  return (
    <li class="folded">
      <button type="button" class="quiet" aria-expanded={false} onClick={() => setOpen(true)}>
        {named.join(", ")}
      </button>
    </li>
  );
}

function Line({ step, chosen }: { step: Step; chosen: boolean }) {
  const place = useRef<HTMLAnchorElement>(null);
  const arrived = useRef(chosen);
  useEffect(() => {
    // A link into the session brings its place into view; what is clicked is in view.
    if (arrived.current) place.current?.scrollIntoView?.({ block: "center" });
  }, []);
  const { event, answer, kind, failed } = step;
  const href = withQuery({ event: chosen ? "" : event.id });
  const took = msOf(step);
  const price = costOf(step);
  const error = failed ? messageOf(answer ?? event) : "";
  return (
    <a
      ref={place}
      href={href}
      class={`step ${kind} ${roleOf(event)} ${failed ? "failed" : ""}`}
      aria-current={chosen ? "step" : undefined}
      onClick={(click) => {
        if (click.metaKey || click.ctrlKey || click.shiftKey) return;
        click.preventDefault();
        navigate(href, { replace: true });
      }}
    >
      <time dateTime={event.timestamp}>{event.timestamp ? time(event.timestamp) : ""}</time>
      <span class="step-body">
        <span class="step-name">{nameOf(step)}</span>
        <span class="step-title">{titleOf(step)}</span>
        {failed && kind === "call" && <span class="step-error">{error.slice(0, 300)}</span>}
      </span>
      <span class="step-facts">
        {failed && <Badge tone="bad">error</Badge>}
        {took !== undefined && took > 0 && <span>{duration(took)}</span>}
        {price > 0 && <span>{cost(price)}</span>}
      </span>
    </a>
  );
}

function nameOf({ event, kind }: Step): string {
  if (kind === "message") return roleOf(event) || event.agentId || "message";
  if (kind === "call") return event.name || "call";
  if (kind === "model") return event.model || event.eventType || "";
  return event.name || (event.eventType ?? "").replaceAll("_", " ");
}

/** What is told above the steps. */
export function hidden(rows: readonly Row[]): string {
  const folded = rows.reduce((sum, row) => sum + ("folded" in row ? row.folded.length : 0), 0);
  return folded ? plural(folded, "step folded", "steps folded") : "";
}

/** `j` and `k` go to the next and the previous step, Escape closes it. */
function useStepping(steps: readonly Step[]): void {
  useEffect(() => {
    const pressed = (event: KeyboardEvent): void => {
      if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
      if (document.querySelector("dialog[open]")) return;
      // As the address has it by now: keys may come faster than the page is drawn.
      const open = stepWith(steps, filter("event"));
      const at = open ? steps.indexOf(open) : -1;
      const step =
        event.key === "j" ? steps[at + 1] : event.key === "k" ? steps[at - 1] : undefined;
      if (step) navigate(withQuery({ event: step.event.id }), { replace: true });
      else if (event.key === "Escape" && open)
        navigate(withQuery({ event: "" }), { replace: true });
      if (step) {
        requestAnimationFrame(() =>
          document.querySelector(".step[aria-current]")?.scrollIntoView({ block: "nearest" }),
        );
      }
    };
    document.addEventListener("keydown", pressed);
    return () => document.removeEventListener("keydown", pressed);
  }, [steps]);
}

function useNarrow(): boolean {
  const [narrow, setNarrow] = useState(() => matchMedia(NARROW).matches);
  useEffect(() => {
    const media = matchMedia(NARROW);
    const changed = (): void => setNarrow(media.matches);
    media.addEventListener("change", changed);
    return () => media.removeEventListener("change", changed);
  }, []);
  return narrow;
}
