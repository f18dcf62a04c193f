import { now } from "../../clock";
import { nameIn, type Names } from "../../named";
import { useFilter } from "../../route";
import { Choice, Search, TextFilter } from "../../forms";
import { FilterMenu } from "../../popover";
import { Button, type Children, Field } from "../../ui";
import { examples } from "../explain/examples";
import { reasons } from "./outcome";

// statuses are the values of the query parameter status.
const statuses: [string, string][] = [
  ["", "All"],
  ["2xx", "Answered (2xx)"],
  ["error", "Failed or refused"],
  ["4xx", "4xx"],
  ["429", "429 (limits and budgets)"],
  ["5xx", "5xx"],
  ["client_left", "Client disconnected"],
];

const outcomes: [string, string][] = [
  ["", "All"],
  ["succeeded", "Succeeded"],
  ["provider_failed", "Provider failed"],
  ["no_account", "No account available"],
  ["refused", "Refused"],
  ["left", "Client disconnected"],
];

const ranges: [string, string, minutes: number][] = [
  ["", "All", 0],
  ["15m", "Last 15 minutes", 15],
  ["1h", "Last hour", 60],
  ["24h", "Last 24 hours", 24 * 60],
  ["custom", "Custom", 0],
];

// orders are the values of the query parameter sort.
const orders: [string, string][] = [
  ["", "Newest first"],
  ["duration", "Slowest first"],
  ["first_token", "Slowest first token"],
  ["cost", "Most expensive first"],
];

const names = [
  "q",
  "sort",
  "key",
  "connection",
  "model",
  "endpoint",
  "status",
  "outcome",
  "reason",
  "code",
  "tag",
  "tool",
  "failed",
  "range",
  "from",
  "to",
] as const;
type Name = (typeof names)[number];

// Filters are the filters of the list, "" for all requests. They are query parameters
// of GET /api/requests, except for range. from and to are Unix milliseconds.
export interface Filters {
  values: Record<Name, string>;
  set: (name: Name, value: string) => void;
  clear: () => void;
  /** reports whether there is a filter */
  any: boolean;
}

// useFilters returns the filters, which are stored in the URL.
export function useFilters(): Filters {
  // The hooks are called in the same order every time: names is constant.
  const states = names.map((name) =>
    useFilter(
      name,
      "",
      name === "status"
        ? statuses.map(([k]) => k)
        : name === "outcome"
          ? outcomes.map(([k]) => k)
          : name === "range"
            ? ranges.map(([k]) => k)
            : name === "failed"
              ? ["", "true", "false"]
              : undefined,
    ),
  );
  const values = Object.fromEntries(names.map((name, i) => [name, states[i][0]])) as Record<Name, string>;
  for (const name of ["from", "to"] as const) if (!/^[1-9]\d{0,14}$/.test(values[name])) values[name] = "";
  if (values.from || values.to) values.range = "custom";
  const set = (name: Name, value: string) => states[names.indexOf(name)][1](value);
  return {
    values,
    set,
    clear: () => {
      for (const name of names) if (values[name]) set(name, "");
    },
    any: names.some(
      (name) => values[name] !== "" && name !== "sort" && !(name === "range" && values.range === "custom"),
    ),
  };
}

// paramsOf returns the query of GET /api/requests for filters.
export function paramsOf({ range, ...values }: Filters["values"], now: number): Record<string, string> {
  const minutes = ranges.find(([k]) => k === range)?.[2] ?? 0;
  const params = Object.entries(minutes ? { ...values, from: String(now - minutes * 60_000) } : values);
  return Object.fromEntries(params.map(([k, v]) => [k, v.trim()]).filter(([, v]) => v !== ""));
}

