// The components that pages consist of.
import { cloneElement, isValidElement, type ComponentChildren, type JSX, type VNode } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import type { Draft } from "./drafts";
import type { Action, Loaded } from "./hooks";
import { count, number } from "./format";
import { Icon, type IconName } from "./icons";
import { restoreScroll } from "./route";

export type Children = { children?: ComponentChildren };

// Page is a page's heading and its content. The heading gets the focus when the
// page opens, so that screen readers start there.
export function Page({
  title,
  intro,
  actions,
  children,
}: Children & { title: string; intro?: ComponentChildren; actions?: ComponentChildren }) {
  const head = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    head.current?.focus({ preventScroll: true });
    return restoreScroll();
  }, []);
  useEffect(() => {
    document.title = `${title} · weir`;
  }, [title]);
  return (
    <>
      <header class="page">
        <div>
          <h1 tabIndex={-1} ref={head}>
            {title}
          </h1>
          {intro && <p class="muted">{intro}</p>}
        </div>
        {actions && <div class="row">{actions}</div>}
      </header>
      {children}
    </>
  );
}

// Section is a titled card of a page.
export function Section({
  title,
  intro,
  actions,
  children,
}: Children & { title: string; intro?: ComponentChildren; actions?: ComponentChildren }) {
  return (
    <section class="card" aria-label={title}>
      <div class="row between head">
        <div>
          <h2>{title}</h2>
          {intro && <p class="muted">{intro}</p>}
        </div>
        {actions && <div class="row">{actions}</div>}
      </div>
      {children}
    </section>
  );
}

type ButtonProps = Omit<JSX.IntrinsicElements["button"], "icon"> & {
  kind?: "main" | "danger" | "quiet" | "link";
  icon?: IconName;
  busy?: boolean;
};

// Button has type="button" unless the caller sets another one. While busy it
// ignores clicks but keeps the focus.
export function Button({ kind, icon, busy, children, onClick, ...rest }: ButtonProps) {
  return (
    <button
      type="button"
      {...rest}
      class={`${kind ?? ""} ${icon && !children ? "icon" : ""}`.trim()}
      aria-disabled={busy || undefined}
      onClick={(e) => {
        if (busy) e.preventDefault();
        else onClick?.(e);
      }}
    >
      {busy ? <span class="spinner" aria-hidden="true" /> : icon && <Icon name={icon} />}
      {children}
    </button>
  );
}

// Load shows the state of a call: a skeleton while it runs, its error, or its data.
export function Load<T>({
  of,
  what,
  rows = 3,
  children,
}: {
  of: Loaded<T>;
  what: string;
  rows?: number;
  children: (data: T) => ComponentChildren;
}) {
  if (of.data === null)
    return of.error ? <ErrorBox retry={of.reload}>{of.error}</ErrorBox> : <Skeleton what={what} rows={rows} />;
  return (
    <>
      {of.error && <ErrorBox retry={of.reload}>{of.error}</ErrorBox>}
      {children(of.data)}
    </>
  );
}

export function Skeleton({ what, rows = 3 }: { what: string; rows?: number }) {
  return (
    <div class="skeleton" role="status" aria-label={`Loading ${what}`}>
      {Array.from({ length: rows }, (_, i) => (
        <span key={i} />
      ))}
    </div>
  );
}

// MoreRows says that a list is cut.
export function MoreRows({ n }: { n: number }) {
  return n > 0 ? <p class="muted small">{number(n)} more. Search to see them.</p> : null;
}

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

export function ErrorBox({
  children,
  retry,
  retryText = "Try again",
}: Children & { retry?: () => unknown; retryText?: string }) {
  return (
    <div class="notice bad" role="alert">
      <Icon name="warn" />
      <div>{children}</div>
      {retry && <Button onClick={() => void retry()}>{retryText}</Button>}
    </div>
  );
}

// Failed shows the error of an action. If someone else changed the record in the
// meantime, it offers to reload it.
export function Failed({ of, reload }: { of: Action; reload?: () => unknown }) {
  if (!of.error) return null;
  return of.stale && reload ? (
    <ErrorBox
      retry={async () => {
        await reload();
        of.clear();
      }}
      retryText="Reload"
    >
      {of.error}
    </ErrorBox>
  ) : (
    <ErrorBox>{of.error}</ErrorBox>
  );
}

