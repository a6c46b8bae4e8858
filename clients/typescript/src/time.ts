import type { Duration, Timestamp } from "@bufbuild/protobuf/wkt";

/** A time of an answer, to the millisecond. */
export function toDate(time: Timestamp): Date {
  return new Date(Number(time.seconds) * 1000 + Math.floor(time.nanos / 1e6));
}

/** A duration of an answer in milliseconds, with its fractions. */
export function toMilliseconds(duration: Duration): number {
  return Number(duration.seconds) * 1000 + duration.nanos / 1e6;
}
