import type { Machine } from "./api";
import type { ConnectionRow, KeyRow, List, MachineRow, RequestRow, ToolRow } from "./api-types";
import { Dialog } from "./dialog";
import { Finder, type Found, matches } from "./finder";
import { when } from "./format";
import { useLoad } from "./hooks";
import { keyName } from "./names";
import type { PageEntry } from "./page";
import { outcome } from "./pages/requests/outcome";
import { sections } from "./pages/settings/sections";
import type { Role } from "./roles";
import { go, to } from "./route";
import { setTheme } from "./theme";

const requests = 100; // that are searched; older ones are searched on their page
const mostRequests = 5; // that are shown

interface Target extends Found {
  address: string;
  /** in place of the address */
  run?: () => void;
}

// actions are what pages offer: the page, the least role, what is done, other words for it, and where on the page.
const actions: [page: string, least: Role, name: string, words: string, at: string][] = [
  ["providers", "editor", "Add account", "connect provider", "/add"],
  ["keys", "member", "New key", "create API key", "/new"],
  ["budgets", "editor", "New budget", "create limit", "/new"],
  ["combos", "editor", "New combo", "create fallback", "/new"],
  ["people", "owner", "Invite someone", "add person team", ""],
  ["models", "viewer", "Set prices", "cost", "?view=prices"],
  ["models", "viewer", "Add alias", "new model name", "?view=aliases"],
  ["requests", "viewer", "Show failed requests", "errors refused", "?status=error"],
  ["usage", "viewer", "Show spend by model", "cost usage", "?show=cost&by=model"],
];

const themes = [
  ["Dark theme", "dark"],
  ["Light theme", "light"],
  ["Theme of the system", "auto"],
] as const;

export interface PaletteProps {
  /** null on the list of machines */
  machine: Machine | null;
  machines: MachineRow[];
  pages: PageEntry[];
  onClose: () => void;
}

// Palette opens a page, an action, an account, a key, a tool, a request, a setting or another machine by its
// name, and searches the documentation.
export default function Palette({ machine, machines, pages, onClose }: PaletteProps) {
  // Lists that do not answer are left out: the pages are always there.
  const rows = useLoad(async () => {
    const list = <T,>(path: string) => (machine ? machine.list<T>(path).catch(() => []) : Promise.resolve<T[]>([]));
    const asked = pages.some((p) => p.path === "requests");
    return Promise.all([
      list<ConnectionRow>("/providers"),
      list<KeyRow>("/keys"),
      asked ? list<RequestRow>(`/requests?limit=${requests}`) : ([] as List<RequestRow>["data"]),
      pages.some((p) => p.path === "connect") ? list<ToolRow>("/setup") : ([] as ToolRow[]),
    ]);
  }, [machine]);
  const [accounts, keys, calls, tools] = rows.data ?? [[], [], [], []];
  const target = (note: string, name: string, id: string, address: string): Target => ({
    id: `${note} ${id}`,
    name,
    note,
    address,
  });
  const parts = pages.some((p) => p.path === "settings")
    ? sections.filter((s) => machine?.may(s.role ?? "viewer"))
    : [];
  const items: Target[] = machine
    ? [
        ...pages.map((p) => target("Page", p.title, p.path, to(machine.id, p.path))),
        ...accounts.map((c) => target("Account", c.name || c.provider, c.id, to(machine.id, "providers", c.id))),
        ...keys.map((k) => target("Key", keyName(k), k.id, to(machine.id, "keys", k.id))),
        ...actions
          .filter(([page, least]) => pages.some((p) => p.path === page) && machine.may(least))
          .map(([page, , name, words, at]) => target("Action", name, words, to(machine.id, page) + at)),
        ...tools.map((x) => target("Tool", `Connect ${x.name}`, x.id, to(machine.id, "connect", x.id))),
        ...parts.map((s) => target("Settings", s.title, `${s.id} ${s.words ?? ""}`, to(machine.id, "settings", s.id))),
        ...parts.flatMap((s) =>
          s.settings.map((label) => target("Setting", label, label, to(machine.id, "settings", s.id, label))),
        ),
      ]
    : [];
  items.push(
    ...machines
      .filter((m) => m.machineId !== machine?.id)
      .map((m) => target("Machine", m.name || m.machineId, m.machineId, to(m.machineId, pages[0].path))),
  );
  items.push(...themes.map(([name, t]) => ({ ...target("Action", name, t, ""), run: () => setTheme(t) })));
  // Behind the others: a few requests, and the searches of all of them and of the documentation.
  const searched = (typed: string): Target[] => {
    const text = typed.trim();
    if (!text) return [];
    const docs = `/docs/?${new URLSearchParams({ q: text })}`;
    const ofDocs: Target = {
      id: "docs",
      name: `Search the documentation for “${text}”`,
      address: "",
      run: () => open(docs, "_blank", "noopener"),
    };
    if (!machine || !pages.some((p) => p.path === "requests")) return [ofDocs];
    const found = calls
      .map((r) => ({
        ...target("Request", r.asked || r.endpoint, r.id, to(machine.id, "requests", r.id)),
        note: `${outcome(r).text} · ${when(r.at)}`,
      }))
      .filter((r) => matches(r, text));
    const address = `${to(machine.id, "requests")}?${new URLSearchParams({ q: text })}`;
    return [...found.slice(0, mostRequests), ofDocs, { id: "search", name: `Search requests for “${text}”`, address }];
  };
  return (
    <Dialog title="Go to" onClose={onClose}>
      <Finder
        label={machine ? "Search pages, actions, accounts, tools and requests" : "Search machines"}
        items={items}
        more={searched}
        onPick={({ address, run }) => {
          onClose();
          if (run) run();
          else go(address);
        }}
      />
      {rows.loading && (
        <p class="muted small" role="status">
          Loading…
        </p>
      )}
    </Dialog>
  );
}
