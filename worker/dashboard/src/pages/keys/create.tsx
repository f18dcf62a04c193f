import type { Machine } from "../../api";
import type { KeyRow } from "../../api-types";
import { Dialog, losing, shownOnce } from "../../dialog";
import { useDraft } from "../../drafts";
import { useAction, useLoad } from "../../hooks";
import { Code } from "../../code";
import { Text } from "../../forms";
import { Button, ErrorBox, Field, Notice } from "../../ui";
import { Snippets } from "./snippets";

// lifetimes are the choices of when the key expires.
const lifetimes: [label: string, ms: number][] = [
  ["Never", 0],
  ["In 1 hour", 3_600_000],
  ["In 1 day", 86_400_000],
  ["In 30 days", 30 * 86_400_000],
  ["In 90 days", 90 * 86_400_000],
  ["In 1 year", 365 * 86_400_000],
];

// Create is the form of a new key.
export function Create({
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
  const known = useLoad(() => machine.modelIds("llm"), [machine]);
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
      const created = await machine.post<KeyRow>("/keys", body);
      draft.clear();
      await onDone(created);
    });
  };
  return (
    <Dialog title="New key" ask={losing(draft)} onClose={onClose}>
      <form onSubmit={submit}>
        <Field label="Name" hint="Label, e.g. “Laptop” or “Production”.">
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
            Manage this machine (providers, keys and everything else in this dashboard)
          </label>
          {manage && (
            <label class="row tight">
              <input type="checkbox" checked={exports} onChange={(e) => put({ exports: e.currentTarget.checked })} />
              Export the machine’s credentials
            </label>
          )}
        </fieldset>
        <Field label="Allowed models" hint="One per line; combo names work too. Leave empty to allow all.">
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
          <Field label="Requests per minute" hint="Leave empty for no limit.">
            <input
              type="number"
              min={1}
              max={1_000_000}
              value={rpm}
              onInput={(e) => put({ rpm: e.currentTarget.value })}
            />
          </Field>
          <Field label="Requests per day" hint="Days start at 00:00 UTC.">
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
              {lifetimes.map(([label, ms]) => (
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

// Created shows a new key, which cannot be shown again.
export function Created({ machine, k, onClose }: { machine: Machine; k: KeyRow; onClose: () => void }) {
  return (
    <Dialog title="Key created" wide ask={shownOnce} onClose={onClose}>
      <Notice kind="warn">Copy your API key now. You won’t see it again.</Notice>
      <Code label="API key" text={k.apiKey ?? ""} />
      {k.scopes.includes("data") && (
        <>
          <h3>Use the key</h3>
          <Snippets machine={machine} apiKey={k.apiKey} />
        </>
      )}
      <Button kind="main" onClick={onClose}>
        Done
      </Button>
    </Dialog>
  );
}