// local returns a time as the value of an input of type datetime-local.
function local(ms: string): string {
  if (!ms) return "";
  const at = new Date(Number(ms));
  return new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

// FilterRow is the search, and the filters in a popover.
export function FilterRow({ filters, names, children }: Children & { filters: Filters; names: Names | null }) {
  const { values, set } = filters;
  const pick = (range: string) => {
    set("from", range === "custom" ? String(now() - 3_600_000) : "");
    set("to", "");
    set("range", range);
  };
  const limit = (name: "from" | "to", ms: string) => {
    set("range", "custom"); // also if neither is set
    set(name, ms);
  };
  const controls: [Name, string, [string, string][] | null][] = [
    ["key", "Key", named(names?.keys)],
    ["connection", "Account", named(names?.connections)],
    ["model", "Model", null],
    ["status", "Status", statuses],
    ["outcome", "Outcome", outcomes],
    ...(values.outcome === "refused" ? [["reason", "Reason", reasonOptions] as (typeof controls)[number]] : []),
    ["failed", "Attempts", attempts],
    ["endpoint", "Endpoint", endpoints],
    ["code", "Error code", null],
    ["tag", "Tag", null],
    ["tool", "Tool", null],
  ];
  const change = (name: Name, value: string) => {
    if (name === "outcome") set("reason", "");
    set(name, value);
  };
  const shown = (name: Name, options: [string, string][] | null) => {
    if (name === "key") return nameIn(names, "keys", values.key);
    if (name === "connection") return nameIn(names, "connections", values.connection);
    return options?.find(([k]) => k === values[name])?.[1] ?? values[name];
  };
  const chips = controls
    .filter(([name]) => values[name])
    .map(([name, label, options]) => ({
      label,
      value: shown(name, options),
      clear: () => change(name, ""),
    }));
  if (values.range)
    chips.unshift({
      label: "Period",
      value: ranges.find(([k]) => k === values.range)![1],
      clear: () => pick(""),
    });
  return (
    <div class="row wrap filters">
      <Search label="Search requests" value={values.q} onInput={(v) => set("q", v)} />
      {children}
      <FilterMenu set={chips} onClear={filters.clear}>
        <div class="grid">
          <Choice label="Period" value={values.range} options={ranges.map(([k, n]) => [k, n])} onPick={pick} />
          {values.range === "custom" && (
            <>
              <At label="From" value={values.from} onPick={(ms) => limit("from", ms)} />
              <At label="To" value={values.to} last onPick={(ms) => limit("to", ms)} />
            </>
          )}
          {controls.map(([name, label, options]) =>
            options ? (
              <Choice key={name} label={label} value={values[name]} options={options} onPick={(v) => change(name, v)} />
            ) : (
              <TextFilter live key={name} label={label} value={values[name]} onValue={(v) => change(name, v)} />
            ),
          )}
          <Choice label="Sort" value={values.sort} options={orders} onPick={(v) => set("sort", v)} />
        </div>
      </FilterMenu>
      {chips.length === 0 && filters.any && (
        <Button kind="quiet" onClick={filters.clear}>
          Clear filters
        </Button>
      )}
    </div>
  );
}

const all: [string, string] = ["", "All"];
const reasonOptions = [all, ...reasons.map(([id, , name]): [string, string] => [id, name])];
const endpoints = [all, ...examples.map((e): [string, string] => [e.path, e.path])];
const attempts: [string, string][] = [all, ["true", "Had failures"], ["false", "No failures"]];
const named = (of?: Map<string, string>): [string, string][] => [["", "All"], ...(of ?? [])];

// At is the input of a time, in milliseconds. With last it is the end of the minute.
function At({
  label,
  value,
  last,
  onPick,
}: {
  label: string;
  value: string;
  last?: boolean;
  onPick: (ms: string) => void;
}) {
  return (
    <div class="narrow moment">
      <Field label={label}>
        <input
          type="datetime-local"
          value={local(value)}
          onChange={(e) => {
            const ms = new Date(e.currentTarget.value).getTime();
            onPick(ms > 0 ? String(ms + (last ? 59_999 : 0)) : "");
          }}
        />
      </Field>
    </div>
  );
}
