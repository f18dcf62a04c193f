// Names of keys.
import type { Machine } from "./api";
import type { KeyRow, List } from "./api-types";

// keyName returns the name of a key, or its last characters.
export const keyName = (k: KeyRow) => k.name || (k.last4 ? `…${k.last4}` : k.id);

// loadKeys returns the keys of a machine, with the names of the people who have them.
export async function loadKeys(machine: Machine): Promise<KeyRow[]> {
  const { data, people } = await machine.get<List<KeyRow> & { people?: Record<string, string> }>("/keys");
  return data.map((k) => (k.person ? { ...k, personName: people?.[k.person] } : k));
}
