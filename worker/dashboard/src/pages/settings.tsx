import { useState } from "preact/hooks";
import type { Machine } from "../api";
import type { PageProps } from "../app";
import { useDraft } from "../drafts";
import { useAction, useLoad } from "../hooks";
import { toast } from "../toast";
import { Button, Failed, Field, Load, Page, Section } from "../ui";
import { Audit } from "./settings/audit";
import { Backup } from "./settings/backup";

interface Values {
  strategy: string;
  firstByteSeconds: number;
  idleSeconds: number;
  embeddingInputType: string;
}

// Settings of a machine, its backup, and the record of what was changed.
export default function Settings({ machine, machineName }: PageProps) {
  const [turn, setTurn] = useState(0);
  return (
    <Page
      title="Settings"
      intro={
        <>
          Of {machineName ? <strong>{machineName}</strong> : "this machine"}, id <code>{machine.id}</code>.
        </>
      }
    >
      <Calls key={turn} machine={machine} />
      <Backup machine={machine} onImport={() => setTurn(turn + 1)} />
      <Audit key={turn} machine={machine} />
    </Page>
  );
}

// Calls are the settings that every call of the machine goes by.
function Calls({ machine }: { machine: Machine }) {
  const loaded = useLoad(() => machine.tagged<Values>("GET", "/settings"), [machine]);
  const [typed, setTyped, draft] = useDraft<Partial<Values>>(`settings ${machine.id}`, {});
  const save = useAction();
  const v = loaded.data && { ...loaded.data.value, ...typed };
  // put keeps what differs from the stored settings.
  const put = (part: Partial<Values>) =>
    setTyped((was) =>
      Object.fromEntries(
        Object.entries({ ...was, ...part }).filter(([k, x]) => x !== loaded.data!.value[k as keyof Values]),
      ),
    );
  const submit = (e: Event) => {
    e.preventDefault();
    void save.run(async () => {
      // Only changed fields are sent: a default may differ by endpoint.
      loaded.set(await machine.tagged<Values>("PATCH", "/settings", typed, loaded.data!.tag));
      draft.clear();
      toast("Saved.");
    });
  };
  return (
    <Section title="Calls" intro="How accounts are chosen, and how long an upstream may take.">
      <Load of={loaded} what="the settings" rows={2}>
        {() =>
          v && (
            <form class="grid wide" onSubmit={submit}>
              {draft.restored && draft.dirty && (
                <p class="muted small full">
                  Your unsaved changes are still here.{" "}
                  <Button kind="link" onClick={draft.clear}>
                    Discard them
                  </Button>
                </p>
              )}
              <Field label="Accounts of one provider" hint="In their order, the next is asked when one fails.">
                <select value={v.strategy} onChange={(e) => put({ strategy: e.currentTarget.value })}>
                  <option value="priority">in their order</option>
                  <option value="round-robin">in turns</option>
                </select>
              </Field>
              <Field label="Embeddings are for" hint="Where a provider asks and the client does not say.">
                <select
                  value={v.embeddingInputType}
                  onChange={(e) => put({ embeddingInputType: e.currentTarget.value })}
                >
                  <option value="document">documents</option>
                  <option value="query">queries</option>
                </select>
              </Field>
              <Field label="Wait for an answer to begin (seconds)">
                <input
                  type="number"
                  required
                  min="1"
                  max="3600"
                  value={v.firstByteSeconds}
                  onInput={(e) => put({ firstByteSeconds: e.currentTarget.valueAsNumber })}
                />
              </Field>
              <Field label="Wait between pieces of an answer (seconds)">
                <input
                  type="number"
                  required
                  min="1"
                  max="3600"
                  value={v.idleSeconds}
                  onInput={(e) => put({ idleSeconds: e.currentTarget.valueAsNumber })}
                />
              </Field>
              {save.error && (
                <div class="full">
                  <Failed of={save} reload={loaded.reload} />
                </div>
              )}
              <div class="full">
                <Button type="submit" kind="main" busy={save.busy}>
                  Save
                </Button>
              </div>
            </form>
          )
        }
      </Load>
    </Section>
  );
}
