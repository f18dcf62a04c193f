// The components that every part of the dashboard uses.
import { cloneElement, type ComponentChildren, isValidElement, type JSX, type VNode } from "preact";
import { useId } from "preact/hooks";
import { Icon, type IconName } from "./icons";
import { useManaged } from "./managed";

export type Children = { children?: ComponentChildren };

type ButtonProps = Omit<JSX.IntrinsicElements["button"], "icon"> & {
  kind?: "main" | "danger" | "quiet" | "link";
  icon?: IconName;
  busy?: boolean;
  /** the paths of the rows or collections that it changes, which a file may own */
  changes?: string | string[];
};

// Button has type="button" unless the caller sets another one. While busy, or if a file owns
// what it changes, it ignores clicks but keeps the focus.
export function Button({ kind, icon, busy, changes, children, onClick, ...rest }: ButtonProps) {
  const managed = useManaged(...[changes ?? []].flat());
  return (
    <button
      type="button"
      {...rest}
      title={managed ?? rest.title}
      class={`${kind ?? ""} ${icon && !children ? "icon" : ""} ${managed ? "managed" : ""}`.trim()}
      aria-disabled={busy || !!managed || undefined}
      onClick={(e) => {
        if (busy || managed) e.preventDefault();
        else onClick?.(e);
      }}
    >
      {busy ? <span class="spinner" aria-hidden="true" /> : icon && <Icon name={icon} />}
      {children}
    </button>
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

export function Notice({ kind = "info", children }: Children & { kind?: "info" | "good" | "warn" }) {
  return (
    <div class={`notice ${kind}`} role="status">
      <div>{children}</div>
    </div>
  );
}

export function Empty({ title, page, children }: Children & { title: string; page?: boolean }) {
  const Title = page ? "h1" : "p";
  return (
    <div class="empty">
      <Title class="title">{title}</Title>
      {children}
    </div>
  );
}

// Options are the options of a select: pairs of a value and a name.
export function Options({ of }: { of: readonly (readonly [value: string, name: string])[] }) {
  return (
    <>
      {of.map(([value, name]) => (
        <option key={value} value={value}>
          {name}
        </option>
      ))}
    </>
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

export function Badge({ kind = "", children }: Children & { kind?: "" | "good" | "warn" | "bad" | "accent" }) {
  return <span class={`badge ${kind}`}>{children}</span>;
}

// Cut shows a name on one line, apart from the direction of the text around it. A longer
// one ends in an ellipsis; the tooltip has it whole, or says more.
export function Cut({ children, title = children }: { children: string; title?: string }) {
  return (
    <bdi class="cut" title={title}>
      {children}
    </bdi>
  );
}
