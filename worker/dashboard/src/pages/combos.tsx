import { useMemo, useState } from "preact/hooks";
import type { Machine } from "../api";
import type { PageProps } from "../app";
import { Dialog } from "../dialog";
import { useDraft, useKept } from "../drafts";
import { useAction, useLoad } from "../hooks";
import { moved, Order } from "../order";
import { toast } from "../toast";
import { Badge, Button, Empty, ErrorBox, Failed, Field, Load, Page, Search, Section, Text } from "../ui";
import { kindNames, servedBy, type ConnectionRow, type ProviderRow } from "../connections";
import { ask, attemptsText, refusal, served, type Served } from "../client";

interface Combo {
  id: string;
  name: string;
  kind?: string;
  models: string[];
  strategy?: string;
  generation: number;
}

// Combos are names for several models: one is tried after the other, or they
// take turns. A combo may have combos among its members.
export default function Combos({ machine }: PageProps) {
  const list = useLoad(async () => (await machine.get<{ data: Combo[] }>("/combos")).data, [machine]);
  // A form that was left reopens with its unsaved input.
  const [edited, edit] = useKept<Combo | null>(`combo ${machine.id}`, null);
  const known = useLoad(async () => {
    const [conns, aliases] = await Promise.all([
      machine.get<{ data: ConnectionRow[] }>("/providers"),
      machine.get<{ aliases: Record<string, string> }>("/models/alias"),
    ]);
    const catalog = await machine.get<{ data: ProviderRow[] }>("/catalog/providers");
    return { conns: conns.data, aliases: Object.keys(aliases.aliases), catalog: catalog.data };
  }, [machine]);
  const fresh: Combo = { id: "", name: "", models: [], generation: 0 };
  const done = async (name: string) => {
    edit(null);
    toast(`${name} is saved.`);
    await list.reload();
  };
  // What is edited as it is stored now; nothing where it was deleted.
  const anew = async () => {
    await list.reload();
    edit((await machine.get<{ data: Combo[] }>("/combos")).data.find((c) => c.id === edited!.id) ?? null);
  };
  return (
    <Page
      title="Combos"
      intro="One name for several models."
      actions={
        !edited && (
          <Button kind="main" icon="plus" onClick={() => edit(fresh)}>
            New combo
          </Button>
        )
      }
    >
      {edited && (
        <Editor
          key={`${edited.id} ${edited.generation}`}
          machine={machine}
          combo={edited}
          others={(list.data ?? []).filter((c) => c.id !== edited.id)}
          onDone={done}
          onReload={anew}
          onClose={() => edit(null)}
        />
      )}
      <Load of={list} what="the combos">
        {(all) =>
          all.length === 0 ? (
            !edited && (
              <Empty title="No combos yet">
                <p>
                  A combo tries its models in order until one answers, or lets them take turns. Clients call it by its
                  name.
                </p>
                <Button kind="main" onClick={() => edit(fresh)}>
                  Make the first one
                </Button>
              </Empty>
            )
          ) : (
            <div class="stack">
              {all.map((c) => (
                <Item
                  key={c.id}
                  machine={machine}
                  c={c}
                  gone={(m) =>
                    !!known.data &&
                    !all.some((o) => o.name === m) &&
                    !known.data.aliases.includes(m) &&
                    !servedBy(m, known.data.conns, known.data.catalog)
                  }
                  onEdit={() => edit(c)}
                  onChange={list.reload}
                />
              ))}
            </div>
          )
        }
      </Load>
    </Page>
  );
}

const strategyText = (c: Combo) => (c.strategy === "round-robin" ? "round-robin" : "by priority");

