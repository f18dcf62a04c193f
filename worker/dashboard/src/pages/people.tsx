import { useState } from "preact/hooks";
import { moneyLike, spent } from "../amounts";
import type { Budget, InvitationRow, KeyRow, PeopleList, PersonRow } from "../api-types";
import { Confirm } from "../confirm";
import { count, number } from "../format";
import { refreshMs, useAction, useLoad, useRefresh } from "../hooks";
import { ActionsHead, Load, Page, Section, Table } from "../layout";
import { keyName } from "../names";
import type { PageProps } from "../page";
import { roleNames } from "../roles";
import { Time } from "../time";
import { toast } from "../toast";
import { Badge, Button, Cut, Empty, ErrorBox } from "../ui";
import { UsedBadge, UsedMeter, usedText } from "./budgets/used";
import { perWindow } from "./budgets/windows";
import { unpricedIn } from "./keys/unpriced";
import { Grant, Link } from "./people/grant";

const sum = (keys: KeyRow[], of: (k: KeyRow) => number) => keys.reduce((n, k) => n + of(k), 0);
const unpricedOf = (keys: KeyRow[]) => sum(keys, (k) => unpricedIn(k, "yyyy-mm"));

// budgetOf returns the budget of a person: the stored one, or that which the first key will store.
function budgetOf(p: PersonRow, budgets: Budget[]): Budget | undefined {
  const { budgetUsd: limit, budgetWindow: window = "month" } = p.template ?? {};
  return (
    budgets.find((b) => b.tag === `person=${p.id}`) ??
    (limit ? { id: "", name: "Budget", unit: "usd", limit, window, spent: 0, reserved: 0, generation: 0 } : undefined)
  );
}

// Month shows what a person has spent in the month, and of their budget.
function Month({ spent, budget: b }: { spent: string; budget?: Budget }) {
  if (b?.window === "month")
    return (
      <span>
        <UsedMeter b={b} /> {usedText(b)} <UsedBadge b={b} />
      </span>
    );
  return (
    <>
      <span>{spent}</span>{" "}
      {b && (
        <span class="muted">
          {usedText(b)}
          {perWindow[b.window]} <UsedBadge b={b} />
        </span>
      )}
    </>
  );
}

const nameOf = (p: PersonRow) => p.name || p.email || p.id;

