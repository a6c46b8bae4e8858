/** Figures as sentences, and the way from a claim to what shows it. */

import type { IntervalJson, OutcomeSplitJson, TrendTestJson } from "@mneme/client/http";
import { Badge, type Tone } from "../../components/basics";
import { count, type Numeric, num, percent, spanStart, word } from "../../format";
import { to } from "../../router";

const SHOWN = 5;

/** Links to the sessions in which a claim can be seen; to their events where those are known. */
export function Evidence(props: {
  sessions?: readonly string[] | undefined;
  events?: readonly string[] | undefined;
}) {
  const { sessions = [] } = props;
  if (sessions.length === 0) return null;
  const [only] = sessions.length === 1 ? sessions : [];
  const event = only && props.events?.[0];
  return (
    <span class="evidence">
      Seen in{" "}
      {sessions.slice(0, SHOWN).map((id, at) => (
        <span key={id}>
          {at > 0 && ", "}
          <a href={placeOf(id, event)}>{id}</a>
        </span>
      ))}
      {sessions.length > SHOWN && ` and ${count(sessions.length - SHOWN)} more`}
    </span>
  );
}

/** Return the address of an event in its session. */
export function placeOf(session: string, event?: string | undefined): string {
  const address = to("sessions", session);
  return event ? `${address}?event=${encodeURIComponent(event)}` : address;
}

/** Tools in their order. */
export function Steps({ tools = [] }: { tools?: readonly string[] | undefined }) {
  return (
    <span class="steps">
      {tools.map((tool, at) => (
        <span key={at}>
          {at > 0 && <span aria-hidden="true"> → </span>}
          {at > 0 && <span class="hidden"> then </span>}
          <code>{tool}</code>
        </span>
      ))}
    </span>
  );
}

/** "(0.2 to 0.8)" */
export function between(
  interval: IntervalJson | undefined,
  format: (value: Numeric) => string,
): string {
  return interval ? `${format(interval.low)} to ${format(interval.high)}` : "–";
}

/** A number of two figures, signed. */
export function signed(value: Numeric): string {
  const read = num(value);
  return `${read > 0 ? "+" : ""}${read.toLocaleString(undefined, { maximumSignificantDigits: 3 })}`;
}

/** How likely chance alone gives a finding, for a column of such: "< 0.001". */
export function chance(value: Numeric): string {
  const read = num(value);
  return read < 0.001 ? "< 0.001" : read.toFixed(3);
}

/** The same in a sentence: "q < 0.001". It is no probability that the finding is true. */
export function evidence(qValue: Numeric): string {
  const told = chance(qValue);
  return told.startsWith("<") ? `q ${told}` : `q = ${told}`;
}

const TONES: Readonly<Record<string, Tone>> = { improving: "good", degrading: "bad" };

/** Which way something goes. */
export function TrendBadge({ trend, small }: { trend: string | undefined; small?: boolean }) {
  if (small) return <Badge>sure, but small</Badge>;
  const said = word(trend, "TREND_") || "unspecified";
  return <Badge tone={TONES[said] ?? "plain"}>{said === "unspecified" ? "not known" : said}</Badge>;
}

/** A trend's slope, or its change at one time, with the interval. */
export function TrendLine(props: {
  name: string;
  of: TrendTestJson | undefined;
  format: (value: Numeric) => string;
  /** How long the series' spans are. */
  seconds: number;
}) {
  const { of } = props;
  if (!of || num(of.points) < 2) return null;
  const interval = of.step ? of.step.interval : of.slopeInterval;
  return (
    <li>
      <strong>{props.name}</strong> <TrendBadge trend={of.trend} small={of.small ?? false} />{" "}
      <span>
        {of.step
          ? `${props.format(of.step.difference)} at ${spanStart(of.step.since, props.seconds)}`
          : `${props.format(of.slopePerDay)} a day`}
        {interval && `, interval ${between(interval, props.format)}`}
      </span>{" "}
      <span class="fine">
        {count(of.points)} points, {evidence((of.step ?? of).qValue)}
      </span>
    </li>
  );
}

/** How sessions ended with something, and without it. */
export function Outcome({ of }: { of: OutcomeSplitJson | undefined }) {
  if (!of?.sessions || of.sessions === "0") return <span class="muted">–</span>;
  const rate = num(of.successes) / num(of.sessions);
  const other = num(of.otherSessions) ? num(of.otherSuccesses) / num(of.otherSessions) : undefined;
  return (
    <span>
      {percent(rate, 0)} succeed{other !== undefined && `, ${percent(other, 0)} without it`}
      {of.sure && (
        <>
          {" "}
          <Badge tone="info">sure</Badge>
        </>
      )}
    </span>
  );
}
