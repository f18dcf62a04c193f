import { useState } from "preact/hooks";
import type { Machine } from "../api";
import { useAction, useLoad } from "../hooks";
import { Button, ErrorBox, Field, Load, Section } from "../ui";

// Aliases are short names for models.
export function Aliases({ machine, models }: { machine: Machine; models: string[] }) {
  const list = useLoad(async () => (await machine.get<{ aliases: Record<string, string> }>("/models/alias")).aliases, [machine]);
  const [alias, setAlias] = useState(""), [model, setModel] = useState("");
  const act = useAction();
  const add = (e: Event) => {
    e.preventDefault();
    void act.run(async () => {
      await machine.put("/models/alias", { alias: alias.trim(), model: model.trim() });
      setAlias("");
      setModel("");
      await list.reload();
    });
  };
  const remove = (name: string) => act.run(async () => {
    await machine.del(`/models/alias?alias=${encodeURIComponent(name)}`);
    await list.reload();
  });
  return (
    <Section title="Aliases" intro="A short name for a model.">
      <Load of={list} what="the aliases" rows={1}>{(aliases) => Object.keys(aliases).length === 0 ? <p class="muted">No aliases yet.</p> : (
        <ul class="plain">{Object.entries(aliases).map(([name, of]) => (
          <li key={name} class="row between">
            <span><code>{name}</code> <span class="muted">stands for</span> <code>{of}</code></span>
            <Button kind="quiet" disabled={act.busy} aria-label={`Delete the alias ${name}`} onClick={() => void remove(name)}>Delete</Button>
          </li>
        ))}</ul>
      )}</Load>
      <form class="row wrap end" onSubmit={add}>
        <Field label="Alias"><input required autocapitalize="none" spellcheck={false} value={alias} onInput={(e) => setAlias(e.currentTarget.value)} /></Field>
        <Field label="Stands for">
          <input required list="alias-models" autocapitalize="none" spellcheck={false} placeholder="openai/gpt-5-mini" value={model} onInput={(e) => setModel(e.currentTarget.value)} />
        </Field>
        <datalist id="alias-models">{models.slice(0, 500).map((m) => <option key={m} value={m} />)}</datalist>
        <Button type="submit" busy={act.busy}>Add alias</Button>
      </form>
      {act.error && <ErrorBox>{act.error}</ErrorBox>}
    </Section>
  );
}
