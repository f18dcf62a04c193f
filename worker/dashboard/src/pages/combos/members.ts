// The state of the members of combos that are no combos themselves.
import type { ConnectionRow, ProviderRow } from "../../api-types";
import type { Machine } from "../../api";
import { prefixesOf } from "../../connections";

/** State says how many accounts serve a member, and why none does. */
export interface State {
  accounts: number;
  wrong: string;
}

export interface Known {
  conns: ConnectionRow[];
  aliases: Record<string, string>;
  disabled: Record<string, string[]>;
  catalog: ProviderRow[];
}

export async function loadKnown(machine: Machine): Promise<Known> {
  const [conns, { aliases }, { disabled }, catalog] = await Promise.all([
    machine.list<ConnectionRow>("/providers"),
    machine.get<{ aliases: Record<string, string> }>("/models/alias"),
    machine.get<{ disabled: Record<string, string[]> }>("/models/disabled"),
    machine.list<ProviderRow>("/catalog/providers"),
  ]);
  return { conns, aliases, disabled, catalog };
}

// unusable are the outcomes of a last call after which the next one fails too.
const unusable = ["key_refused", "out_of_credit", "unreachable", "key_unavailable"];
const notReady = ["needs_credential", "needs_reauth"];

// stateOf returns the state of a member; null if nothing is known of it.
export function stateOf({ conns, aliases, disabled, catalog }: Known, member: string): State | null {
  const model = aliases[member] ?? member;
  const slash = model.indexOf("/"),
    prefix = slash < 0 ? model : model.slice(0, slash),
    id = model.slice(slash + 1);
  const under = conns.filter((c) => c.isActive && prefixesOf(c, catalog).includes(prefix));
  // A name without a slash is a search service, or a model of any provider.
  if (slash < 0) return under.length > 0 ? { accounts: under.length, wrong: "" } : null;
  if (under.length === 0) return { accounts: 0, wrong: "No account" };
  if (disabled[prefix]?.includes(id)) return { accounts: 0, wrong: "Disabled" };
  const serving = under.filter(({ providerSpecificData: { enabledModels: only = [] } }) => {
    return only.length === 0 || only.includes(id) || only.includes(model);
  });
  if (serving.length === 0) return { accounts: 0, wrong: "Not selected" };
  const ready = serving.filter((c) => !unusable.includes(c.health) && !notReady.includes(c.status));
  return { accounts: serving.length, wrong: ready.length > 0 ? "" : "No account ready" };
}
