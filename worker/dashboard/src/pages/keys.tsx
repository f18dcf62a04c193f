import { useState } from "preact/hooks";
import type { Machine } from "../api";
import type { PageProps } from "../app";
import { Dialog, lastSight, losing } from "../dialog";
import { useDraft } from "../drafts";
import { useAction, useLoad } from "../hooks";
import { useFilter } from "../route";
import { toast } from "../toast";
import {
  Badge,
  Button,
  Code,
  Empty,
  ErrorBox,
  Field,
  Load,
  Narrow,
  Notice,
  Page,
  Section,
  Table,
  Text,
  number,
  when,
} from "../ui";
import { noKey, Snippets } from "./keys/snippets";

export interface KeyRow {
  id: string;
  /** only where it was just made */
  apiKey?: string;
  name?: string;
  last4?: string;
  scopes: string[];
  models?: string[];
  rpm?: number;
  dailyMax?: number;
  requestsToday: number;
  /** Unix milliseconds, as all times */
  createdAt: number;
  expiresAt?: number;
  limitedUntil?: number;
}

export const keyName = (k: KeyRow) => k.name || (k.last4 ? `…${k.last4}` : k.id);

// Keys are what clients of the machine call with. A key is shown once.
export default function Keys({ machine, session }: PageProps) {
  const list = useLoad(async () => (await machine.get<{ data: KeyRow[] }>("/keys")).data, [machine]);
  const [making, make] = useState(false),
    [made, show] = useState<KeyRow | null>(null),
    [asked, ask] = useState<KeyRow | null>(null);
  const done = async (k: KeyRow) => {
    make(false);
    show(k);
    await list.reload();
  };
  return (
    <Page
      title="Keys"
      intro="API keys for your apps and tools."
      actions={
        <Button kind="main" icon="plus" onClick={() => make(true)}>
          New key
        </Button>
      }
    >
      <Load of={list} what="the keys">
        {(keys) =>
          keys.length === 0 ? (
            <Empty title="No keys">
              <p>No client can call this machine without a key.</p>
              <Button kind="main" onClick={() => make(true)}>
                Create a key
              </Button>
            </Empty>
          ) : (
            <List keys={keys} onRevoke={ask} />
          )
        }
      </Load>
      <Section
        title="Use a key"
        intro={
          <>
            Settings of clients, with this gateway’s address. Put your key in place of <code>{noKey}</code>.
          </>
        }
      >
        <Snippets machine={machine} />
      </Section>
      {making && <Create machine={machine} onDone={done} onClose={() => make(false)} />}
      {made && <Made machine={machine} k={made} onClose={() => show(null)} />}
      {asked && (
        <Revoke
          machine={machine}
          k={asked}
          keys={list.data ?? []}
          own={session.keyId === asked.id}
          onDone={async () => {
            ask(null);
            await list.reload();
          }}
          onClose={() => ask(null)}
        />
      )}
    </Page>
  );
}

const searchFrom = 8,
  mostShown = 200; // keys

function List({ keys, onRevoke }: { keys: KeyRow[]; onRevoke: (k: KeyRow) => void }) {
  const [search, setSearch] = useFilter("q", "");
  const wanted = search.trim().toLowerCase();
  const shown = keys.filter((k) => `${k.name ?? ""} ${k.last4 ?? ""} ${k.id}`.toLowerCase().includes(wanted));
  return (
    <>
      {keys.length > searchFrom && (
        <Narrow what="key" text={search} shown={shown.length} all={keys.length} onInput={setSearch} />
      )}
      {shown.length === 0 ? (
        <Empty title="No key matches" />
      ) : (
        <Table label="Keys" stacked>
          <thead>
            <tr>
              <th>Name</th>
              <th>Key</th>
              <th>Permissions</th>
              <th>Limits</th>
              <th>Created</th>
              <th>Expires</th>
              <th>
                <span class="hidden">Revoke</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {shown.slice(0, mostShown).map((k) => (
              <Row key={k.id} k={k} onRevoke={() => onRevoke(k)} />
            ))}
          </tbody>
        </Table>
      )}
      {shown.length > mostShown && <p class="muted">{number(shown.length - mostShown)} more: search to see them.</p>}
    </>
  );
}

