import { Finish } from "../../finish";
import type { Machine } from "../../api";
import type { Budget, KeyRow } from "../../api-types";
import { Code } from "../../code";
import { Dialog, losing } from "../../dialog";
import { useDraft } from "../../draft";
import { ModelNames, Text } from "../../forms";
import { useAction, useLoad } from "../../hooks";
import { keyName } from "../../names";
import { to } from "../../route";
import { Field, Options } from "../../ui";
import { corrected, Refused } from "../../unknown";
import { unitNames } from "./amount";
import { windowNames } from "./windows";

// Editor is the form of a new or a stored budget. The unit and the window of a stored
// one cannot change.
export function Editor({
  machine,
  budget: b,
  keys,
  onDone,
  onReload,
  onClose,
}: {
  machine: Machine;
  budget: Budget;
  keys: KeyRow[];
  onDone: (name: string) => Promise<void>;
  onReload: () => Promise<void>;
  onClose: () => void;
}) {
  const [form, setForm, draft] = useDraft(`budget ${machine.id} ${b.id} ${b.generation}`, {
    name: b.name,
    limit: b.limit ? String(b.limit) : "",
    unit: b.unit,
    window: b.window,
    keyId: b.keyId ?? "",
    models: (b.models ?? []).join("\n"),
    tag: b.tag ?? "",
    tool: b.tool ?? "",
    refuse: b.unpriced === "refuse",
    webhook: b.webhookUrl ?? "",
  });
  const put = (part: Partial<typeof form>) => setForm((f) => ({ ...f, ...part }));
  const act = useAction();
  // The list does not have the key that alerts are signed with.
  const stored = useLoad(async () => (b.id ? machine.get<Budget>(`/budgets/${b.id}`) : b), [machine, b.id]);
  const models = form.models.split(/[\s,]+/).filter(Boolean);
  const submit = (e: Event | null, allowUnknown = false) => {
    e?.preventDefault();
    const body = {
      name: form.name.trim(),
      limit: Number(form.limit),
      keyId: form.keyId || null,
      models,
      tag: form.tag.trim() || null,
      tool: form.tool.trim() || null,
      webhookUrl: form.webhook.trim() || null,
      ...(form.unit === "usd" ? { unpriced: form.refuse ? "refuse" : "pass" } : {}),
      ...(allowUnknown && { allowUnknown }),
      ...(b.id ? {} : { unit: form.unit, window: form.window }),
    };
    void act.run(async () => {
      if (b.id) await machine.put(`/budgets/${b.id}`, body, b.generation);
      else await machine.post("/budgets", body);
      draft.clear();
      await onDone(body.name);
    });
  };
  return (
    <Dialog title={b.id ? `Edit ${b.name}` : "New budget"} ask={losing(draft)} onClose={onClose}>
      <form onSubmit={submit}>
        <Field label="Name" hint="Shown to the caller when a request is blocked.">
          <Text max={100} required value={form.name} onText={(name) => put({ name })} />
        </Field>
        <div class="grid">
          <Field label="Limit">
            <input
              type="number"
              required
              min={form.unit === "usd" ? 0.000001 : 1}
              step={form.unit === "usd" ? "any" : 1}
              value={form.limit}
              onInput={(e) => put({ limit: e.currentTarget.value })}
            />
          </Field>
          <Field label="Unit">
            <select
              value={form.unit}
              disabled={!!b.id}
              onChange={(e) => put({ unit: e.currentTarget.value as Budget["unit"] })}
            >
              <Options of={Object.entries(unitNames)} />
            </select>
          </Field>
          <Field
            label="Resets"
            hint={`At midnight, in the time zone of the settings.${b.id ? "" : " A new budget counts from now on; what was used before is not in it."}`}
          >
            <select
              value={form.window}
              disabled={!!b.id}
              onChange={(e) => put({ window: e.currentTarget.value as Budget["window"] })}
            >
              <Options of={Object.entries(windowNames)} />
            </select>
          </Field>
          <Field label="Key">
            <select value={form.keyId} onChange={(e) => put({ keyId: e.currentTarget.value })}>
              <option value="">All keys</option>
              {keys.map((k) => (
                <option key={k.id} value={k.id}>
                  {keyName(k)}
                </option>
              ))}
            </select>
          </Field>
          <Field label="Tag" hint="For example “project=atlas”. Leave empty for all.">
            <Text max={64} value={form.tag} onText={(tag) => put({ tag })} />
          </Field>
          <Field label="Tool" hint="For example “claude-code”. Leave empty for all.">
            <Text max={40} value={form.tool} onText={(tool) => put({ tool })} />
          </Field>
        </div>
        <Field label="Models" hint="One per line; “openai/*” matches every model of a provider. Leave empty for all.">
          <ModelNames value={form.models} onText={(models) => put({ models })} />
        </Field>
        {form.unit === "usd" && (
          <label class="row tight">
            <input type="checkbox" checked={form.refuse} onChange={(e) => put({ refuse: e.currentTarget.checked })} />
            Refuse models without a known price
          </label>
        )}
        <Field
          label="Webhook"
          hint={
            <>
              We post here at 50%, 80% and 100%. For chats and e-mail see{" "}
              <a href={to(machine.id, "settings", "notifications")}>Notifications</a>.
            </>
          }
        >
          <input
            type="url"
            placeholder="https://"
            value={form.webhook}
            onInput={(e) => put({ webhook: e.currentTarget.value })}
          />
        </Field>
        {stored.data?.webhookSecret && <Code label="Signing secret" text={stored.data.webhookSecret} />}
        <Finish
          of={act}
          action={b.id ? "Save" : "Create budget"}
          changes={`/budgets/${b.id}`}
          draft={draft}
          onCancel={onClose}
        >
          <Refused
            of={act}
            onUse={(u) => put({ models: corrected(models, u).join("\n") })}
            onAnyway={() => submit(null, true)}
            onReload={onReload}
          />
        </Finish>
      </form>
    </Dialog>
  );
}
