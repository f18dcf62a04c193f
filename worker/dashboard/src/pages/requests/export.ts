import type { Machine } from "../../api";
import type { List, RequestRow } from "../../api-types";
import { download } from "../../download";
import { csv } from "../usage/csv";

// RequestPage is a page of GET /api/requests.
export interface RequestPage extends List<RequestRow> {
  has_more: boolean;
}

export const maxPage = 200; // requests in one answer

const columns: [head: string, of: (r: RequestRow, nameOf: NameOf) => string | number | undefined][] = [
  ["time", (r) => new Date(r.at).toISOString()],
  ["id", (r) => r.id],
  ["key", (r, nameOf) => nameOf(r.keyId, "keys")],
  ["endpoint", (r) => r.endpoint],
  ["requested_model", (r) => r.asked],
  ["model", (r) => r.model],
  ["provider", (r) => r.provider],
  ["connection", (r, nameOf) => nameOf(r.connectionId, "connections")],
  ["status", (r) => r.status],
  ["error", (r) => r.error],
  ["outcome", (r) => r.outcome],
  ["reason", (r) => r.reason],
  ["latency_ms", (r) => r.latencyMs],
  ["first_token_ms", (r) => r.firstMs],
  ["attempts", (r) => r.attempts],
  [
    "failed_attempts",
    (r, nameOf) => r.failed?.map((f) => `${nameOf(f.connectionId, "connections")} ${f.status}`).join("; "),
  ],
  ["fields_not_sent", (r) => r.dropped?.join(", ")],
  ["input_tokens", (r) => r.inputTokens],
  ["output_tokens", (r) => r.outputTokens],
  ["reasoning_tokens", (r) => r.reasoningTokens],
  ["cache_read_tokens", (r) => r.cacheReadTokens],
  ["cost_usd", (r) => (r.priced ? (r.costUsd ?? 0) : undefined)],
  ["unpriced_parts", (r) => r.unpricedParts?.join(", ")],
  ["request_bytes", (r) => r.requestBytes],
  ["answer_bytes", (r) => r.answerBytes],
];

export type NameOf = (id: string | undefined, of: "keys" | "connections") => string;

// save downloads every request that matches the filters.
export async function save(machine: Machine, params: Record<string, string>, as: "csv" | "json", nameOf: NameOf) {
  const all: RequestRow[] = [];
  for (let more = true; more; ) {
    const query = new URLSearchParams({ ...params, limit: String(maxPage) });
    const last = all.at(-1);
    if (last) query.set("before", String(last.seq));
    const page = await machine.get<RequestPage>(`/requests?${query}`);
    all.push(...page.data);
    more = page.has_more && page.data.length > 0;
  }
  const name = `requests-${new Date().toISOString().slice(0, 19).replaceAll(":", "")}`;
  if (as === "json") return download(`${name}.json`, "application/json", JSON.stringify(all, null, 2));
  const rows = all.map((r) => columns.map(([, of]) => of(r, nameOf) ?? ""));
  download(
    `${name}.csv`,
    "text/csv;charset=utf-8",
    csv(
      columns.map(([head]) => head),
      rows,
    ),
  );
}
