import { useState } from "preact/hooks";
import { useAddressed } from "../addressed";
import type { Budget, KeyRow } from "../api-types";
import { Confirm } from "../confirm";
import { count } from "../format";
import { useAction, useLoad } from "../hooks";
import { ActionsHead, Load, Page, Table } from "../layout";
import { keyName, loadBudgets } from "../names";
import type { PageProps } from "../page";
import { toast } from "../toast";
import { Badge, Button, Cut, Empty } from "../ui";
import { windowNames } from "./budgets/windows";
import { Editor } from "./budgets/editor";
import { UsedBadge, UsedMeter, usedText } from "./budgets/used";
import { Time } from "../time";

const blank: Budget = {
  id: "",
  name: "",
  unit: "usd",
  limit: 0,
  window: "month",
  spent: 0,
  reserved: 0,
  generation: 0,
};

// Budgets lists what calls may use, and what they have used.
export default function Budgets({ machine, args: [asked] }: PageProps) {
  const list = useLoad(() => loadBudgets(machine), [machine]);
  const keys = useLoad(() => machine.list<KeyRow>("/keys"), [machine]);
  const [edited, edit] = useAddressed(machine, "budgets", asked, list.data, blank);
  const [deleting, setDeleting] = useState<Budget | null>(null);
  const remove = useAction();
  const done = async (name: string) => {
    edit(null);
    toast(`Saved ${name}.`);
    await list.reload();
  };
  // Edits what is stored now; closes the editor if it was deleted.
  const reload = async () => {
    const now = await loadBudgets(machine);
    list.set(now);
    edit(now.find((b) => b.id === edited?.id) ?? null);
  };
  const doRemove = (b: Budget) =>
    remove.run(async () => {
      await machine.del(`/budgets/${b.id}`);
      setDeleting(null);
      toast(`Deleted ${b.name}.`);
      await list.reload();
    });
  return (
    <Page
      title="Budgets"
      intro="Limits on what requests may cost or use."
      actions={
        <Button kind="main" icon="plus" onClick={() => edit(blank)}>
          New budget
        </Button>
      }
    >
      <Load of={list} what="budgets">
        {(all) =>
          all.length === 0 ? (
            <Empty title="No budgets yet">
              <p>A budget refuses requests that would exceed a limit in dollars, tokens or requests.</p>
              <Button kind="main" onClick={() => edit(blank)}>
                Create a budget
              </Button>
            </Empty>
          ) : (
            <Table label="Budgets" stacked list>
              <thead>
                <tr>
                  <th>Name</th>
                  <th>Used</th>
                  <th>Applies to</th>
                  <th>Resets</th>
                  <ActionsHead />
                </tr>
              </thead>
              <tbody>
                {all.map((b) => (
                  <Row
                    key={b.id}
                    b={b}
                    owner={keys.data?.find((k) => k.id === b.keyId)}
                    onEdit={() => edit(b)}
                    onDelete={() => setDeleting(b)}
                  />
                ))}
              </tbody>
            </Table>
          )
        }
      </Load>
      {edited && (
        <Editor
          key={edited.id}
          machine={machine}
          budget={edited}
          keys={keys.data ?? []}
          onDone={done}
          onReload={reload}
          onClose={() => edit(null)}
        />
      )}
      {deleting && (
        <Confirm
          title={`Delete ${deleting.name}?`}
          action="Delete budget"
          of={remove}
          onDo={() => void doRemove(deleting)}
          onClose={() => setDeleting(null)}
        >
          <p>Requests will no longer be limited by it. Its usage so far is deleted.</p>
        </Confirm>
      )}
    </Page>
  );
}

function Row({ b, owner, onEdit, onDelete }: { b: Budget; owner?: KeyRow; onEdit: () => void; onDelete: () => void }) {
  const scope = [
    b.keyId && (owner ? keyName(owner) : "a deleted key"),
    b.personName === undefined ? b.tag : b.personName || "a person who was removed",
    b.tool,
    b.models && (b.models.length === 1 ? b.models[0] : count(b.models.length, "model")),
  ].filter(Boolean);
  return (
    <tr class="brief">
      <th scope="row" class="fill">
        <Cut>{b.name}</Cut>
      </th>
      <td class="full wraps">
        <UsedMeter b={b} /> <span>{usedText(b)}</span> <UsedBadge b={b} />{" "}
        {(b.unpricedCalls ?? 0) > 0 && (
          <Badge kind="warn">Cost of {count(b.unpricedCalls ?? 0, "request")} unknown</Badge>
        )}
      </td>
      <td class="fill">
        <Cut>{scope.join(", ") || "All requests"}</Cut>
      </td>
      <td class="when" data-label="Resets">
        {b.window === "total" ? "Never" : b.resetsAt ? <Time at={b.resetsAt} /> : windowNames[b.window]}
      </td>
      <td class="num">
        <Button kind="quiet" aria-label={`Edit ${b.name}`} onClick={onEdit}>
          Edit
        </Button>{" "}
        <Button kind="quiet" changes={`/budgets/${b.id}`} aria-label={`Delete ${b.name}`} onClick={onDelete}>
          Delete
        </Button>
      </td>
    </tr>
  );
}
