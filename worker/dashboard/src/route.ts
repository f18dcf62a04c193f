// Addresses of the dashboard's pages. They are in the fragment of the URL, so the
// worker serves one page for all of them:
//
//	#/machines                   the list of machines, for the operator
//	#/m/{machineId}/{page}/…     a page of one machine
//	…?name=value                 filters of a page
import { useCallback, useEffect, useState } from "preact/hooks";

export interface Route {
  /** "" if the address names no machine */
  machineId: string;
  /** "providers" in #/m/{machineId}/providers/add */
  page: string;
  /** ["add"] in that address, decoded */
  args: string[];
}

export function parse(hash: string): Route {
  const [first, ...rest] = hash
    .replace(/^#?\/?/, "")
    .split("?")[0]
    .split("/")
    .map(decode);
  if (first !== "m") return { machineId: "", page: first, args: rest };
  return { machineId: rest[0] ?? "", page: rest[1] ?? "", args: rest.slice(2) };
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

// takeSecret returns the secret of a link, #/{name}/{secret}, and removes it from the address,
// so that it does not stay in the history. A machine may follow, which is opened.
function takeSecret(name: string): string {
  const { machineId, page, args } = parse(location.hash);
  if (machineId || page !== name || !args[0]) return "";
  history.replaceState(history.state, "", location.pathname + (args[1] ? `#/m/${encodeURIComponent(args[1])}` : ""));
  return args[0];
}

// takeSignInCode returns the one-time code of a sign-in link.
export const takeSignInCode = () => takeSecret("sign-in");

// takeInvitation returns the secret of an invitation's link.
export const takeInvitation = () => takeSecret("invitation");

const leftAt = "weir.left";

// leaveFor opens the page of an identity provider. The present address waits in this tab alone, so that no
// link can name the one to come back to.
export function leaveFor(url: string) {
  sessionStorage.setItem(leftAt, location.hash);
  location.assign(url);
}

// comeBack opens the address that leaveFor has left.
export function comeBack() {
  const hash = sessionStorage.getItem(leftAt);
  sessionStorage.removeItem(leftAt);
  if (hash?.startsWith("#/") && !location.hash) history.replaceState(history.state, "", hash);
}

// to returns the address of a page of a machine.
export function to(machineId: string, page: string, ...args: string[]): string {
  return `#/m/${[machineId, page, ...args].map(encodeURIComponent).join("/")}`;
}

// replace opens an address in place of the present one, which leaves the history.
export function replace(address: string) {
  location.replace(address);
}

// go opens an address.
export function go(address: string) {
  location.hash = address;
}

const path = () => location.hash.split("?")[0];

// useRoute returns the page of the address. A change of the filters does not mount it again.
export function useRoute(): Route {
  const [hash, set] = useState(path);
  useEffect(() => {
    const changed = () => set(path());
    changed(); // since the first rendering
    addEventListener("hashchange", changed);
    return () => removeEventListener("hashchange", changed);
  }, []);
  return parse(hash);
}

const filters = () => new URLSearchParams(location.hash.split("?")[1] ?? "");

// useFilter is useState for a filter that is stored in the URL, so that a reload, a
// shared link and the back button show the same. The default is omitted.
export function useFilter(
  name: string,
  initial: string,
  allowed?: readonly string[],
): [value: string, set: (value: string) => void];
export function useFilter<T extends string>(
  name: string,
  initial: T,
  allowed: readonly T[],
): [value: T, set: (value: T) => void];
export function useFilter<T extends string>(
  name: string,
  initial: T,
  allowed?: readonly T[],
): [value: T, set: (value: T) => void] {
  const read = () => {
    const given = filters().get(name) as T | null;
    return given !== null && (!allowed || allowed.includes(given)) ? given : initial;
  };
  const [value, put] = useState<T>(read);
  // A link to the page that is open changes nothing but the filters.
  useEffect(() => {
    let was = path();
    const changed = () => {
      if (path() === was) put(read());
      was = path();
    };
    addEventListener("hashchange", changed);
    return () => removeEventListener("hashchange", changed);
  }, [name]);
  const set = useCallback(
    (next: T) => {
      put(next);
      const all = filters();
      if (next === initial) all.delete(name);
      else all.set(name, next);
      const query = all.toString();
      history.replaceState(history.state, "", (location.hash.split("?")[0] || "#/") + (query && `?${query}`));
    },
    [name, initial],
  );
  return [value, set];
}

// The scroll positions of history entries, by the id in their state.
const tops = new Map<string, number>();
let entry = "",
  next = 0,
  wanted = 0;

function entered() {
  const known = (history.state as { entry?: string } | null)?.entry;
  entry = known ?? `${performance.timeOrigin} ${next++}`;
  wanted = known ? (tops.get(known) ?? 0) : 0;
  if (!known) history.replaceState({ entry }, "");
}
if (typeof window !== "undefined") {
  entered();
  addEventListener("popstate", entered);
  addEventListener(
    "scroll",
    () => {
      if (!wanted) tops.set(entry, scrollY);
    },
    { passive: true },
  );
}

// restoreScroll scrolls a page that is shown again to its previous position once
// it is long enough, unless the user scrolls first. Other pages start at the top.
export function restoreScroll(): () => void {
  const top = wanted;
  if (!top) {
    wanted = 0;
    scrollTo(0, 0);
    return () => {};
  }
  const watch = new ResizeObserver(() => {
    if (document.documentElement.scrollHeight < top + innerHeight) return;
    scrollTo(0, top);
    stop();
  });
  const stop = () => {
    wanted = 0;
    watch.disconnect();
    clearTimeout(timer);
    for (const kind of ["wheel", "touchstart", "keydown"]) removeEventListener(kind, stop);
  };
  const timer = setTimeout(stop, 10_000);
  for (const kind of ["wheel", "touchstart", "keydown"]) addEventListener(kind, stop, { passive: true });
  watch.observe(document.documentElement);
  watch.observe(document.body);
  return stop;
}
