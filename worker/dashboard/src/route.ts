// Addresses within the dashboard stand after the #, so that the worker knows
// none of them:
//
//	#/machines                   the operator's machines
//	#/m/{machineId}/{page}/…     a page of one machine
import { useEffect, useState } from "preact/hooks";

export interface Route {
  /** "" where the address names no machine */
  machineId: string;
  /** "providers" in #/m/{machineId}/providers/add */
  page: string;
  /** ["add"] in it, decoded */
  args: string[];
}

export function parse(hash: string): Route {
  const [first, ...rest] = hash.replace(/^#?\/?/, "").split("/").map(decode);
  if (first !== "m") return { machineId: "", page: first, args: rest };
  return { machineId: rest[0] ?? "", page: rest[1] ?? "", args: rest.slice(2) };
}

function decode(part: string): string {
  try { return decodeURIComponent(part); } catch { return part; }
}

// to gives the address of a page of a machine.
export function to(machineId: string, page: string, ...args: string[]): string {
  return "#/m/" + [machineId, page, ...args].map(encodeURIComponent).join("/");
}

// go leads to an address.
export function go(address: string) { location.hash = address; }

export function useRoute(): Route {
  const [hash, set] = useState(location.hash);
  useEffect(() => {
    const changed = () => set(location.hash);
    addEventListener("hashchange", changed);
    return () => removeEventListener("hashchange", changed);
  }, []);
  return parse(hash);
}