// People are those who have a role on the machine, and the open invitations.
export default function People({ machine, session }: PageProps) {
  const list = useLoad(async () => {
    const [people, keys, budgets] = await Promise.all([
      machine.get<PeopleList>("/people"),
      machine.list<KeyRow>("/keys"),
      machine.list<Budget>("/budgets"),
    ]);
    return { ...people, keys, budgets };
  }, [machine]);
  useRefresh(list.reload, refreshMs);
  const [editing, edit] = useState<PersonRow | "new" | null>(null);
  const [link, setLink] = useState<InvitationRow | null>(null);
  const [removing, setRemoving] = useState<PersonRow | null>(null);
  const act = useAction(),
    remove = useAction();
  const keysOf = (id: string) => (list.data?.keys ?? []).filter((k) => k.person === id);
  const shown = async (i: InvitationRow) => {
    edit(null);
    setLink(i);
    await list.reload();
  };
  const renew = (p: PersonRow) =>
    act.run(async () => shown(await machine.post<InvitationRow>("/invitations", { person: p.id })));
  const withdraw = (i: InvitationRow) =>
    act.run(async () => {
      await machine.del(`/invitations/${i.id}`);
      toast("Invitation withdrawn.");
      await list.reload();
    });
  const doRemove = (p: PersonRow) =>
    remove.run(async () => {
      await machine.del(`/people/${p.id}`);
      setRemoving(null);
      toast(`Removed ${nameOf(p)}.`);
      await list.reload();
    });
  const endSessions = (p: PersonRow) =>
    act.run(async () => {
      await machine.del(`/people/${p.id}/sessions`);
      toast(`${nameOf(p)} is signed out everywhere.`);
      await list.reload();
    });
  const spentBy = (id: string) => sum(keysOf(id), (k) => k.spentMonthUsd);
  const spend = moneyLike((list.data?.data ?? []).map((p) => spentBy(p.id)));
  const active = removing ? keysOf(removing.id).filter((k) => !k.pausedAt) : [];
  return (
    <Page
      title="People"
      intro="Who may use or manage this machine."
      actions={
        <Button kind="main" icon="plus" onClick={() => edit("new")}>
          Invite
        </Button>
      }
    >
      {act.error && <ErrorBox>{act.error}</ErrorBox>}
      <Load of={list} what="people">
        {({ data, invitations, budgets }) => (
          <>
            {data.length === 0 ? (
              <Empty title="No people yet">
                <p>Invite someone by a link. They sign in with it, without an account elsewhere.</p>
              </Empty>
            ) : (
              <Table label="People" stacked list>
                <thead>
                  <tr>
                    <th>Name</th>
                    <th>Role</th>
                    <th>Last seen</th>
                    <th class="num spare">Keys</th>
                    <th>Spend this month</th>
                    <ActionsHead />
                  </tr>
                </thead>
                <tbody>
                  {data.map((p) => (
                    <tr key={p.id}>
                      <th scope="row" class="fill">
                        <Cut>{nameOf(p)}</Cut> {p.id === session.personId && <Badge>You</Badge>}
                        {p.email && p.name && <div class="muted small">{p.email}</div>}
                      </th>
                      <td data-label="Role">
                        {roleNames[p.role]} {p.byRule && <Badge>By rule</Badge>}
                      </td>
                      <td class="when" data-label="Last seen">
                        <Time at={p.lastSeen} /> {p.sessions > 0 && <Badge kind="good">Signed in</Badge>}
                      </td>
                      <td class="num spare" data-label="Keys">
                        {number(keysOf(p.id).length)}
                      </td>
                      <td class="limits wraps" data-label="This month">
                        <Month
                          spent={spent(spentBy(p.id), unpricedOf(keysOf(p.id)), spend)}
                          budget={budgetOf(p, budgets)}
                        />
                      </td>
                      <td class="num full">
                        <Button kind="quiet" aria-label={`Change ${nameOf(p)}`} onClick={() => edit(p)}>
                          Change
                        </Button>{" "}
                        {!p.issuer && (
                          <Button
                            kind="quiet"
                            busy={act.busy}
                            aria-label={`New link for ${nameOf(p)}`}
                            onClick={() => void renew(p)}
                          >
                            New link
                          </Button>
                        )}{" "}
                        {p.sessions > 0 && (
                          <Button
                            kind="quiet"
                            busy={act.busy}
                            aria-label={`End sessions of ${nameOf(p)}`}
                            onClick={() => void endSessions(p)}
                          >
                            End sessions
                          </Button>
                        )}{" "}
                        <Button
                          kind="quiet"
                          changes={`/people/${p.id}`}
                          aria-label={`Remove ${nameOf(p)}`}
                          onClick={() => {
                            remove.clear();
                            setRemoving(p);
                          }}
                        >
                          Remove
                        </Button>
                      </td>
                    </tr>
                  ))}
                </tbody>
              </Table>
            )}
            {invitations.length > 0 && (
              <Section title="Open invitations">
                <Table label="Invitations" stacked>
                  <thead>
                    <tr>
                      <th>For</th>
                      <th>Role</th>
                      <th>Expires</th>
                      <ActionsHead />
                    </tr>
                  </thead>
                  <tbody>
                    {invitations.map((i) => {
                      const known = data.find((p) => p.id === i.person);
                      const whom = known ? nameOf(known) : i.note || "Anyone with the link";
                      return (
                        <tr key={i.id}>
                          <th scope="row">
                            <Cut>{whom}</Cut>
                          </th>
                          <td data-label="Role">{i.role ? roleNames[i.role] : "New sign-in link"}</td>
                          <td class="when" data-label="Expires">
                            <Time at={i.expiresAt} />
                          </td>
                          <td class="num full">
                            <Button
                              kind="quiet"
                              busy={act.busy}
                              aria-label={`Withdraw the invitation for ${whom}`}
                              onClick={() => void withdraw(i)}
                            >
                              Withdraw
                            </Button>
                          </td>
                        </tr>
                      );
                    })}
                  </tbody>
                </Table>
              </Section>
            )}
          </>
        )}
      </Load>
      {editing && (
        <Grant
          machine={machine}
          of={editing === "new" ? undefined : editing}
          onInvited={shown}
          onSaved={async () => {
            edit(null);
            toast("Role saved.");
            await list.reload();
          }}
          onClose={() => edit(null)}
        />
      )}
      {link && <Link of={link} onClose={() => setLink(null)} />}
      {removing && (
        <Confirm
          title={`Remove ${nameOf(removing)}?`}
          action="Remove person"
          of={remove}
          onDo={() => void doRemove(removing)}
          onClose={() => setRemoving(null)}
        >
          <p>
            Access to this machine ends at once
            {active.length > 0 && (
              <>
                , and {count(active.length, "key")} {active.length === 1 ? "is" : "are"} paused:{" "}
                <bdi>{active.map(keyName).join(", ")}</bdi>. You can resume a key that a service needs
              </>
            )}
            .
          </p>
        </Confirm>
      )}
    </Page>
  );
}
