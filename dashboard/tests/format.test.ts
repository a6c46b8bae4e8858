import { expect, test } from "vitest";
import { ago, bytes, cost, duration, durationMs, num, percent, plural, word } from "../src/format";

test("what protobuf leaves out is nothing, and its strings are numbers", () => {
  expect(num(undefined)).toBe(0);
  expect(num("9007199254740991")).toBe(9007199254740991);
  expect(num("NaN")).toBe(0);
});

test("small costs show two figures, others cents", () => {
  expect(cost(0)).toBe("$0.00");
  expect(cost(0.00012)).toBe("$0.00012");
  expect(cost(0.5)).toBe("$0.50");
  expect(cost(1234.5)).toBe("$1,234.50");
});

test("durations are read in at most two units", () => {
  expect(duration(340)).toBe("340 ms");
  expect(duration(1234)).toBe("1.2 s");
  expect(duration(200_000)).toBe("3 min 20 s");
  expect(duration(7_500_000)).toBe("2 h 5 min");
  expect(duration(3 * 86_400_000)).toBe("3 d");
  expect(durationMs("1.500s")).toBe(1500);
  expect(durationMs(undefined)).toBeUndefined();
});

test("sizes and counts are told in words", () => {
  expect(bytes(0)).toBe("0 B");
  expect(bytes(3_700_000)).toBe("3.7 MB");
  expect(plural("1", "event")).toBe("1 event");
  expect(plural(2, "memory", "memories")).toBe("2 memories");
});

test("times long ago are told from now", () => {
  const now = Date.parse("2026-11-03T12:00:00Z");
  expect(ago("2026-11-03T11:59:58Z", now)).toBe("just now");
  expect(ago("2026-11-03T09:00:00Z", now)).toBe("3 hours ago");
  expect(ago("2026-11-02T12:00:00Z", now)).toBe("1 day ago");
  // The day before yesterday, and two months ago: in figures it is so all the same.
  expect(ago("2026-11-01T13:00:00Z", now)).toBe("1 day ago");
  expect(ago("2026-09-07T12:00:00Z", now)).toBe("1 month ago");
});

test("an enum's value becomes words", () => {
  expect(word("ANALYSIS_ERROR_PATTERNS", "ANALYSIS_")).toBe("error patterns");
  expect(word(undefined, "X_")).toBe("");
});

test("only nothing is 0 percent, and only all is 100", () => {
  expect([0, 0.004, 0.5, 0.9993, 1].map((share) => percent(share, 0))).toEqual([
    "0%",
    "< 1%",
    "50%",
    "> 99%",
    "100%",
  ]);
  expect(percent(0.9993)).toBe("99.9%");
});
