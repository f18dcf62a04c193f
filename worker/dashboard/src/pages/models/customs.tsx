import type { Machine } from "../../api";
import type { CustomModel } from "../../api-types";
import { useDraft } from "../../draft";
import { number } from "../../format";
import { useAction, useLoad } from "../../hooks";
import { kindNames, modelKinds } from "../../kinds";
import { toast } from "../../toast";
import { Load, Section } from "../../layout";
import { Badge, Button, Cut, ErrorBox, Field } from "../../ui";
import { useDeletion } from "../../uses";
import { VirtualList } from "../../virtual";

const empty = { id: "", providerAlias: "", type: "llm", contextLength: "", maxTokens: "" };

// Customs lists the custom models, which a provider has but does not list.
export function Customs({ machine, onChange }: { machine: Machine; onChange: () => Promise<void> }) {
  const list = useLoad(() => machine.list<CustomModel>("/models/custom"), [machine]);
  const [typed, setTyped, draft] = useDraft(`custom ${machine.id}`, empty);
  const act = useAction();
  const input = (name: keyof typeof empty) => ({
    value: typed[name],
    onInput: (e: { currentTarget: HTMLInputElement }) => setTyped({ ...typed, [name]: e.currentTarget.value }),
  });
  const add = (e: Event) => {
    e.preventDefault();
    void act.run(async () => {
      const body: Record<string, unknown> = {
        id: typed.id.trim(),
        providerAlias: typed.providerAlias.trim(),
        type: typed.type,
      };
      for (const n of ["contextLength", "maxTokens"] as const) if (typed[n]) body[n] = Number(typed[n]);
      await machine.post("/models/custom", body);
      draft.clear();
      await Promise.all([list.reload(), onChange()]);
    });
  };
  const deletion = useDeletion(machine, act);
  const remove = (m: CustomModel) =>
    deletion.start(`${m.providerAlias}/${m.id}`, async () => {
      const type = m.type ? `&type=${encodeURIComponent(m.type)}` : "";
      await machine.del(
        `/models/custom?providerAlias=${encodeURIComponent(m.providerAlias)}&id=${encodeURIComponent(m.id)}${type}`,
      );
      toast(`Deleted ${m.providerAlias}/${m.id}.`, async () => {
        await machine.post("/models/custom", m);
        await Promise.all([list.reload(), onChange()]);
      });
      await Promise.all([list.reload(), onChange()]);
    });
  return (
    <Section title="Custom models" intro="Models that your provider offers but does not list.">
      <Load of={list} what="custom models" rows={1}>
        {(data) =>
          data.length === 0 ? (
            <p class="muted">No custom models yet.</p>
          ) : (
            <VirtualList rows={data} keyOf={(m) => `${m.providerAlias}/${m.id}/${m.type}`}>
              {(m) => (
                <>
                  <span>
                    <code>
                      <Cut>{`${m.providerAlias}/${m.id}`}</Cut>
                    </code>{" "}
                    <Badge>{kindNames[m.type || "llm"] ?? m.type}</Badge>
                    {m.contextLength ? <small class="muted"> {number(m.contextLength)} tokens of context</small> : null}
                    {m.maxTokens ? <small class="muted"> {number(m.maxTokens)} max output tokens</small> : null}
                  </span>
                  <Button
                    kind="quiet"
                    changes="/models/custom"
                    disabled={act.busy}
                    aria-label={`Delete ${m.providerAlias}/${m.id}`}
                    onClick={() => remove(m)}
                  >
                    Delete
                  </Button>
                </>
              )}
            </VirtualList>
          )
        }
      </Load>
      {deletion.dialog}
      <form class="grid" onSubmit={add}>
        <Field label="Provider alias or prefix">
          <input required autocapitalize="none" spellcheck={false} {...input("providerAlias")} />
        </Field>
        <Field label="Model ID">
          <input required autocapitalize="none" spellcheck={false} {...input("id")} />
        </Field>
        <Field label="Kind">
          <select value={typed.type} onChange={(e) => setTyped({ ...typed, type: e.currentTarget.value })}>
            {modelKinds.map((k) => (
              <option key={k} value={k}>
                {kindNames[k]}
              </option>
            ))}
          </select>
        </Field>
        <Field label="Context (tokens)">
          <input type="number" min="1" {...input("contextLength")} />
        </Field>
        <Field label="Output limit (tokens)">
          <input type="number" min="1" {...input("maxTokens")} />
        </Field>
        <div class="full">
          <Button type="submit" busy={act.busy} changes="/models/custom">
            Add model
          </Button>
        </div>
      </form>
      {act.error && <ErrorBox>{act.error}</ErrorBox>}
    </Section>
  );
}
