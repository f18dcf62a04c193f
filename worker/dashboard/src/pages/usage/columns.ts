// The figures of usage. To add one that GET /api/usage returns, add a row to
// columns: the table, the tiles and the chart follow.
import { lowerBound, money } from "../../amounts.ts";
import { latency, milliseconds, number, percent } from "../../format.ts";
import { reasons } from "../requests/outcome.ts";
import { answered, type Figures, outcomes, successRate } from "./outcomes.ts";

// Dimensions are what the rows of GET /api/usage are grouped by.
export interface Dimensions {
  day?: string;
  /** "2026-11-22T19", UTC; set in place of day in a report by hour */
  hour?: string;
  /** "2026-11"; set in place of day in a report by month */
  month?: string;
  keyId?: string;
  connectionId?: string;
  provider?: string;
  model?: string;
  endpoint?: string;
  tool?: string;
  /** "project=atlas" */
  tag?: string;
}

// UsageRow is a row of GET /api/usage: a Dimensions with Figures.
export type UsageRow = Dimensions;

export interface Column {
  /** JSON field, summed over the rows of a group; "" for a column that is computed */
  field: string;
  /** a percentile: rows of one name have the highest value instead of the sum */
  highest?: boolean;
  /** in the table */
  head?: string;
  /** as a tile and in the chart; id is its name in the address */
  metric?: { id: string; name: string };
  /** one of the tiles that are always shown */
  main?: boolean;
  /** in the table only with all columns */
  more?: boolean;
  /** a sum, drawn as stacked bars */
  stacks?: boolean;
  /** the parts of one bar without a group */
  parts?: { name: string; value: (f: Figures) => number; color?: string }[];
  /** the requests that the number is of, as filters of the page of requests */
  of?: Record<string, string>;
  /** for a column that is not a plain sum */
  value?: (f: Figures) => number;
  /** reports whether the value of a row is unknown */
  unknown?: (f: Figures) => boolean;
  text: (n: number) => string;
  /** the chart's axis has no decimals unless set */
  decimals?: boolean;
}

// percentile returns a column of a percentile, which is unknown if it is 0.
const percentile = (field: string, head: string, more?: Partial<Column>): Column => ({
  field,
  head,
  highest: true,
  unknown: (f) => !f[field],
  text: latency,
  ...more,
});

// timed returns the requests that latencyMs is the sum over.
const timed = (f: Figures) => (f.requests ?? 0) - (f.refused ?? 0) - (f.noAccount ?? 0);

