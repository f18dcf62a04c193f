import type { Names } from "../../names";
import { useFilter } from "../../route";
import { Search } from "../../forms";
import { Field } from "../../ui";

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

// Filters are the query parameters of GET /api/requests, "" for all requests.
export interface Filters {
  values: Record<"q" | "key" | "connection" | "model" | "status" | "failed", string>;
  set: (name: keyof Filters["values"], value: string) => void;
}

// useFilters returns the filters, which are stored in the URL.
export function useFilters(): Filters {
  const [q, setQ] = useFilter("q", "");
  const [key, setKey] = useFilter("key", "");
  const [connection, setConnection] = useFilter("connection", "");
  const [model, setModel] = useFilter("model", "");
  const [status, setStatus] = useFilter(
    "status",
    "",
    statuses.map(([k]) => k),
  );
  const [failed, setFailed] = useFilter("failed", "", ["", "true", "false"] as string[]);
  const setters = {
    q: setQ,
    key: setKey,
    connection: setConnection,
    model: setModel,
    status: setStatus,
    failed: setFailed,
  };
  return { values: { q, key, connection, model, status, failed }, set: (name, value) => setters[name](value) };
}

// FilterRow is the row of controls that set the filters.
export function FilterRow({ filters: { values, set }, names }: { filters: Filters; names: Names | null }) {
  return (
    <div class="row wrap end filters">
      <Search label="Search models, endpoints, errors, IDs" value={values.q} onInput={(v) => set("q", v)} />
      <div class="narrow">
        <Field label="Key">
          <select value={values.key} onChange={(e) => set("key", e.currentTarget.value)}>
            <option value="">All</option>
            {[...(names?.keys ?? [])].map(([id, n]) => (
              <option key={id} value={id}>
                {n}
              </option>
            ))}
          </select>
        </Field>
      </div>
      <div class="narrow">
        <Field label="Connection">
          <select value={values.connection} onChange={(e) => set("connection", e.currentTarget.value)}>
            <option value="">All</option>
            {[...(names?.connections ?? [])].map(([id, n]) => (
              <option key={id} value={id}>
                {n}
              </option>
            ))}
          </select>
        </Field>
      </div>
      <div class="narrow">
        <Field label="Model">
          <input
            autocapitalize="none"
            spellcheck={false}
            placeholder="All"
            value={values.model}
            onChange={(e) => set("model", e.currentTarget.value.trim())}
          />
        </Field>
      </div>
      <div class="narrow">
        <Field label="Status">
          <select value={values.status} onChange={(e) => set("status", e.currentTarget.value)}>
            {statuses.map(([k, n]) => (
              <option key={k} value={k}>
                {n}
              </option>
            ))}
          </select>
        </Field>
      </div>
      <div class="narrow">
        <Field label="Attempts">
          <select value={values.failed} onChange={(e) => set("failed", e.currentTarget.value)}>
            <option value="">All</option>
            <option value="true">Had failures</option>
            <option value="false">No failures</option>
          </select>
        </Field>
      </div>
    </div>
  );
}
