import type { RequestRow } from "../../api-types";
import words from "../../../../../server/cli/requests.json" with { type: "json" };

// statuses are what statuses mean, failures what accounts did by the code of the error, else by its status. weir
// requests show has the same words.
const { statuses, failures }: Record<string, Record<string, string>> = words;

// meaningOf returns the entry of an error in the documentation, unless the code is a provider's
// own: those that are not weir's words for what an account did.
export const meaningOf = (r: RequestRow) =>
  r.error && (r.attempts === 0 || r.error in failures || r.error.startsWith("upstream_"))
    ? `/docs/reference/errors#${encodeURIComponent(r.error)}`
    : undefined;

// unreachable is what an attempt without an answer came to, for which a 502 stands.
export const unreachable = (code?: string) => code === "upstream_unreachable" && "Unreachable";

// statusText returns a status with its meaning: "429 rate limited".
export const statusText = (status: number, code?: string) =>
  unreachable(code) || `${status} ${statuses[status] ?? ""}`.trim();

// reasons are why requests are refused: the value of the field reason, the field of usage
// that counts it, and its name.
export const reasons: [id: string, field: string, name: string][] = [
  ["key_limit", "refusedKeyLimit", "Key limit"],
  ["budget", "refusedBudget", "Budget"],
  ["concurrency", "refusedConcurrency", "Concurrency"],
  ["key", "refusedKey", "Key"],
  ["model", "refusedModel", "Model"],
  ["request", "refusedRequest", "Invalid request"],
];

// Outcome is what became of a request, as the text of a badge.
export interface Outcome {
  text: string;
  kind: "" | "good" | "warn" | "bad";
}

export function outcome(r: RequestRow): Outcome {
  if (r.status === 499 || r.error === "client_closed") return { text: "Client disconnected", kind: "" };
  if (r.outcome === "refused") {
    const name = reasons.find(([id]) => id === r.reason)?.[2].toLowerCase();
    return { text: `Refused: ${name ?? r.status}`, kind: "warn" };
  }
  if (r.outcome === "no_account") return { text: "No account", kind: "bad" };
  if (r.status >= 400) return { text: statusText(r.status, r.error), kind: "bad" };
  if (r.error) return { text: `${r.status} interrupted`, kind: "warn" };
  return { text: String(r.status), kind: "good" };
}

// failureText returns what an account did instead of answering: "refused the key".
export const failureText = (status: number, code = "") =>
  failures[code] ?? failures[status] ?? (status >= 500 ? "had an error" : `answered with status ${status}`);
