// Names of keys and connections, for pages that receive only their ids.
import type { Machine } from "./api";
import type { ConnectionRow, KeyRow } from "./api-types";
import { type Loaded, useLoad } from "./hooks";

// keyName returns the name of a key, or its last characters.
export const keyName = (k: KeyRow) => k.name || (k.last4 ? `…${k.last4}` : k.id);

export interface Names {
  keys: Map<string, string>;
  connections: Map<string, string>;
}

export const useNames = (machine: Machine): Loaded<Names> =>
  useLoad(async () => {
    const [keys, conns] = await Promise.all([
      machine.list<KeyRow>("/keys"),
      machine.may("viewer") ? machine.list<ConnectionRow>("/providers") : [],
    ]);
    return {
      keys: new Map(keys.map((k) => [k.id, keyName(k)])),
      connections: new Map(conns.map((c) => [c.id, c.name || c.provider])),
    };
  }, [machine]);
