import { useRef, useState } from "preact/hooks";
import { duration, words, type Machine } from "../api";
import type { PageProps } from "../app";
import { useAction, useLoad, useNow } from "../hooks";
import { Icon } from "../icons";
import { moved, Order } from "../order";
import { to, useFilter } from "../route";
import { Badge, Button, Empty, ErrorBox, Load, Narrow, Page, Switch, count, number, when } from "../ui";
import { Connection } from "./providers/connection";
import {
  errorText,
  placed,
  providerName,
  testText,
  together,
  type ConnectionRow,
  type ProviderRow,
  type TestResult,
} from "../connections";
import { Gallery } from "./providers/gallery";
import { statusOf } from "./providers/status";

// Providers are the connections of a machine; below its address stand the
// gallery (add) and each connection (its id).
export default function Providers(props: PageProps) {
  const [id] = props.args;
  if (id === "add") return <Gallery {...props} />;
  return id ? <Connection key={id} {...props} /> : <List {...props} />;
}

const searchFrom = 8; // connections that are seen at once

// List shows them in the order they are tried.
function List({ machine, machineName }: PageProps) {
  const rows = useLoad(async () => {
    const [conns, catalog] = await Promise.all([
      machine.get<{ data: ConnectionRow[] }>("/providers"),
      machine.get<{ data: ProviderRow[] }>("/catalog/providers"),
    ]);
    return { conns: conns.data.toSorted((a, b) => a.priority - b.priority), catalog: catalog.data };
  }, [machine]);
  const order = useAction(),
    [progress, setProgress] = useState("");
  const now = useNow(!!rows.data?.conns.some((c) => c.cooldownUntil));

  // Moves are saved one after the other; what came of them is loaded after the last.
  const saving = useRef(Promise.resolve()),
    moves = useRef(0);
  const move = (c: ConnectionRow, place: ConnectionRow) => {
    const mine = ++moves.current,
      { conns, catalog } = rows.data!;
    const next = placed(moved(conns, conns.indexOf(c), conns.indexOf(place)), c.id);
    const changed = next.filter((n) => !conns.includes(n));
    rows.set({ conns: next, catalog });
    saving.current = saving.current
      .then(() =>
        order.run(() =>
          together(
            changed,
            (n) => machine.put(`/providers/${n.id}`, { priority: n.priority }),
            (done) => {
              if (done === changed.length) setProgress("");
              else if (done % 25 === 0) setProgress(`Saving the order: ${number(done)} of ${number(changed.length)}`);
            },
          ),
        ),
      )
      .then(() => (mine === moves.current ? rows.reload() : undefined));
  };
  const add = (
    <a class="button main" href={to(machine.id, "providers", "add")}>
      <Icon name="plus" />
      Add a provider
    </a>
  );
  return (
    <Page
      title="Providers"
      actions={add}
      intro={
        <>Connections of {machineName ? <strong>{machineName}</strong> : "this machine"}. Tried from top to bottom.</>
      }
    >
      {order.error && <ErrorBox>{order.error}</ErrorBox>}
      <div class="toasts" role="status">
        {order.busy && progress && <p>{progress}</p>}
      </div>
      <Load of={rows} what="the connections">
        {({ conns, catalog }) =>
          conns.length === 0 ? (
            <Empty title="No providers yet">
              <p class="muted">
                Connect an account that you have with a provider, then its models can be called with one key.
              </p>
              {add}
            </Empty>
          ) : (
            <Ordered machine={machine} conns={conns} catalog={catalog} now={now} onMove={move} onChange={rows.reload} />
          )
        }
      </Load>
    </Page>
  );
}

