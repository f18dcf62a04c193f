import { useState } from "preact/hooks";
import type { Machine } from "../../../api";
import { Confirm } from "../../../confirm";
import { count } from "../../../format";
import { Switch } from "../../../forms";
import { useAction, useLoad } from "../../../hooks";
import { ActionsHead, Load, Table } from "../../../layout";
import { Time } from "../../../time";
import { toast } from "../../../toast";
import { Badge, Button, Cut, ErrorBox, Notice } from "../../../ui";
import type { Delivery, Destination, TestResult } from "./destination";
import { presetOf } from "./kinds";

// Destinations is the table of some destinations, with what their deliveries have shown.
export function Destinations({
  machine,
  label,
  list,
  reload,
  onEdit,
}: {
  machine: Machine;
  label: string;
  list: Destination[];
  reload: () => Promise<void>;
  onEdit: (d: Destination) => void;
}) {
  const [deleting, setDeleting] = useState<Destination | null>(null);
  const remove = useAction();
  const doRemove = (d: Destination) =>
    remove.run(async () => {
      await machine.del(`/destinations/${d.id}`);
      setDeleting(null);
      toast(`Deleted ${d.name}.`);
      await reload();
    });
  return (
    <>
      <Table label={label} stacked>
        <thead>
          <tr>
            <th>Name</th>
            <th>Status</th>
            <th>On</th>
            <ActionsHead />
          </tr>
        </thead>
        <tbody>
          {list.map((d) => (
            <Row
              key={d.id}
              machine={machine}
              d={d}
              reload={reload}
              onEdit={() => onEdit(d)}
              onDelete={() => setDeleting(d)}
            />
          ))}
        </tbody>
      </Table>
      {deleting && (
        <Confirm
          title={`Delete ${deleting.name}?`}
          action="Delete"
          of={remove}
          onDo={() => void doRemove(deleting)}
          onClose={() => setDeleting(null)}
        >
          <p>Waiting messages are dropped. Its address and secrets cannot be restored.</p>
        </Confirm>
      )}
    </>
  );
}

function Row({
  machine,
  d,
  reload,
  onEdit,
  onDelete,
}: {
  machine: Machine;
  d: Destination;
  reload: () => Promise<void>;
  onEdit: () => void;
  onDelete: () => void;
}) {
  const turn = useAction();
  const test = useAction();
  const [result, setResult] = useState<TestResult | null>(null);
  const send = () =>
    test.run(async () => {
      setResult(null);
      setResult(await machine.post<TestResult>(`/destinations/${d.id}/test`, {}));
      await reload();
    });
  return (
    <tr>
      <th scope="row">
        <Cut>{d.name}</Cut>
        <div class="muted small">
          {presetOf(d.kind, d.settings)?.title ?? d.kind}
          {d.host && (
            <>
              , <bdi>{d.host}</bdi>
            </>
          )}
        </div>
      </th>
      <td class="full" data-label="Status">
        <StatusOf d={d} />
        {test.error && <ErrorBox>{test.error}</ErrorBox>}
        {result &&
          (result.delivered ? (
            <Notice kind="good">The test was delivered.</Notice>
          ) : (
            <ErrorBox>The test was not delivered: {result.error}</ErrorBox>
          ))}
        {d.waiting + d.dropped > 0 && <Deliveries machine={machine} d={d} />}
      </td>
      <td data-label="On">
        <Switch
          on={d.enabled}
          label={`Send to ${d.name}`}
          busy={turn.busy}
          changes={`/destinations/${d.id}`}
          onTurn={(on) =>
            void turn.run(async () => {
              await machine.put(`/destinations/${d.id}`, { enabled: on }, d.generation);
              await reload();
            })
          }
        />
        {turn.error && <ErrorBox>{turn.error}</ErrorBox>}
      </td>
      <td class="num full">
        <Button aria-label={`Send test to ${d.name}`} busy={test.busy} onClick={() => void send()}>
          Send test
        </Button>{" "}
        <Button aria-label={`Edit ${d.name}`} onClick={onEdit}>
          Edit
        </Button>{" "}
        <Button kind="quiet" changes={`/destinations/${d.id}`} aria-label={`Delete ${d.name}`} onClick={onDelete}>
          Delete
        </Button>
      </td>
    </tr>
  );
}

const states = {
  active: ["Delivering", "good"],
  paused: ["Paused", ""],
  failing: ["Failing", "bad"],
  disabled: ["Stopped", "bad"],
} as const;

// StatusOf shows when something was last delivered, what waits, and what was not delivered.
function StatusOf({ d }: { d: Destination }) {
  const [text, kind] =
    d.status === "active" && !d.lastSuccessAt ? (["Nothing sent yet", ""] as const) : states[d.status];
  const unit = presetOf(d.kind, d.settings)?.unit ?? "message";
  return (
    <>
      <div class="row wrap tight">
        <Badge kind={kind}>{text}</Badge>
        {d.waiting > 0 && <span>{count(d.waiting, "delivery")} waiting</span>}
        {d.dropped > 0 && <Badge kind="warn">{count(d.dropped, unit)} dropped</Badge>}
      </div>
      {d.lastSuccessAt && (
        <div class="muted small">
          Last delivered: <Time at={d.lastSuccessAt} />
        </div>
      )}
      {d.status === "disabled" && (
        <p>
          Stopped <Time at={d.disabledAt} />: {d.disabledReason}. Correct it and send a test to start again.
        </p>
      )}
      {d.status === "failing" && (
        <p>
          <Time at={d.lastErrorAt} />: <bdi>{d.lastError}</bdi>
          {d.waiting > 0 && d.nextTryAt && (
            <>
              . Next try: <Time at={d.nextTryAt} as="time" />
            </>
          )}
        </p>
      )}
    </>
  );
}

// Deliveries lists what waits and what was dropped lately, once it is opened.
function Deliveries({ machine, d }: { machine: Machine; d: Destination }) {
  const [open, setOpen] = useState(false);
  return (
    <details onToggle={(e) => setOpen(e.currentTarget.open)}>
      <summary>Waiting and dropped</summary>
      {open && <Rows machine={machine} d={d} />}
    </details>
  );
}

function Rows({ machine, d }: { machine: Machine; d: Destination }) {
  const list = useLoad(() => machine.list<Delivery>(`/destinations/${d.id}/deliveries`), [machine, d]);
  return (
    <Load of={list} what="deliveries" rows={1}>
      {(rows) =>
        rows.length === 0 ? (
          <p class="muted">Nothing is waiting, and the latest dropped messages are no longer listed.</p>
        ) : (
          <ul class="plain small">
            {rows.map((r) => (
              <li key={r.id}>
                <Badge kind={r.state === "dropped" ? "warn" : ""}>
                  {r.state === "dropped" ? "Dropped" : "Waiting"}
                </Badge>{" "}
                <Time at={r.at} /> <bdi>{r.title || r.id}</bdi>
                {r.tries > 0 && `, ${count(r.tries, "try")}`}
                {r.error && (
                  <>
                    : <bdi>{r.error}</bdi>
                  </>
                )}
              </li>
            ))}
          </ul>
        )
      }
    </Load>
  );
}