const scopeNames: Record<string, string> = { data: "call models", manage: "manage", export: "export secrets" };

function Row({ k, onRevoke }: { k: KeyRow; onRevoke: () => void }) {
  const now = Date.now();
  const limits = [
    k.rpm && `${number(k.rpm)} a minute`,
    k.dailyMax && `${number(k.requestsToday)} of ${number(k.dailyMax)} today`,
    k.models && (k.models.length === 1 ? `only ${k.models[0]}` : `${k.models.length} models`),
  ]
    .filter(Boolean)
    .join(", ");
  return (
    <tr>
      <th scope="row">
        <bdi>{keyName(k)}</bdi>
      </th>
      <td>{k.last4 && <code>…{k.last4}</code>}</td>
      <td>
        <span class="badges">
          {k.scopes.map((s) => (
            <Badge key={s} kind={s === "data" ? "" : "accent"}>
              {scopeNames[s] ?? s}
            </Badge>
          ))}
        </span>
      </td>
      <td class="full" data-label="Limits">
        {limits || <span class="muted">none</span>}{" "}
        {(k.limitedUntil ?? 0) > now && <Badge kind="warn">at its limit</Badge>}
      </td>
      <td class="when" data-label="Created">
        {when(k.createdAt)}
      </td>
      <td class="when" data-label="Expires">
        {k.expiresAt && k.expiresAt <= now ? <Badge kind="bad">expired</Badge> : when(k.expiresAt)}
      </td>
      <td class="num full">
        <Button kind="quiet" aria-label={`Revoke ${keyName(k)}`} onClick={onRevoke}>
          Revoke
        </Button>
      </td>
    </tr>
  );
}

const spans: [label: string, ms: number][] = [
  ["Never", 0],
  ["In an hour", 3_600_000],
  ["In a day", 86_400_000],
  ["In 30 days", 30 * 86_400_000],
  ["In 90 days", 90 * 86_400_000],
  ["In a year", 365 * 86_400_000],
];

function Create({
  machine,
  onDone,
  onClose,
}: {
  machine: Machine;
  onDone: (k: KeyRow) => Promise<void>;
  onClose: () => void;
}) {
  const [form, setForm, draft] = useDraft(`key ${machine.id}`, {
    name: "",
    data: true,
    manage: false,
    exports: false,
    span: 0,
    models: "",
    rpm: "",
    daily: "",
  });
  const { name, data, manage, exports, span, models, rpm, daily } = form;
  const put = (part: Partial<typeof form>) => setForm((f) => ({ ...f, ...part }));
  const act = useAction();
  const known = useLoad(
    async () => (await machine.get<{ data: { id: string }[] }>("/models/list/llm")).data.map((m) => m.id),
    [machine],
  );
  const submit = (e: Event) => {
    e.preventDefault();
    const list = models.split(/[\s,]+/).filter(Boolean);
    const body = {
      name: name.trim(),
      scopes: [data && "data", manage && "manage", manage && exports && "export"].filter(Boolean),
      ...(span ? { expiresAt: Date.now() + span } : {}),
      ...(list.length ? { models: list } : {}),
      ...(rpm ? { rpm: Number(rpm) } : {}),
      ...(daily ? { dailyMax: Number(daily) } : {}),
    };
    void act.run(async () => {
      const made = await machine.post<KeyRow>("/keys", body);
      draft.clear();
      await onDone(made);
    });
  };
  return (
    <Dialog title="New key" ask={losing(draft)} onClose={onClose}>
      <form onSubmit={submit}>
        <Field label="Name" hint="What it is for.">
          <Text max={200} value={name} onText={(name) => put({ name })} />
        </Field>
        <fieldset class="stack">
          <legend>
            <h3>Permissions</h3>
          </legend>
          <label class="row tight">
            <input type="checkbox" checked={data} onChange={(e) => put({ data: e.currentTarget.checked })} />
            Call models
          </label>
          <label class="row tight">
            <input type="checkbox" checked={manage} onChange={(e) => put({ manage: e.currentTarget.checked })} />
            Manage this machine: providers, keys, everything of this dashboard
          </label>
          {manage && (
            <label class="row tight">
              <input type="checkbox" checked={exports} onChange={(e) => put({ exports: e.currentTarget.checked })} />
              Export this machine with its credentials
            </label>
          )}
        </fieldset>
        <Field label="Models it may call" hint="One per line; combo names work too. Empty means all.">
          <textarea
            rows={2}
            spellcheck={false}
            autocapitalize="none"
            placeholder={known.data?.[0]}
            value={models}
            onInput={(e) => put({ models: e.currentTarget.value })}
          />
        </Field>
        <div class="grid">
          <Field label="Requests per minute" hint="Empty means no limit.">
            <input
              type="number"
              min={1}
              max={1_000_000}
              value={rpm}
              onInput={(e) => put({ rpm: e.currentTarget.value })}
            />
          </Field>
          <Field label="Requests per day" hint="Counted in UTC.">
            <input
              type="number"
              min={1}
              max={1_000_000_000}
              value={daily}
              onInput={(e) => put({ daily: e.currentTarget.value })}
            />
          </Field>
          <Field label="Expires">
            <select value={String(span)} onChange={(e) => put({ span: Number(e.currentTarget.value) })}>
              {spans.map(([label, ms]) => (
                <option key={ms} value={String(ms)}>
                  {label}
                </option>
              ))}
            </select>
          </Field>
        </div>
        {act.error && <ErrorBox>{act.error}</ErrorBox>}
        <div class="row">
          <Button kind="main" type="submit" busy={act.busy} disabled={!data && !manage}>
            Create key
          </Button>
          <Button
            onClick={() => {
              draft.clear();
              onClose();
            }}
          >
            Cancel
          </Button>
        </div>
      </form>
    </Dialog>
  );
}

