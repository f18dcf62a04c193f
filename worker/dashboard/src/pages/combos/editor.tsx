import { useState } from "preact/hooks";
import type { Machine } from "../../api";
import type { Combo } from "../../api-types";
import { Ask } from "../../dialog";
import { useDraft } from "../../draft";
import { useAction } from "../../hooks";
import { kindNames } from "../../kinds";
import { moved, Order } from "../../order";
import { toast } from "../../toast";
import { Restored, Text } from "../../forms";
import { Failed, Section } from "../../layout";
import { Badge, Button, Field, Options } from "../../ui";
import { corrected, Refused, unknownName } from "../../unknown";
import { Candidates, dragType } from "./candidates";
import { Flow } from "./flow";
import type { State } from "./members";
import { Policy } from "./policy";
import { strategies, strategyOf } from "./strategies";

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

// Editor creates or changes a combo; a new one has no id.
export function Editor({
  machine,
  combo,
  others,
  state,
  onDone,
  onReload,
  onClose,
}: {
  machine: Machine;
  combo: Combo;
  others: Combo[];
  state: (member: string) => State | null;
  onDone: (name: string) => Promise<void>;
  onReload: () => Promise<void>;
  onClose: () => void;
}) {
  const [form, setForm, draft] = useDraft(`combo ${machine.id} ${combo.id} ${combo.generation}`, {
    name: combo.name,
    kind: combo.kind || "llm",
    strategy: strategyOf(combo.strategy),
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
  const submit = (e: Event | null, allowUnknown = false) => {
    e?.preventDefault();
    const ofMembers = Object.fromEntries(Object.entries(weights).filter(([m]) => models.includes(m)));
    const body = {
      name: name.trim(),
      kind,
      strategy: strategy || "fallback",
      models,
      weights: ofMembers,
      splitBy,
      on,
      ...(allowUnknown && { allowUnknown }),
    };
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
  const wrongOf = (m: string) =>
    !others.some((o) => o.name === m) && (state(m)?.wrong || (combo.unknown?.includes(m) ? "Not found" : ""));
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
              <Options of={strategies} />
            </select>
          </Field>
          {strategy === "weighted" && (
            <Field label="Sticky by">
              <select value={splitBy} onChange={(e) => put({ splitBy: e.currentTarget.value })}>
                <option value="session">A session</option>
                <option value="key">All requests of an API key</option>
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
            <h3>Models{strategy ? "" : ", tried from top to bottom"}</h3>
            {models.length === 0 ? (
              <p class="muted">No models yet. Add some from the list.</p>
            ) : (
              <Order
                items={models}
                label="Models"
                name={(m) => m}
                keyOf={(m) => m}
                onMove={(a, b) => setModels(moved(models, a, b))}
              >
                {(m) => (
                  <div class="row between">
                    <span>
                      <code>{m}</code> {others.some((o) => o.name === m) && <Badge kind="accent">Combo</Badge>}{" "}
                      {wrongOf(m) && <Badge kind="bad">{wrongOf(m)}</Badge>}
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
        {models.length > 0 && (
          <Flow
            of={{ name: name.trim(), models, strategy, weights, splitBy, on, unknown: combo.unknown }}
            all={others}
            state={state}
          />
        )}
        {unknownName(save.error) ? (
          <Refused
            of={save}
            onUse={(u) => setModels([...new Set(corrected(models, u))])}
            onAnyway={() => submit(null, true)}
          />
        ) : (
          <Failed of={save} reload={onReload} />
        )}
        {asking ? (
          <Ask text="Discard unsaved changes?" action="Discard" onBack={() => setAsking(false)} onConfirm={discard} />
        ) : (
          <div class="row">
            <Button
              kind="main"
              type="submit"
              busy={save.busy}
              changes={`/combos/${combo.id}`}
              disabled={models.length === 0}
            >
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
