import { useState } from "preact/hooks";
import { useAddressed } from "../addressed";
import type { Machine } from "../api";
import type { Combo } from "../api-types";
import { Confirm } from "../confirm";
import { count } from "../format";
import { useAction, useLoad } from "../hooks";
import { kindNames } from "../kinds";
import type { PageProps } from "../page";
import { toast } from "../toast";
import { Load, Page, Section } from "../layout";
import { Badge, Button, Empty } from "../ui";
import { UsedBy, usesOf } from "../uses";
import "./combos/combos.css";
import { Editor } from "./combos/editor";
import { Flow } from "./combos/flow";
import { loadKnown, type State, stateOf } from "./combos/members";
import { strategyName } from "./combos/strategies";
import { useTry } from "./combos/try";

const blank: Combo = { id: "", name: "", models: [], generation: 0 };

// Combos lists the combos: names for several models, which are tried in order or
// round-robin. A member may be another combo.
export default function Combos({ machine, args: [asked] }: PageProps) {
  const list = useLoad(() => machine.list<Combo>("/combos"), [machine]);
  const [edited, edit] = useAddressed(machine, "combos", asked, list.data, blank);
  const known = useLoad(() => loadKnown(machine), [machine]);
  const state = (member: string) => known.data && stateOf(known.data, member);
  const done = async (name: string) => {
    edit(null);
    toast(`Saved ${name}.`);
    await list.reload();
  };
  // Edits the stored state of the combo; closes the editor if it was deleted.
  const editStored = async () => {
    await list.reload();
    edit((await machine.list<Combo>("/combos")).find((c) => c.id === edited?.id) ?? null);
  };
  return (
    <Page
      title="Combos"
      intro="One name for several models: when one fails, the next is tried."
      actions={
        !edited && (
          <Button kind="main" icon="plus" onClick={() => edit(blank)}>
            New combo
          </Button>
        )
      }
    >
      {edited && (
        <Editor
          key={edited.id}
          machine={machine}
          combo={edited}
          others={(list.data ?? []).filter((c) => c.id !== edited.id)}
          state={state}
          onDone={done}
          onReload={editStored}
          onClose={() => edit(null)}
        />
      )}
      <Load of={list} what="combos">
        {(all) =>
          all.length === 0 ? (
            !edited && (
              <Empty title="No combos yet">
                <p>
                  A combo tries its models in order until one answers, or distributes requests round-robin. Clients use
                  its name as the model.
                </p>
                <Button kind="main" onClick={() => edit(blank)}>
                  Create a combo
                </Button>
              </Empty>
            )
          ) : (
            <div class="stack">
              {all.map(
                (c) =>
                  c.id !== edited?.id && (
                    <Item
                      key={c.id}
                      machine={machine}
                      c={c}
                      all={all}
                      state={state}
                      onEdit={() => edit(c)}
                      onChange={list.reload}
                    />
                  ),
              )}
            </div>
          )
        }
      </Load>
    </Page>
  );
}

function Item({
  machine,
  c,
  all,
  state,
  onEdit,
  onChange,
}: {
  machine: Machine;
  c: Combo;
  all: Combo[];
  state: (member: string) => State | null;
  onEdit: () => void;
  onChange: () => Promise<void>;
}) {
  const [asking, setAsking] = useState(false);
  const uses = useLoad(async () => (asking ? usesOf(machine, c.name) : null), [machine, c.name, asking]);
  const remove = useAction();
  const doRemove = () =>
    remove.run(async () => {
      await machine.del(`/combos/${c.id}`);
      setAsking(false);
      const { name, kind, models, strategy, weights, splitBy, on } = c;
      toast(`Deleted ${name}.`, async () => {
        await machine.post("/combos", { name, kind, models, strategy, weights, splitBy, on, allowUnknown: true });
        await onChange();
      });
      await onChange();
    });
  const trial = useTry(machine, c.name, c.kind ?? "llm");
  const actions = (
    <>
      {trial.button}
      <Button onClick={onEdit} aria-label={`Edit ${c.name}`}>
        Edit
      </Button>
      <Button kind="quiet" changes={`/combos/${c.id}`} onClick={() => setAsking(true)} aria-label={`Delete ${c.name}`}>
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
          {count(c.models.length, "model")}, {strategyName(c.strategy)}
          {c.kind && (
            <>
              {" "}
              · <Badge>{kindNames[c.kind] ?? c.kind}</Badge>
            </>
          )}
        </>
      }
    >
      <Flow of={c} all={all} state={state} />
      {trial.said}
      {asking && (
        <Confirm
          title={`Delete ${c.name}?`}
          action="Delete combo"
          of={remove}
          onDo={() => void doRemove()}
          onClose={() => setAsking(false)}
        >
          <p>Requests to this combo will fail.</p>
          {uses.data && <UsedBy uses={uses.data} />}
          {uses.error && <p class="muted">Couldn’t load what uses this combo: {uses.error}</p>}
        </Confirm>
      )}
    </Section>
  );
}
