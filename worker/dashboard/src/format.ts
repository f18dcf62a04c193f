// Numbers and times as text. The dashboard is in English; numbers and dates are
// written as the browser's language does, with Latin digits and the Gregorian calendar,
// and times are in the browser's time zone, by 24 hours.

const language = new Intl.NumberFormat().resolvedOptions().locale;
export const locale = new Intl.Locale(language, { numberingSystem: "latn", calendar: "gregory" });

export const number = (n: number) => n.toLocaleString(locale);

// compact returns a large number with three digits: "1.52M"; below 10,000 it is exact.
export const compact = (n: number) =>
  n < 10_000 ? number(n) : n.toLocaleString(locale, { notation: "compact", maximumSignificantDigits: 3 });

// latency returns a percentile of times, which is the middle of a range, with two digits: "≈ 610 ms",
// "≈ 1.2 s". The shortest one stands for all below: "≤ 16 ms".
export const latency = (ms: number) => `${ms === 16 ? "≤" : "≈"} ${inSeconds(Number(ms.toPrecision(2)))}`;

// milliseconds returns a time: "1,220 ms".
export const milliseconds = (ms: number) => `${number(ms)} ms`;

// percent returns a share from 0 to 1: "12.5%".
export const percent = (share: number) => share.toLocaleString(locale, { style: "percent", maximumFractionDigits: 1 });

// count returns a number of things: "1 model", "20 models", "3 aliases", "2 entries".
export const count = (n: number, what: string) => `${number(n)} ${n === 1 ? what : plural(what)}`;
const plural = (what: string) =>
  what === "person"
    ? "people"
    : /[^aeiou]y$/.test(what)
      ? what.replace(/y$/, "ies")
      : what + (/(s|x|ch)$/.test(what) ? "es" : "s");

// bytes returns a size: "312 B", "1.5 kB", "2 MB".
export function bytes(n: number): string {
  if (n < 1000) return `${n} B`;
  const [size, unit] = n < 1e6 ? [n / 1e3, "kB"] : [n / 1e6, "MB"];
  return `${size.toLocaleString(locale, { maximumFractionDigits: 1 })} ${unit}`;
}

// indented returns a JSON text with indentation, "" if it is not JSON. Strings and numbers
// stay as they are written: as values, large numbers would be rounded.
export function indented(text: string): string {
  try {
    JSON.parse(text);
  } catch {
    return "";
  }
  let out = "",
    depth = 0,
    empty = false; // nothing has followed the last { or [
  const line = () => "\n" + "  ".repeat(depth);
  for (let at = 0; at < text.length; at++) {
    const c = text[at];
    if (" \t\r\n".includes(c)) continue;
    if (c === "}" || c === "]") {
      depth--;
      out += empty ? c : line() + c;
      empty = false;
      continue;
    }
    if (empty) out += line();
    empty = c === "{" || c === "[";
    if (empty) depth++;
    if (c === '"') {
      const from = at++;
      while (text[at] !== '"') at += text[at] === "\\" ? 2 : 1;
      out += text.slice(from, at + 1);
    } else out += c === "," ? c + line() : c === ":" ? ": " : c;
  }
  return out;
}

// day returns a date: "Nov 22, 2026".
export const day = (ms: number) => new Date(ms).toLocaleDateString(locale, { dateStyle: "medium" });

// when returns a date and time: "Nov 22, 15:04", with the year of another one, "Nov 22, 2025, 15:04";
// "Never" for a missing one.
export function when(ms?: number): string {
  if (!ms) return "Never";
  const at = new Date(ms);
  const year = at.getFullYear() === new Date().getFullYear() ? undefined : "numeric";
  return at.toLocaleString(locale, {
    ...{ year, month: "short", day: "numeric" },
    ...{ hour: "2-digit", minute: "2-digit", hourCycle: "h23" },
  });
}

// monthDay returns a date without its year: "Nov 22".
export const monthDay = (ms: number, timeZone?: string) =>
  new Date(ms).toLocaleDateString(locale, { day: "numeric", month: "short", timeZone });

// weekday returns the day of the week of a day of UTC: "Mon".
export const weekday = (ms: number) => new Date(ms).toLocaleDateString(locale, { weekday: "short", timeZone: "UTC" });

// month returns a month of UTC: "Nov 2026".
export const month = (ms: number) =>
  new Date(ms).toLocaleDateString(locale, { month: "short", year: "numeric", timeZone: "UTC" });

// time returns a time of day with seconds: "15:04:05".
export const time = (ms: number) => new Date(ms).toLocaleTimeString(locale, { timeStyle: "medium", hourCycle: "h23" });

// clock returns a time of day: "15:04".
export const clock = (ms: number) => new Date(ms).toLocaleTimeString(locale, { timeStyle: "short", hourCycle: "h23" });

// inSeconds returns a time of a second and more rounded, "3.6 s", and a shorter one whole, "610 ms".
export const inSeconds = (ms: number) =>
  ms < 1000 ? milliseconds(ms) : `${(ms / 1000).toLocaleString(locale, { maximumFractionDigits: 1 })} s`;

// duration returns a time span, rounded up to a second: "45 s", "12 min", "1.5 h",
// "7 days".
export function duration(ms: number): string {
  const s = Math.max(0, Math.ceil(ms / 1000));
  if (s < 90) return `${s} s`;
  if (s < 5400) return `${Math.round(s / 60)} min`;
  if (s >= 48 * 3600) return `${Math.round(s / 86400)} days`;
  return `${Math.round(s / 360) / 10} h`;
}
