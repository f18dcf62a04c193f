// The columns of the list of models, its order and its groups.
import type { ModelRow } from "../../api-types";
import { price } from "../../amounts";
import { number } from "../../format";

// Column is a figure of a model, by which the list can be sorted.
export interface Column {
  key: string;
  name: string;
  /** undefined if it is not known */
  of: (m: ModelRow) => number | undefined;
  text: (m: ModelRow) => string;
  money?: boolean;
}

const size = (key: "context_length" | "max_completion_tokens" | "dimensions", name: string): Column => ({
  key,
  name,
  of: (m) => m[key] || undefined,
  text: (m) => (m[key] ? number(m[key]) : ""),
});
const rate = (key: string, name: string): Column => ({
  key,
  name,
  of: (m) => m.pricing?.[key],
  text: (m) => (m.pricing?.[key] === undefined ? "" : price(m.pricing[key])),
  money: true,
});

export const columns = [
  size("context_length", "Context"),
  size("max_completion_tokens", "Max output"),
  size("dimensions", "Dimensions"),
  rate("input", "Input price"),
  rate("output", "Output price"),
];

// units are the prices that are not for tokens.
const units: [key: string, per: string][] = [
  ["image", "per image"],
  ["second", "per second"],
  ["character", "per million characters"],
  ["request", "per request"],
  ["search", "per search"],
];

// otherPrice returns the price of a model that is not billed by tokens, "" if it is.
export function otherPrice(m: ModelRow): string {
  if (m.pricing?.input !== undefined || m.pricing?.output !== undefined) return "";
  const unit = units.find(([key]) => m.pricing?.[key] !== undefined);
  if (!unit) return "";
  const usd = m.pricing![unit[0]];
  return usd === 0 ? price(usd) : `${price(usd)} ${unit[1]}`;
}

// Listed is a row of the list: a model, or the head of a group.
export interface Listed {
  key: string;
  m?: ModelRow;
  group?: string;
  /** number of models of the group */
  n?: number;
}

// listed returns the rows in the order of sort: "id" or a column's key, after "-"
// descending, "" as they are. Models without the figure are last, after them deprecated ones.
export function listed(models: ModelRow[], sort: string, grouped: boolean): Listed[] {
  const key = sort.replace(/^-/, ""),
    turn = sort.startsWith("-") ? -1 : 1;
  const column = columns.find((c) => c.key === key);
  const sorted = [...models];
  if (key === "id") sorted.sort((a, b) => turn * (a.id < b.id ? -1 : 1));
  else if (column)
    sorted.sort((a, b) => {
      const x = column.of(a),
        y = column.of(b);
      if (x === undefined || y === undefined) return Number(x === undefined) - Number(y === undefined);
      return turn * (x - y);
    });
  sorted.sort((a, b) => Number(!!a.deprecated) - Number(!!b.deprecated));
  // An id is listed once for each of its kinds.
  const row = (m: ModelRow): Listed => ({ key: `${m.kind ?? ""} ${m.id}`, m });
  if (!grouped) return sorted.map(row);
  const groups = new Map<string, ModelRow[]>();
  for (const m of sorted) groups.set(m.owned_by, [...(groups.get(m.owned_by) ?? []), m]);
  return [...groups]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .flatMap(([group, of]) => [{ key: `group ${group}`, group, n: of.length }, ...of.map(row)]);
}
