// A report of usage, as GET /api/usage returns it, and its parts.
import { family } from "../../connections.ts";
import { nameIn, type Names } from "../../named.ts";
import { addRow, figure, type UsageRow } from "./columns.ts";
import { intervals, monthOf, startOf, type Unit } from "./span.ts";

// Group is what usage is grouped by. "tag:project" is a name of tags.
export type Group = "" | "model" | "key" | "connection" | "provider" | "endpoint" | "tool" | `tag:${string}`;

export const groups: [Group, string][] = [
  ["", ""],
  ["model", "Model"],
  ["key", "Key"],
  ["connection", "Account"],
  ["provider", "Provider"],
  ["endpoint", "Endpoint"],
  ["tool", "Tool"],
];

const tagGroup = "tag:";

// isGroup reports whether a text is a group.
export const isGroup = (text: string): text is Group =>
  groups.some(([k]) => k === text) || (text.startsWith(tagGroup) && text.length > tagGroup.length);

// groupName returns the name of a group: that of the tags is the name itself.
export const groupName = (by: Group) =>
  by.startsWith(tagGroup) ? by.slice(tagGroup.length) : (groups.find(([k]) => k === by)?.[1] ?? "");

// groupText returns a group within a sentence.
export const groupText = (by: Group) =>
  by.startsWith(tagGroup) ? `tag: ${groupName(by)}` : groupName(by).toLowerCase();

// Ids are the filters of GET /api/usage and of the page of requests.
export type Ids = Partial<Record<"model" | "key" | "connection" | "provider" | "endpoint" | "tool" | "tag", string>>;

// filterOf returns the filter that has the ids of a group.
export const filterOf = (by: Exclude<Group, "">): keyof Ids =>
  by.startsWith(tagGroup) ? "tag" : (by as Exclude<keyof Ids, "tag">);

// hasHours reports whether the usage of a group and of filters is stored by hour. That of tools
// and tags is stored by day.
export const hasHours = (by: Group, ids: Ids) => by !== "tool" && !by.startsWith(tagGroup) && !ids.tool && !ids.tag;

// UnpricedModel is a model with attempts whose price is not known.
export interface UnpricedModel {
  model: string;
  provider?: string;
  attempts: number;
  /** other attempts have a cost */
  priced?: boolean;
}

// Report is the body of GET /api/usage, with what it was asked for. from and to are days
// or, in a report by hour, hours.
export interface Report {
  unit: Unit;
  from: string;
  to: string;
  data: UsageRow[];
  /** the rows of all times together */
  groups?: UsageRow[];
  total: UsageRow;
  unpriced?: UnpricedModel[];
  /** the names of the tags of the last days */
  tagNames?: string[];
  by: Group;
  /** the machine has had no request yet */
  unused?: boolean;
  /** the report of the period before; null if none is stored */
  before?: Omit<Report, "by"> | null;
}

// whenOf returns the month, day or hour of a row.
export const whenOf = (r: UsageRow) => r.hour ?? r.day ?? r.month ?? "";

// timesOf returns every month, day or hour of a report, also those without requests.
export function timesOf(u: Pick<Report, "unit" | "from" | "to">): string[] {
  const { text, next } = intervals[u.unit];
  const first = startOf(u.from);
  const times: string[] = [];
  for (let t = u.unit === "month" ? monthOf(first) : first; t <= startOf(u.to); t = next(t)) times.push(text(t));
  return times;
}

// idOf returns the id of a row's group, "" for a row without one.
export function idOf(r: UsageRow, by: Group): string {
  switch (by) {
    case "model":
      return r.model ?? "";
    case "key":
      return r.keyId ?? "";
    case "connection":
      return r.connectionId ?? "";
    case "provider":
      return r.provider ?? "";
    case "endpoint":
      return r.endpoint ?? "";
    case "tool":
      return r.tool ?? "";
  }
  return by ? (r.tag ?? "") : "";
}

// namedId returns the id of a row's group that has a name of its own: that of a key, an account or a
// person.
export function namedId(r: UsageRow, by: Group): string {
  if (by === "tag:person") return personOf(r.tag ?? "");
  return by === "key" || by === "connection" ? idOf(r, by) : "";
}

// personOf returns the person of a tag, "" for another tag.
const personOf = (tag: string) => /^person=(p_[0-9a-f]{32})$/.exec(tag)?.[1] ?? "";

// nameOf returns the name of a group by its id; names may not be loaded yet.
export function nameOf(id: string, by: Group, names: Names | null): string {
  switch (by) {
    case "model":
      return id || "Unknown model";
    case "key":
      return id ? nameIn(names, "keys", id) : "No key";
    case "connection":
      return id ? nameIn(names, "connections", id) : "No account";
    case "provider":
      return id ? (names?.servers.get(id) ?? (family(id) || id)) : "No provider";
    case "endpoint":
      return id || "Other";
    case "tool":
      return id || "Unknown tool";
  }
  if (by === "") return "All";
  const person = personOf(id);
  if (person) return nameIn(names, "people", person);
  return id ? id.slice(by.length - tagGroup.length + 1) : `No ${groupName(by)}`;
}

// GroupUsage is the usage of one group: its sum and its months, days or hours.
export interface GroupUsage {
  id: string;
  sum: UsageRow;
  times: Map<string, UsageRow>;
}

// groupRows returns the rows of a report by the id of their group.
export function groupRows(u: Pick<Report, "data" | "groups" | "total">, by: Group): GroupUsage[] {
  const groups = new Map<string, GroupUsage>();
  const groupOf = (r: UsageRow) => {
    const id = idOf(r, by);
    const g = groups.get(id) ?? { id, sum: {}, times: new Map<string, UsageRow>() };
    groups.set(id, g);
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

// unnamedOf returns the name of the group of a report that has no id, by what is in it: requests
// that were all refused have no model.
export function unnamedOf(u: Pick<Report, "data" | "groups" | "total" | "by">): string {
  const sum = groupRows(u, u.by).find((g) => g.id === "")?.sum ?? {};
  if (u.by === "model" && figure(sum, "refused") === figure(sum, "requests")) return "Refused before routing";
  return nameOf("", u.by, null);
}
