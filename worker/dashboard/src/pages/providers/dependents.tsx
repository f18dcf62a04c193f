import type { Machine } from "../../api";
import type { Combo, ConnectionRow, ProviderRow } from "../../api-types";
import { prefixesOf, servedBy } from "../../connections";
import { useLoad } from "../../hooks";
import { Notice } from "../../ui";

// Dependents lists what fails after a connection is deleted: the combos and
// aliases whose models no other connection serves.
export function Dependents({ machine, c }: { machine: Machine; c: ConnectionRow }) {
  const uses = useLoad(async () => {
    const [conns, combos, { aliases }, catalog] = await Promise.all([
      machine.list<ConnectionRow>("/providers"),
      machine.list<Combo>("/combos"),
      machine.get<{ aliases: Record<string, string> }>("/models/alias"),
      machine.list<ProviderRow>("/catalog/providers"),
    ]);
    const mine = prefixesOf(c, catalog),
      others = conns.filter((o) => o.id !== c.id);
    const lost = (id: string) => mine.includes(id.split("/")[0]) && id.includes("/") && !servedBy(id, others, catalog);
    return {
      combos: combos.filter((o) => o.models.some(lost)).map((o) => o.name),
      aliases: Object.entries(aliases)
        .filter(([, of]) => lost(of))
        .map(([name]) => name),
    };
  }, [machine, c]);
  if (uses.error)
    return <p class="muted">Couldn’t load the combos and aliases that use this connection: {uses.error}</p>;
  const { combos, aliases } = uses.data ?? { combos: [], aliases: [] };
  if (combos.length + aliases.length === 0) return null;
  return (
    <Notice kind="warn">
      No other connection serves its models.{" "}
      {combos.length > 0 && (
        <>
          Combos that will fail: <strong>{combos.join(", ")}</strong>.{" "}
        </>
      )}
      {aliases.length > 0 && (
        <>
          Aliases that will fail: <strong>{aliases.join(", ")}</strong>.
        </>
      )}
    </Notice>
  );
}