export const columns: Column[] = [
  {
    field: "requests",
    head: "Requests",
    metric: { id: "requests", name: "Requests" },
    stacks: true,
    parts: outcomes,
    main: true,
    text: number,
  },
  { field: "failedRequests", text: number },
  {
    field: "",
    head: "Success rate",
    metric: { id: "success", name: "Success rate" },
    value: successRate,
    unknown: (f) => !answered(f),
    main: true,
    text: percent,
    decimals: true,
  },
  { field: "succeeded", head: "Succeeded", of: { outcome: "succeeded" }, text: number },
  {
    field: "providerFailed",
    head: "Provider failed",
    metric: { id: "failed", name: "Provider failed" },
    stacks: true,
    of: { outcome: "provider_failed" },
    text: number,
  },
  { field: "noAccount", head: "No account", of: { outcome: "no_account" }, text: number },
  {
    field: "refused",
    head: "Refused",
    metric: { id: "refused", name: "Refused" },
    stacks: true,
    parts: reasons.map(([id, field, name]) => ({
      name,
      value: (f) => f[field] ?? 0,
      ...(id === "request" && { color: "rest" }),
    })),
    of: { outcome: "refused" },
    text: number,
  },
  { field: "left", head: "Client disconnected", of: { outcome: "left" }, text: number },
  { field: "refusedKeyLimit", text: number },
  { field: "refusedBudget", text: number },
  { field: "refusedConcurrency", text: number },
  { field: "refusedKey", text: number },
  { field: "refusedModel", text: number },
  { field: "refusedRequest", text: number },
  {
    field: "attempts",
    head: "Attempts",
    more: true,
    metric: { id: "attempts", name: "Attempts" },
    stacks: true,
    parts: [
      { name: "Succeeded", value: (f) => (f.attempts ?? 0) - (f.failedAttempts ?? 0) },
      { name: "Failed", value: (f) => f.failedAttempts ?? 0, color: "bad" },
    ],
    text: number,
  },
  {
    field: "failedAttempts",
    head: "Failed attempts",
    more: true,
    of: { failed: "true" },
    text: number,
  },
  { field: "inputTokens", head: "Input", text: number },
  { field: "outputTokens", head: "Output", text: number },
  { field: "cacheReadTokens", head: "Cached", more: true, text: number },
  {
    field: "cacheShare",
    head: "Cache share",
    more: true,
    metric: { id: "cache", name: "Cache share" },
    value: (f) => (f.inputTokens ? (f.cacheReadTokens ?? 0) / f.inputTokens : 0),
    unknown: (f) => !f.inputTokens,
    text: percent,
    decimals: true,
  },
  { field: "cacheWriteTokens", text: number },
  { field: "reasoningTokens", head: "Reasoning", more: true, text: number },
  {
    field: "",
    metric: { id: "tokens", name: "Tokens" },
    stacks: true,
    parts: [
      { name: "Input", value: (f) => (f.inputTokens ?? 0) - (f.cacheReadTokens ?? 0) },
      { name: "Cached input", value: (f) => f.cacheReadTokens ?? 0 },
      { name: "Output", value: (f) => f.outputTokens ?? 0 },
    ],
    value: (f) => (f.inputTokens ?? 0) + (f.outputTokens ?? 0),
    main: true,
    text: number,
  },
  {
    field: "costUsd",
    head: "Cost",
    metric: { id: "cost", name: "Spend" },
    main: true,
    stacks: true,
    unknown: (f) => !!f.unpricedAttempts && !f.costUsd,
    text: money,
    decimals: true,
  },
  { field: "unpricedAttempts", text: number },
  { field: "estimatedAttempts", text: number },
  {
    field: "latencyMs",
    metric: { id: "latency", name: "Average latency" },
    value: (f) => (timed(f) ? Math.round((f.latencyMs ?? 0) / timed(f)) : 0),
    unknown: (f) => !timed(f),
    text: milliseconds,
  },
  percentile("latencyP50Ms", "Latency p50", { more: true }),
  percentile("latencyP95Ms", "Latency p95", {
    metric: { id: "p95", name: "Latency p95" },
    main: true,
  }),
  { field: "firstTokenMs", text: milliseconds },
  percentile("firstTokenP50Ms", "First token p50", { more: true }),
  percentile("firstTokenP95Ms", "First token p95", {
    metric: { id: "first", name: "First token p95" },
    more: true,
  }),
];

export type Metric = Column & Required<Pick<Column, "metric">>;

// metrics are the columns that are tiles and can be drawn.
export const metrics = columns.filter((c): c is Metric => c.metric !== undefined);

const figures = (r: UsageRow) => r as unknown as Figures;

// amount returns the value of a column in a row, 0 if it is missing.
export const amount = (c: Column, r: UsageRow) => (c.value ? c.value(figures(r)) : (figures(r)[c.field] ?? 0));

// known returns the value of a column in a row, null if it is not known.
export const known = (c: Column, r: UsageRow) => (c.unknown?.(figures(r)) ? null : amount(c, r));

// textOf returns the value of a column in a row as text, an amount of which a part is unknown as
// a lower bound.
export function textOf(c: Column, r: UsageRow, write = c.text): string {
  if (c.unknown?.(figures(r))) return "–";
  return lowerBound(write, amount(c, r), c.text === money ? figure(r, "unpricedAttempts") : 0);
}

// partsOf returns the parts of a metric's bar, from its foot, with the classes of their colors.
export const partsOf = (c: Column) =>
  (c.parts ?? []).map(({ name, color, value }, i) => ({
    name,
    color: color ?? `s${i}`,
    value: (r: UsageRow) => value(figures(r)),
  }));

// change returns how much a value differs from that of an earlier period: "+12.5%", or
// "+2 points" of a share; "" if one of them is unknown.
export function change(c: Column, now: UsageRow, before: UsageRow): string {
  if (c.unknown?.(figures(now)) || c.unknown?.(figures(before))) return "";
  const [a, b] = [amount(c, now), amount(c, before)];
  const sign = a < b ? "−" : a > b ? "+" : "±";
  if (c.text === percent) return `${sign}${number(Math.round(Math.abs(a - b) * 1000) / 10)} points`;
  return b === 0 ? "" : `${sign}${percent(Math.abs(a / b - 1))}`;
}

// figure returns a number of a row by the name of its field.
export const figure = (r: UsageRow, field: string) => figures(r)[field] ?? 0;

// addRow adds the figures of a row to those of another.
export function addRow(to: UsageRow, r: UsageRow) {
  for (const { field, highest } of columns) {
    const [a, b] = [figures(to)[field] ?? 0, figures(r)[field] ?? 0];
    if (field) figures(to)[field] = highest ? Math.max(a, b) : a + b;
  }
}
