import { useState } from "preact/hooks";
import type { Budget, KeyRow } from "../api-types";
import { now } from "../clock";
import { moneyLike, spent } from "../amounts";
import { count, number, when } from "../format";
import { useLoad } from "../hooks";
import { keyName, loadKeys } from "../names";
import type { PageProps } from "../page";
import { go, to, useFilter } from "../route";
import { ListHead } from "../forms";
import { ActionsHead, Load, MoreRows, Page, Section, Table } from "../layout";
import { Badge, Button, Cut, Empty } from "../ui";
import { unknownText, UsedBadge, UsedMeter, usedText } from "./budgets/used";
import { perWindow } from "./budgets/windows";
import { Create, Created } from "./keys/create";
import { Edit } from "./keys/edit";
import { unpricedIn } from "./keys/unpriced";
import { Revoke } from "./keys/revoke";
import { Snippets } from "./keys/snippets";
import { noKey } from "../tools";
import { Time } from "../time";

// Keys lists the API keys of the machine. A new key is shown once.
export default function Keys({ machine, session, args: [asked] }: PageProps) {
  const list = useLoad(async () => {
    const [keys, budgets] = await Promise.all([loadKeys(machine), machine.list<Budget>("/budgets")]);
    return { keys, budgets };
  }, [machine]);
  // The address names the key that is edited: keys/new, keys/{id}.
  const edit = (id?: string) => go(to(machine.id, "keys", ...(id ? [id] : [])));
  const editing = list.data?.keys.find((k) => k.id === asked);
  const [created, setCreated] = useState<[title: string, k: KeyRow] | null>(null),
    [revoking, setRevoking] = useState<KeyRow | null>(null);
  const show = async (title: string, k: KeyRow) => {
    edit();
    setCreated([title, k]);
    await list.reload();
  };
  return (
    <Page
      title="Keys"
      intro="API keys for your apps and tools."
      actions={
        <Button kind="main" icon="plus" onClick={() => edit("new")}>
          New key
        </Button>
      }
    >
      {!machine.may("viewer") &&
        list.data?.budgets.map((b) => (
          <p key={b.id} class="row tight">
            Your budget: <UsedMeter b={b} /> {usedText(b)}
          </p>
        ))}
      <Load of={list} what="keys">
        {({ keys, budgets }) =>
          keys.length === 0 ? (
            <Empty title="No keys yet">
              <p>Apps and tools need an API key to call models.</p>
              <Button kind="main" onClick={() => edit("new")}>
                Create a key
              </Button>
            </Empty>
          ) : (
            <List keys={keys} budgets={budgets} onEdit={(k) => edit(k.id)} onRevoke={setRevoking} />
          )
        }
      </Load>
      {(list.data || !list.error) && (
        <Section
          title="Use a key"
          intro={
            <>
              Ready-made settings for your tools. Replace <code>{noKey}</code> with your key.
            </>
          }
        >
          <Snippets machine={machine} />
        </Section>
      )}
      {asked === "new" && <Create machine={machine} onDone={(k) => show("Key created", k)} onClose={() => edit()} />}
      {created && <Created machine={machine} title={created[0]} k={created[1]} onClose={() => setCreated(null)} />}
      {editing && (
        <Edit
          machine={machine}
          k={editing}
          budgets={list.data?.budgets ?? []}
          own={session.keyId === editing.id}
          onChange={async () => {
            edit();
            await list.reload();
          }}
          onRotated={(k) => show("Key rotated", k)}
          onReload={list.reload}
          onClose={() => edit()}
        />
      )}
      {revoking && (
        <Revoke
          machine={machine}
          k={revoking}
          keys={list.data?.keys ?? []}
          own={session.keyId === revoking.id}
          onDone={async () => {
            setRevoking(null);
            await list.reload();
          }}
          onClose={() => setRevoking(null)}
        />
      )}
    </Page>
  );
}

const searchFrom = 8; // keys
const maxShown = 200;

function List({
  keys,
  budgets,
  onEdit,
  onRevoke,
}: {
  keys: KeyRow[];
  budgets: Budget[];
  onEdit: (k: KeyRow) => void;
  onRevoke: (k: KeyRow) => void;
}) {
  const [search, setSearch] = useFilter("q", "");
  const query = search.trim().toLowerCase();
  const shown = keys.filter((k) =>
    `${k.name ?? ""} ${k.personName ?? ""} ${k.last4 ?? ""} ${k.id}`.toLowerCase().includes(query),
  );
  const spend = moneyLike(shown.map((k) => k.spentMonthUsd));
  return (
    <>
      {keys.length > searchFrom && (
        <ListHead what="key" text={search} shown={shown.length} all={keys.length} onInput={setSearch} />
      )}
      {shown.length === 0 ? (
        <Empty title="No keys found" />
      ) : (
        <Table label="Keys" stacked list>
          <thead>
            <tr>
              <th>Name</th>
              <th class="spare">Key</th>
              <th class="spare">Permissions</th>
              <th>Limits</th>
              <th>Last used</th>
              <th class="num spare">Requests (24 h)</th>
              <th class="num">This{"\u00a0"}month</th>
              <ActionsHead />
            </tr>
          </thead>
          <tbody>
            {shown.slice(0, maxShown).map((k) => (
              <Row
                key={k.id}
                k={k}
                budgets={budgets.filter((b) => b.keyId === k.id || (k.person && b.tag === `person=${k.person}`))}
                spend={spend}
                onEdit={() => onEdit(k)}
                onRevoke={() => onRevoke(k)}
              />
            ))}
          </tbody>
        </Table>
      )}
      <MoreRows n={shown.length - maxShown} />
    </>
  );
}

