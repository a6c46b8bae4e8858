/** How agents do over time: success, errors, latency, and whether that is a trend. */

import type { PerformancePointJson, PerformanceTrendsJson } from "@mneme/client/http";
import { Empty, Section } from "../../components/basics";
import { Lines } from "../../components/chart";
import { duration, type Numeric, num, percent } from "../../format";
import { signed, TrendLine } from "./evidence";
import { type Basis, ENDED, lineOf, overTime, TIMED, TOLD } from "./series";

/** The analysis. */
export function TrendsView({ of }: { of: PerformanceTrendsJson }) {
  const points = of.points ?? [];
  if (points.length === 0) return <Empty title="There is nothing to draw in this span." />;
  const seconds = num(of.bucketSeconds);
  const common = overTime(points, seconds);
  const measures = [
    ["Success", of.successRate, points100],
    ["Errors of a session", of.errorRate, signed],
    ["Latency", of.latency, milliseconds],
    ["Latency, slowest twentieth", of.latencyP95, milliseconds],
    ["Sessions an hour", of.throughput, signed],
  ] as const;
  const line = (name: string, value: (point: PerformancePointJson) => Numeric, basis?: Basis) =>
    lineOf(name, points, value, basis);
  return (
    <>
      <Section
        title="Trends"
        about="The slope that fits best, with the interval it lies in, and how likely chance alone gives it."
      >
        <ul class="claims">
          {measures.map(([name, test, format]) => (
            <TrendLine key={name} seconds={seconds} name={name} of={test} format={format} />
          ))}
        </ul>
      </Section>
      <div class="grid">
        <Section title="Success">
          <Lines
            {...common}
            title="Share of sessions that succeed"
            lines={[line("Succeeded", (point) => point.successRate, ENDED)]}
            format={(value) => percent(value, 0)}
          />
        </Section>
        <Section title="Errors of a session">
          <Lines
            {...common}
            title="Errors of a session"
            lines={[line("Errors", (point) => point.errorsPerSession, TOLD)]}
            format={(value) => value.toFixed(1)}
          />
        </Section>
        <Section title="Latency of calls">
          <Lines
            {...common}
            title="Latency of calls"
            log
            lines={[
              line("Half are faster", (point) => point.latencyP50Ms, TIMED),
              line("95 % are faster", (point) => point.latencyP95Ms, TIMED),
            ]}
            format={duration}
          />
        </Section>
        <Section title="Sessions">
          <Lines
            {...common}
            title="Sessions"
            lines={[line("Sessions", (point) => point.sessionCount ?? 0)]}
            format={(value) => (Number.isInteger(value) ? String(value) : "")}
          />
        </Section>
      </div>
    </>
  );
}

function points100(value: Numeric): string {
  return `${signed(num(value) * 100)} points`;
}

function milliseconds(value: Numeric): string {
  const read = num(value);
  return `${read > 0 ? "+" : read < 0 ? "-" : ""}${duration(Math.abs(read))}`;
}
