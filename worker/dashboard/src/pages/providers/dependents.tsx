import type { Machine } from "../../api";
import type { Budget, Combo, ConnectionRow, CustomModel, KeyRow, ProviderRow } from "../../api-types";
import { prefixesOf, servedBy } from "../../connections";
import { count } from "../../format";
import { useLoad } from "../../hooks";
import { Notice } from "../../ui";

// Dependents lists what a deleted connection affects: the combos, aliases, keys and
// budgets with models that no other connection serves, and its custom models.
export function Dependents({ machine, c }: { machine: Machine; c: ConnectionRow }) {
  const uses = useLoad(async () => {
    const [conns, combos, { aliases }, customs, keys, budgets, catalog] = await Promise.all([
      machine.list<ConnectionRow>("/providers"),
      machine.list<Combo>("/combos"),
      machine.get<{ aliases: Record<string, string> }>("/models/alias"),
      machine.list<CustomModel>("/models/custom"),
      machine.list<KeyRow>("/keys"),
      machine.list<Budget>("/budgets"),
      machine.list<ProviderRow>("/catalog/providers"),
    ]);
    const mine = prefixesOf(c, catalog),
      others = conns.filter((o) => o.id !== c.id);
    const lost = (id: string) => mine.includes(id.split("/")[0]) && id.includes("/") && !servedBy(id, others, catalog);
    const named = (list: { name?: string; models?: string[] }[]) =>
      list.filter((o) => o.models?.some(lost)).map((o) => o.name || "Unnamed");
    return [
      ["Combos", named(combos)],
      [
        "Aliases",
        Object.entries(aliases)
          .filter(([, of]) => lost(of))
          .map(([name]) => name),
      ],
      ["Custom models", customs.filter((m) => lost(`${m.providerAlias}/${m.id}`)).map((m) => m.name || m.id)],
      ["Keys limited to its models", named(keys)],
      ["Budgets for its models", named(budgets)],
    ] as [what: string, names: string[]][];
  }, [machine, c]);
  if (uses.error) return <p class="muted">Couldn’t load what uses this account: {uses.error}</p>;
  if (!uses.data) return <p class="muted">Looking for what uses this account…</p>;
  const affected = uses.data.filter(([, names]) => names.length > 0);
  if (affected.length === 0) return <p class="muted">No combo, alias, key or budget depends on it.</p>;
  return (
    <Notice kind="warn">
      <p>No other account serves its models. These depend on them:</p>
      <ul>
        {affected.map(([what, names]) => (
          <li key={what}>
            {what}: <strong>{names.slice(0, maxNames).join(", ")}</strong>
            {names.length > maxNames && ` and ${count(names.length - maxNames, "other")}`}
          </li>
        ))}
      </ul>
    </Notice>
  );
}

const maxNames = 10;
