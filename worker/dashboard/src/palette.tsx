import type { Machine } from "./api";
import type { ConnectionRow, KeyRow, List, MachineRow, RequestRow } from "./api-types";
import { Dialog } from "./dialog";
import { Finder, type Found } from "./finder";
import { when } from "./format";
import { useLoad } from "./hooks";
import { keyName } from "./names";
import type { PageEntry } from "./page";
import { outcome } from "./pages/requests/outcome";
import { sections } from "./pages/settings/sections";
import { go, to } from "./route";

const requests = 100; // that are offered; older ones are searched on their page

interface Target extends Found {
  address: string;
}

export interface PaletteProps {
  /** null on the list of machines */
  machine: Machine | null;
  machines: MachineRow[];
  pages: PageEntry[];
  onClose: () => void;
}

// Palette opens a page, an account, a key, a request, a setting or another machine by its name.
export default function Palette({ machine, machines, pages, onClose }: PaletteProps) {
  // Lists that do not answer are left out: the pages are always there.
  const rows = useLoad(async () => {
    const list = <T,>(path: string) => (machine ? machine.list<T>(path).catch(() => []) : Promise.resolve<T[]>([]));
    const asked = pages.some((p) => p.path === "requests");
    return Promise.all([
      list<ConnectionRow>("/providers"),
      list<KeyRow>("/keys"),
      asked ? list<RequestRow>(`/requests?limit=${requests}`) : ([] as List<RequestRow>["data"]),
    ]);
  }, [machine]);
  const [accounts, keys, calls] = rows.data ?? [[], [], []];
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
        ...calls.map((r) => ({
          ...target("Request", r.asked || r.endpoint, r.id, to(machine.id, "requests", r.id)),
          note: `${outcome(r).text} · ${when(r.at)}`,
        })),
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
  const searched = (text: string): Target[] =>
    machine && text.trim() && pages.some((p) => p.path === "requests")
      ? [
          {
            id: "search",
            name: `Search requests for “${text.trim()}”`,
            address: `${to(machine.id, "requests")}?${new URLSearchParams({ q: text.trim() })}`,
          },
        ]
      : [];
  return (
    <Dialog title="Go to" onClose={onClose}>
      <Finder
        label={machine ? "Search pages, accounts, keys, requests and settings" : "Search machines"}
        items={items}
        more={searched}
        onPick={({ address }) => {
          onClose();
          go(address);
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
