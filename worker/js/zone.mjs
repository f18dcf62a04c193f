// Time zones, whose rules the platform has.
import { MISSING } from "./contract.mjs";

const MAX_ZONES = 32;
const formats = new Map();

function formatOf(name) {
  let format = formats.get(name);
  if (format === undefined) {
    format = new Intl.DateTimeFormat("en-US", {
      timeZone: name,
      calendar: "gregory",
      numberingSystem: "latn",
      hourCycle: "h23",
      year: "numeric",
      month: "numeric",
      day: "numeric",
      hour: "numeric",
      minute: "numeric",
      second: "numeric",
    });
    if (formats.size >= MAX_ZONES) formats.clear();
    formats.set(name, format);
  }
  return format;
}

// zoneOffset returns how far a time zone of the IANA database is ahead of UTC at a
// time, in seconds, or MISSING for an unknown one.
export function zoneOffset(name, unixMilli) {
  if (!/^[A-Za-z][\w+/-]*$/.test(name)) return MISSING;
  try {
    const at = {};
    for (const { type, value } of formatOf(name).formatToParts(unixMilli)) at[type] = Number(value);
    const local = Date.UTC(at.year, at.month - 1, at.day, at.hour, at.minute, at.second);
    return Math.round(local / 1000) - Math.floor(unixMilli / 1000);
  } catch {
    return MISSING;
  }
}
