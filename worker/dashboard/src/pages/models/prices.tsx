import type { Machine } from "../../api";
import type { SettingValues } from "../../api-types";
import { useDraft } from "../../drafts";
import { useAction, useLoad } from "../../hooks";
import { Load, Section } from "../../layout";
import { toast } from "../../toast";
import { Button, Field } from "../../ui";
import { corrected, Refused } from "../../unknown";
import { VirtualList } from "../../virtual";

// Prices lists the machine's own prices of models.
export function Prices({
  machine,
  models,
  onChange,
}: {
  machine: Machine;
  models: string[];
  onChange: () => Promise<void>;
}) {
  const list = useLoad(async () => (await machine.get<SettingValues>("/settings")).modelPrices ?? {}, [machine]);
  const [{ model, price }, setForm, draft] = useDraft(`price ${machine.id}`, { model: "", price: "" });
  const act = useAction();
  const reload = () => Promise.all([list.reload(), onChange()]);
  const put = (part: Partial<{ model: string; price: string }>) => setForm((f) => ({ ...f, ...part }));
  const save = (modelPrices: Record<string, string | null>, allowUnknown: boolean) =>
    machine.tagged("PATCH", "/settings", { modelPrices, ...(allowUnknown && { allowUnknown }) });
  const add = (e: Event | null, allowUnknown = false) => {
    e?.preventDefault();
    void act.run(async () => {
      await save({ [model.trim()]: price.trim() }, allowUnknown);
      draft.clear();
      await reload();
    });
  };
  const remove = (name: string, of: string) =>
    act.run(async () => {
      await save({ [name]: null }, true);
      toast(`Deleted the price of ${name}.`, async () => {
        await save({ [name]: of }, true);
        await reload();
      });
      await reload();
    });
  return (
    <Section
      title="Custom prices"
      intro="Override the catalog, or price a model that it lacks. USD per 1M tokens as input/output/cache read/cache write, or image=0.04, minute=0.006, character=15. A part that you leave out is unknown, not free."
    >
      <Load of={list} what="prices" rows={1}>
        {(prices) =>
          Object.keys(prices).length === 0 ? (
            <p class="muted">No custom prices yet.</p>
          ) : (
            <VirtualList rows={Object.entries(prices)} keyOf={([name]) => name}>
              {([name, of]) => (
                <>
                  <span>
                    <code>{name}</code> <span class="muted">costs</span> <code>{of}</code>
                  </span>
                  <Button
                    kind="quiet"
                    changes="/settings"
                    disabled={act.busy}
                    aria-label={`Delete price of ${name}`}
                    onClick={() => void remove(name, of)}
                  >
                    Delete
                  </Button>
                </>
              )}
            </VirtualList>
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
            placeholder="e.g. openai/gpt-5-mini"
            value={model}
            onInput={(e) => put({ model: e.currentTarget.value })}
          />
        </Field>
        <Field label="Price">
          <input
            required
            autocapitalize="none"
            spellcheck={false}
            placeholder="e.g. 4/20/0.4/5"
            value={price}
            onInput={(e) => put({ price: e.currentTarget.value })}
          />
        </Field>
        <datalist id="price-models">
          {models.slice(0, 500).map((m) => (
            <option key={m} value={m} />
          ))}
        </datalist>
        <Button type="submit" busy={act.busy} changes="/settings">
          Save price
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
