// Names of models that the server of a compatible account does not list: probably typing errors, but
// its list may be old, and some servers have models that they do not list.
import type { Machine } from "./api";
import type { List, ModelRow } from "./api-types";
import { useLoad, useSettled } from "./hooks";
import { Notice } from "./ui";

export interface Listed {
  ids: string[];
  /** the prefixes of compatible accounts whose server has listed its models */
  complete: string[];
}

// useListed loads the models of every kind, or none.
export const useListed = (machine: Machine, wanted = true) =>
  useLoad<Listed>(async () => {
    if (!wanted) return { ids: [], complete: [] };
    const { data, complete = [] } = await machine.get<List<ModelRow> & { complete?: string[] }>("/models/list/all");
    return { ids: data.map((m) => m.id), complete };
  }, [machine, wanted]);

// unlisted returns the names that a complete list lacks.
export const unlisted = (names: string[], of: Listed | null) =>
  names.filter(
    (name) => of?.complete.includes(name.slice(0, name.indexOf("/"))) && !name.endsWith("*") && !of.ids.includes(name),
  );

// Unlisted warns of such names once they are typed.
export function Unlisted({ names, of }: { names: string[]; of: Listed | null }) {
  const found = unlisted(useSettled(names.join("\n"), 500).split("\n"), of);
  if (found.length === 0) return null;
  return (
    <Notice kind="warn">
      {found.length === 1 ? `Its server does not list ${found[0]}` : `Their servers do not list ${found.join(", ")}`}.
      Check the spelling.
    </Notice>
  );
}
