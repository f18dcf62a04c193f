import type { RequestRow } from "../../api-types";
import { outcome } from "./outcome.ts";

// answered reports whether the account of the last attempt answered.
export const answered = (r: RequestRow) => outcome(r).kind !== "bad" && r.attempts > (r.failed?.length ?? 0);

// changed returns the fields of a request that were not sent, and those that weir added or
// lowered, as "max_tokens=4096".
export const changed = (dropped: string[] = []): [notSent: string, set: string] => [
  dropped.filter((d) => !d.includes("=")).join(", "),
  dropped.filter((d) => d.includes("=")).join(", "),
];
