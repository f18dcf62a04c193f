import { useState } from "preact/hooks";
import type { Budget, KeyRow } from "../api-types";
import { Dialog } from "../dialog";
import { useMemoryState } from "../drafts";
import { count, when } from "../format";
import { useAction, useLoad } from "../hooks";
import { Load, Page, Table } from "../layout";
import { keyName } from "../names";
import type { PageProps } from "../page";
import { toast } from "../toast";
import { Badge, Button, Empty, ErrorBox } from "../ui";
import { amount, windowNames } from "./budgets/amount";
import { Editor } from "./budgets/editor";

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
export default function Budgets({ machine }: PageProps) {
  const list = useLoad(() => machine.list<Budget>("/budgets"), [machine]);
  const keys = useLoad(() => machine.list<KeyRow>("/keys"), [machine]);
  const [edited, edit] = useMemoryState<Budget | null>(`budget ${machine.id}`, null);
  const [deleting, setDeleting] = useState<Budget | null>(null);
  const remove = useAction();
  const done = async (name: string) => {
    edit(null);
    toast(`Saved ${name}.`);
    await list.reload();
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
            <Table label="Budgets" stacked>
              <thead>
                <tr>
                  <th>Name</th>
                  <th>Used</th>
                  <th>Applies to</th>
                  <th>Resets</th>
                  <th>
                    <span class="hidden">Actions</span>
                  </th>
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
        <Editor machine={machine} budget={edited} keys={keys.data ?? []} onDone={done} onClose={() => edit(null)} />
      )}
      {deleting && (
        <Dialog title={`Delete ${deleting.name}?`} onClose={() => setDeleting(null)}>
          <p>Requests will no longer be limited by it.</p>
          {remove.error && <ErrorBox>{remove.error}</ErrorBox>}
          <div class="row">
            <Button kind="danger" busy={remove.busy} onClick={() => void doRemove(deleting)}>
              Delete budget
            </Button>
            <Button onClick={() => setDeleting(null)}>Cancel</Button>
          </div>
        </Dialog>
      )}
    </Page>
  );
}

function Row({ b, owner, onEdit, onDelete }: { b: Budget; owner?: KeyRow; onEdit: () => void; onDelete: () => void }) {
  const share = b.spent / b.limit;
  const used = `${amount(b.unit, b.spent)} of ${amount(b.unit, b.limit)}`;
  const scope = [
    b.keyId && (owner ? keyName(owner) : "a deleted key"),
    b.models && (b.models.length === 1 ? b.models[0] : count(b.models.length, "model")),
  ].filter(Boolean);
  return (
    <tr>
      <th scope="row">
        <bdi>{b.name}</bdi>
      </th>
      <td class="full" data-label="Used">
        <meter
          min={0}
          max={1}
          low={0.5}
          high={0.8}
          optimum={0}
          value={Math.min(share, 1)}
          aria-label={`${b.name}: ${used}`}
        />{" "}
        {used} {b.exhausted ? <Badge kind="bad">Exhausted</Badge> : share >= 0.8 && <Badge kind="warn">80% used</Badge>}
        {(b.unpricedCalls ?? 0) > 0 && (
          <Badge kind="warn">{count(b.unpricedCalls ?? 0, "request")} without a price</Badge>
        )}
      </td>
      <td class="full" data-label="Applies to">
        <bdi>{scope.join(", ") || "All requests"}</bdi>
      </td>
      <td class="when" data-label="Resets">
        {b.window === "total" ? "Never" : b.resetsAt ? when(b.resetsAt) : windowNames[b.window]}
      </td>
      <td class="num full">
        <Button aria-label={`Edit ${b.name}`} onClick={onEdit}>
          Edit
        </Button>{" "}
        <Button kind="quiet" aria-label={`Delete ${b.name}`} onClick={onDelete}>
          Delete
        </Button>
      </td>
    </tr>
  );
}
