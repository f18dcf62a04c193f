import type { ConnectionRow } from "../../api-types";
import { clock, when } from "../../format";

const dayMs = 86_400_000;

type Kind = "" | "good" | "warn" | "bad";

const statuses: Record<string, [kind: Kind, text: string]> = {
  inactive: ["", "Paused"],
  needs_credential: ["bad", "Credentials missing"],
  needs_reauth: ["bad", "Sign in again"],
};

// Only a successful call makes a connection ready: a refused key stays refused until
// a call succeeds.
const healths: Record<string, [kind: Kind, text: string]> = {
  ready: ["good", "Ready"],
  untested: ["", "Untested"],
  key_refused: ["bad", "Key refused"],
  out_of_credit: ["bad", "Out of credit"],
  limited: ["warn", "Limited"],
  unreachable: ["bad", "Unreachable"],
  failing: ["warn", "Last request failed"],
  blocked: ["warn", "Region blocked"],
  key_unavailable: ["bad", "Credentials unreadable"],
};

const unproven: [Kind, string] = ["warn", "No success yet"]; // after calls that say nothing about the account

// statusOf returns the badge of a connection. A limit that has ended since the
// connection was loaded is ignored.
export function statusOf(c: ConnectionRow, now: number): [kind: Kind, text: string] {
  if (statuses[c.status]) return statuses[c.status];
  if (c.health === "limited") {
    const until = c.cooldownUntil ?? 0;
    if (until > now) return ["warn", `Limited until ${until - now < dayMs ? clock(until) : when(until)}`];
    return c.lastSuccessAt ? healths.ready : unproven;
  }
  if (c.health === "untested" && !c.lastSuccessAt && c.lastHour.attempts > 0) return unproven;
  if (c.health === "blocked" && c.blockedPlace) return ["warn", `Blocked in ${c.blockedPlace}`];
  if (c.health === "key_refused" && !c.hasKey) return ["bad", "Needs a key"];
  return healths[c.health] ?? ["", c.health];
}

// hasFailed reports whether the last error of a connection still matters.
export const hasFailed = (c: ConnectionRow) =>
  !!c.lastError && (c.health !== "ready" || !["active", "inactive"].includes(c.status));
