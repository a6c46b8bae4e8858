/** Measures over spans of time, as charts draw them. */

import type { PerformancePointJson } from "@mneme/client/http";
import type { Line } from "../../components/chart";
import { DAY_S, type Numeric, num, spanStart } from "../../format";

/** What a measure is of: how many there are of it in a span, and what they are. */
export type Basis = readonly [of: (point: PerformancePointJson) => Numeric, what: string];

export const TIMED: Basis = [(point) => point.timedCount, "timed"];
export const ENDED: Basis = [(point) => point.knownCount, "that ended"];
export const TOLD: Basis = [(point) => point.toldCount, "with events"];

/** Return what the charts of these spans have in common. Days are UTC's, whatever the clock here. */
export function overTime(points: readonly PerformancePointJson[], seconds: number) {
  return {
    xName: "From",
    x: points.map((point) => new Date(point.startTime ?? 0).getTime() / 1000),
    time: true,
    utc: seconds >= DAY_S,
    formatX: (at: number) => spanStart(new Date(at * 1000).toISOString(), seconds),
  };
}

/** Return a measure as a line. What is not known is not 0: there the line has a gap. */
export function lineOf(
  name: string,
  points: readonly PerformancePointJson[],
  value: (point: PerformancePointJson) => Numeric,
  basis?: Basis,
): Line {
  return {
    name,
    values: points.map((point) => (value(point) === undefined ? null : num(value(point)))),
    ...(basis && { of: points.map((point) => num(basis[0](point))), what: basis[1] }),
  };
}
