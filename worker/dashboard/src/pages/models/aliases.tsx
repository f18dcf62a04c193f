import type { Machine } from "../../api";
import { useDraft } from "../../draft";
import { useAction, useLoad } from "../../hooks";
import { toast } from "../../toast";
import { Load, Section } from "../../layout";
import { Button, Field } from "../../ui";
import { corrected, Refused } from "../../unknown";
import { useDeletion } from "../../uses";
import { VirtualList } from "../../virtual";

// Aliases lists the aliases: short names for models.
export function Aliases({ machine, models }: { machine: Machine; models: string[] }) {
  const list = useLoad(
    async () => (await machine.get<{ aliases: Record<string, string> }>("/models/alias")).aliases,
    [machine],
  );
  const [{ alias, model }, setForm, draft] = useDraft(`alias ${machine.id}`, { alias: "", model: "" });
  const act = useAction();
  const put = (part: Partial<{ alias: string; model: string }>) => setForm((f) => ({ ...f, ...part }));
  const add = (e: Event | null, allowUnknown = false) => {
    e?.preventDefault();
    void act.run(async () => {
      const saved = await machine.put<{ warning?: string }>("/models/alias", {
        alias: alias.trim(),
        model: model.trim(),
        ...(allowUnknown && { allowUnknown }),
      });
      if (saved.warning) toast(`${saved.warning}.`);
      draft.clear();
      await list.reload();
    });
  };
  const deletion = useDeletion(machine, act);
  const remove = (name: string, model: string) =>
    deletion.start(name, async () => {
      await machine.del(`/models/alias?alias=${encodeURIComponent(name)}`);
      toast(`Deleted ${name}.`, async () => {
        await machine.put("/models/alias", { alias: name, model, allowUnknown: true });
        await list.reload();
      });
      await list.reload();
    });
  return (
    <Section title="Aliases" intro="Short names for models. Clients can use an alias as the model.">
      <Load of={list} what="aliases" rows={1}>
        {(aliases) =>
          Object.keys(aliases).length === 0 ? (
            <p class="muted">No aliases yet.</p>
          ) : (
            <VirtualList rows={Object.entries(aliases)} keyOf={([name]) => name}>
              {([name, of]) => (
                <>
                  <span class="one" title={`${name} points to ${of}`}>
                    <code>
                      <bdi>{name}</bdi>
                    </code>{" "}
                    <span class="muted">points to</span>{" "}
                    <code>
                      <bdi>{of}</bdi>
                    </code>
                  </span>
                  <Button
                    kind="quiet"
                    changes="/models/alias"
                    disabled={act.busy}
                    aria-label={`Delete alias ${name}`}
                    onClick={() => remove(name, of)}
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
      <form class="row wrap end" onSubmit={add}>
        <Field label="Alias">
          <input
            required
            autocapitalize="none"
            spellcheck={false}
            value={alias}
            onInput={(e) => put({ alias: e.currentTarget.value })}
          />
        </Field>
        <Field label="Target model">
          <input
            required
            list="alias-models"
            autocapitalize="none"
            spellcheck={false}
            placeholder="e.g. openai/gpt-6-luna"
            value={model}
            onInput={(e) => put({ model: e.currentTarget.value })}
          />
        </Field>
        <datalist id="alias-models">
          {models.slice(0, 500).map((m) => (
            <option key={m} value={m} />
          ))}
        </datalist>
        <Button type="submit" busy={act.busy} changes="/models/alias">
          Add alias
        </Button>
      </form>
      <Refused
        of={act}
        onUse={(u) => put({ model: corrected([model.trim()], u)[0] })}
        onAnyway={() => add(null, true)}
      />
    </Section>
  );
}
