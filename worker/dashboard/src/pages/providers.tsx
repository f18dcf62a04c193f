import { useRef, useState } from "preact/hooks";
import type { Machine } from "../api";
import type { ConnectionRow, ProviderRow, Quota } from "../api-types";
import { providerName } from "../connections";
import { number } from "../format";
import { useAction, useLoad, useNow } from "../hooks";
import { Icon } from "../icons";
import { moved, Order } from "../order";
import type { PageProps } from "../page";
import { to, useFilter } from "../route";
import { ListHead } from "../forms";
import { Load, Page } from "../layout";
import { Empty, ErrorBox } from "../ui";
import { Connection } from "./providers/connection";
import { Gallery } from "./providers/gallery";
import { placed, together } from "./providers/priorities";
import { Row } from "./providers/row";

// Providers are the connections of a machine; below its address stand the
// gallery (add) and each connection (its id).
export default function Providers(props: PageProps) {
  const [id] = props.args;
  if (id === "add") return <Gallery {...props} />;
  return id ? <Connection key={id} {...props} /> : <List {...props} />;
}

const searchFrom = 8; // connections

// List shows the connections in the order they are tried.
function List({ machine, machineName }: PageProps) {
  const rows = useLoad(async () => {
    const [conns, catalog, quotas] = await Promise.all([
      machine.list<ConnectionRow>("/providers"),
      machine.list<ProviderRow>("/catalog/providers"),
      machine.list<Quota>("/quota"),
    ]);
    return { conns: conns.toSorted((a, b) => a.priority - b.priority), catalog, quotas };
  }, [machine]);
  const order = useAction(),
    [progress, setProgress] = useState("");
  const now = useNow(
    !!rows.data?.conns.some((c) => c.cooldownUntil) || !!rows.data?.quotas.some((q) => q.windows.length > 0),
  );

  // Moves are saved one after the other. The stored order is loaded after the last.
  const saving = useRef(Promise.resolve()),
    moves = useRef(0);
  const move = (c: ConnectionRow, place: ConnectionRow) => {
    const mine = ++moves.current,
      { conns } = rows.data!;
    const next = placed(moved(conns, conns.indexOf(c), conns.indexOf(place)), c.id);
    const changed = next.filter((n) => !conns.includes(n));
    rows.set({ ...rows.data!, conns: next });
    saving.current = saving.current
      .then(() =>
        order.run(() =>
          together(
            changed,
            (n) => machine.put(`/providers/${n.id}`, { priority: n.priority }),
            (done) => {
              if (done === changed.length) setProgress("");
              else if (done % 25 === 0) setProgress(`Saving order: ${number(done)} of ${number(changed.length)}`);
            },
          ),
        ),
      )
      .then(() => (mine === moves.current ? rows.reload() : undefined));
  };
  const add = (
    <a class="button main" href={to(machine.id, "providers", "add")}>
      <Icon name="plus" />
      Add provider
    </a>
  );
  return (
    <Page
      title="Providers"
      actions={add}
      intro={
        <>Connections of {machineName ? <strong>{machineName}</strong> : "this machine"}, tried from top to bottom.</>
      }
    >
      {order.error && <ErrorBox>{order.error}</ErrorBox>}
      <div class="toasts" role="status">
        {order.busy && progress && <p>{progress}</p>}
      </div>
      <Load of={rows} what="connections">
        {({ conns, catalog, quotas }) =>
          conns.length === 0 ? (
            <Empty title="No providers yet">
              <p class="muted">
                Connect your account at a provider. Your apps can then call its models with an API key of this machine.
              </p>
              {add}
            </Empty>
          ) : (
            <Ordered
              machine={machine}
              conns={conns}
              catalog={catalog}
              quotas={quotas}
              now={now}
              onMove={move}
              onChange={rows.reload}
            />
          )
        }
      </Load>
    </Page>
  );
}

// Ordered is the list with its search. A move in a filtered list changes the place
// in the whole list.
function Ordered({
  machine,
  conns,
  catalog,
  quotas,
  now,
  onMove,
  onChange,
}: {
  machine: Machine;
  conns: ConnectionRow[];
  catalog: ProviderRow[];
  quotas: Quota[];
  now: number;
  onMove: (c: ConnectionRow, place: ConnectionRow) => void;
  onChange: () => Promise<void>;
}) {
  const [search, setSearch] = useFilter("q", "");
  const query = search.trim().toLowerCase();
  const provider = (c: ConnectionRow) => providerName(c.provider, catalog);
  const shown = conns.filter((c) =>
    [c.name, provider(c), c.provider, c.providerSpecificData.prefix, c.last4].some((text) =>
      text?.toLowerCase().includes(query),
    ),
  );
  return (
    <>
      {conns.length > searchFrom && (
        <ListHead what="connection" text={search} shown={shown.length} all={conns.length} onInput={setSearch} />
      )}
      {shown.length === 0 ? (
        <Empty title="No connections found" />
      ) : (
        <Order
          items={shown}
          label="Connections, in the order they are tried"
          keyOf={(c) => c.id}
          onMove={(from, at) => onMove(shown[from], shown[at])}
          name={(c) => c.name || provider(c)}
        >
          {(c) => (
            <Row
              machine={machine}
              c={c}
              quota={quotas.find((q) => q.connectionId === c.id)}
              now={now}
              provider={provider(c)}
              onChange={onChange}
            />
          )}
        </Order>
      )}
    </>
  );
}
