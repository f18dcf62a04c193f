import { useState } from "preact/hooks";
import type { Machine } from "../../api";
import type { Combo } from "../../api-types";
import { Ask } from "../../dialog";
import { useDraft } from "../../drafts";
import { useAction } from "../../hooks";
import { kindNames } from "../../kinds";
import { moved, Order } from "../../order";
import { toast } from "../../toast";
import { Restored, Text } from "../../forms";
import { Failed, Section } from "../../layout";
import { Badge, Button, Field } from "../../ui";
import { Candidates, dragType } from "./candidates";

const kinds = [
  "llm",
  "embedding",
  "image",
  "tts",
  "stt",
  "imageToText",
  "video",
  "rerank",
  "webSearch",
  "webFetch",
] as const;

const strategies = [
  ["", "Fallback (by priority)"],
  ["round-robin", "Round-robin"],
  ["affinity", "Affinity (a session stays)"],
  ["weighted", "Weighted (canary)"],
  ["cheapest", "Cheapest"],
  ["fastest", "Fastest"],
  ["least-busy", "Least busy"],
];

// failures are the classes of failures of a member, with what holds by default.
const failures = [
  ["limit", "Rate limit or no credit", "next"],
  ["unavailable", "Not available", "next"],
  ["context_length", "Request too long", "next"],
  ["model_gone", "Model does not exist", "next"],
  ["content_filter", "Content filtered", "as other refusals"],
  ["any_4xx", "Other refusals (4xx)", "stop"],
] as const;

const actions = { next: "try the next member", stop: "return the error", "as other refusals": "as other refusals" };

type PolicyOf = NonNullable<Combo["on"]>;

// Policy edits which failures of a member continue with the next one.
function Policy({ on, onChange }: { on: PolicyOf; onChange: (on: PolicyOf) => void }) {
  const set = (name: string, value: string) => {
    const { [name]: _, ...others } = on;
    onChange(value ? { ...others, [name]: value as "next" | "stop" } : others);
  };
  return (
    <details open={Object.keys(on).length > 0}>
      <summary>When a member fails</summary>
      <div class="grid">
        {failures.map(([name, label, byDefault]) => (
          <Field key={name} label={label}>
            <select value={on[name] ?? ""} onChange={(e) => set(name, e.currentTarget.value)}>
              <option value="">Default: {actions[byDefault]}</option>
              <option value="next">Try the next member</option>
              <option value="stop">Return the error</option>
            </select>
          </Field>
        ))}
      </div>
    </details>
  );
}