function Item({
  machine,
  c,
  gone,
  onEdit,
  onChange,
}: {
  machine: Machine;
  c: Combo;
  gone: (member: string) => boolean;
  onEdit: () => void;
  onChange: () => Promise<void>;
}) {
  const [asking, setAsking] = useState(false);
  const remove = useAction();
  const del = () =>
    remove.run(async () => {
      await machine.del(`/combos/${c.id}`);
      setAsking(false);
      toast(`${c.name} is deleted.`);
      await onChange();
    });
  const actions = (
    <>
      <Button onClick={onEdit} aria-label={`Edit ${c.name}`}>
        Edit
      </Button>
      <Button kind="quiet" onClick={() => setAsking(true)} aria-label={`Delete ${c.name}`}>
        Delete
      </Button>
    </>
  );
  return (
    <Section
      title={c.name}
      actions={actions}
      intro={
        <>
          {c.models.length === 1 ? "1 model" : `${c.models.length} models`}, {strategyText(c)}
          {c.kind && (
            <>
              {" "}
              · <Badge>{kindNames[c.kind] ?? c.kind}</Badge>
            </>
          )}
        </>
      }
    >
      <ol class="members">
        {c.models.map((m, i) => (
          <li key={i}>
            <code>{m}</code> {gone(m) && <Badge kind="bad">no connection</Badge>}
          </li>
        ))}
      </ol>
      <TryIt machine={machine} model={c.name} kind={c.kind ?? "llm"} />
      {asking && (
        <Dialog title={`Delete ${c.name}?`} onClose={() => setAsking(false)}>
          <p>Requests to this combo will fail.</p>
          {remove.error && <ErrorBox>{remove.error}</ErrorBox>}
          <div class="row">
            <Button kind="danger" busy={remove.busy} onClick={() => void del()}>
              Delete the combo
            </Button>
            <Button onClick={() => setAsking(false)}>Cancel</Button>
          </div>
        </Dialog>
      )}
    </Section>
  );
}

// calls are what "try it" sends, by kind.
const calls: Record<string, [path: string, body: (model: string) => object]> = {
  llm: [
    "/v1/chat/completions",
    (model) => ({ model, messages: [{ role: "user", content: "Say hello in one word." }], max_completion_tokens: 64 }),
  ],
  embedding: ["/v1/embeddings", (model) => ({ model, input: "hello" })],
  rerank: ["/v1/rerank", (model) => ({ model, query: "hello", documents: ["hello", "goodbye"] })],
  webSearch: ["/v1/search", (model) => ({ model, query: "hello", max_results: 1 })],
};

function TryIt({ machine, model, kind }: { machine: Machine; model: string; kind: string }) {
  const [result, set] = useState<Served | null>(null);
  const run = useAction();
  const call = calls[kind];
  if (!call) return null;
  const go = () =>
    run.run(async () => {
      set(null);
      const res = await ask(machine, call[0], call[1](model));
      if (!res.ok) throw await refusal(res);
      await res.text();
      set(served(res));
    });
  return (
    <div class="row wrap">
      <Button busy={run.busy} aria-label={`Try it: ${model}`} onClick={() => void go()}>
        Try it
      </Button>
      <span role="status" class={run.error ? "small bad" : "small"}>
        {run.error ||
          (result && (
            <>
              <span class="good">Answered</span> by <code>{result.model}</code>, {attemptsText(result)}.
            </>
          ))}
      </span>
    </div>
  );
}

const strategies = [
  ["", "Fallback: by priority"],
  ["round-robin", "Round-robin"],
];

// kindsOf are the kinds a combo may be of, and the segment of their list.
const kindsOf: [kind: string, segment: string][] = [
  ["llm", "llm"],
  ["embedding", "embedding"],
  ["image", "image"],
  ["tts", "tts"],
  ["stt", "stt"],
  ["imageToText", "image-to-text"],
  ["video", "video"],
  ["rerank", "rerank"],
  ["webSearch", "web"],
  ["webFetch", "web"],
];

