// Names of keys, connections and people, for pages that receive only their ids.
import { useEffect, useState } from "preact/hooks";
import type { Machine } from "./api";
import type { AuditRow, ConnectionRow, List } from "./api-types";
import { useLoad } from "./hooks";
import { known, type Names } from "./named";
import { keyName, loadKeys } from "./names";

const maxGone = 10; // whose names are looked up in the audit log

// useNames returns the names of what a machine has, and the last names of the ids that are used
// and that it no longer has. It loads them again for an id that is new.
export function useNames(machine: Machine, used: (string | undefined)[]): Names | null {
  const [asked, ask] = useState("");
  const ids = [...new Set(used)].filter((id): id is string => !!id);
  const load = async (): Promise<Names> => {
    const viewer = machine.may("viewer");
    const [keys, conns] = await Promise.all([
      loadKeys(machine),
      viewer ? machine.list<ConnectionRow>("/providers") : [],
    ]);
    const names = {
      keys: new Map(keys.map((k) => [k.id, k.personName ? `${keyName(k)} (${k.personName})` : keyName(k)])),
      people: new Map(keys.flatMap((k) => (k.person && k.personName ? [[k.person, k.personName]] : []))),
      connections: new Map(conns.map((c) => [c.id, c.name || c.provider])),
      gone: new Map<string, string>(),
    };
    const gone = ids.filter((id) => !known(names, id));
    const last = await Promise.all(gone.map((id, i) => (viewer && i < maxGone ? lastName(machine, id) : "")));
    gone.forEach((id, i) => names.gone.set(id, last[i]));
    return names;
  };
  const { data } = useLoad(load, [machine, asked]);
  const unknown = data ? ids.filter((id) => !known(data, id)).join() : "";
  useEffect(() => {
    if (unknown) ask(unknown);
  }, [unknown]);
  return data;
}

// lastName returns the name that the audit log has of what was deleted, "" for none.
async function lastName(machine: Machine, id: string): Promise<string> {
  try {
    const { data, names } = await machine.get<List<AuditRow> & { names: Record<string, string> }>(
      `/audit?limit=1&q=${encodeURIComponent(id)}`,
    );
    return names[id] ?? names[data[0]?.target ?? ""] ?? ""; // a record has the id of a key masked
  } catch {
    return ""; // a name is not worth an error
  }
}