// Ordered is that list; a search narrows it down, and moves still count in the
// whole.
function Ordered({
  machine,
  conns,
  catalog,
  now,
  onMove,
  onChange,
}: {
  machine: Machine;
  conns: ConnectionRow[];
  catalog: ProviderRow[];
  now: number;
  onMove: (c: ConnectionRow, place: ConnectionRow) => void;
  onChange: () => Promise<void>;
}) {
  const [search, setSearch] = useFilter("q", "");
  const wanted = search.trim().toLowerCase();
  const provider = (c: ConnectionRow) => providerName(c.provider, catalog);
  const shown = conns.filter((c) =>
    [c.name, provider(c), c.provider, c.providerSpecificData.prefix, c.last4].some((text) =>
      text?.toLowerCase().includes(wanted),
    ),
  );
  return (
    <>
      {conns.length > searchFrom && (
        <Narrow what="connection" text={search} shown={shown.length} all={conns.length} onInput={setSearch} />
      )}
      {shown.length === 0 ? (
        <Empty title="No connection matches" />
      ) : (
        <Order
          items={shown}
          label="Connections, in the order they are tried"
          keyOf={(c) => c.id}
          onMove={(from, at) => onMove(shown[from], shown[at])}
          name={(c) => c.name || provider(c)}
        >
          {(c) => <Row machine={machine} c={c} now={now} provider={provider(c)} onChange={onChange} />}
        </Order>
      )}
    </>
  );
}

function Row({
  machine,
  c,
  now,
  provider,
  onChange,
}: {
  machine: Machine;
  c: ConnectionRow;
  now: number;
  provider: string;
  onChange: () => Promise<void>;
}) {
  const [result, setResult] = useState<TestResult | string | null>(null);
  const test = useAction(),
    toggle = useAction();
  const label = c.name || provider;
  const wait = (c.cooldownUntil ?? 0) - now;
  const [kind, text] = statusOf(c, now);
  const picked = c.providerSpecificData.enabledModels;
  const turn = (isActive: boolean) =>
    toggle.run(async () => {
      await machine.put(`/providers/${c.id}`, { isActive });
      await onChange();
    });
  const run = () =>
    test.run(async () => {
      setResult(null);
      try {
        setResult(await machine.post<TestResult>(`/providers/${c.id}/test`, {}));
      } catch (e) {
        setResult(words(e));
      }
      await onChange();
    });
  return (
    <div class="conn">
      <div>
        <h2 class="row tight wrap">
          <a href={to(machine.id, "providers", c.id)}>
            <bdi>{label}</bdi>
          </a>{" "}
          <Badge kind={kind}>{text}</Badge>
          {wait > 0 && <small class="muted">retry in {duration(wait)}</small>}
        </h2>
        <p class="muted small">
          {provider}
          {c.providerSpecificData.prefix && (
            <>
              {" "}
              · <code>{c.providerSpecificData.prefix}/</code>
            </>
          )}
          {c.last4 ? (
            <>
              {" "}
              · {c.authType === "oauth" ? "token" : "key"} …{c.last4}
            </>
          ) : c.hasKey ? (
            " · key set"
          ) : (
            " · no key"
          )}
          {picked && ` · ${count(picked.length, "model")} picked`}
        </p>
        {c.lastError && (c.health !== "ready" || c.status !== "active") && (
          <p class="small bad">
            <strong>Last error{c.healthAt && c.health !== "ready" ? `, ${when(c.healthAt)}` : ""}:</strong>{" "}
            {errorText(c.lastError)}
          </p>
        )}
        <p class={typeof result === "object" && result?.ok ? "small good" : "small bad"} role="status">
          {result && (typeof result === "string" ? result : testText(result))}
        </p>
        {toggle.error && <ErrorBox>{toggle.error}</ErrorBox>}
      </div>
      <div class="row">
        <Switch on={c.isActive} busy={toggle.busy} label={`${label} is on`} onTurn={(on) => void turn(on)} />
        {c.status.startsWith("needs_") && (
          <a class="button main" href={to(machine.id, "providers", c.id)}>
            {c.status === "needs_reauth" ? "Sign in again" : "Add credentials"}
          </a>
        )}
        <a class="button" aria-label={`Models and details of ${label}`} href={to(machine.id, "providers", c.id)}>
          Models
        </a>
        <Button busy={test.busy} aria-label={`Test ${label}`} onClick={() => void run()}>
          Test
        </Button>
      </div>
    </div>
  );
}
