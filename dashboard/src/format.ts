/** Numbers and times as people read them, in the browser's language and time zone. */

/** A number of protobuf's JSON: int64 is a string there, and what is 0 is left out. */
export type Numeric = number | string | undefined;

/** Return the number; 0 when there is none. */
export function num(value: Numeric): number {
  const read = Number(value ?? 0);
  return Number.isNaN(read) ? 0 : read;
}

const whole = new Intl.NumberFormat(undefined, { maximumFractionDigits: 0 });
const compact = new Intl.NumberFormat(undefined, { notation: "compact", maximumFractionDigits: 1 });

/** 12,345 */
export function count(value: Numeric): string {
  return whole.format(num(value));
}

/** 12.3K */
export function short(value: Numeric): string {
  const read = num(value);
  return Math.abs(read) < 10_000 ? whole.format(read) : compact.format(read);
}

/** "1 event", "2 events" */
export function plural(value: Numeric, one: string, many = `${one}s`): string {
  return `${count(value)} ${num(value) === 1 ? one : many}`;
}

/** $0.0123, $12.30: two places, or as many as show two figures. */
export function cost(value: Numeric): string {
  const read = num(value);
  const small = read !== 0 && Math.abs(read) < 1;
  const places = small ? Math.min(8, 1 - Math.floor(Math.log10(Math.abs(read)))) : 2;
  return `${read < 0 ? "−" : ""}$${Math.abs(read).toLocaleString(undefined, {
    minimumFractionDigits: small ? Math.max(2, places) : 2,
    maximumFractionDigits: Math.max(2, places),
  })}`;
}

/** 0.345 as 34.5 %. Only nothing is 0 %, and only all is 100 %: what rounds to them is beside them. */
export function percent(value: Numeric, places = 1): string {
  const read = num(value);
  const told = (share: number): string =>
    share.toLocaleString(undefined, { style: "percent", maximumFractionDigits: places });
  const least = 10 ** (-places - 2);
  if (read > 0 && read < least / 2) return `< ${told(least)}`;
  if (read < 1 && read >= 1 - least / 2) return `> ${told(1 - least)}`;
  return told(read);
}

/** Two figures behind the point, for scores. */
export function score(value: Numeric): string {
  return num(value).toFixed(2);
}

/** Milliseconds as 340 ms, 1.2 s, 3 min 20 s, 2 h 5 min, 3 d 4 h. */
export function duration(ms: Numeric): string {
  const read = num(ms);
  if (read < 1000) return `${read < 10 && read % 1 ? read.toFixed(1) : Math.round(read)} ms`;
  if (read < 60_000) return `${(read / 1000).toFixed(read < 10_000 ? 1 : 0)} s`;
  const units = [
    ["d", 86_400_000],
    ["h", 3_600_000],
    ["min", 60_000],
    ["s", 1000],
  ] as const;
  const at = units.findIndex(([, size]) => read >= size);
  const [name, size] = units[at] ?? ["s", 1000];
  const [smaller, smallerSize] = units[at + 1] ?? ["s", 1000];
  const rest = Math.floor((read % size) / smallerSize);
  return `${Math.floor(read / size)} ${name}${rest && smaller !== name ? ` ${rest} ${smaller}` : ""}`;
}

/** Return milliseconds of protobuf's duration ("1.500s"). */
export function durationMs(value: string | undefined): number | undefined {
  return value ? Number.parseFloat(value) * 1000 : undefined;
}

/** 2,300 bytes as 2.3 kB */
export function bytes(value: Numeric): string {
  const read = num(value);
  const units = ["B", "kB", "MB", "GB", "TB"];
  const at = read < 1 ? 0 : Math.min(units.length - 1, Math.floor(Math.log10(read) / 3));
  const scaled = read / 1000 ** at;
  return `${at === 0 || scaled >= 100 ? Math.round(scaled) : scaled.toFixed(1)} ${units[at]}`;
}

const day = new Intl.DateTimeFormat(undefined, { dateStyle: "medium" });
const minute = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
const exact = new Intl.DateTimeFormat(undefined, { dateStyle: "full", timeStyle: "long" });
const clock = new Intl.DateTimeFormat(undefined, {
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
  hourCycle: "h23",
});

/** Nov 3, 2026, 14:05 */
export function dateTime(value: string | Date): string {
  return minute.format(new Date(value));
}

/** Nov 3, 2026 */
export function date(value: string | Date): string {
  return day.format(new Date(value));
}

/** 14:05:09 */
export function time(value: string | Date): string {
  return clock.format(new Date(value));
}

/** With the weekday and the time zone, for a tooltip. */
export function exactTime(value: string | Date): string {
  return exact.format(new Date(value));
}

/** A day in seconds. */
export const DAY_S = 86_400;

/** Where a span of so many seconds begins. Days and weeks are cut in UTC: they keep their names. */
export function spanStart(start: string | undefined, seconds: number): string {
  if (!start) return "";
  return seconds < DAY_S ? dateTime(start) : date(`${start.slice(0, 10)}T12:00`);
}

// In figures: "yesterday" and "last month" would be days of the calendar, which 47 hours are not.
const relative = new Intl.RelativeTimeFormat(undefined, { numeric: "always" });
const STEPS = [
  ["year", 31_536_000],
  ["month", 2_592_000],
  ["day", 86_400],
  ["hour", 3600],
  ["minute", 60],
] as const;

/** "3 hours ago" */
export function ago(value: string | Date, now = Date.now()): string {
  const seconds = (new Date(value).getTime() - now) / 1000;
  for (const [unit, size] of STEPS) {
    if (Math.abs(seconds) >= size) return relative.format(Math.trunc(seconds / size), unit);
  }
  return Math.abs(seconds) < 5 ? "just now" : relative.format(Math.trunc(seconds), "second");
}

/** Return an enum's value as words: "SESSION_STATUS_ACTIVE" as "active". */
export function word(value: string | undefined, prefix: string): string {
  return (value ?? "").replace(prefix, "").replaceAll("_", " ").toLowerCase();
}
