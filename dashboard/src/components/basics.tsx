/** The small parts that every page is made of. */

import type { ComponentChild, ComponentChildren } from "preact";
import type { ApiError } from "../api/errors";
import type { Loaded } from "../api/load";
import { ago, dateTime, exactTime } from "../format";

/** What a page begins with. Its heading takes the focus when the page is entered. */
export function PageHeader(props: {
  title: ComponentChild;
  about?: ComponentChild;
  actions?: ComponentChildren;
}) {
  return (
    <header class="page-header">
      <div>
        <h1 tabIndex={-1}>{props.title}</h1>
        {props.about && <p class="about">{props.about}</p>}
      </div>
      {props.actions && <div class="actions">{props.actions}</div>}
    </header>
  );
}

/** A part of a page under a heading of its own. */
export function Section(props: {
  title: ComponentChild;
  about?: ComponentChild;
  actions?: ComponentChildren;
  children: ComponentChildren;
}) {
  return (
    <section class="card">
      <div class="card-header">
        <div>
          <h2>{props.title}</h2>
          {props.about && <p class="about">{props.about}</p>}
        </div>
        {props.actions && <div class="actions">{props.actions}</div>}
      </div>
      {props.children}
    </section>
  );
}

/** Says that there is nothing, and what to do next. */
export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <svg viewBox="0 0 48 48" aria-hidden="true" class="empty-mark">
        <path d="M8 36V16l11 12 5-6 5 6 11-12v20" />
        <circle cx="24" cy="12" r="3" />
      </svg>
      <p class="empty-title">{title}</p>
      {children && <div class="empty-text">{children}</div>}
    </div>
  );
}

/** Says what happened, what to do about it, and lets one try again. */
export function ErrorBox({ error, retry }: { error: ApiError; retry?: (() => void) | undefined }) {
  return (
    <div class="error-box" role="alert">
      <p>
        <strong>{error.message}</strong> {error.advice}
      </p>
      <p class="fine">
        {error.code}
        {error.reason && ` · ${error.reason}`}
        {error.requestId && ` · request ${error.requestId}`}
      </p>
      {retry && (
        <button type="button" onClick={retry}>
          Try again
        </button>
      )}
    </div>
  );
}

/** Stands where something is loaded. */
export function Loading({ lines = 3 }: { lines?: number }) {
  return (
    <div class="loading" role="status" aria-label="Loading">
      {Array.from({ length: lines }, (_, line) => (
        <span class="bone" key={line} />
      ))}
    </div>
  );
}

/** Shows what was loaded, that it is loading, or why it could not be. */
export function Show<T>(props: {
  of: Loaded<T>;
  lines?: number;
  children: (data: T) => ComponentChild;
}) {
  const { data, error, loading, reload } = props.of;
  if (error) return <ErrorBox error={error} retry={reload} />;
  if (data === undefined) return <Loading lines={props.lines ?? 3} />;
  return (
    <div class={loading ? "stale" : undefined} aria-busy={loading}>
      {props.children(data)}
    </div>
  );
}

export type Tone = "good" | "bad" | "warn" | "info" | "plain";

/** A word that stands out. The tone never is all that tells. */
export function Badge({ tone = "plain", children }: { tone?: Tone; children: ComponentChildren }) {
  return <span class={`badge ${tone}`}>{children}</span>;
}

/** One figure with its name. */
export function Figure(props: {
  name: string;
  value: ComponentChild;
  note?: ComponentChild;
  tone?: Tone;
  href?: string;
}) {
  const inside = (
    <>
      <span class="figure-name">{props.name}</span>
      <span class={`figure-value ${props.tone ?? ""}`}>{props.value}</span>
      {props.note && <span class="figure-note">{props.note}</span>}
    </>
  );
  return props.href ? (
    <a class="figure" href={props.href}>
      {inside}
    </a>
  ) : (
    <div class="figure">{inside}</div>
  );
}

/** A time, as long ago as it is or exactly; the exact one is always there to be asked for. */
export function Time({ value, exact = false }: { value: string | undefined; exact?: boolean }) {
  if (!value) return <span class="muted">–</span>;
  return (
    <time dateTime={value} title={exactTime(value)}>
      {exact ? dateTime(value) : ago(value)}
    </time>
  );
}

/** Names with their values. What has no value is left out. */
export function Facts({ of }: { of: readonly (readonly [string, ComponentChild])[] }) {
  const known = of.filter(([, value]) => value !== undefined && value !== "" && value !== null);
  return (
    <dl class="facts">
      {known.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

/** A share of 1 as a bar, with its figure beside it. */
export function ScoreBar({ value, label }: { value: number; label: string }) {
  const share = Math.max(0, Math.min(1, value));
  return (
    <span class="score" title={`${label} ${value.toFixed(3)}`}>
      <svg viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true">
        <rect width="100" height="6" rx="3" class="score-rest" />
        <rect width={share * 100} height="6" rx="3" class="score-fill" />
      </svg>
      <span>
        <span class="hidden">{label} </span>
        {value.toFixed(2)}
      </span>
    </span>
  );
}
