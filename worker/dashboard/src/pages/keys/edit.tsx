import { Fragment } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { Machine } from "../../api";
import type { Budget, KeyRow } from "../../api-types";
import { Dialog, losing } from "../../dialog";
import { useDraft } from "../../draft";
import { spent } from "../../amounts";
import { count, number } from "../../format";
import { useAction } from "../../hooks";
import { keyName } from "../../names";
import { toast } from "../../toast";
import { Button, ErrorBox, Field, Notice } from "../../ui";
import { corrected, Refused } from "../../unknown";
import { budgetOf, changesOf, Fields, formOf, type Form, modelsOf, scopesOf } from "./fields";
import { unpricedIn } from "./unpriced";
import { Networks } from "./networks";
import { Time } from "../../time";

// Edit changes a key: its fields, its own budget, whether it is paused, and its text.
export function Edit({
  machine,
  k,
  budgets,
  own,
  onChange,
  onRotated,
  onReload,
  onClose,
}: {
  machine: Machine;
  k: KeyRow;
  /** of the machine */
  budgets: Budget[];
  /** the session was opened with this key */
  own: boolean;
  onChange: () => Promise<void>;
  onRotated: (k: KeyRow) => Promise<void>;
  onReload: () => Promise<void>;
  onClose: () => void;
}) {
  const ofKey = budgetOf(k, budgets);
  const [form, setForm, draft] = useDraft(`key ${k.id} ${k.generation} ${ofKey.own?.generation}`, formOf(k, ofKey.own));
  const save = useAction(),
    pause = useAction();
  const generation = useRef(k.generation);
  useEffect(() => {
    generation.current = k.generation;
  }, [k.generation]);
  // change saves the fields of the key, then its budget: null deletes it.
  const change = async (body: Record<string, unknown>, done: string) => {
    const { budget, ...fields } = body as { budget?: Partial<Budget> | null };
    if (Object.keys(fields).length > 0)
      generation.current = (await machine.put<KeyRow>(`/keys/${k.id}`, fields, generation.current)).generation;
    const path = `/budgets/${ofKey.own?.id}`;
    if (budget === null) await machine.del(path);
    else if (budget && ofKey.own) await machine.put(path, { limit: budget.limit }, ofKey.own.generation);
    else if (budget) await machine.post("/budgets", { name: keyName(k).slice(0, 100), keyId: k.id, ...budget });
    draft.clear();
    toast(done);
    await onChange();
  };
  const put = (part: Partial<Form>) => setForm((f) => ({ ...f, ...part }));
  const submit = (e: Event | null, allowUnknown = false) => {
    e?.preventDefault();
    const body = { ...changesOf(formOf(k, ofKey.own), form), ...(allowUnknown && { allowUnknown }) };
    void save.run(() => change(body, `Saved ${keyName(k)}.`));
  };
  return (
    <Dialog title={`Edit ${keyName(k)}`} ask={losing(draft)} onClose={onClose}>
      <Used k={k} />
      <form onSubmit={submit}>
        <Fields machine={machine} form={form} of={k} budgets={ofKey} put={put} />
        <Refused
          of={save}
          onUse={(u) => put({ models: corrected(modelsOf(form), u).join("\n") })}
          onAnyway={() => submit(null, true)}
          onReload={onReload}
        />
        <div class="row">
          <Button
            kind="main"
            type="submit"
            busy={save.busy}
            changes={`/keys/${k.id}`}
            disabled={!draft.dirty || scopesOf(form).length === 0}
          >
            Save
          </Button>
          {machine.may("viewer") && (
            <Button
              busy={pause.busy}
              changes={`/keys/${k.id}`}
              onClick={() =>
                void pause.run(() =>
                  k.pausedAt
                    ? change({ paused: false }, `Resumed ${keyName(k)}.`)
                    : change({ paused: true }, `Paused ${keyName(k)}. Apps that use it are refused within a minute.`),
                )
              }
            >
              {k.pausedAt ? "Resume" : "Pause"}
            </Button>
          )}
        </div>
        {pause.error && <ErrorBox>{pause.error}</ErrorBox>}
      </form>
      <Networks machine={machine} k={k} />
      <Rotate machine={machine} k={k} own={own} onRotated={onRotated} />
    </Dialog>
  );
}

// Used shows what a key was used for.
function Used({ k }: { k: KeyRow }) {
  const unpriced = k.unpricedAttempts ?? 0;
  const figures: [string, string][] = [
    ["Requests (24 h)", number(k.requestsLastDay)],
    ["Requests in total", number(k.requests)],
    ["Refused", number(k.refused)],
    ["Tokens", number(k.tokens)],
    ["Spent today", spent(k.spentTodayUsd, unpricedIn(k, "yyyy-mm-dd"))],
    ["Spent this month", spent(k.spentMonthUsd, unpricedIn(k, "yyyy-mm"))],
    ["Spent in total", spent(k.spentUsd, unpriced)],
  ];
  return (
    <>
      <p class="muted small">
        Created <Time at={k.createdAt} />. Last used: <Time at={k.lastUsedAt} />.
      </p>
      <dl class="facts small">
        {figures.map(([name, value]) => (
          <Fragment key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </Fragment>
        ))}
      </dl>
      {unpriced > 0 && (
        <p class="muted small">
          {count(unpriced, "attempt")} had no known price when made and {unpriced === 1 ? "is" : "are"} not in these
          amounts.
        </p>
      )}
    </>
  );
}

// overlaps are for how long the present text of a key may stay valid.
const overlaps: [label: string, seconds: number][] = [
  ["1 day", 86_400],
  ["Revoke now", 0],
  ["1 hour", 3600],
  ["7 days", 7 * 86_400],
  ["30 days", 30 * 86_400],
];

// Rotate replaces the text of a key.
function Rotate({
  machine,
  k,
  own,
  onRotated,
}: {
  machine: Machine;
  k: KeyRow;
  own: boolean;
  onRotated: (k: KeyRow) => Promise<void>;
}) {
  const [overlap, setOverlap] = useState(overlaps[0][1]);
  const act = useAction();
  const rotate = () =>
    act.run(async () =>
      onRotated(
        await machine.post<KeyRow>(
          `/keys/${k.id}/rotate`,
          { overlapSeconds: overlap },
          { "if-match": `"${k.generation}"` },
        ),
      ),
    );
  return (
    <section class="stack">
      <h3>Rotate</h3>
      <p class="muted small">You get a new key with the same name, limits and usage.</p>
      {k.earlier && (
        <Notice kind="warn">
          The key before the last rotation{k.earlier.last4 && `, …${k.earlier.last4},`} is valid until{" "}
          <Time at={k.earlier.until} />. Another rotation ends it.
        </Notice>
      )}
      {own && overlap === 0 && (
        <Notice kind="warn">You are signed in with this key. If you revoke it now, rotating signs you out.</Notice>
      )}
      <div class="row end wrap">
        <Field label="Keep the old key working for">
          <select value={String(overlap)} onChange={(e) => setOverlap(Number(e.currentTarget.value))}>
            {overlaps.map(([label, seconds]) => (
              <option key={seconds} value={String(seconds)}>
                {label}
              </option>
            ))}
          </select>
        </Field>
        <Button busy={act.busy} onClick={() => void rotate()}>
          Rotate key
        </Button>
      </div>
      {act.error && <ErrorBox>{act.error}</ErrorBox>}
    </section>
  );
}
