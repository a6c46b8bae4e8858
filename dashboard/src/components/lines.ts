/** Draws lines with uPlot; loaded on demand. */

import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { type Line, toldAt } from "./chart";
import { shown } from "./shown";

const HEIGHT = 220;

/** What is drawn: the properties of `Lines`. */
interface Drawn {
  readonly xName: string;
  readonly x: readonly number[];
  readonly time?: boolean;
  readonly utc?: boolean;
  readonly log?: boolean;
  readonly lines: readonly Line[];
  readonly format: (value: number) => string;
  readonly formatX: (x: number) => string;
}

/** Draw into `place`, as wide as it is; return what takes it away again. */
export function draw(place: HTMLElement, chart: Drawn): () => void {
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

function optionsOf(place: HTMLElement, chart: Drawn): uPlot.Options {
  const css = getComputedStyle(document.documentElement);
  const colour = (name: string): string => css.getPropertyValue(name).trim();
  const axis: uPlot.Axis = {
    stroke: colour("--muted"),
    font: "12px system-ui, sans-serif",
    grid: { stroke: colour("--line"), width: 1 },
    ticks: { stroke: colour("--line"), width: 1 },
  };
  // Where nobody points, the legend tells of the last value: it never changes its size.
  const last = chart.x.length - 1;
  const told = (at: number | null | undefined): number => at ?? last;
  const series: uPlot.Series[] = [
    {
      label: chart.xName,
      value: (_plot, _value, _series, at) => chart.formatX(chart.x[told(at)] ?? 0),
    },
  ];
  const bands: uPlot.Band[] = [];
  for (const [at, line] of chart.lines.entries()) {
    const stroke = colour(`--chart-${(at % 5) + 1}`);
    series.push({
      label: shown(line.name),
      stroke,
      width: 2,
      // A value between two gaps is on no line: it is seen as a point.
      points: { show: true, size: 4, fill: stroke },
      value: (_plot, _value, _series, at) => toldAt(line, told(at), chart.format),
    });
    if (line.low && line.high) {
      const first = series.length;
      const bound: uPlot.Series = {
        value: (_plot, value: number | null) => (value === null ? "–" : chart.format(value)),
      };
      series.push({
        label: `${shown(line.name)}, low`,
        ...bound,
        stroke: "transparent",
        points: { show: false },
      });
      series.push({
        label: `${shown(line.name)}, high`,
        ...bound,
        stroke: "transparent",
        points: { show: false },
      });
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
    ...(chart.utc && { tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), "Etc/UTC") }),
    axes: [
      chart.time ? { ...axis, space: 110, values: datesOf(chart) } : axis,
      { ...axis, size: widthOf, values: (_plot, ticks) => labelsOf(ticks, chart) },
    ],
  };
}

/** Return what names the ticks of time, in the one form that dates have here; each once. */
function datesOf({ formatX }: Drawn): (plot: uPlot, ticks: readonly number[]) => string[] {
  return (_plot, ticks) => {
    const names = ticks.map(formatX);
    return names.map((name, at) => (names.indexOf(name) === at ? name : ""));
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
