// Names of keys.
import type { Machine } from "./api";
import type { Budget, KeyRow, List } from "./api-types";

// keyName returns the name of a key, or its last characters.
export const keyName = (k: KeyRow) => k.name || (k.last4 ? `…${k.last4}` : k.id);

// loadKeys returns the keys of a machine, with the names of the people who have them.
export async function loadKeys(machine: Machine): Promise<KeyRow[]> {
  const { data, people } = await machine.get<List<KeyRow> & { people?: Record<string, string> }>("/keys");
  return data.map((k) => (k.person ? { ...k, personName: people?.[k.person] } : k));
}

// loadBudgets returns the budgets of a machine, with the names of the people whose they are.
export async function loadBudgets(machine: Machine): Promise<Budget[]> {
  const { data, people } = await machine.get<List<Budget> & { people?: Record<string, string> }>("/budgets");
  return data.map((b) => {
    const id = /^person=(p_.*)/.exec(b.tag ?? "")?.[1];
    return id ? { ...b, personName: people && id in people ? people[id] || id : "" } : b;
  });
}
