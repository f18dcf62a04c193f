// The inputs of forms and lists.
import { useEffect, useRef, useState } from "preact/hooks";
import type { Draft } from "./draft";
import { count, number } from "./format";
import { Finder } from "./finder";
import { Icon } from "./icons";
import { useManaged } from "./managed";
import { Popover } from "./popover";
import { Button, type Children, Cut, Field, Options } from "./ui";

// Restored says that a form starts with the input of an earlier visit.
export function Restored({ draft, note }: { draft: Draft; note?: string }) {
  if (!draft.restored || !draft.dirty) return null;
  return (
    <p class="muted small full">
      Unsaved changes restored. {note}{" "}
      <Button kind="link" onClick={draft.clear}>
        Discard changes
      </Button>
    </p>
  );
}

interface TextProps {
  value: string;
  onText: (value: string) => void;
  max: number;
  name?: boolean;
  required?: boolean;
  placeholder?: string;
  "aria-describedby"?: string;
}

// wrongName returns an error that names the first character other than letters,
// digits, dots, dashes and underscores; "" without one.
export function wrongName(value: string): string {
  const bad = Array.from(value.trim()).find((c) => !/[A-Za-z0-9._-]/.test(c));
  if (bad === undefined) return "";
  return `${bad === " " ? "Spaces are" : `“${bad}” is`} not allowed. Use letters, digits, dots, dashes and underscores.`;
}

// ModelNames is an input of names of models, one per line.
export function ModelNames({
  onText,
  ...of
}: Pick<TextProps, "value" | "onText" | "placeholder" | "aria-describedby">) {
  return (
    <textarea
      rows={2}
      spellcheck={false}
      autocapitalize="none"
      {...of}
      onInput={(e) => onText(e.currentTarget.value)}
    />
  );
}

// Text is an input of at most max characters (code points); with name it accepts
// only the characters of names. The browser shows the error at the input.
export function Text({ value, onText, max, name, required, placeholder, "aria-describedby": hint }: TextProps) {
  const ref = useRef<HTMLInputElement>(null);
  const length = Array.from(value.trim()).length;
  const wrong = name ? wrongName(value) : "";
  const text = wrong || (length > max ? `Use at most ${max} characters (now ${length}).` : "");
  useEffect(() => {
    ref.current?.setCustomValidity(text);
  }, [text]);
  return (
    <input
      ref={ref}
      required={required}
      placeholder={placeholder}
      aria-describedby={hint}
      autocapitalize={name ? "none" : undefined}
      spellcheck={!name}
      aria-invalid={text ? true : undefined}
      value={value}
      onInput={(e) => onText(e.currentTarget.value)}
    />
  );
}

// Search is the input that filters a list.
export function Search({ label, value, onInput }: { label: string; value: string; onInput: (text: string) => void }) {
  return (
    <label class="search">
      <Icon name="search" />
      <input
        type="search"
        aria-label={label}
        placeholder={label}
        value={value}
        onInput={(e) => onInput(e.currentTarget.value)}
      />
    </label>
  );
}

// TextFilter is a filter by a typed text. It is applied on Enter or when it loses the
// focus, live with each letter.
export function TextFilter({
  label,
  value,
  live,
  onValue,
}: {
  label: string;
  value: string;
  live?: boolean;
  onValue: (value: string) => void;
}) {
  const [typed, setTyped] = useState(value);
  useEffect(() => setTyped(value), [value]);
  return (
    <div class="narrow">
      <Field label={label}>
        <input
          autocapitalize="none"
          spellcheck={false}
          placeholder="All"
          value={typed}
          onInput={(e) => {
            setTyped(e.currentTarget.value);
            if (live) onValue(e.currentTarget.value.trim());
          }}
          onChange={(e) => onValue(e.currentTarget.value.trim())}
        />
      </Field>
    </div>
  );
}

const searchedFrom = 30; // options

// Choice is the select of a filter. A value that is not an option, such as the id of a key
// that was deleted, is shown as it is. Many options are searched.
export function Choice({
  label,
  value,
  options,
  onPick,
}: {
  label: string;
  value: string;
  options: [value: string, name: string][];
  onPick: (value: string) => void;
}) {
  const known = options.find(([k]) => k === value);
  if (options.length > searchedFrom) {
    const name = known?.[1] ?? value;
    return (
      <div class="narrow field">
        <span aria-hidden="true">{label}</span>
        <Popover label={<Cut>{name}</Cut>} name={`${label}: ${name}`}>
          {(close) => (
            <Finder
              label={`Search: ${label}`}
              value={value}
              items={options.map(([id, name]) => ({ id, name }))}
              onPick={({ id }) => {
                close();
                onPick(id);
              }}
            />
          )}
        </Popover>
      </div>
    );
  }
  return (
    <div class="narrow">
      <Field label={label}>
        <select value={value} onChange={(e) => onPick(e.currentTarget.value)}>
          <Options of={options} />
          {!known && <option value={value}>{value}</option>}
        </select>
      </Field>
    </div>
  );
}

// ListHead is the head of a long list: a search, and how many rows match.
export function ListHead({
  what,
  text,
  shown,
  all,
  onInput,
  children,
}: Children & {
  what: string;
  text: string;
  shown: number;
  /** undefined while they are loaded */
  all?: number;
  onInput: (text: string) => void;
}) {
  return (
    <div class="row wrap end">
      <Search label={`Search ${what}s`} value={text} onInput={onInput} />
      {children}
      <p class="muted small found" role="status">
        {all !== undefined && (text.trim() ? `${number(shown)} of ${count(all, what)}` : count(all, what))}
      </p>
    </div>
  );
}

export function Switch({
  on,
  label,
  busy,
  changes,
  onTurn,
}: {
  on: boolean;
  label: string;
  busy?: boolean;
  /** as of a Button */
  changes: string;
  onTurn: (on: boolean) => void;
}) {
  const managed = useManaged(changes);
  const turn = (e: { currentTarget: HTMLInputElement }) => {
    if (busy || managed) e.currentTarget.checked = on;
    else onTurn(e.currentTarget.checked);
  };
  return (
    <input
      type="checkbox"
      role="switch"
      class={managed ? "switch managed" : "switch"}
      title={managed}
      checked={on}
      aria-disabled={busy || !!managed || undefined}
      aria-label={label}
      onChange={turn}
    />
  );
}
