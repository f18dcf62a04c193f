import { useEffect, useState } from "preact/hooks";
import { call } from "../api";
import { Dialog, TypedConfirm } from "../dialog";
import { useAction, type Loaded } from "../hooks";
import { to } from "../route";
import { toast } from "../toast";
import { Button, Code, Empty, ErrorBox, Field, Load, Narrow, Page, day, number } from "../ui";

export interface MachineRow { machineId: string; name?: string; createdAt: number }

const searchFrom = 6, mostShown = 120; // machines

// Machines are the operator's: the tenants of the gateway.
export default function Machines({ list }: { list: Loaded<MachineRow[]> }) {
  const [name, setName] = useState(""), [search, setSearch] = useState("");
  const [made, setMade] = useState<{ machineId: string; apiKey: string } | null>(null);
  const [going, setGoing] = useState<MachineRow | null>(null);
  const create = useAction(), remove = useAction();
  useEffect(() => { if (list.data) void list.reload(); }, []); // others make machines too
  const submit = (e: Event) => {
    e.preventDefault();
    void create.run(async () => {
      setMade(await call("POST", "/api/machines", name.trim() ? { name: name.trim() } : {}));
      setName("");
      await list.reload();
    });
  };
  const doRemove = (m: MachineRow) => remove.run(async () => {
    await call("DELETE", `/api/machines/${m.machineId}`);
    setGoing(null);
    toast("The machine is deleted.");
    await list.reload();
  });
  return (
    <Page title="Machines" intro="A machine is a tenant: it has its own providers, keys and models.">
      <form class="card row end wrap" onSubmit={submit}>
        <Field label="Name of a new machine">
          <input value={name} maxLength={200} placeholder="team, person or project" onInput={(e) => setName(e.currentTarget.value)} />
        </Field>
        <Button type="submit" kind="main" icon="plus" busy={create.busy}>Create machine</Button>
        {create.error && <ErrorBox>{create.error}</ErrorBox>}
      </form>
      <Load of={list} what="the machines">{(rows) => {
        if (rows.length === 0) return <Empty title="No machines yet"><p>Create the first one above. You get a key for it, shown once.</p></Empty>;
        const wanted = search.trim().toLowerCase();
        const shown = rows.filter((m) => `${m.name ?? ""} ${m.machineId}`.toLowerCase().includes(wanted));
        return (
          <>
            {rows.length > searchFrom && <Narrow what="machine" text={search} shown={shown.length} all={rows.length} onInput={setSearch} />}
            {shown.length === 0 && <Empty title="No machine matches" />}
            <ul class="cards">{shown.slice(0, mostShown).map((m) => (
              <li key={m.machineId} class="card">
                <h2><a href={to(m.machineId, "providers")}><bdi>{m.name || "Without a name"}</bdi></a></h2>
                <p class="muted"><code>{m.machineId}</code></p>
                <p class="muted small">since {day(m.createdAt)}</p>
                <div class="row">
                  <a class="button" href={to(m.machineId, "providers")} aria-label={`Open ${m.name || m.machineId}`}>Open</a>
                  <Button kind="quiet" aria-label={`Delete ${m.name || m.machineId}`} onClick={() => { remove.clear(); setGoing(m); }}>Delete…</Button>
                </div>
              </li>
            ))}</ul>
            {shown.length > mostShown && <p class="muted">{number(shown.length - mostShown)} more: search to see them.</p>}
          </>
        );
      }}</Load>
      {made && (
        <Dialog title="The machine is made" onClose={() => setMade(null)}>
          <p>Its first key is shown this once. Keep it now.</p>
          <Code label="The new key" text={made.apiKey} />
          <div class="row"><a class="button main" href={to(made.machineId, "providers")} onClick={() => setMade(null)}>Open the machine</a></div>
        </Dialog>
      )}
      {going && (
        <TypedConfirm title={`Delete ${going.name || going.machineId}?`} word={going.name || going.machineId} what={going.name ? "its name" : "its id"}
          action="Delete the machine" of={remove} onClose={() => setGoing(null)} onDo={() => void doRemove(going)}>
          <p>Its providers, keys, models and usage are gone for good, and its keys stop working.</p>
        </TypedConfirm>
      )}
    </Page>
  );
}
