import { useState } from "preact/hooks";
import { ApiError, type Machine } from "../../api";
import type { SettingValues } from "../../api-types";
import { useDraft } from "../../drafts";
import { useAction, useLoad } from "../../hooks";
import { Load, Section } from "../../layout";
import { Button, ErrorBox, Field } from "../../ui";

// Prices lists the machine's own prices of models.
export function Prices({ machine, models }: { machine: Machine; models: string[] }) {
  const list = useLoad(async () => (await machine.get<SettingValues>("/settings")).modelPrices ?? {}, [machine]);
  const [{ model, price }, setForm, draft] = useDraft(`price ${machine.id}`, { model: "", price: "" });
  const [anyway, setAnyway] = useState(false);
  const act = useAction();
  const put = (part: Partial<{ model: string; price: string }>) => {
    setAnyway(false);
    setForm((f) => ({ ...f, ...part }));
  };
  const save = (modelPrices: Record<string, string | null>, allowUnknown: boolean) =>
    machine.tagged("PATCH", "/settings", { modelPrices, ...(allowUnknown && { allowUnknown }) });
  const add = (e: Event | null, allowUnknown = false) => {
    e?.preventDefault();
    void act.run(async () => {
      try {
        await save({ [model.trim()]: price.trim() }, allowUnknown);
      } catch (e) {
        setAnyway(e instanceof ApiError && e.message.includes("allowUnknown"));
        throw e;
      }
      draft.clear();
      setAnyway(false);
      await list.reload();
    });
  };
  const remove = (name: string) =>
    act.run(async () => {
      await save({ [name]: null }, true);
      await list.reload();
    });
  return (
    <Section
      title="Own prices"
      intro="What you pay, where that differs from the catalog or the catalog has no price. In US dollars per million tokens: input/output/cache read/cache write, or image=0.04, minute=0.006, character=15."
    >
      <Load of={list} what="prices" rows={1}>
        {(prices) =>
          Object.keys(prices).length === 0 ? (
            <p class="muted">No own prices yet.</p>
          ) : (
            <ul class="plain">
              {Object.entries(prices).map(([name, of]) => (
                <li key={name} class="row between">
                  <span>
                    <code>{name}</code> <span class="muted">costs</span> <code>{of}</code>
                  </span>
                  <Button
                    kind="quiet"
                    disabled={act.busy}
                    aria-label={`Delete price of ${name}`}
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
        <Field label="Priced model">
          <input
            required
            list="price-models"
            autocapitalize="none"
            spellcheck={false}
            placeholder="openai/gpt-5-mini"
            value={model}
            onInput={(e) => put({ model: e.currentTarget.value })}
          />
        </Field>
        <Field label="Price">
          <input
            required
            autocapitalize="none"
            spellcheck={false}
            placeholder="4/20/0.4/5"
            value={price}
            onInput={(e) => put({ price: e.currentTarget.value })}
          />
        </Field>
        <datalist id="price-models">
          {models.slice(0, 500).map((m) => (
            <option key={m} value={m} />
          ))}
        </datalist>
        <Button type="submit" busy={act.busy}>
          Save price
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
