// The parts of the time of a request.
import type { RequestRow } from "../../api-types";

export interface Phase {
  kind: "weir" | "failed" | "wait" | "first" | "answer";
  /** ms after the arrival of the request */
  from: number;
  to: number;
  /** the number of the attempt, from 1 */
  attempt?: number;
}

// phasesOf divides the time of a request, from its arrival to the end of its answer: what
// weir did before the first attempt, the attempts, the waits between them, and of a stream
// the time to its first token. The parts follow on one another, so that they add up to the
// latency. Times of earlier versions and of other clocks are moved into that order.
export function phasesOf(r: RequestRow): Phase[] {
  const end = Math.max(0, r.latencyMs),
    failed = r.failed ?? [];
  const phases: Phase[] = [];
  let at = 0;
  const until = (kind: Phase["kind"], to: number, attempt?: number) => {
    const next = Math.min(Math.max(to, at), end);
    if (attempt !== undefined || next > at) phases.push({ kind, from: at, to: next, attempt });
    at = next;
  };
  failed.forEach((f, i) => {
    until(i ? "wait" : "weir", f.sentMs ?? 0);
    until("failed", at + f.ms, i + 1);
  });
  if (r.attempts > failed.length) {
    const number = failed.length + 1;
    until(failed.length ? "wait" : "weir", r.sentMs ?? 0);
    if (r.firstMs !== undefined) until("first", r.firstMs, number);
    until("answer", end, number);
  } else until("weir", end);
  return phases;
}