const scopeNames: Record<string, string> = {
  data: "Call models",
  manage: "Manage",
  metrics: "Metrics",
  export: "Export credentials",
};

function Row({
  k,
  budgets,
  spend,
  onEdit,
  onRevoke,
}: {
  k: KeyRow;
  /** that are its own, or its person's */
  budgets: Budget[];
  /** writes the amounts of the column */
  spend: (usd: number) => string;
  onEdit: () => void;
  onRevoke: () => void;
}) {
  const at = now();
  const unpriced = k.unpricedAttempts ?? 0;
  const total = `${spent(k.spentUsd, unpriced)} in total${unpriced > 0 ? `, cost of ${count(unpriced, "attempt")} unknown` : ""}`;
  const limits = [
    k.rpm && `${number(k.rpm)}/min`,
    k.dailyMax && `${number(k.requestsToday)} of ${number(k.dailyMax)}/day`,
    k.tpm && `${number(k.tpm)} tokens/min`,
    k.maxParallel && `${number(k.maxParallel)} at a time`,
    k.models && (k.models.length === 1 ? `${k.models[0]} only` : `${k.models.length} models`),
    k.expiresAt && `${k.expiresAt > at ? "until" : "expired"} ${when(k.expiresAt)}`,
  ].filter((limit) => limit);
  const limited = limits.length + budgets.length > 0;
  return (
    <tr class="brief">
      <th scope="row" class="fill">
        <div class="row tight">
          <Cut>{keyName(k)}</Cut>
          {k.personName && (
            <small class="muted">
              <Cut>{k.personName}</Cut>
            </small>
          )}
          {(k.limitedUntil ?? 0) > at && <Badge kind="warn">Limit reached</Badge>}
          {k.expiresAt && k.expiresAt <= at && <Badge kind="bad">Expired</Badge>}
          {k.invalid && <Badge kind="bad">Invalid: API_KEY_SECRET has changed</Badge>}
          {k.pausedAt && <Badge kind="warn">Paused</Badge>}
        </div>
      </th>
      <td class="desk spare">{k.last4 && <code>…{k.last4}</code>}</td>
      <td class="desk spare fill">
        <Cut>{k.scopes.map((s) => scopeNames[s] ?? s).join(", ")}</Cut>
      </td>
      <td class={limited ? "limits full wraps" : "desk"}>
        {limited ? (
          <div class="row wrap">
            {limits.map((limit) => (
              <span key={limit}>{limit}</span>
            ))}
            {budgets.map((b) => (
              <Spent key={b.id} of={b} />
            ))}
          </div>
        ) : (
          <span class="muted">None</span>
        )}
      </td>
      <td class="when" data-label="Last used">
        <Time at={k.lastUsedAt} />
      </td>
      <td class="num desk spare" title={k.refused > 0 ? `${number(k.refused)} refused in total` : undefined}>
        {number(k.requestsLastDay)}
        {k.refused > 0 && <small class="muted ample">, {number(k.refused)} refused</small>}
      </td>
      <td class="num" data-label="This month" title={total}>
        {spent(k.spentMonthUsd, unpricedIn(k, "yyyy-mm"), spend)}
      </td>
      <td class="num">
        <Button kind="quiet" aria-label={`Edit ${keyName(k)}`} onClick={onEdit}>
          Edit
        </Button>{" "}
        <Button kind="quiet" changes={`/keys/${k.id}`} aria-label={`Revoke ${keyName(k)}`} onClick={onRevoke}>
          Revoke
        </Button>
      </td>
    </tr>
  );
}

// Spent shows what is used of a budget in its window.
function Spent({ of }: { of: Budget }) {
  const resets = of.resetsAt ? `, resets ${when(of.resetsAt)}` : "";
  return (
    <span title={[`${of.name}: ${usedText(of)}${resets}`, unknownText(of)].filter(Boolean).join(", ")}>
      <UsedMeter b={of} /> {usedText(of)}
      {perWindow[of.window]} <UsedBadge b={of} />
    </span>
  );
}
