import type { Machine } from "../../api";
import { cents, lowerBound, money, type Write } from "../../amounts";
import { clock, compact, count, day, latency, number, percent } from "../../format";
import { Fit } from "../../layout";
import { to } from "../../route";
import { approximate, successRate } from "../usage/outcomes";
import { dayMs, hourMs, startOf } from "../usage/span";
import "../../figures.css";

export type Range = "hour" | "day" | "week";

export const ranges: [Range, string][] = [
  ["hour", "Last hour"],
  ["day", "24 hours"],
  ["week", "7 days"],
];

// Counts are the numbers of a row of GET /api/usage.
export interface Counts {
  requests?: number;
  succeeded?: number;
  providerFailed?: number;
  noAccount?: number;
  refused?: number;
  left?: number;
  inputTokens?: number;
  outputTokens?: number;
  costUsd?: number;
  unpricedAttempts?: number;
  estimatedAttempts?: number;
  latencyP95Ms?: number;
}

type Row = Counts & { day?: string; hour?: string; at?: number };

// Series is what was used in a range, by its steps.
export interface Series {
  steps: { at: number; row: Counts }[];
  total: Counts;
}

// loadSeries returns the usage of a range: by five minutes, hour or day.
export async function loadSeries(machine: Machine, range: Range): Promise<Series> {
  if (range === "hour") {
    const { data, total } = await machine.get<{ data: (Counts & { at: number })[]; total: Counts }>("/usage/recent");
    return { steps: data.map((row) => ({ at: row.at, row })), total };
  }
  const [query, stepMs, steps] =
    range === "day" ? ["period=24h&groupBy=hour", hourMs, 24] : ["period=7d&groupBy=day", dayMs, 7];
  const { data, to: end, total } = await machine.get<{ data: Row[]; to: string; total: Counts }>(`/usage?${query}`);
  const rows = new Map(data.map((r) => [startOf(r.hour ?? r.day ?? ""), r]));
  const at = (i: number) => startOf(end) - (steps - 1 - i) * stepMs;
  return { steps: Array.from({ length: steps }, (_, i) => ({ at: at(i), row: rows.get(at(i)) ?? {} })), total };
}

// failed returns the requests that no account served.
export const failed = (c: Counts) => (c.providerFailed ?? 0) + (c.noAccount ?? 0);

// textOf returns a figure as text: a cost of which a part is unknown and what is estimated are marked.
const textOf = ({ metric }: { metric: string }, c: Counts, write: Write, n?: number) =>
  n === undefined
    ? "–"
    : n === 0
      ? write(n)
      : approximate(metric, lowerBound(write, n, metric === "cost" ? c.unpricedAttempts : 0), c.estimatedAttempts);

interface Figure {
  name: string;
  /** the metric of the page Usage */
  metric: string;
  /** undefined is unknown */
  value: (c: Counts) => number | undefined;
  text: Write;
  /** as the total is shown, if it is not exact */
  short?: Write;
  /** what the total leaves out */
  note?: (c: Counts) => string;
}

const figures: Figure[] = [
  { name: "Requests", metric: "requests", value: (c) => c.requests ?? 0, text: number },
  {
    name: "Success rate",
    metric: "success",
    value: (c) => (c.succeeded || failed(c) ? successRate({ ...c }) : undefined),
    text: percent,
    note: (c) =>
      [failed(c) && `${number(failed(c))} failed`, c.refused && `${number(c.refused)} refused`]
        .filter(Boolean)
        .join(", "),
  },
  {
    name: "Tokens",
    metric: "tokens",
    value: (c) => (c.inputTokens ?? 0) + (c.outputTokens ?? 0),
    text: number,
    short: compact,
    note: (c) =>
      c.inputTokens || c.outputTokens
        ? `${compact(c.inputTokens ?? 0)} in, ${compact(c.outputTokens ?? 0)} out${c.requests ? "" : ", by account tests"}`
        : "",
  },
  {
    name: "Spend",
    metric: "cost",
    value: (c) => (c.unpricedAttempts && !c.costUsd ? undefined : (c.costUsd ?? 0)),
    text: money,
    short: cents,
    note: (c) => (c.unpricedAttempts ? `cost of ${count(c.unpricedAttempts, "attempt")} unknown` : ""),
  },
  {
    name: "Latency p95",
    metric: "p95",
    value: (c) => c.latencyP95Ms || undefined,
    text: latency,
  },
];

// Figures shows what was used in a range, each figure with a small chart.
export function Figures({
  machine,
  range,
  series: { steps, total },
}: {
  machine: Machine;
  range: Range;
  series: Series;
}) {
  const usage = (metric: string) =>
    `${to(machine.id, "usage")}?${new URLSearchParams({ range: range === "week" ? "7d" : "24h", show: metric })}`;
  const when = (at: number) => (range === "week" ? `${day(at)} UTC` : clock(at));
  return (
    <dl class="tilerow figures">
      {figures.map((f) => {
        const value = f.value(total),
          note = f.note?.(total);
        return (
          <div key={f.name} class="stat">
            <dt>
              <a href={usage(f.metric)}>{f.name}</a>
            </dt>
            <dd title={value === undefined ? "" : textOf(f, total, f.text, value)}>
              <Fit>{textOf(f, total, f.short ?? f.text, value)}</Fit>
            </dd>
            <dd class="note">
              {note}
              {note && f.metric === "cost" && (
                <>
                  . <a href={`${to(machine.id, "models")}?view=prices`}>Set prices</a>
                </>
              )}
            </dd>
            <dd>
              <Bars
                values={steps.map(({ at, row }) => {
                  const n = f.value(row);
                  return { n, title: `${when(at)}: ${textOf(f, row, f.text, n)}` };
                })}
              />
            </dd>
          </div>
        );
      })}
    </dl>
  );
}

const height = 32; // of a chart, in px

// Bars is a small chart, up to the largest value or the one that is given; parts of a value
// stand at its top. Screen readers have the figure beside it and the page Usage.
export function Bars({
  values,
  most = Math.max(...values.map((v) => v.n ?? 0)),
}: {
  values: { n?: number; parts?: { color: string; n: number }[]; title: string }[];
  most?: number;
}) {
  const heightOf = (n: number, least = 1.5) => Math.max(least, (n / most) * height);
  return (
    <svg class="bars" viewBox={`0 0 ${values.length} ${height}`} preserveAspectRatio="none" aria-hidden="true">
      {values.map(({ n = 0, parts = [], title }, i) => {
        let top = height - heightOf(n);
        const part = (color: string, n: number, y: number, h: number) =>
          n > 0 && <rect key={color} class={color} x={i} y={y} width={0.8} height={h} />;
        return (
          <g key={title}>
            {title && <title>{title}</title>}
            <rect class="slot" x={i} y={0} width={1} height={height} />
            {part("", n, top, heightOf(n))}
            {parts.toReversed().map(({ color, n }) => {
              const y = top;
              top += n && heightOf(n, 0.6);
              return part(color, n, y, top - y);
            })}
          </g>
        );
      })}
    </svg>
  );
}
