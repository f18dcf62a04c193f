// The parts of a page: heading, sections, loaded data and tables.
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { number } from "./format";
import type { Action, Loaded } from "./hooks";
import { restoreScroll } from "./route";
import { type Children, ErrorBox, Skeleton } from "./ui";

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
        {actions && <div class="row wrap">{actions}</div>}
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

// Load shows the state of a call: a skeleton while it runs, its error, or its data.
export function Load<T>({
  of,
  what,
  rows = 3,
  said,
  children,
}: {
  of: Omit<Loaded<T>, "set">;
  what: string;
  rows?: number;
  /** an error that the page shows itself */
  said?: string;
  children: (data: T) => ComponentChildren;
}) {
  if (of.data === null && !of.error) return <Skeleton what={what} rows={rows} />;
  return (
    <>
      {of.error && of.error !== said && <ErrorBox retry={of.reload}>{of.error}</ErrorBox>}
      {of.data !== null && children(of.data)}
    </>
  );
}

// MoreRows says that a list is cut.
export function MoreRows({ n }: { n: number }) {
  return n > 0 ? <p class="muted small">{number(n)} more. Search to see them.</p> : null;
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

// ActionsHead is the head of a column of buttons.
export const ActionsHead = () => (
  <th>
    <span class="hidden">Actions</span>
  </th>
);

// Table scrolls horizontally where it is too wide, and says so. A stacked one shows each row as a
// card there, with data-label as the names of the cells. Each row of a list is one line: its cells
// of the class fill share the width, and cut what does not fit.
export function Table({
  label,
  stacked,
  list,
  rowCount,
  children,
}: Children & {
  label: string;
  stacked?: boolean;
  list?: boolean;
  /** with the head, if VirtualBody renders only some rows */
  rowCount?: number;
}) {
  const box = useRef<HTMLDivElement>(null);
  const [wide, setWide] = useState(false);
  useEffect(() => {
    const el = box.current!;
    const measure = new ResizeObserver(() => setWide(el.scrollWidth > el.clientWidth + 1));
    measure.observe(el);
    measure.observe(el.firstElementChild!);
    return () => measure.disconnect();
  }, []);
  return (
    <>
      <div
        class={`scroll ${stacked ? "stacked" : ""} ${list ? "list" : ""}`}
        tabIndex={0}
        role="region"
        aria-label={label}
        ref={box}
      >
        <table aria-rowcount={rowCount}>{children}</table>
      </div>
      {wide && <p class="muted small">Scroll the table sideways for more columns.</p>}
    </>
  );
}

// Fit shows a figure of a tile in letters that let it fit.
export const Fit = ({ children }: { children: string }) => (
  <span class="fit" style={{ "--n": String(children.length) }}>
    {children}
  </span>
);
