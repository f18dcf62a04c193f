import { useEffect, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import "./chart.css";
import { clock, month, monthDay } from "../../format";
import { dayMs, hourMs, type Unit } from "./span";
import { Middle } from "../../middle";
import { Cut } from "../../ui";
import "../../legend.css";

// steps are the possible distances of the marks on an axis without decimals.
const steps = Array.from({ length: 12 }, (_, i) => [1, 2, 5].map((n) => n * 10 ** i)).flat();

// timeMarks are the marks of time by the unit of the report: how far from another a unit
// is and marks can be, in seconds (uPlot makes months of 30 days), and their texts.
const timeMarks: Record<Unit, { step: number; steps: number[]; text: (ms: number) => string }> = {
  hour: { step: hourMs / 1000, steps: [1, 2, 3, 6, 12, 24], text: hourMark },
  day: { step: dayMs / 1000, steps: [1, 2, 7, 14, 28], text: (ms) => monthDay(ms, "UTC") },
  month: { step: (30 * dayMs) / 1000, steps: [1, 2, 3, 6], text: month },
};

export interface Line {
  name: string;
  values: (number | null)[];
  /** the class of its color: that of its place, unless set */
  color?: string;
  /** drawn as a dashed line, also beside bars */
  dashed?: boolean;
}

// hourMark returns the time of a mark, or the day at midnight.
function hourMark(ms: number) {
  const text = clock(ms);
  return text === "00:00" ? monthDay(ms) : text;
}

// paint draws a series of the plot: a line, or bars that are covered by those of the
// series after it.
function paint(line: Line, color: string, bars: boolean, points: boolean, alone: boolean): uPlot.Series {
  if (line.dashed) return { stroke: color, width: 2, dash: [4, 4], points: { show: false } };
  if (bars)
    return {
      stroke: color,
      fill: color,
      width: 0,
      paths: uPlot.paths.bars!({ size: [0.75, 48] }),
      points: { show: false },
    };
  return {
    stroke: color,
    width: 2,
    spanGaps: true,
    points: { show: points, size: 6, fill: color },
    ...(alone ? { fill: color.replace(/^rgb\((.+)\)$/, "rgba($1, .14)") } : {}),
  };
}

// Chart draws lines or stacked bars by month or day, in UTC, or by hour, in the browser's
// time zone. It takes its colours from the swatches of its legend, so that they follow the
// theme. With whole the axis has no decimals. Screen readers read the label; the page
// has the numbers in a table.
export default function Chart({
  times,
  unit,
  lines,
  bars = false,
  label,
  format,
  mark,
  whole,
}: {
  times: { name: string; ms: number }[];
  unit: Unit;
  lines: Line[];
  bars?: boolean;
  label: string;
  format: (n: number) => string;
  /** writes a mark of the axis */
  mark: (n: number) => string;
  whole: boolean;
}) {
  const box = useRef<HTMLDivElement>(null),
    legend = useRef<HTMLUListElement>(null);
  const [theme, turned] = useState(0);
  const [at, point] = useState(-1);
  useEffect(() => {
    const again = () => turned((n) => n + 1);
    const media = matchMedia("(prefers-color-scheme: dark)");
    media.addEventListener("change", again);
    addEventListener("weir-theme", again);
    return () => {
      media.removeEventListener("change", again);
      removeEventListener("weir-theme", again);
    };
  }, []);
  useEffect(() => {
    const el = box.current!;
    const colour = (e: Element | null) => (e ? getComputedStyle(e).color : "gray");
    const swatches = [...legend.current!.querySelectorAll(".swatch")].map(colour);
    const ink = colour(el),
      line = getComputedStyle(el).borderTopColor;
    // Bars are drawn from the highest sum to the lowest one.
    const order = lines.map((_, i) => i);
    if (bars) order.sort((a, b) => Number(!!lines[a].dashed) - Number(!!lines[b].dashed) || b - a);
    const stacked = lines.map((l) => l.values);
    if (bars) {
      const sum = times.map(() => 0);
      lines.forEach((l, i) => {
        if (!l.dashed) stacked[i] = times.map((_, at) => (sum[at] += l.values[at] ?? 0));
      });
    }
    const { step, steps: distances, text } = timeMarks[unit];
    const axis: uPlot.Axis = {
      stroke: ink,
      grid: { stroke: line, width: 1 },
      ticks: { stroke: line, width: 1 },
      font: "12px system-ui, sans-serif",
    };
    const size = () => ({ width: Math.max(el.clientWidth, 200), height: 260 });
    const plot = new uPlot(
      {
        ...size(),
        legend: { show: false },
        cursor: { y: false, drag: { setScale: false, x: false, y: false } },
        tzDate: (s) => (unit === "hour" ? new Date(s * 1000) : uPlot.tzDate(new Date(s * 1000), "Etc/UTC")),
        scales: {
          ...(bars ? { x: { range: (_, min, max) => [min - step / 2, max + step / 2] } } : {}),
          y: { range: (_, _min, max) => [0, max > 0 ? max * 1.08 : 1] },
        },
        axes: [
          {
            ...axis,
            grid: { show: false },
            space: 56,
            incrs: distances.map((n) => n * step),
            values: (_, marks) => marks.map((s) => text(s * 1000)),
          },
          {
            ...axis,
            size: 68,
            ...(whole ? { incrs: steps } : {}),
            values: (_, marks) => marks.map(mark),
          },
        ],
        series: [{}, ...order.map((n) => paint(lines[n], swatches[n], bars, times.length < 40, lines.length === 1))],
        hooks: { setCursor: [(u) => point(u.cursor.idx ?? -1)] },
      },
      [times.map((t) => t.ms / 1000), ...order.map((n) => stacked[n])],
      el,
    );
    const resized = new ResizeObserver(() => plot.setSize(size()));
    resized.observe(el);
    return () => {
      resized.disconnect();
      plot.destroy();
    };
  }, [times, lines, bars, theme]);
  return (
    <figure class="chart">
      <div class="plot" role="img" aria-label={label} ref={box} />
      <ul class="legend" ref={legend}>
        {lines.map((l, i) => (
          <li key={l.name}>
            <span class={`swatch ${l.color ?? `s${i}`}`} aria-hidden="true" />
            {l.name.includes("/") ? <Middle>{l.name}</Middle> : <Cut>{l.name}</Cut>}
            {at >= 0 && <strong>{l.values[at] == null ? "–" : format(l.values[at])}</strong>}
          </li>
        ))}
        <li class="muted">{at >= 0 ? times[at]?.name : ""}</li>
      </ul>
    </figure>
  );
}
