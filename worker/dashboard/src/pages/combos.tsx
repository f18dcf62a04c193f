import { useState } from "preact/hooks";
import type { Machine } from "../api";
import type { Combo, ConnectionRow, ProviderRow } from "../api-types";
import { servedBy } from "../connections";
import { Dialog } from "../dialog";
import { useMemoryState } from "../drafts";
import { count } from "../format";
import { useAction, useLoad } from "../hooks";
import { kindNames } from "../kinds";
import type { PageProps } from "../page";
import { toast } from "../toast";
import { Load, Page, Section } from "../layout";
import { Badge, Button, Empty, ErrorBox } from "../ui";
import { Editor } from "./combos/editor";
import { TryIt } from "./combos/try";

// Combos lists the combos: names for several models, which are tried in order or
// round-robin. A member may be another combo.
export default function Combos({ machine }: PageProps) {
  const list = useLoad(() => machine.list<Combo>("/combos"), [machine]);
  // An editor that was left reopens with its unsaved input.
  const [edited, edit] = useMemoryState<Combo | null>(`combo ${machine.id}`, null);
  const known = useLoad(async () => {
    const [conns, { aliases }, catalog] = await Promise.all([
      machine.list<ConnectionRow>("/providers"),
      machine.get<{ aliases: Record<string, string> }>("/models/alias"),
      machine.list<ProviderRow>("/catalog/providers"),
    ]);
    return { conns, aliases: Object.keys(aliases), catalog };
  }, [machine]);
  const blank: Combo = { id: "", name: "", models: [], generation: 0 };
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
      intro="One name for several models, with fallback or round-robin."
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
          key={`${edited.id} ${edited.generation}`}
          machine={machine}
          combo={edited}
          others={(list.data ?? []).filter((c) => c.id !== edited.id)}
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
              {all.map((c) => (
                <Item
                  key={c.id}
                  machine={machine}
                  c={c}
                  unserved={(m) =>
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

function Item({
  machine,
  c,
  unserved,
  onEdit,
  onChange,
}: {
  machine: Machine;
  c: Combo;
  /** reports whether no connection serves a member */
  unserved: (member: string) => boolean;
  onEdit: () => void;
  onChange: () => Promise<void>;
}) {
  const [asking, setAsking] = useState(false);
  const remove = useAction();
  const doRemove = () =>
    remove.run(async () => {
      await machine.del(`/combos/${c.id}`);
      setAsking(false);
      toast(`Deleted ${c.name}.`);
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
          {count(c.models.length, "model")}, {!c.strategy || c.strategy === "fallback" ? "by priority" : c.strategy}
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
          <li key={`${i} ${m}`}>
            <code>{m}</code> {unserved(m) && <Badge kind="bad">No connection</Badge>}
          </li>
        ))}
      </ol>
      <TryIt machine={machine} model={c.name} kind={c.kind ?? "llm"} />
      {asking && (
        <Dialog title={`Delete ${c.name}?`} onClose={() => setAsking(false)}>
          <p>Requests to this combo will fail.</p>
          {remove.error && <ErrorBox>{remove.error}</ErrorBox>}
          <div class="row">
            <Button kind="danger" busy={remove.busy} onClick={() => void doRemove()}>
              Delete combo
            </Button>
            <Button onClick={() => setAsking(false)}>Cancel</Button>
          </div>
        </Dialog>
      )}
    </Section>
  );
}
