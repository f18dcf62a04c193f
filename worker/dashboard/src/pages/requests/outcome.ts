import type { RequestRow } from "../../api-types";

const statusTexts: Record<number, string> = {
  400: "bad request",
  401: "key refused",
  402: "out of credit",
  403: "forbidden",
  404: "not found",
  408: "timed out",
  413: "too large",
  422: "bad request",
  429: "rate limited",
  499: "client disconnected",
  500: "server error",
  502: "bad gateway",
  503: "unavailable",
  504: "timed out",
  529: "overloaded",
};

// unreachable is what an attempt without an answer came to, for which a 502 stands.
export const unreachable = (code?: string) => code === "upstream_unreachable" && "Unreachable";

// statusText returns a status with its meaning: "429 rate limited".
export const statusText = (status: number, code?: string) =>
  unreachable(code) || `${status} ${statusTexts[status] ?? ""}`.trim();

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

// failures are what an account did, by the code of the error, else by its status.
const failures: Record<string, string> = {
  account_key_refused: "refused the key",
  bad_upstream_body: "sent an answer that cannot be read",
  bad_upstream_stream: "sent an answer that cannot be read",
  content_filter: "blocked the answer by its filter",
  content_policy: "blocked the request by its policy",
  context_length_exceeded: "cannot take a request of this length",
  generation_failed: "could not create the result",
  insufficient_quota: "is out of credit",
  upstream_blocked_here: "does not serve the place of the gateway",
  upstream_cut: "ended its answer too early",
  upstream_reset: "broke off the connection",
  upstream_timeout: "did not answer in time",
  upstream_too_large: "sent an answer that is too large",
  upstream_unreachable: "could not be reached",
  400: "does not accept the request",
  401: "refused the key",
  402: "is out of credit",
  403: "does not permit the request",
  404: "does not know the model",
  408: "did not answer in time",
  413: "found the request too large",
  422: "does not accept the request",
  429: "has reached a rate limit",
  502: "is not available",
  503: "is not available",
  504: "did not answer in time",
  529: "is overloaded",
};

// failureText returns what an account did instead of answering: "refused the key".
export const failureText = (status: number, code = "") =>
  failures[code] ?? failures[status] ?? (status >= 500 ? "had an error" : `answered with status ${status}`);
