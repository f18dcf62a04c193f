import { useState } from "preact/hooks";
import { call } from "./api";
import { Dialog, lastSight, TypedConfirm } from "./dialog";
import { useDraft } from "./drafts";
import { useAction, useLoad, useSettled } from "./hooks";
import { to, useFilter } from "./route";
import { toast } from "./toast";
import { Button, Code, Empty, ErrorBox, Field, Load, Page, Search, Text, count, day, number } from "./ui";

export interface MachineRow {
  machineId: string;
  name?: string;
  createdAt: number;
}

// MachineList is a page of GET /api/machines; next is the cursor of the next page,
// total counts all that match.
export interface MachineList {
  data: MachineRow[];
  next?: string;
  total: number;
}

const searchFrom = 6; // machines

// Machines are the operator's: the tenants of the gateway.
export default function Machines({ onChange }: { onChange: () => Promise<void> }) {
  const [name, setName, draft] = useDraft("machine", ""),
    [search, setSearch] = useFilter("q", "");
  const q = useSettled(search.trim(), 250);
  const query = (cursor = "") => "/api/machines?" + new URLSearchParams({ ...(q && { q }), ...(cursor && { cursor }) });
  const first = useLoad(async () => ({ ...(await call<MachineList>("GET", query())), q }), [q]);
  const [more, setMore] = useState<{ of: string; rows: MachineRow[]; next?: string } | null>(null);
  const rest = more && more.of === q && first.data?.q === q ? more : null;
  const next = useAction();
  const loadMore = (cursor: string) =>
    next.run(async () => {
      const page = await call<MachineList>("GET", query(cursor));
      setMore({ of: q, rows: [...(rest?.rows ?? []), ...page.data], next: page.next });
    });
  const reload = async () => {
    setMore(null);
    await Promise.all([first.reload(), onChange()]);
  };
  const [made, setMade] = useState<{ machineId: string; apiKey: string } | null>(null);
  const [going, setGoing] = useState<MachineRow | null>(null);
  const create = useAction(),
    remove = useAction();
  const submit = (e: Event) => {
    e.preventDefault();
    void create.run(async () => {
      setMade(await call("POST", "/api/machines", name.trim() ? { name: name.trim() } : {}));
      draft.clear();
      await reload();
    });
  };
  const doRemove = (m: MachineRow) =>
    remove.run(async () => {
      await call("DELETE", `/api/machines/${m.machineId}`);
      setGoing(null);
      toast("The machine is deleted.");
      await reload();
    });
  return (
    <Page title="Machines" intro="A machine is a tenant: it has its own providers, keys and models.">
      <form class="card row end wrap" onSubmit={submit}>
        <Field label="New machine name">
          <Text value={name} max={200} placeholder="team, person or project" onText={setName} />
        </Field>
        <Button type="submit" kind="main" icon="plus" busy={create.busy}>
          Create machine
        </Button>
        {create.error && <ErrorBox>{create.error}</ErrorBox>}
      </form>
      <Load of={first} what="the machines">
        {({ data, total, next: cursor }) => {
          if (total === 0 && !search)
            return (
              <Empty title="No machines yet">
                <p>Create the first one above. You get a key for it, shown once.</p>
              </Empty>
            );
          const rows = [...data, ...(rest?.rows ?? [])],
            after = rest ? rest.next : cursor;
          return (
            <>
              {(total > searchFrom || search) && (
                <div class="row wrap between">
                  <Search label="Search the machines" value={search} onInput={setSearch} />
                  <p class="muted small" role="status">
                    {rows.length < total && `${number(rows.length)} of `}
                    {count(total, "machine")}
                  </p>
                </div>
              )}
              {rows.length === 0 && <Empty title="No machine matches" />}
              <ul class="cards">
                {rows.map((m) => (
                  <li key={m.machineId} class="card">
                    <h2>
                      <a href={to(m.machineId, "providers")}>
                        <bdi>{m.name || "Unnamed"}</bdi>
                      </a>
                    </h2>
                    <p class="muted">
                      <code>{m.machineId}</code>
                    </p>
                    <p class="muted small">Created {day(m.createdAt)}</p>
                    <div class="row">
                      <a
                        class="button"
                        href={to(m.machineId, "providers")}
                        aria-label={`Open ${m.name || m.machineId}`}
                      >
                        Open
                      </a>
                      <Button
                        kind="quiet"
                        aria-label={`Delete ${m.name || m.machineId}`}
                        onClick={() => {
                          remove.clear();
                          setGoing(m);
                        }}
                      >
                        Delete…
                      </Button>
                    </div>
                  </li>
                ))}
              </ul>
              {next.error && <ErrorBox>{next.error}</ErrorBox>}
              {after && (
                <Button busy={next.busy} onClick={() => void loadMore(after)}>
                  Load more
                </Button>
              )}
            </>
          );
        }}
      </Load>
      {made && (
        <Dialog title="Machine created" ask={lastSight} onClose={() => setMade(null)}>
          <p>Copy your API key now. You won’t see it again.</p>
          <Code label="The new key" text={made.apiKey} />
          <div class="row">
            <a class="button main" href={to(made.machineId, "providers")} onClick={() => setMade(null)}>
              Open the machine
            </a>
          </div>
        </Dialog>
      )}
      {going && (
        <TypedConfirm
          title={`Delete ${going.name || going.machineId}?`}
          word={going.name || going.machineId}
          what={going.name ? "its name" : "its id"}
          action="Delete the machine"
          of={remove}
          onClose={() => setGoing(null)}
          onDo={() => void doRemove(going)}
        >
          <p>Its providers, keys, models and usage are gone for good, and its keys stop working.</p>
        </TypedConfirm>
      )}
    </Page>
  );
}
