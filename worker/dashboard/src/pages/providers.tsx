import { useRef, useState } from "preact/hooks";
import type { Machine } from "../api";
import type { ConnectionRow, ProviderRow, Quota, SettingValues, StatusPage, Timelines } from "../api-types";
import { families, providerName } from "../connections";
import { count, number } from "../format";
import { refreshMs, useAction, useLoad, useNow, useRefresh } from "../hooks";
import { Icon } from "../icons";
import { Monogram } from "../monogram";
import { moved, Order } from "../order";
import type { PageProps } from "../page";
import { to, useFilter } from "../route";
import { ListHead } from "../forms";
import { Load, Page } from "../layout";
import { Cut, Empty, ErrorBox } from "../ui";
import { Connection } from "./providers/connection";
import { Gallery } from "./providers/gallery";
import { providerMarks } from "./providers/marks";
import { placed, sharing, together } from "./providers/priorities";
import { Reported } from "./providers/reported";
import { Row } from "./providers/row";

// Providers are the connections of a machine; below its address stand the
// gallery (add) and each connection (its id).
export default function Providers(props: PageProps) {
  const [id] = props.args;
  if (id === "add") return <Gallery {...props} />;
  return id ? <Connection key={id} {...props} /> : <List {...props} />;
}

const searchFrom = 8; // connections
const manyFrom = 200; // connections

// List shows the connections by their providers, in the order of their priorities.
function List({ machine, machineName }: PageProps) {
  const rows = useLoad(async () => {
    const [conns, catalog, quotas, { strategy }] = await Promise.all([
      machine.list<ConnectionRow>("/providers"),
      machine.list<ProviderRow>("/catalog/providers"),
      machine.list<Quota>("/quota"),
      machine.get<SettingValues>("/settings"),
    ]);
    return { conns: conns.toSorted((a, b) => a.priority - b.priority), catalog, quotas, strategy };
  }, [machine]);
  const health = useLoad(() => machine.get<Timelines>("/health/timeline?groupBy=connection"), [machine]);
  const reported = useLoad(() => machine.list<StatusPage>("/health/providers"), [machine]);
  const order = useAction(),
    [progress, setProgress] = useState("");
  useRefresh(rows.reload, order.busy ? 0 : refreshMs); // a move shows its order before it is saved
  const now = useNow(
    !!rows.data?.conns.some((c) => c.cooldownUntil) || !!rows.data?.quotas.some((q) => q.windows.length > 0),
  );

  // Moves are saved one after the other. The stored order is loaded after the last.
  const saving = useRef(Promise.resolve()),
    moves = useRef(0);
  const move = (c: ConnectionRow, place: ConnectionRow) => {
    const mine = ++moves.current,
      { conns, catalog } = rows.data!;
    const group = groupsOf(conns, catalog).find((g) => g.conns.includes(c))!.conns;
    const next = placed(moved(group, group.indexOf(c), group.indexOf(place)), c.id);
    const changed = next.filter((n) => !group.includes(n));
    rows.set({ ...rows.data!, conns: conns.map((o) => (group.includes(o) ? next[group.indexOf(o)] : o)) });
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
      Add account
    </a>
  );
  return (
    <Page
      title="Providers"
      actions={add}
      intro={
        <>
          Accounts of{" "}
          {machineName ? (
            <strong>
              <Cut>{machineName}</Cut>
            </strong>
          ) : (
            "this machine"
          )}
        </>
      }
    >
      {order.error && <ErrorBox>{order.error}</ErrorBox>}
      <div class="toasts" role="status">
        {order.busy && progress && <p>{progress}</p>}
      </div>
      <Load of={rows} what="accounts">
        {({ conns, catalog, quotas, strategy }) =>
          conns.length === 0 ? (
            <Empty title="No accounts yet">
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
              strategy={strategy}
              health={health.data}
              reported={reported.data}
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

// Group has the accounts of a provider. Those of compatible servers are one group.
interface Group {
  /** id of the provider, or the format of compatible servers */
  id: string;
  name: string;
  conns: ConnectionRow[];
}

// groupsOf returns the groups in the order of their first accounts.
function groupsOf(conns: ConnectionRow[], catalog: ProviderRow[]): Group[] {
  const groups: Group[] = [];
  for (const c of conns) {
    const name = providerName(c.provider, catalog);
    const known = groups.find((g) => g.name === name);
    if (known) known.conns.push(c);
    else groups.push({ id: families.find(([, family]) => family === name)?.[0] ?? c.provider, name, conns: [c] });
  }
  return groups;
}

// Ordered is the list with its search. A move in a filtered list changes the place
// in the whole list.
function Ordered({
  machine,
  conns,
  catalog,
  quotas,
  strategy,
  health,
  reported,
  now,
  onMove,
  onChange,
}: {
  machine: Machine;
  conns: ConnectionRow[];
  catalog: ProviderRow[];
  quotas: Quota[];
  strategy: string;
  health: Timelines | null;
  reported: StatusPage[] | null;
  now: number;
  onMove: (c: ConnectionRow, place: ConnectionRow) => void;
  onChange: () => Promise<void>;
}) {
  const [search, setSearch] = useFilter("q", "");
  const query = search.trim().toLowerCase();
  const provider = (c: ConnectionRow) => providerName(c.provider, catalog);
  const marks = providerMarks(catalog);
  const shown = conns.filter((c) =>
    [c.name, provider(c), c.provider, c.providerSpecificData.prefix, c.last4].some((text) =>
      text?.toLowerCase().includes(query),
    ),
  );
  return (
    <>
      {conns.length > searchFrom && (
        <ListHead what="account" text={search} shown={shown.length} all={conns.length} onInput={setSearch} />
      )}
      {shown.length === 0 && <Empty title="No accounts found" />}
      {groupsOf(shown, catalog).map((g) => {
        const shares = sharing(
          conns.filter((c) => c.isActive && g.conns.some((o) => o.provider === c.provider)),
          strategy,
        );
        return (
          <section key={g.id} class="accounts" aria-label={g.name}>
            <h2 class="row tight">
              <Monogram letters={marks.get(g.id) ?? g.id.slice(0, 2)} />
              {g.name}
              {g.conns.length > 1 && <small class="muted">{count(g.conns.length, "account")}</small>}
            </h2>
            {shares && <p class="muted small">{shares}</p>}
            <Reported page={reported?.find((p) => p.provider === g.id)} />
            <Order
              items={g.conns}
              label={`Accounts of ${g.name}`}
              keyOf={(c) => c.id}
              changes={g.conns.map((c) => `/providers/${c.id}`)}
              onMove={(from, at) => onMove(g.conns[from], g.conns[at])}
              name={(c) => c.name || provider(c)}
            >
              {(c) => (
                <Row
                  machine={machine}
                  c={c}
                  quota={quotas.find((q) => q.connectionId === c.id)}
                  health={health}
                  now={now}
                  provider={provider(c)}
                  many={conns.length > manyFrom}
                  onChange={onChange}
                />
              )}
            </Order>
          </section>
        );
      })}
    </>
  );
}