function Editor({
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
    strategy: combo.strategy === "fallback" ? "" : (combo.strategy ?? ""),
    models: combo.models,
  });
  const { name, kind, strategy, models } = form;
  const put = (part: Partial<typeof form>) => setForm((f) => ({ ...f, ...part }));
  const setModels = (models: string[]) => put({ models });
  const [asking, setAsking] = useState(false);
  const save = useAction();
  const store = (e: Event) => {
    e.preventDefault();
    const body = { name: name.trim(), kind, strategy: strategy || "fallback", models };
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
  // A model of the list is dropped here; the members' own order is another drag.
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
      <form onSubmit={store}>
        {draft.restored && <p class="muted small">Your unsaved changes are still here.</p>}
        <div class="grid">
          <Field label="Name" hint="Clients send it as the model.">
            <Text required name max={128} value={name} onText={(name) => put({ name })} />
          </Field>
          <Field label="Kind">
            <select value={kind} onChange={(e) => put({ kind: e.currentTarget.value })}>
              {kindsOf.map(([k]) => (
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
              <p class="muted">None yet. Add models from the list.</p>
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
                      <code>{m}</code> {others.some((o) => o.name === m) && <Badge kind="accent">combo</Badge>}
                    </span>
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
          <Choice machine={machine} kind={kind} others={others} taken={models} onAdd={add} />
        </div>
        <Failed
          of={save}
          reload={async () => {
            draft.clear();
            await onReload();
          }}
        />
        {asking ? (
          <div class="notice warn" role="alert">
            <div>Discard your changes?</div>
            <div class="row">
              <Button onClick={() => setAsking(false)}>Back</Button>
              <Button kind="danger" onClick={discard}>
                Discard
              </Button>
            </div>
          </div>
        ) : (
          <div class="row">
            <Button kind="main" type="submit" busy={save.busy} disabled={models.length === 0}>
              Save the combo
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

const mostShown = 60,
  most = 16; // models of the list, members
const dragType = "application/x-weir-model";

// Choice lists what may be added: models of the kind, and the other combos. One
// is added by its button, or dragged onto the members.
function Choice({
  machine,
  kind,
  others,
  taken,
  onAdd,
}: {
  machine: Machine;
  kind: string;
  others: Combo[];
  taken: string[];
  onAdd: (id: string) => void;
}) {
  const segment = kindsOf.find(([k]) => k === kind)?.[1] ?? "llm";
  const list = useLoad(
    async () =>
      (await machine.get<{ data: { id: string; kind?: string; owned_by: string }[] }>(`/models/list/${segment}`)).data,
    [machine, segment],
  );
  const [search, setSearch] = useState("");
  const all = useMemo(
    () => [
      ...others.map((o) => ({ id: o.name, combo: true })),
      ...(list.data ?? [])
        .filter((m) => m.owned_by !== "combo" && (segment !== "web" || !m.kind || m.kind === kind))
        .map((m) => ({ id: m.id, combo: false })),
    ],
    [list.data, others, kind],
  );
  const wanted = search.trim().toLowerCase();
  const shown = all.filter((m) => m.id.toLowerCase().includes(wanted));
  return (
    <div class="stack">
      <h3>Add a member</h3>
      <Search label="Search models and combos" value={search} onInput={setSearch} />
      {list.error && <ErrorBox retry={list.reload}>{list.error}</ErrorBox>}
      <ul class="pick" aria-label="Models and combos" tabIndex={0}>
        {shown.slice(0, mostShown).map((m) => {
          const is = taken.includes(m.id),
            word = is ? "Added" : "Add";
          return (
            <li
              key={m.id + m.combo}
              class="row between"
              draggable
              onDragStart={(e) => e.dataTransfer?.setData(dragType, m.id)}
            >
              <span>
                <code>{m.id}</code> {m.combo && <Badge kind="accent">combo</Badge>}
              </span>
              <Button
                kind={is ? "quiet" : undefined}
                icon={is ? "check" : "plus"}
                aria-label={`${word} ${m.id}`}
                disabled={!is && taken.length >= most}
                onClick={() => onAdd(m.id)}
              >
                {word}
              </Button>
            </li>
          );
        })}
      </ul>
      {!list.loading && shown.length === 0 && (
        <p class="muted">{wanted ? "Nothing matches." : "No models of this kind: connect a provider that has some."}</p>
      )}
      {shown.length > mostShown && <p class="muted small">{shown.length - mostShown} more: search to see them.</p>}
    </div>
  );
}
