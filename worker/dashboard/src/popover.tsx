import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { Icon } from "./icons";
import type { Children } from "./ui";
import { Cut } from "./ui";

// Popover is a button that opens a panel below it. Escape and a click or focus elsewhere
// close it. The panel is in the document while it is open.
export function Popover({
  label,
  name,
  children,
}: {
  label: ComponentChildren;
  /** accessible name of the button, if it is not its text */
  name?: string;
  children: (close: () => void) => ComponentChildren;
}) {
  const box = useRef<HTMLDetailsElement>(null);
  const [open, setOpen] = useState(false);
  const close = () => {
    if (!open) return;
    setOpen(false);
    box.current?.querySelector("summary")?.focus();
  };
  // A panel that would leave the screen begins further left.
  useLayoutEffect(() => {
    const panel = box.current?.querySelector<HTMLElement>(".panel");
    const over = panel ? panel.getBoundingClientRect().right + 16 - document.documentElement.clientWidth : 0;
    if (panel && over > 0) panel.style.marginLeft = `${-over}px`;
  }, [open]);
  useEffect(() => {
    if (!open) return;
    const outside = (e: Event) => {
      if (!box.current?.contains(e.target as Node)) setOpen(false);
    };
    const kinds = ["pointerdown", "focusin"];
    for (const kind of kinds) document.addEventListener(kind, outside);
    return () => {
      for (const kind of kinds) document.removeEventListener(kind, outside);
    };
  }, [open]);
  return (
    <details
      class="pop"
      ref={box}
      open={open}
      onToggle={(e) => setOpen(e.currentTarget.open)}
      onKeyDown={(e) => {
        if (e.key !== "Escape" || !open) return;
        e.preventDefault(); // of a dialog that it stands in
        e.stopPropagation();
        close();
      }}
    >
      <summary class="button" aria-label={name}>
        {label}
        <Icon name="chevron" size={14} />
      </summary>
      {open && <div class="panel">{children(close)}</div>}
    </details>
  );
}

// Filter is a filter that is set, as a chip shows it.
export interface Filter {
  label: string;
  value: string;
  clear: () => void;
}

// FilterMenu is the popover with the filters of a list, and a chip for each one that is set.
export function FilterMenu({ set, onClear, children }: Children & { set: Filter[]; onClear?: () => void }) {
  return (
    <>
      <Popover label={set.length > 0 ? `Filters (${set.length})` : "Filters"}>{() => children}</Popover>
      {set.map(({ label, value, clear }) => (
        <button type="button" class="chip" key={label} aria-label={`Remove ${label}: ${value}`} onClick={clear}>
          {label}: <Cut>{value}</Cut>
          <Icon name="close" size={12} />
        </button>
      ))}
      {set.length > 0 && onClear && (
        <button type="button" class="quiet" onClick={onClear}>
          Clear filters
        </button>
      )}
    </>
  );
}
