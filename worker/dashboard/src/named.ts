// The texts for the names of keys, accounts, servers and people, of which rows have the ids.
export interface Names {
  /** of people, by their ids */
  people: Map<string, string>;
  keys: Map<string, string>;
  connections: Map<string, string>;
  /** of one's own servers, by the ids of their providers */
  servers: Map<string, string>;
  /** the last names of what is gone, "" of what the audit log does not name */
  gone: Map<string, string>;
}

const kinds = ["people", "keys", "connections"] as const;

// known reports whether names has an id.
export const known = (names: Names, id: string) => names.gone.has(id) || kinds.some((of) => names[of].has(id));

// deleted are the words for what is gone, without and after its name.
const deleted = {
  keys: ["Revoked key", "revoked"],
  connections: ["Deleted account", "deleted"],
  people: ["Removed person", "removed"],
} as const;

// nameIn returns the name of an id, "…" until it is known.
export function nameIn(names: Names | null, of: keyof typeof deleted, id: string): string {
  const name = names?.[of].get(id);
  if (name) return name;
  const last = names?.gone.get(id);
  if (last === undefined) return "…";
  return last ? `${last} (${deleted[of][1]})` : deleted[of][0];
}

// tooltipOf returns the tooltip of a name: the id if the name is not known, else the name.
export const tooltipOf = (name: string, id = "") =>
  name === "…" || Object.values(deleted).some(([unnamed]) => name === unnamed) ? id : name;
