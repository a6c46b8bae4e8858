import { render, screen, within } from "@testing-library/preact";
import { expect, test } from "vitest";
import { ComparisonView } from "../src/pages/insights/comparison";
import { ErrorsView } from "../src/pages/insights/errors";
import { TrendLine } from "../src/pages/insights/evidence";

function cells(table: string, row: string): (string | null)[] {
  const shown = within(screen.getByRole("table", { name: table }));
  const cells = within(shown.getByRole("row", { name: new RegExp(`^${row}`) })).getAllByRole(
    "cell",
  );
  return cells.map((cell) => cell.textContent);
}

test("what one side of a comparison never recorded is no 0, and a verdict says no more than is shown", () => {
  const both = {
    recentCount: "9",
    earlierCount: "9",
    recentMean: 2,
    earlierMean: 1,
    difference: 1,
  };
  render(
    <ComparisonView
      of={{
        recentCount: "9",
        earlierCount: "9",
        comparisons: [
          {
            measure: "cost_per_session",
            earlierCount: "9",
            earlierMean: 0.5,
            difference: -0.5,
            qValue: 1,
          },
          { measure: "errors_per_session", ...both, qValue: 0.4, trend: "TREND_STABLE" },
          { measure: "events_per_session", ...both, qValue: 0.01, differs: true },
          {
            measure: "success_rate",
            ...both,
            qValue: 0.01,
            differs: true,
            trend: "TREND_IMPROVING",
          },
        ],
      }}
    />,
  );
  const of = (row: string) => cells("What differs", row);
  expect(of("cost")).toEqual(["cost per session", "–", "0.5", "–", "–", "–", "–"]);
  expect(of("errors")).toEqual(["errors per session", "2", "1", "+1", "–", "0.400", "unclear"]);
  expect(of("events").at(-1)).toBe("differs");
  expect(of("success").at(-1)).toBe("improving");
});

test("an error outside tools has no share of a tool's calls", () => {
  const pattern = { count: "3", sessionsAffected: "3", firstSeen: "2026-11-01T10:00:00Z" };
  render(
    <ErrorsView
      of={{
        errorCount: "6",
        patternCount: "2",
        patterns: [
          { ...pattern, template: "disk full" },
          { ...pattern, template: "no seats", toolName: "book", rate: 0.25 },
        ],
      }}
    />,
  );
  expect(cells("Recurring errors", "disk full")[4]).toBe("–");
  expect(cells("Recurring errors", "no seats")[4]).toBe("25%");
});

test("what changed at one time is told with when, and with no slope a day", () => {
  const steady = {
    points: "14",
    slopePerDay: 0,
    qValue: 0.3,
    trend: "TREND_STABLE" as const,
    slopeInterval: { low: -0.1, high: 0 },
  };
  const fell = {
    ...steady,
    trend: "TREND_DEGRADING" as const,
    step: {
      since: "2026-05-12T00:00:00Z",
      difference: -0.5,
      interval: { low: -0.7, high: -0.3 },
      qValue: 0.002,
    },
  };
  render(
    <ul>
      <TrendLine name="Success" of={fell} seconds={86_400} format={String} />
      <TrendLine name="Latency" of={steady} seconds={86_400} format={String} />
      <TrendLine
        name="Latency"
        of={{ ...steady, slopePerDay: -1, qValue: 0, small: true }}
        seconds={86_400}
        format={String}
      />
    </ul>,
  );
  const [success, latency, small] = screen.getAllByRole("listitem").map((one) => one.textContent);
  expect(small).toMatch(/^Latency sure, but small -1 a day, .* q < 0.001$/);
  expect(success).toMatch(
    /^Success degrading -0.5 at [^:]*2026[^:]*, interval -0.7 to -0.3 14 points, q = 0.002$/,
  );
  expect(latency).toBe("Latency stable 0 a day, interval -0.1 to 0 14 points, q = 0.300");
});
