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

// statusText returns a status with its meaning: "429 rate limited".
export const statusText = (status: number) => `${status} ${statusTexts[status] ?? ""}`.trim();

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
  if (r.status >= 400) return { text: statusText(r.status), kind: "bad" };
  if (r.error) return { text: `${r.status} interrupted`, kind: "warn" };
  return { text: String(r.status), kind: "good" };
}
