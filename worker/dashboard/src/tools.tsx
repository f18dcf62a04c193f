// The settings of tools and libraries, with this gateway's values.
import { useId } from "preact/hooks";
import type { Machine } from "./api";
import type { ConnectionRow, ModelRow, ToolList, ToolRow } from "./api-types";
import { Code } from "./code";
import { useLoad } from "./hooks";
import { Field, Notice } from "./ui";

export const noKey = "YOUR_KEY";

// toolKinds are the kinds of tools, with their titles.
export const toolKinds: [ToolRow["kind"], string][] = [
  ["coding", "Coding agents and editors"],
  ["app", "Chat and automation"],
  ["library", "SDKs and frameworks"],
];

export function useTools(machine: Machine) {
  return useLoad(() => machine.get<ToolList>("/setup"), [machine]);
}

const chat = "llm"; // the kind of chat models
const broken = ["key_refused", "out_of_credit", "unreachable", "blocked"];

// readyFirst returns the ids of models, those last whose accounts are known not to work.
export function readyFirst(models: { id: string; owned_by: string }[], conns: ConnectionRow[]): string[] {
  const works = (c: ConnectionRow) => c.status === "active" && !broken.includes(c.health);
  const last = (owner: string) => {
    const own = conns.filter((c) => (c.providerSpecificData.prefix || c.provider) === owner);
    return own.length > 0 && !own.some(works);
  };
  return models.toSorted((a, b) => Number(last(a.owned_by)) - Number(last(b.owned_by))).map((m) => m.id);
}

// useModelIds loads the chat models of a machine in that order, none without an account: the list is
// the whole catalogue then. A member does not see the accounts.
export const useModelIds = (machine: Machine) =>
  useLoad(async () => {
    if (!machine.may("viewer")) return machine.modelIds(chat);
    const [models, conns] = await Promise.all([
      machine.list<ModelRow>(`/models/list/${chat}`),
      machine.list<ConnectionRow>("/providers"),
    ]);
    return conns.some((c) => c.isActive) ? readyFirst(models, conns) : [];
  }, [machine]);

// SelectTool chooses one of the tools.
export function SelectTool({
  label,
  tools,
  value,
  onSelect,
}: {
  label: string;
  tools: ToolRow[];
  value: string;
  onSelect: (id: string) => void;
}) {
  return (
    <Field label={label}>
      <select value={value} onChange={(e) => onSelect(e.currentTarget.value)}>
        {toolKinds.map(([kind, title]) => (
          <optgroup key={kind} label={title}>
            {tools
              .filter((t) => t.kind === kind)
              .map((t) => (
                <option key={t.id} value={t.id}>
                  {t.name}
                </option>
              ))}
          </optgroup>
        ))}
      </select>
    </Field>
  );
}

// ModelInput is an input for a model's name, which suggests those of the machine.
export function ModelInput({
  label,
  hint,
  models,
  value,
  standard,
  onText,
}: {
  label: string;
  hint?: string;
  models: string[];
  value: string;
  standard: string;
  onText: (text: string) => void;
}) {
  const id = useId();
  return (
    <>
      <Field label={label} hint={hint}>
        <input
          list={id}
          autocapitalize="none"
          spellcheck={false}
          placeholder={standard && `${standard} (default)`}
          value={value}
          onInput={(e) => onText(e.currentTarget.value.trim())}
        />
      </Field>
      <datalist id={id}>
        {models.slice(0, 500).map((m) => (
          <option key={m} value={m} />
        ))}
      </datalist>
    </>
  );
}

// fieldsOf returns the fields of a text that is typed into a form, each with its value.
function fieldsOf(language: string, text: string): [name: string, value: string][] | null {
  const fields = text.split("\n").map((line) => line.split(": "));
  return language === "text" && fields.every((f) => f.length === 2) ? (fields as [string, string][]) : null;
}

// ToolTexts shows the settings of a tool, ready to paste.
export function ToolTexts({
  list,
  tool,
  apiKey = noKey,
  model,
  small,
}: {
  list: ToolList;
  tool: ToolRow;
  apiKey?: string;
  model: string;
  small: string;
}) {
  // A name that would need quoting is not put into a text: the formats differ.
  if (![model, small].every((m) => /^[\w.:/@+~-]+$/.test(m)))
    return (
      <Notice kind="warn">
        A model name may have letters, digits and <code>._:/@+~-</code> here. Add an alias for the model, and use that.
      </Notice>
    );
  const fill = (text: string) =>
    text
      .replaceAll(list.placeholders.url, location.origin)
      .replaceAll(list.placeholders.key, apiKey)
      .replaceAll(list.placeholders.model, model)
      .replaceAll(list.placeholders.smallModel, small);
  return (
    <div class="stack">
      {tool.texts.map(({ where, language, text }, i) => {
        const label = `Settings for ${tool.name}${i ? ` (${i + 1})` : ""}`;
        return (
          <div key={where} class="stack">
            <p class="muted small">{where}</p>
            {fieldsOf(language, text)?.map(([name, value]) => (
              <div key={name}>
                <p class="small">{name}</p>
                <Code label={`${label}: ${name}`} what={name} text={fill(value)} />
              </div>
            )) ?? <Code label={label} text={fill(text)} />}
          </div>
        );
      })}
      {tool.notes && (
        <ul class="muted small">
          {tool.notes.map((note) => (
            <li key={note}>{note}</li>
          ))}
        </ul>
      )}
    </div>
  );
}