function Made({ machine, k, onClose }: { machine: Machine; k: KeyRow; onClose: () => void }) {
  return (
    <Dialog title="Key created" wide ask={lastSight} onClose={onClose}>
      <Notice kind="warn">Copy it now: you won’t be able to see it again.</Notice>
      <Code label="The key" text={k.apiKey ?? ""} />
      {k.scopes.includes("data") && (
        <>
          <h3>Use it</h3>
          <Snippets machine={machine} apiKey={k.apiKey} />
        </>
      )}
      <Button kind="main" onClick={onClose}>
        Done
      </Button>
    </Dialog>
  );
}

function Revoke({
  machine,
  k,
  keys,
  own,
  onDone,
  onClose,
}: {
  machine: Machine;
  k: KeyRow;
  keys: KeyRow[];
  own: boolean;
  onDone: () => Promise<void>;
  onClose: () => void;
}) {
  const act = useAction();
  const now = Date.now();
  const lastOf = (scope: string) =>
    k.scopes.includes(scope) &&
    !keys.some((o) => o.id !== k.id && o.scopes.includes(scope) && (!o.expiresAt || o.expiresAt > now));
  const revoke = () =>
    act.run(async () => {
      await machine.del(`/keys/${k.id}`);
      toast(`${keyName(k)} is revoked.`);
      await onDone();
    });
  return (
    <Dialog title={`Revoke ${keyName(k)}?`} onClose={onClose}>
      <p>Clients that use it stop working within a minute. This cannot be undone.</p>
      {own && <Notice kind="warn">You are signed in with this key: revoking it signs you out.</Notice>}
      {lastOf("manage") && (
        <Notice kind="warn">
          It is the last key that can manage this machine: only the operator can manage it afterwards.
        </Notice>
      )}
      {lastOf("data") && (
        <Notice kind="warn">It is the last key that can call models: no client can use this machine afterwards.</Notice>
      )}
      {act.error && <ErrorBox>{act.error}</ErrorBox>}
      <div class="row">
        <Button kind="danger" busy={act.busy} onClick={() => void revoke()}>
          Revoke the key
        </Button>
        <Button onClick={onClose}>Cancel</Button>
      </div>
    </Dialog>
  );
}