// Editor creates or changes a combo; a new one has no id.
export function Editor({
  machine,
  combo,
  others,
  onDone,
  onReload,
  onClose,
}: {
  machine: Machine;
  combo: Combo;
  others: Combo[];
  onDone: (name: string) => Promise<void>;
  onReload: () => Promise<void>;
  onClose: () => void;
}) {
  const [form, setForm, draft] = useDraft(`combo ${machine.id} ${combo.id} ${combo.generation}`, {
    name: combo.name,
    kind: combo.kind || "llm",
    strategy: combo.strategy === "fallback" || combo.strategy === "priority" ? "" : (combo.strategy ?? ""),
    models: combo.models,
    weights: combo.weights ?? {},
    splitBy: combo.splitBy || "session",
    on: combo.on ?? {},
  });
  const { name, kind, strategy, models, weights, splitBy, on } = form;
  const put = (part: Partial<typeof form>) => setForm((f) => ({ ...f, ...part }));
  const setModels = (models: string[]) => put({ models });
  const [asking, setAsking] = useState(false);
  const save = useAction();
  const submit = (e: Event) => {
    e.preventDefault();
    const ofMembers = Object.fromEntries(Object.entries(weights).filter(([m]) => models.includes(m)));
    const body = { name: name.trim(), kind, strategy: strategy || "fallback", models, weights: ofMembers, splitBy, on };
    void save.run(async () => {
      if (combo.id) await machine.put(`/combos/${combo.id}`, body, combo.generation);
      else await machine.post("/combos", body);
      draft.clear();
      await onDone(body.name);
    });
  };
  const discard = () => {
    draft.clear();
    onClose();
  };
  const add = (id: string) => {
    if (models.includes(id)) toast(`${id} is already in the combo.`);
    else setModels([...models, id]);
  };
  // Models of the list can be dropped here. Reordering members is a separate drag.
  const [over, setOver] = useState(false);
  const dragged = (e: DragEvent) => {
    if (e.dataTransfer?.types.includes(dragType)) {
      e.preventDefault();
      setOver(true);
    }
  };
  const dropped = (e: DragEvent) => {
    setOver(false);
    const id = e.dataTransfer?.getData(dragType);
    if (id) {
      e.preventDefault();
      add(id);
    }
  };
  return (
    <Section title={combo.id ? `Edit ${combo.name}` : "New combo"}>
      <form onSubmit={submit}>
        <Restored draft={draft} />
        <div class="grid">
          <Field label="Name" hint="Clients use it as the model.">
            <Text required name max={128} value={name} onText={(name) => put({ name })} />
          </Field>
          <Field label="Kind">
            <select value={kind} onChange={(e) => put({ kind: e.currentTarget.value })}>
              {kinds.map((k) => (
                <option key={k} value={k}>
                  {kindNames[k]}
                </option>
              ))}
            </select>
          </Field>
          <Field label="Strategy">
            <select value={strategy} onChange={(e) => put({ strategy: e.currentTarget.value })}>
              {strategies.map(([k, text]) => (
                <option key={k} value={k}>
                  {text}
                </option>
              ))}
            </select>
          </Field>
          {strategy === "weighted" && (
            <Field label="Keep together" hint="Calls that stay with one member.">
              <select value={splitBy} onChange={(e) => put({ splitBy: e.currentTarget.value })}>
                <option value="session">A session</option>
                <option value="key">All calls of an API key</option>
              </select>
            </Field>
          )}
        </div>
        <div class="build">
          <div
            class={over ? "stack drop over" : "stack drop"}
            onDragOver={dragged}
            onDragLeave={() => setOver(false)}
            onDrop={dropped}
          >
            <h3>Members{strategy ? "" : ", tried from top to bottom"}</h3>
            {models.length === 0 ? (
              <p class="muted">No members yet. Add models from the list.</p>
            ) : (
              <Order
                items={models}
                label="Members"
                name={(m) => m}
                keyOf={(m) => m}
                onMove={(a, b) => setModels(moved(models, a, b))}
              >
                {(m) => (
                  <div class="row between">
                    <span>
                      <code>{m}</code> {others.some((o) => o.name === m) && <Badge kind="accent">Combo</Badge>}
                    </span>
                    {strategy === "weighted" && (
                      <input
                        type="number"
                        min={1}
                        max={1000}
                        aria-label={`Weight of ${m}`}
                        value={weights[m] ?? 1}
                        onInput={(e) => put({ weights: { ...weights, [m]: e.currentTarget.valueAsNumber || 1 } })}
                      />
                    )}
                    <Button
                      kind="quiet"
                      icon="close"
                      aria-label={`Remove ${m}`}
                      onClick={() => setModels(models.filter((x) => x !== m))}
                    />
                  </div>
                )}
              </Order>
            )}
          </div>
          <Candidates machine={machine} kind={kind} others={others} members={models} onAdd={add} />
        </div>
        <Policy on={on} onChange={(on) => put({ on })} />
        <Failed
          of={save}
          reload={async () => {
            draft.clear();
            await onReload();
          }}
        />
        {asking ? (
          <Ask text="Discard unsaved changes?" action="Discard" onBack={() => setAsking(false)} onConfirm={discard} />
        ) : (
          <div class="row">
            <Button kind="main" type="submit" busy={save.busy} disabled={models.length === 0}>
              Save combo
            </Button>
            <Button
              onClick={() => {
                if (draft.dirty) setAsking(true);
                else onClose();
              }}
            >
              Cancel
            </Button>
          </div>
        )}
      </form>
    </Section>
  );
}
