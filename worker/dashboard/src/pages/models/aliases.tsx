import { useState } from "preact/hooks";
import { ApiError, type Machine } from "../../api";
import { useDraft } from "../../drafts";
import { useAction, useLoad } from "../../hooks";
import { toast } from "../../toast";
import { Load, Section } from "../../layout";
import { Button, ErrorBox, Field } from "../../ui";

// Aliases lists the aliases: short names for models.
export function Aliases({ machine, models }: { machine: Machine; models: string[] }) {
  const list = useLoad(
    async () => (await machine.get<{ aliases: Record<string, string> }>("/models/alias")).aliases,
    [machine],
  );
  const [{ alias, model }, setForm, draft] = useDraft(`alias ${machine.id}`, { alias: "", model: "" });
  const [anyway, setAnyway] = useState(false);
  const act = useAction();
  const put = (part: Partial<{ alias: string; model: string }>) => {
    setAnyway(false);
    setForm((f) => ({ ...f, ...part }));
  };
  const add = (e: Event | null, allowUnknown = false) => {
    e?.preventDefault();
    void act.run(async () => {
      try {
        const saved = await machine.put<{ warning?: string }>("/models/alias", {
          alias: alias.trim(),
          model: model.trim(),
          ...(allowUnknown && { allowUnknown }),
        });
        if (saved.warning) toast(`${saved.warning}.`);
      } catch (e) {
        setAnyway(e instanceof ApiError && e.param === "model" && e.message.includes("allowUnknown"));
        throw e;
      }
      draft.clear();
      setAnyway(false);
      await list.reload();
    });
  };
  const remove = (name: string) =>
    act.run(async () => {
      await machine.del(`/models/alias?alias=${encodeURIComponent(name)}`);
      await list.reload();
    });
  return (
    <Section title="Aliases" intro="Short names for models. Clients can use an alias as the model.">
      <Load of={list} what="aliases" rows={1}>
        {(aliases) =>
          Object.keys(aliases).length === 0 ? (
            <p class="muted">No aliases yet.</p>
          ) : (
            <ul class="plain">
              {Object.entries(aliases).map(([name, of]) => (
                <li key={name} class="row between">
                  <span>
                    <code>{name}</code> <span class="muted">points to</span> <code>{of}</code>
                  </span>
                  <Button
                    kind="quiet"
                    disabled={act.busy}
                    aria-label={`Delete alias ${name}`}
                    onClick={() => void remove(name)}
                  >
                    Delete
                  </Button>
                </li>
              ))}
            </ul>
          )
        }
      </Load>
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
            placeholder="openai/gpt-5-mini"
            value={model}
            onInput={(e) => put({ model: e.currentTarget.value })}
          />
        </Field>
        <datalist id="alias-models">
          {models.slice(0, 500).map((m) => (
            <option key={m} value={m} />
          ))}
        </datalist>
        <Button type="submit" busy={act.busy}>
          Add alias
        </Button>
      </form>
      {act.error && (
        <ErrorBox retry={anyway ? () => add(null, true) : undefined} retryText="Save anyway">
          {act.error}
        </ErrorBox>
      )}
    </Section>
  );
}
