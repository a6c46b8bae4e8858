/** Charts, each with the table of what it shows. */

import type { ComponentChild, ComponentChildren } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { count } from "../format";
import { Table } from "./table";

/** A bar. */
export interface Bar {
  readonly name: string;
  readonly value: number;
  /** What of the value is bad, such as errors among calls. */
  readonly bad?: number;
  readonly href?: string;
}

/** A figure with its caption, and the table of what it shows. */
export function Chart(props: {
  title: string;
  head: readonly string[];
  rows: readonly (readonly ComponentChild[])[];
  children: ComponentChildren;
}) {
  const id = useId();
  const columns = props.head.map((name, at) => ({
    name,
    right: at > 0,
    cell: (row: readonly ComponentChild[]) => row[at],
  }));
  return (
    <figure class="chart" aria-labelledby={id}>
      <figcaption id={id} class="hidden">
        {props.title}
      </figcaption>
      {props.children}
      <details class="chart-table">
        <summary>Show as a table</summary>
        <Table
          caption={props.title}
          columns={columns}
          rows={props.rows}
          keyOf={(row) => String(props.rows.indexOf(row))}
        />
      </details>
    </figure>
  );
}

/** Names with horizontal bars. */
export function Bars(props: {
  title: string;
  names: readonly [name: string, value: string];
  bars: readonly Bar[];
  format: (value: number) => string;
}) {
  const highest = Math.max(...props.bars.map((bar) => bar.value), Number.MIN_VALUE);
  return (
    <Chart
      title={props.title}
      head={props.names}
      rows={props.bars.map((bar) => [bar.name, props.format(bar.value)])}
    >
      <ul class="bars">
        {props.bars.map((bar) => (
          <li key={bar.name}>
            <span class="bar-name" title={bar.name}>
              {bar.href ? <a href={bar.href}>{bar.name}</a> : bar.name}
            </span>
            <svg viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">
              <rect width="100" height="10" class="bar-rest" />
              <rect width={(bar.value / highest) * 100} height="10" class="bar-fill" />
              {bar.bad ? (
                <rect width={(bar.bad / highest) * 100} height="10" class="bar-bad" />
              ) : null}
            </svg>
            <span class="bar-value">{props.format(bar.value)}</span>
          </li>
        ))}
      </ul>
    </Chart>
  );
}

/**
 * Values over time as columns. What is bad is a part of each column, at its foot; with `badShare`
 * false it is a count of its own, drawn downwards.
 */
export function Columns(props: {
  title: string;
  /** Without a name for what is bad, nothing is. */
  names:
    | readonly [time: string, value: string]
    | readonly [time: string, value: string, bad: string];
  points: readonly { readonly label: string; readonly value: number; readonly bad: number }[];
  format: (value: number) => string;
  badShare?: boolean;
}) {
  const { points, format, names, badShare = true } = props;
  const highest = Math.max(0, ...points.map((point) => point.value)) || 1;
  const worst = Math.max(...points.map((point) => point.bad), 0);
  const width = 100 / Math.max(points.length, 1);
  // Both directions have the same scale, so that they can be compared.
  const below = badShare ? 0 : worst;
  const scale = 40 / (highest + below);
  const base = highest * scale;
  return (
    <Chart
      title={props.title}
      head={names}
      rows={points.map((point) => [
        point.label,
        format(point.value),
        ...(names[2] ? [format(point.bad)] : []),
      ])}
    >
      <div class="columns">
        <span class="axis top">
          {names[1]}: up to {format(highest)}
          {names[2] && worst > 0 && (
            <span class="axis-bad">
              {names[2]}: up to {format(worst)}
            </span>
          )}
        </span>
        <svg viewBox="0 0 100 40" preserveAspectRatio="none" aria-hidden="true">
          {points.map((point, at) => {
            const x = at * width + width * 0.1;
            const bad = point.bad * scale;
            return (
              <g key={point.label}>
                <title>
                  {`${point.label}: ${format(point.value)}${names[2] ? `, ${format(point.bad)}` : ""}`}
                </title>
                <rect
                  x={x}
                  y={base - point.value * scale}
                  width={width * 0.8}
                  height={point.value * scale}
                  class="bar-fill"
                />
                <rect
                  x={x}
                  y={badShare ? base - bad : base}
                  width={width * 0.8}
                  height={bad}
                  class="bar-bad"
                />
              </g>
            );
          })}
          <line x1="0" x2="100" y1={base} y2={base} class="axis-line" />
        </svg>
        <span class="axis">{points[0]?.label}</span>
        <span class="axis end">{points.at(-1)?.label}</span>
      </div>
    </Chart>
  );
}

/** A line of a `Lines` chart. */
export interface Line {
  readonly name: string;
  /** One value for each of the chart's x; null where there is none. */
  readonly values: readonly (number | null)[];
  /** How many a value is of: "67% of 3" is said with it. `what` they are stands behind. */
  readonly of?: readonly number[];
  readonly what?: string;
  /** Drawn between `low` and `high`, as an interval. */
  readonly low?: readonly (number | null)[];
  readonly high?: readonly (number | null)[];
}

/** Return a line's value as it is told: with its unit, and with how many it is of. */
export function toldAt(line: Line, at: number, format: (value: number) => string): string {
  const value = line.values[at];
  if (value === null || value === undefined) return "–";
  const of = line.of?.[at];
  return of === undefined ? format(value) : `${format(value)} of ${count(of)} ${line.what ?? ""}`;
}

/**
 * Lines over time or steps. The library that draws them is loaded when the first of them is shown;
 * until then, and where there is no canvas, the table is there.
 */
export function Lines(props: {
  title: string;
  xName: string;
  /** Seconds since 1970 when `time`, else any numbers; ascending. */
  x: readonly number[];
  time?: boolean;
  /** Whether spans are days of UTC: they keep their names wherever they are looked at. */
  utc?: boolean;
  /** Whether values that differ a hundredfold are to be seen side by side. */
  log?: boolean;
  lines: readonly Line[];
  format: (value: number) => string;
  formatX: (x: number) => string;
}) {
  const place = useRef<HTMLDivElement>(null);
  const [failed, setFailed] = useState(false);
  // Drawn again only when the figures are others, not whenever something around it is.
  const figures = JSON.stringify([props.x, props.lines]);
  useEffect(() => {
    let over = false;
    let undraw: (() => void) | undefined;
    import("./lines").then(
      ({ draw }) => {
        if (!over && place.current) undraw = draw(place.current, props);
      },
      () => setFailed(true),
    );
    return () => {
      over = true;
      undraw?.();
    };
  }, [figures]);
  return (
    <Chart
      title={props.title}
      head={[props.xName, ...props.lines.map((line) => line.name)]}
      rows={props.x.map((x, at) => [
        props.formatX(x),
        ...props.lines.map((line) => toldAt(line, at, props.format)),
      ])}
    >
      <div ref={place} class="lines" aria-hidden="true">
        {failed && <p class="muted">The chart could not be loaded; the table has its figures.</p>}
      </div>
    </Chart>
  );
}
