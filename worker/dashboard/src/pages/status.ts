import type { ConnectionRow } from "./connections";

type Kind = "" | "good" | "warn" | "bad";

const statuses: Record<string, [kind: Kind, text: string]> = {
  active: ["good", "Ready"],
  inactive: ["", "Switched off"],
  cooling: ["warn", "Cooling down"],
  needs_credential: ["bad", "Needs a credential"],
  needs_reauth: ["bad", "Needs a new sign-in"],
};

// statusOf tells how a connection does; a cooldown that has ended since it was
// loaded counts no more.
export function statusOf(c: ConnectionRow, now: number): [kind: Kind, text: string] {
  if (c.status === "cooling" && (c.cooldownUntil ?? 0) <= now) return statuses.active;
  return statuses[c.status] ?? ["", c.status];
}
