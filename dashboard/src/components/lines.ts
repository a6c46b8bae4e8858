/** Draws lines with uPlot; loaded on demand. */

import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import type { Line } from "./chart";

const HEIGHT = 220;

/** Draw into `place`, as wide as it is; return what takes it away again. */
export function draw(
  place: HTMLElement,
  chart: {
    readonly xName: string;
    readonly x: readonly number[];
    readonly time?: boolean;
    readonly log?: boolean;
    readonly lines: readonly Line[];
    readonly format: (value: number) => string;
  },
): () => void {
  const make = (): uPlot => new uPlot(optionsOf(place, chart), dataOf(chart), place);
  let plot = make();
  const sized = new ResizeObserver(() => {
    if (place.clientWidth) plot.setSize({ width: place.clientWidth, height: HEIGHT });
  });
  sized.observe(place);
  // Canvas knows no CSS variables: another theme is another drawing.
  const redraw = (): void => {
    plot.destroy();
    plot = make();
  };
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const themed = new MutationObserver(redraw);
  dark.addEventListener("change", redraw);
  themed.observe(document.documentElement, { attributeFilter: ["data-theme"] });
  return () => {
    sized.disconnect();
    themed.disconnect();
    dark.removeEventListener("change", redraw);
    plot.destroy();
  };
}

function dataOf({ x, lines }: { x: readonly number[]; lines: readonly Line[] }): uPlot.AlignedData {
  const series = lines.flatMap((line) =>
    line.low && line.high ? [[...line.values], [...line.low], [...line.high]] : [[...line.values]],
  );
  return [[...x], ...series];
}

function optionsOf(
  place: HTMLElement,
  chart: {
    xName: string;
    time?: boolean;
    log?: boolean;
    lines: readonly Line[];
    format: (value: number) => string;
  },
): uPlot.Options {
  const css = getComputedStyle(document.documentElement);
  const colour = (name: string): string => css.getPropertyValue(name).trim();
  const axis: uPlot.Axis = {
    stroke: colour("--muted"),
    font: "12px system-ui, sans-serif",
    grid: { stroke: colour("--line"), width: 1 },
    ticks: { stroke: colour("--line"), width: 1 },
  };
  const series: uPlot.Series[] = [{ label: chart.xName }];
  const bands: uPlot.Band[] = [];
  for (const [at, line] of chart.lines.entries()) {
    const stroke = colour(`--chart-${(at % 5) + 1}`);
    series.push({ label: line.name, stroke, width: 2, spanGaps: true });
    if (line.low && line.high) {
      const first = series.length;
      series.push({ label: `${line.name}, low`, stroke: "transparent", points: { show: false } });
      series.push({ label: `${line.name}, high`, stroke: "transparent", points: { show: false } });
      bands.push({ series: [first + 1, first], fill: `${stroke}22` });
    }
  }
  return {
    width: place.clientWidth || 600,
    height: HEIGHT,
    series,
    bands,
    legend: { show: chart.lines.length > 1 },
    cursor: { y: false },
    scales: { x: { time: chart.time ?? false }, y: { distr: chart.log ? 3 : 1 } },
    axes: [axis, { ...axis, size: widthOf, values: (_plot, ticks) => labelsOf(ticks, chart) }],
  };
}

/** The room that an axis takes: as much as its longest label. */
function widthOf(_plot: uPlot, labels: readonly (string | null)[] | null): number {
  const longest = Math.max(0, ...(labels ?? []).map((label) => label?.length ?? 0));
  return Math.min(120, Math.max(48, 20 + 7 * longest));
}

/** A logarithmic axis has more ticks than there is room for labels. */
function labelsOf(
  ticks: readonly (number | null)[],
  chart: { log?: boolean; format: (value: number) => string },
): (string | null)[] {
  const known = ticks.filter((tick) => tick !== null);
  const decades = Math.log10(Math.max(...known) / Math.min(...known));
  const leading = decades > 2 ? "1" : "125";
  return ticks.map((tick) => {
    if (tick === null) return null;
    const shown = !chart.log || leading.includes(tick.toPrecision(1).charAt(0));
    return shown ? chart.format(tick) : null;
  });
}