export function Notice({ kind = "info", children }: Children & { kind?: "info" | "good" | "warn" }) {
  return (
    <div class={`notice ${kind}`} role="status">
      <div>{children}</div>
    </div>
  );
}

export function Empty({ title, children }: Children & { title: string }) {
  return (
    <div class="empty">
      <p class="title">{title}</p>
      {children}
    </div>
  );
}

// Field is a control with its label. The hint is the control's accessible
// description, not a part of its name.
export function Field({ label, hint, children }: Children & { label: string; hint?: ComponentChildren }) {
  const id = useId();
  return (
    <div class="field">
      <label>
        <span>{label}</span>
        {hint && isValidElement(children)
          ? cloneElement(children as VNode<{ "aria-describedby": string }>, { "aria-describedby": id })
          : children}
      </label>
      {hint && <small id={id}>{hint}</small>}
    </div>
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

// ListHead is the head of a long list: a search, and how many rows match.
export function ListHead({
  what,
  text,
  shown,
  all,
  onInput,
}: {
  what: string;
  text: string;
  shown: number;
  all: number;
  onInput: (text: string) => void;
}) {
  return (
    <div class="row wrap between">
      <Search label={`Search ${what}s`} value={text} onInput={onInput} />
      <p class="muted small" role="status">
        {text.trim() && `${number(shown)} of `}
        {count(all, what)}
      </p>
    </div>
  );
}

export function Switch({
  on,
  label,
  busy,
  onTurn,
}: {
  on: boolean;
  label: string;
  busy?: boolean;
  onTurn: (on: boolean) => void;
}) {
  const turn = (e: { currentTarget: HTMLInputElement }) => {
    if (busy) e.currentTarget.checked = on;
    else onTurn(e.currentTarget.checked);
  };
  return (
    <input
      type="checkbox"
      role="switch"
      class="switch"
      checked={on}
      aria-disabled={busy || undefined}
      aria-label={label}
      onChange={turn}
    />
  );
}

// Tabs is a choice of a few values, by click or with the arrow keys.
export function Tabs<K extends string>({
  label,
  value,
  items,
  onPick,
}: {
  label: string;
  value: K;
  items: [key: K, name: string][];
  onPick: (key: K) => void;
}) {
  return (
    <fieldset class="tabs">
      <legend class="hidden">{label}</legend>
      {items.map(([key, name]) => (
        <label key={key}>
          <input type="radio" name={label} checked={key === value} onChange={() => onPick(key)} />
          <span>{name}</span>
        </label>
      ))}
    </fieldset>
  );
}

export function Copy({ text, label = "Copy" }: { text: string; label?: string }) {
  const [result, setResult] = useState("");
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      setResult("Copied");
    } catch {
      setResult("Copying failed. Select the text and copy it.");
    }
    setTimeout(() => setResult(""), 2500);
  };
  return (
    <span class="row tight">
      <Button icon="copy" onClick={() => void copy()}>
        {label}
      </Button>
      <span class="muted" role="status">
        {result}
      </span>
    </span>
  );
}

export function Code({ text, label }: { text: string; label: string }) {
  return (
    <div class="code">
      <pre tabIndex={0} role="region" aria-label={label}>
        <code>{text}</code>
      </pre>
      <Copy text={text} />
    </div>
  );
}

export function Badge({ kind = "", children }: Children & { kind?: "" | "good" | "warn" | "bad" | "accent" }) {
  return <span class={`badge ${kind}`}>{children}</span>;
}

// Table scrolls horizontally on a narrow screen. A stacked one shows each row as a
// card there, with data-label as the names of the cells.
export function Table({ label, stacked, children }: Children & { label: string; stacked?: boolean }) {
  return (
    <div class={stacked ? "scroll stacked" : "scroll"} tabIndex={0} role="region" aria-label={label}>
      <table>{children}</table>
    </div>
  );
}
