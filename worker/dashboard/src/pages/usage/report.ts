// A report of usage, as GET /api/usage returns it, and its parts.
import type { Names } from "../../names";
import { addRow, type UsageRow } from "./columns";

export type Group = "" | "model" | "key" | "connection" | "provider" | "endpoint";

export const groups: [Group, string][] = [
  ["", "None"],
  ["model", "Model"],
  ["key", "Key"],
  ["connection", "Connection"],
  ["provider", "Provider"],
  ["endpoint", "Endpoint"],
];

// Report is the body of GET /api/usage, with the group it was asked for. Its times
// are days or, in a report by hours, hours.
export interface Report {
  from: string;
  to: string;
  data: UsageRow[];
  /** the rows of all days or hours together */
  groups?: UsageRow[];
  total: UsageRow;
  by: Group;
}

export const dayMs = 86_400_000;
const hourMs = 3_600_000;

// utcDay returns the day of a time: "2026-11-22".
export const utcDay = (ms: number) => new Date(ms).toISOString().slice(0, 10);

// whenOf returns the day or hour of a row.
export const whenOf = (r: UsageRow) => r.hour ?? r.day ?? "";

// startOf returns when a day or an hour begins, in ms.
export const startOf = (when: string) => Date.parse(when.includes("T") ? `${when}:00Z` : when);

// timesOf returns every day or hour of a report, also those without requests.
export function timesOf(u: Report): string[] {
  const hours = u.from.includes("T");
  const times: string[] = [];
  for (let t = startOf(u.from); t <= startOf(u.to); t += hours ? hourMs : dayMs)
    times.push(new Date(t).toISOString().slice(0, hours ? 13 : 10));
  return times;
}

export type NameOf = (r: UsageRow) => string;

// nameOf returns the name of a row's group; names may not be loaded yet.
export function nameOf(r: UsageRow, by: Group, names: Names | null): string {
  const known = (map: Map<string, string> | undefined, id: string, removed: string) =>
    map?.get(id) ?? `${id.slice(0, 8)}… (${removed})`;
  switch (by) {
    case "model":
      return r.model || "No model";
    case "key":
      return r.keyId ? known(names?.keys, r.keyId, "revoked") : "No key";
    case "connection":
      return r.connectionId ? known(names?.connections, r.connectionId, "deleted") : "No connection";
    case "provider":
      return r.provider || "No provider";
    case "endpoint":
      return r.endpoint || "Other";
  }
  return "All";
}

// GroupUsage is the usage of one group: its sum and its days or hours.
export interface GroupUsage {
  name: string;
  sum: UsageRow;
  times: Map<string, UsageRow>;
}

// groupRows returns the rows of a report by the name of their group.
export function groupRows(u: Report, name: NameOf): GroupUsage[] {
  const groups = new Map<string, GroupUsage>();
  const groupOf = (r: UsageRow) => {
    const key = name(r);
    const g = groups.get(key) ?? { name: key, sum: {}, times: new Map<string, UsageRow>() };
    groups.set(key, g);
    return g;
  };
  for (const r of u.data) {
    const { times } = groupOf(r);
    const at = times.get(whenOf(r)) ?? {};
    addRow(at, r);
    times.set(whenOf(r), at);
  }
  for (const r of u.groups ?? [u.total]) addRow(groupOf(r).sum, r);
  return [...groups.values()];
}
