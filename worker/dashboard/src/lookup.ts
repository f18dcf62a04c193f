// Names of keys, connections and people, for pages that receive only their ids.
import { useEffect, useState } from "preact/hooks";
import type { Machine } from "./api";
import type { ConnectionRow } from "./api-types";
import { serverNames } from "./connections";
import { useLoad } from "./hooks";
import { known, type Names } from "./named";
import { keyName, loadKeys } from "./names";

const maxGone = 50; // whose names are looked up in the audit log

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
      servers: serverNames(conns),
      gone: new Map<string, string>(),
    };
    const gone = ids.filter((id) => !known(names, id));
    const last = viewer && gone.length ? await lastNames(machine, gone.slice(0, maxGone)) : {};
    for (const id of gone) names.gone.set(id, last[id] ?? "");
    return names;
  };
  const { data } = useLoad(load, [machine, asked]);
  const unknown = data ? ids.filter((id) => !known(data, id)).join() : "";
  useEffect(() => {
    if (unknown) ask(unknown);
  }, [unknown]);
  return data;
}

// lastNames returns the names that the audit log has of what was deleted, by the ids.
async function lastNames(machine: Machine, ids: string[]): Promise<Record<string, string>> {
  try {
    const { names } = await machine.get<{ names: Record<string, string> }>(
      `/audit?ids=${encodeURIComponent(ids.join())}`,
    );
    return names;
  } catch {
    return {}; // a name is not worth an error
  }
}
