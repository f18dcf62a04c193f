import type { Names } from "../../names";
import { useFilter } from "../../route";
import { Choice, Search, TextFilter } from "../../forms";
import { Button, Field } from "../../ui";
import { examples } from "../explain/examples";
import { reasons } from "./outcome";

// statuses are the values of the query parameter status.
const statuses: [string, string][] = [
  ["", "All"],
  ["2xx", "Answered (2xx)"],
  ["error", "Failed"],
  ["4xx", "4xx"],
  ["429", "429 rate limited"],
  ["5xx", "5xx"],
  ["client_left", "Client disconnected"],
];

const outcomes: [string, string][] = [
  ["", "All"],
  ["succeeded", "Succeeded"],
  ["provider_failed", "Provider failed"],
  ["refused", "Refused"],
  ["left", "Left by the client"],
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

// FilterRow is the row of controls that set the filters.
export function FilterRow({ filters, names }: { filters: Filters; names: Names | null }) {
  const { values, set } = filters;
  const pick = (range: string) => {
    set("from", range === "custom" ? String(Date.now() - 3_600_000) : "");
    set("to", "");
    set("range", range);
  };
  const limit = (name: "from" | "to", ms: string) => {
    set("range", "custom"); // also if neither is set
    set(name, ms);
  };
  return (
    <div class="row wrap end filters">
      <Search label="Search models, endpoints, errors, IDs" value={values.q} onInput={(v) => set("q", v)} />
      <Choice label="Period" value={values.range} options={ranges.map(([k, n]) => [k, n])} onPick={pick} />
      {values.range === "custom" && (
        <>
          <At label="From" value={values.from} onPick={(ms) => limit("from", ms)} />
          <At label="To" value={values.to} last onPick={(ms) => limit("to", ms)} />
        </>
      )}
      <Choice label="Key" value={values.key} options={named(names?.keys)} onPick={(v) => set("key", v)} />
      <Choice
        label="Account"
        value={values.connection}
        options={named(names?.connections)}
        onPick={(v) => set("connection", v)}
      />
      <TextFilter live label="Model" value={values.model} onValue={(v) => set("model", v)} />
      <Choice label="Status" value={values.status} options={statuses} onPick={(v) => set("status", v)} />
      <Choice
        label="Outcome"
        value={values.outcome}
        options={outcomes}
        onPick={(v) => {
          set("reason", "");
          set("outcome", v);
        }}
      />
      {values.outcome === "refused" && (
        <Choice
          label="Reason"
          value={values.reason}
          options={[["", "All"], ...reasons.map(([id, , name]): [string, string] => [id, name])]}
          onPick={(v) => set("reason", v)}
        />
      )}
      <Choice
        label="Attempts"
        value={values.failed}
        options={[
          ["", "All"],
          ["true", "Had failures"],
          ["false", "No failures"],
        ]}
        onPick={(v) => set("failed", v)}
      />
      <Choice
        label="Endpoint"
        value={values.endpoint}
        options={[["", "All"], ...examples.map((e): [string, string] => [e.path, e.path])]}
        onPick={(v) => set("endpoint", v)}
      />
      <Choice label="Sort" value={values.sort} options={orders} onPick={(v) => set("sort", v)} />
      <TextFilter live label="Error code" value={values.code} onValue={(v) => set("code", v)} />
      <TextFilter live label="Tag" value={values.tag} onValue={(v) => set("tag", v)} />
      <TextFilter live label="Tool" value={values.tool} onValue={(v) => set("tool", v)} />
      {filters.any && <Button onClick={filters.clear}>Clear filters</Button>}
    </div>
  );
}

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
