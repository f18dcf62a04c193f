import "./machines.css";
import { useState } from "preact/hooks";
import { call } from "./api";
import type { MachinePage, MachineRow, Session } from "./api-types";
import { TypedConfirm } from "./confirm";
import { Dialog, shownOnce } from "./dialog";
import { count, number } from "./format";
import { useAction, useLoad, useSettled } from "./hooks";
import { home, homeOf } from "./pages";
import { roleNames } from "./roles";
import { to, useFilter } from "./route";
import { toast } from "./toast";
import { Code } from "./code";
import { Search } from "./forms";
import { Load, Page, Section } from "./layout";
import { Name } from "./naming";
import { Button, Cut, Empty, ErrorBox } from "./ui";
import { Time } from "./time";

const searchFrom = 6; // machines
const nameHint = "A workspace for a team, a person or a project.";

// Machines is the list of machines, the tenants of the gateway: for a person those where they
// have a role.
export default function Machines({ session, onChange }: { session: Session; onChange: () => Promise<void> }) {
  const mayCreate = session.operator;
  const [search, setSearch] = useFilter("q", "");
  const q = useSettled(search.trim(), 250);
  const query = (cursor = "") => `/api/machines?${new URLSearchParams({ ...(q && { q }), ...(cursor && { cursor }) })}`;
  const first = useLoad(async () => ({ ...(await call<MachinePage>("GET", query())), q }), [q]);
  const gone = useLoad(
    async () => (mayCreate ? await call<MachinePage>("GET", "/api/machines?deleted=true") : null),
    [],
  );
  const [more, setMore] = useState<{ of: string; rows: MachineRow[]; next?: string } | null>(null);
  const rest = more && more.of === q && first.data?.q === q ? more : null;
  const next = useAction();
  const loadMore = (cursor: string) =>
    next.run(async () => {
      const page = await call<MachinePage>("GET", query(cursor));
      setMore({ of: q, rows: [...(rest?.rows ?? []), ...page.data], next: page.next });
    });
  const reload = async () => {
    setMore(null);
    await Promise.all([first.reload(), gone.reload(), onChange()]);
  };
  const [created, setCreated] = useState<{ machineId: string; apiKey: string } | null>(null);
  const [creating, setCreating] = useState(false),
    [renaming, setRenaming] = useState<MachineRow | null>(null),
    [deleting, setDeleting] = useState<MachineRow | null>(null);
  const remove = useAction();
  const create = async (name: string) => {
    setCreated(await call("POST", "/api/machines", { name }));
    setCreating(false);
    await reload();
  };
  const rename = async (m: MachineRow, name: string) => {
    await call("PATCH", `/api/machines/${m.machineId}`, { name });
    setRenaming(null);
    toast("Machine renamed.");
    await reload();
  };
  const doRemove = (m: MachineRow) =>
    remove.run(async () => {
      await call("DELETE", `/api/machines/${m.machineId}`);
      setDeleting(null);
      toast("Machine deleted.");
      await reload();
    });
  const restore = useAction();
  const doRestore = (m: MachineRow) =>
    restore.run(async () => {
      await call("POST", `/api/machines/${m.machineId}/restore`);
      toast("Machine restored.");
      await reload();
    });
  return (
    <Page
      title="Machines"
      intro="A machine is a workspace with its own accounts, keys and usage."
      actions={
        mayCreate && (
          <Button kind="main" icon="plus" onClick={() => setCreating(true)}>
            Create machine
          </Button>
        )
      }
    >
      <Load of={first} what="machines">
        {({ data, total, next: cursor }) => {
          if (total === 0 && !search)
            return (
              <Empty title="No machines yet">
                <p>
                  {mayCreate
                    ? "Create one to connect accounts and get an API key."
                    : "You have no role on a machine. Ask an owner for an invitation."}
                </p>
                {mayCreate && (
                  <Button kind="main" onClick={() => setCreating(true)}>
                    Create your first machine
                  </Button>
                )}
              </Empty>
            );
          const rows = [...data, ...(rest?.rows ?? [])],
            after = rest ? rest.next : cursor;
          return (
            <>
              {(total > searchFrom || search) && (
                <div class="row wrap between">
                  <Search label="Search machines" value={search} onInput={setSearch} />
                  <p class="muted small" role="status">
                    {rows.length < total && `${number(rows.length)} of `}
                    {count(total, "machine")}
                  </p>
                </div>
              )}
              {rows.length === 0 && <Empty title="No machines found" />}
              <ul class="cards">
                {rows.map((m) => (
                  <li key={m.machineId} class="card">
                    <h2>
                      <a href={to(m.machineId, homeOf(m.role))}>
                        <Cut>{m.name || "Unnamed"}</Cut>
                      </a>
                    </h2>
                    <p class="muted">
                      <code>{m.machineId}</code>
                    </p>
                    <p class="muted small">
                      {m.role && `${roleNames[m.role]}. `}Created <Time at={m.createdAt} as="day" />
                    </p>
                    <div class="row">
                      <a
                        class="button"
                        href={to(m.machineId, homeOf(m.role))}
                        aria-label={`Open ${m.name || m.machineId}`}
                      >
                        Open
                      </a>
                      {mayCreate && (
                        <Button
                          kind="quiet"
                          aria-label={`Rename ${m.name || m.machineId}`}
                          onClick={() => setRenaming(m)}
                        >
                          Rename…
                        </Button>
                      )}
                      {mayCreate && (
                        <Button
                          kind="quiet"
                          aria-label={`Delete ${m.name || m.machineId}`}
                          onClick={() => {
                            remove.clear();
                            setDeleting(m);
                          }}
                        >
                          Delete…
                        </Button>
                      )}
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
      {!!gone.data?.data.length && (
        <Section title="Deleted">
          <ul class="plain">
            {gone.data.data.map((m) => (
              <li key={m.machineId} class="row wrap between">
                <div>
                  <Cut>{m.name || "Unnamed"}</Cut> <code>{m.machineId}</code>
                  <p class="muted small">
                    Deleted, restore until <Time at={m.restoreUntil} />
                  </p>
                </div>
                <Button
                  busy={restore.busy}
                  aria-label={`Restore ${m.name || m.machineId}`}
                  onClick={() => void doRestore(m)}
                >
                  Restore
                </Button>
              </li>
            ))}
          </ul>
          {restore.error && <ErrorBox>{restore.error}</ErrorBox>}
        </Section>
      )}
      {creating && (
        <Name
          title="Create machine"
          hint={nameHint}
          draft="machine"
          action="Create"
          onDo={create}
          onClose={() => setCreating(false)}
        />
      )}
      {renaming && (
        <Name
          title={`Rename ${renaming.name || renaming.machineId}`}
          hint={nameHint}
          draft={`machine ${renaming.machineId}`}
          name={renaming.name}
          action="Rename"
          onDo={(name) => rename(renaming, name)}
          onClose={() => setRenaming(null)}
        />
      )}
      {created && (
        <Dialog title="Machine created" ask={shownOnce} onClose={() => setCreated(null)}>
          <p>Copy your API key now. You won’t see it again.</p>
          <Code label="API key" text={created.apiKey} />
          <div class="row">
            <a class="button main" href={to(created.machineId, home)} onClick={() => setCreated(null)}>
              Open machine
            </a>
          </div>
        </Dialog>
      )}
      {deleting && (
        <TypedConfirm
          title={`Delete ${deleting.name || deleting.machineId}?`}
          word={deleting.name || deleting.machineId}
          what={deleting.name ? "the machine’s name" : "the machine’s ID"}
          action="Delete machine"
          of={remove}
          onClose={() => setDeleting(null)}
          onDo={() => void doRemove(deleting)}
        >
          <p>Its keys stop working at once. You can restore it for seven days, with its providers, keys and usage.</p>
        </TypedConfirm>
      )}
    </Page>
  );
}
