// The time of a report of usage. Months, days and hours are those of UTC, as they are stored.

export const dayMs = 86_400_000;
export const hourMs = 3_600_000;

const storedDays = 397;
const storedHours = 8 * 24;

// utcDay returns the day of a time: "2026-11-22".
export const utcDay = (ms: number) => new Date(ms).toISOString().slice(0, 10);

// utcHour returns the hour of a time: "2026-11-22T19".
export const utcHour = (ms: number) => new Date(ms).toISOString().slice(0, 13);

// utcMonth returns the month of a time: "2026-11".
const utcMonth = (ms: number) => new Date(ms).toISOString().slice(0, 7);

// startOf returns when a month, a day or an hour begins, in ms.
export const startOf = (when: string) => Date.parse(when.includes("T") ? `${when}:00Z` : when);

// monthOf returns when the month of a time begins, or that of the month that number of months later.
export function monthOf(ms: number, later = 0): number {
  const at = new Date(ms);
  return Date.UTC(at.getUTCFullYear(), at.getUTCMonth() + later);
}

export type Unit = "hour" | "day" | "month";

// intervals are what a report can be by: the text of a time as its rows have it, and when
// the next one begins.
export const intervals: Record<Unit, { name: string; text: (ms: number) => string; next: (ms: number) => number }> = {
  hour: { name: "Hour", text: utcHour, next: (ms) => ms + hourMs },
  day: { name: "Day", text: utcDay, next: (ms) => ms + dayMs },
  month: { name: "Month", text: utcMonth, next: (ms) => monthOf(ms, 1) },
};

// ranges are the choices of the page; those of a day are shown by hour, long ones also by
// month.
export const ranges = [
  ["24h", "24 hours"],
  ["today", "Today"],
  ["7d", "7 days"],
  ["30d", "30 days"],
  ["90d", "90 days"],
  ["365d", "12 months"],
  ["custom", "Custom"],
] as const;

export type Range = (typeof ranges)[number][0];

// Asked is the time that the page is asked for, as it is in the address.
export interface Asked {
  range: Range;
  /** days of a custom range, both included; "" for the last seven */
  from: string;
  to: string;
  /** "" for hours in a range of up to two days, months in one of over half a year */
  unit: Unit | "";
}

// Period is the time of a report: both ends are included. They are hours in a report by
// hour, else days.
export interface Period {
  unit: Unit;
  from: string;
  to: string;
}

// Span is the time of a report and that of the one that it is compared with.
export interface Span extends Period {
  /** the units that the range can be shown in */
  units: Unit[];
  /** null if nothing of it is stored */
  before: Period | null;
}

// spanOf returns the time to ask for.
export function spanOf({ range, from, to, unit }: Asked, now: number): Span {
  const today = now - (now % dayMs),
    hour = now - (now % hourMs);
  if (range === "24h") return span("hour", ["hour"], hour - 23 * hourMs, hour, 24 * hourMs, now);
  if (range === "today") return span("hour", ["hour"], today, hour, dayMs, now);
  let last = today,
    first = today - 6 * dayMs;
  if (range === "custom") {
    last = Math.min(dayOf(to) ?? today, today);
    first = Math.min(dayOf(from) ?? last - 6 * dayMs, last);
  } else first = today - (Number.parseInt(range, 10) - 1) * dayMs;
  first = Math.max(first, today - (storedDays - 1) * dayMs);
  last = Math.max(first, last);
  const length = last + dayMs - first;
  const units: Unit[] =
    first >= now - storedHours * hourMs ? ["hour", "day"] : length > 31 * dayMs ? ["day", "month"] : ["day"];
  const usual = length <= 2 * dayMs ? "hour" : length > 183 * dayMs ? "month" : "day";
  const chosen = [unit, usual].find((u): u is Unit => units.includes(u as Unit)) ?? "day";
  if (chosen === "hour") return span("hour", units, first, Math.min(last + dayMs - hourMs, hour), length, now);
  // Whole months, unless days were asked for.
  if (chosen === "month" && range !== "custom") first = monthOf(today, 1 - Math.round(length / (30 * dayMs)));
  return span(chosen, units, first, last, last + dayMs - first, now);
}

function span(unit: Unit, units: Unit[], first: number, last: number, length: number, now: number): Span {
  const text = (of: Unit, ms: number) => (of === "hour" ? utcHour(ms) : utcDay(ms));
  const start = first - length;
  // Hours that are no longer stored are asked for as days, and so is what is not of whole months.
  const of: Unit = unit === "hour" && start >= now - storedHours * hourMs ? "hour" : "day";
  const before =
    start < now - storedDays * dayMs
      ? null
      : { unit: of, from: text(of, start), to: text(of, of === unit ? last - length : first - 1) };
  return { unit, units, from: text(unit, first), to: text(unit, last), before };
}

// dayOf returns when a day of the address begins; undefined without a valid one.
function dayOf(text: string): number | undefined {
  const ms = /^\d{4}-\d\d-\d\d$/.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(ms) ? undefined : ms;
}

// inDays returns a period by day or month: the days of its hours.
export const inDays = <T extends Period>(p: T): T =>
  p.unit === "hour" ? { ...p, unit: "day", from: p.from.slice(0, 10), to: p.to.slice(0, 10) } : p;

// months returns the last months, the current one first: "2026-11".
export const months = (now: number, count: number) =>
  Array.from({ length: count }, (_, i) => utcMonth(monthOf(now, -i)));
