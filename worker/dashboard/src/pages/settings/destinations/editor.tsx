import { useId } from "preact/hooks";
import type { Machine } from "../../../api";
import { Code } from "../../../code";
import { Dialog, losing } from "../../../dialog";
import { useDraft } from "../../../draft";
import { Finish } from "../../../finish";
import { Restored, Text } from "../../../forms";
import { useAction, useLoad } from "../../../hooks";
import { Failed } from "../../../layout";
import { Field, Options } from "../../../ui";
import { defaultEvents, type Destination, type EventRow, type Form, formOf, save } from "./destination";
import type { Input, Preset } from "./kinds";

// Editor is the form of a new or a stored destination. The kind of a stored one cannot
// change.
export function Editor({
  machine,
  title,
  of: d,
  presets,
  events,
  onReload,
  onDone,
  onClose,
}: {
  machine: Machine;
  title: string;
  of: Destination | null;
  presets: Preset[];
  events: EventRow[];
  onReload: () => Promise<void>;
  onDone: (name: string) => Promise<void>;
  onClose: () => void;
}) {
  const initial: Form = d
    ? formOf(d, events)
    : { preset: presets[0].id, name: "", values: {}, events: defaultEvents(events) };
  const secrets = (f: Form) => presets.flatMap((p) => p.inputs).filter((i) => i.secret && f.values[i.name]);
  const [form, setForm, draft] = useDraft(
    `destination ${machine.id} ${d ? `${d.id} ${d.generation}` : title}`,
    initial,
    (f) => ({
      ...f,
      values: Object.fromEntries(Object.entries(f.values).filter(([k]) => !secrets(f).some((i) => i.name === k))),
    }),
  );
  const put = (part: Partial<Form>) => setForm((f) => ({ ...f, ...part }));
  const act = useAction();
  // The list does not have the key that webhooks are signed with.
  const stored = useLoad(async () => (d ? machine.get<Destination>(`/destinations/${d.id}`) : null), [machine, d?.id]);
  const preset = presets.find((p) => p.id === form.preset) ?? presets[0];
  const submit = (e: Event) => {
    e.preventDefault();
    void act.run(async () => {
      await save(machine, d, preset, form, events);
      draft.clear();
      await onDone(form.name.trim() || preset.title);
    });
  };
  const shown = preset.inputs.filter((i) => !i.event || form.events.includes(i.event));
  const field = (input: Input) => {
    const value = form.values[input.name] ?? input.initial ?? "";
    const onValue = (value: string) => put({ values: { ...form.values, [input.name]: value } });
    const key = `${preset.id} ${input.name}`;
    if (input.type === "checkbox") return <Check key={key} input={input} value={value} onValue={onValue} />;
    return (
      <Field key={key} label={input.label} hint={input.hint}>
        <Control input={input} stored={!!d?.secrets.includes(input.name)} value={value} onValue={onValue} />
      </Field>
    );
  };
  return (
    <Dialog title={d ? `Edit ${d.name}` : title} ask={losing(draft)} onClose={onClose}>
      <form onSubmit={submit}>
        <Restored draft={draft} note="Enter secrets again." />
        {!d && (
          <Field label="Send to">
            <select value={preset.id} onChange={(e) => put({ preset: e.currentTarget.value })}>
              {presets.map((p) => (
                <option key={p.id} value={p.id}>
                  {p.title}
                </option>
              ))}
            </select>
          </Field>
        )}
        {preset.where && (
          <p class="muted small">
            {preset.where.text}{" "}
            {preset.where.link && (
              <a href={preset.where.link} target="_blank" rel="noreferrer">
                {preset.where.link.startsWith("/docs") ? "Learn more" : "Open the page"}
              </a>
            )}
          </p>
        )}
        <Field label="Name" hint={`Leave empty for “${preset.title}”.`}>
          <Text max={100} value={form.name} onText={(name) => put({ name })} />
        </Field>
        {shown.filter((i) => !i.more && i.event === undefined && i.name !== "quietHours").map(field)}
        {preset.events && (
          <Events events={events} chosen={form.events} onChoose={(chosen) => put({ events: chosen })} />
        )}
        {shown.filter((i) => !i.more && (i.event !== undefined || i.name === "quietHours")).map(field)}
        {shown.some((i) => i.more) && (
          <details>
            <summary>More settings</summary>
            <div class="stack">{shown.filter((i) => i.more).map(field)}</div>
          </details>
        )}
        {stored.data?.signingSecret && <Code label="Signing secret" text={stored.data.signingSecret} />}
        <Finish
          of={act}
          action={d ? "Save" : "Add"}
          changes={`/destinations/${d?.id}`}
          draft={draft}
          onCancel={onClose}
        >
          <Failed of={act} reload={onReload} />
        </Finish>
      </form>
    </Dialog>
  );
}

// Check is an input that is on or off.
function Check({ input, value, onValue }: { input: Input; value: string; onValue: (value: string) => void }) {
  const id = useId();
  return (
    <div class="field">
      <label class="row tight">
        <input
          type="checkbox"
          aria-describedby={id}
          checked={value === "true"}
          onChange={(e) => onValue(e.currentTarget.checked ? "true" : "")}
        />
        {input.label}
      </label>
      <small id={id}>{input.hint}</small>
    </div>
  );
}

// Control is the control of an input. A secret that is stored need not be typed again.
function Control({
  input,
  stored,
  value,
  onValue,
  ...described
}: {
  input: Input;
  stored: boolean;
  value: string;
  onValue: (value: string) => void;
}) {
  if (input.choices)
    return (
      <select {...described} value={value} onChange={(e) => onValue(e.currentTarget.value)}>
        <Options of={input.choices} />
      </select>
    );
  return (
    <input
      {...described}
      type={(input.secret && input.type !== "url" ? "password" : (input.type ?? "text")) as "text"}
      autocomplete={input.secret ? "new-password" : "off"}
      autocapitalize="none"
      spellcheck={false}
      required={input.required && !stored}
      pattern={input.pattern}
      min={input.min}
      max={input.max}
      placeholder={stored ? "Unchanged" : input.placeholder}
      value={value}
      onInput={(e) => onValue(e.currentTarget.value)}
    />
  );
}

// Events are the checkboxes of what a destination is told.
function Events({
  events,
  chosen,
  onChoose,
}: {
  events: EventRow[];
  chosen: string[];
  onChoose: (chosen: string[]) => void;
}) {
  const turn = (name: string, on: boolean) =>
    onChoose(events.map((e) => e.name).filter((n) => (n === name ? on : chosen.includes(n))));
  return (
    <fieldset class="stack">
      <legend>
        <h3>Tell me when</h3>
      </legend>
      {events.map(({ name, description }, i) => (
        <label key={name} class="row tight">
          <input
            type="checkbox"
            checked={chosen.includes(name)}
            ref={(box) => {
              // The first one carries the error of a form without any.
              if (i === 0) box?.setCustomValidity(chosen.length > 0 ? "" : "Choose at least one event.");
            }}
            onChange={(e) => turn(name, e.currentTarget.checked)}
          />
          {texts[name] ?? description}
        </label>
      ))}
    </fieldset>
  );
}

// texts are the events whose description is written for API clients.
const texts: Record<string, string> = {
  "account.cooling": "An account stays rate-limited",
  "errors.rate": "Many requests fail",
};
