import { useEffect, useRef } from "preact/hooks";
import type { Machine } from "../../api";
import type { SettingValues } from "../../api-types";
import { useDraft } from "../../draft";
import { price } from "../../amounts";
import { useAction, useLoad } from "../../hooks";
import { Load, Section } from "../../layout";
import { toast } from "../../toast";
import { Badge, Button, Cut, Field } from "../../ui";
import { corrected, Refused } from "../../unknown";
import { Unlisted, unlisted, useListed } from "../../unlisted";
import { VirtualList } from "../../virtual";

const empty = { model: "", input: "", output: "", cacheRead: "", cacheWrite: "", other: "" };

// textOf returns the text of a price as the API has it: 4/20/0.4/5 image=0.04.
const textOf = (p: typeof empty) =>
  [[p.input, p.output, p.cacheRead, p.cacheWrite].map((part) => part.trim()).join("/"), p.other.trim()]
    .map((part) => part.replace(/\/+$/, ""))
    .filter(Boolean)
    .join(" ");

const kinds = ["input", "output", "cache read", "cache write", "cache write (1 hour)"];

// wordsOf returns a price in words: input $4.00 · output $20.00.
const wordsOf = (stored: string) =>
  stored
    .split(" ")
    .flatMap((clause) =>
      /^[\d./]+$/.test(clause)
        ? clause.split("/").map((part, i) => part && `${kinds[i]} ${price(Number(part))}`)
        : clause,
    )
    .filter(Boolean)
    .join(" · ");

const fields = [
  ["input", "Input price", "e.g. 4"],
  ["output", "Output price", "e.g. 20"],
  ["cacheRead", "Cache read", "e.g. 0.4"],
  ["cacheWrite", "Cache write", "e.g. 5"],
] as const;

// Prices lists the machine's own prices of models. model is the one to set a price of, "" for none.
export function Prices({
  machine,
  model: asked,
  onChange,
}: {
  machine: Machine;
  model: string;
  onChange: () => Promise<void>;
}) {
  const list = useLoad(async () => (await machine.get<SettingValues>("/settings")).modelPrices ?? {}, [machine]);
  const listed = useListed(machine).data;
  const [form, setForm, draft] = useDraft(`price ${machine.id}`, empty);
  const { model } = form;
  const act = useAction();
  const reload = () => Promise.all([list.reload(), onChange()]);
  const typed = useRef<HTMLFormElement>(null);
  const put = (part: Partial<typeof empty>) => setForm((f) => ({ ...f, ...part }));
  useEffect(() => {
    if (asked) put({ model: asked });
  }, [asked]);
  const save = (modelPrices: Record<string, string | null>, allowUnknown: boolean) =>
    machine.tagged("PATCH", "/settings", { modelPrices, ...(allowUnknown && { allowUnknown }) });
  const add = (e: Event | null, allowUnknown = false) => {
    e?.preventDefault();
    void act.run(async () => {
      await save({ [model.trim()]: textOf(form) }, allowUnknown);
      draft.clear();
      typed.current?.reset(); // the fields that are empty again are not missing
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
      intro="Override the catalogue, or price a model that it lacks. In USD per 1M tokens. A price that you leave empty is unknown, not free."
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
                    <code>
                      <Cut>{name}</Cut>
                    </code>{" "}
                    <span class="muted">{wordsOf(of)}</span>{" "}
                    {unlisted([name], listed).length > 0 && <Badge kind="warn">Not listed by its server</Badge>}
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
      <form ref={typed} class="row wrap end" onSubmit={add}>
        <Field label="Priced model">
          <input
            required
            list="price-models"
            autocapitalize="none"
            spellcheck={false}
            placeholder="e.g. openai/gpt-6-luna"
            value={model}
            onInput={(e) => put({ model: e.currentTarget.value })}
          />
        </Field>
        {fields.map(([name, label, example]) => (
          <Field key={name} label={label}>
            <input
              required={name === "input" && textOf(form) === ""}
              size={8}
              inputMode="decimal"
              autocapitalize="none"
              placeholder={example}
              value={form[name]}
              onInput={(e) => put({ [name]: e.currentTarget.value })}
            />
          </Field>
        ))}
        <Field label="Other prices">
          <input
            autocapitalize="none"
            spellcheck={false}
            placeholder="e.g. image=0.04"
            value={form.other}
            onInput={(e) => put({ other: e.currentTarget.value })}
          />
        </Field>
        <datalist id="price-models">
          {listed?.ids.slice(0, 500).map((m) => (
            <option key={m} value={m} />
          ))}
        </datalist>
        <Button type="submit" busy={act.busy} changes="/settings">
          Save price
        </Button>
      </form>
      <Unlisted names={[model.trim()]} of={listed} />
      <Refused
        of={act}
        onUse={(u) => put({ model: corrected([model.trim()], u)[0] })}
        onAnyway={() => add(null, true)}
      />
    </Section>
  );
}
