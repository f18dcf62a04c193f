// Names of keys and connections, for pages that receive only their ids.
import type { Machine } from "./api";
import type { ConnectionRow, KeyRow, List } from "./api-types";
import { type Loaded, useLoad } from "./hooks";

// keyName returns the name of a key, or its last characters.
export const keyName = (k: KeyRow) => k.name || (k.last4 ? `…${k.last4}` : k.id);

// loadKeys returns the keys of a machine, with the names of the people who have them.
export async function loadKeys(machine: Machine): Promise<KeyRow[]> {
  const { data, people } = await machine.get<List<KeyRow> & { people?: Record<string, string> }>("/keys");
  return data.map((k) => (k.person ? { ...k, personName: people?.[k.person] } : k));
}

export interface Names {
  /** of people, by their ids */
  people: Map<string, string>;
  keys: Map<string, string>;
  connections: Map<string, string>;
}

export const useNames = (machine: Machine): Loaded<Names> =>
  useLoad(async () => {
    const [keys, conns] = await Promise.all([
      loadKeys(machine),
      machine.may("viewer") ? machine.list<ConnectionRow>("/providers") : [],
    ]);
    return {
      keys: new Map(keys.map((k) => [k.id, k.personName ? `${keyName(k)} (${k.personName})` : keyName(k)])),
      people: new Map(keys.flatMap((k) => (k.person && k.personName ? [[k.person, k.personName]] : []))),
      connections: new Map(conns.map((c) => [c.id, c.name || c.provider])),
    };
  }, [machine]);
