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

// Report is the body of GET /api/usage, with the group it was asked for.
export interface Report {
  from: string;
  to: string;
  data: UsageRow[];
  total: UsageRow;
  by: Group;
}

export const dayMs = 86_400_000;

// utcDay returns the day of a time: "2026-11-22".
export const utcDay = (ms: number) => new Date(ms).toISOString().slice(0, 10);

// daysOf returns every day of a report, also those without requests.
export function daysOf(u: Report): string[] {
  const days: string[] = [];
  for (let t = Date.parse(u.from); t <= Date.parse(u.to); t += dayMs) days.push(utcDay(t));
  return days;
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

// GroupUsage is the usage of one group: its sum and its days.
export interface GroupUsage {
  name: string;
  sum: UsageRow;
  days: Map<string, UsageRow>;
}

// groupRows sums the rows of a report by the name of their group.
export function groupRows(rows: UsageRow[], name: NameOf): GroupUsage[] {
  const groups = new Map<string, GroupUsage>();
  for (const r of rows) {
    const key = name(r);
    const g = groups.get(key) ?? { name: key, sum: { day: "" }, days: new Map<string, UsageRow>() };
    groups.set(key, g);
    addRow(g.sum, r);
    const d = g.days.get(r.day) ?? { day: r.day };
    addRow(d, r);
    g.days.set(r.day, d);
  }
  return [...groups.values()];
}
