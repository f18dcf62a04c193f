// Long lists: only the rows near the screen are in the document.
import "./virtual.css";
import type { ComponentChildren, Ref } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { type Slice, sliceOf } from "./slice";

const virtualFrom = 200; // rows; shorter lists are rendered whole, so that the browser's search finds everything
const guess = 44; // pixels of a row before any is measured

// useVirtual returns the slice of n rows to render. The element of ref has one child
// per row, after a first child of the height before, if that is not 0. Rows may have
// different heights: they are measured as they are rendered.
export function useVirtual<E extends HTMLElement>(
  n: number,
  keyOf: (i: number) => string | number,
): Slice & { ref: Ref<E> } {
  const ref = useRef<E>(null);
  const sizes = useRef(new Map<string | number, number>());
  const whole: Slice = { first: 0, end: n, before: 0, after: 0 };
  const [slice, setSlice] = useState<Slice>({ ...whole, end: Math.min(n, virtualFrom) });
  const virtual = n >= virtualFrom;
  const update = () => {
    const list = ref.current;
    if (!list) return;
    const shown = Array.from(list.children).slice(slice.before > 0 ? 1 : 0, slice.end - slice.first + 1);
    for (let i = slice.first; i < Math.min(slice.end, n); i++) {
      const height = shown[i - slice.first]?.getBoundingClientRect().height;
      if (height) sizes.current.set(keyOf(i), height);
    }
    let sum = 0;
    for (const height of sizes.current.values()) sum += height;
    const usual = sum / sizes.current.size || guess;
    const heights = Array.from({ length: n }, (_, i) => sizes.current.get(keyOf(i)) ?? usual);
    const next = sliceOf(heights, list.getBoundingClientRect().top, innerHeight, slice);
    if (
      next.first !== slice.first ||
      next.end !== slice.end ||
      Math.abs(next.before - slice.before) > 1 ||
      Math.abs(next.after - slice.after) > 1
    )
      setSlice(next);
  };
  const latest = useRef(update);
  latest.current = update;
  useLayoutEffect(() => {
    if (virtual) update();
  });
  useLayoutEffect(() => {
    if (!virtual) return;
    const scrolled = () => latest.current();
    const resized = () => {
      sizes.current.clear();
      latest.current();
    };
    // In the capture phase: scroll events of elements do not bubble.
    addEventListener("scroll", scrolled, { capture: true, passive: true });
    addEventListener("resize", resized);
    return () => {
      removeEventListener("scroll", scrolled, { capture: true });
      removeEventListener("resize", resized);
    };
  }, [virtual]);
  if (!virtual) return { ...whole, ref };
  return { ...slice, first: Math.min(slice.first, n), end: Math.min(slice.end, n), ref };
}

// VirtualBody is the body of a table: from 200 rows on, it renders those near the
// screen. The table needs aria-rowcount, and the rows aria-rowindex.
export function VirtualBody<T>({
  rows,
  columns,
  keyOf,
  children,
}: {
  rows: T[];
  /** number of columns */
  columns: number;
  keyOf: (row: T) => string | number;
  /** returns the tr of a row, with its key */
  children: (row: T, index: number) => ComponentChildren;
}) {
  const { first, end, before, after, ref } = useVirtual<HTMLTableSectionElement>(rows.length, (i) => keyOf(rows[i]));
  return (
    <tbody ref={ref}>
      {before > 0 && <Gap key="before" columns={columns} height={before} />}
      {rows.slice(first, end).map((row, i) => children(row, first + i))}
      {after > 0 && <Gap key="after" columns={columns} height={after} />}
    </tbody>
  );
}

// VirtualList is a list of rows with a line between them: from 200 rows on, it renders
// those near the screen.
export function VirtualList<T>({
  rows,
  keyOf,
  children,
}: {
  rows: T[];
  keyOf: (row: T) => string | number;
  /** returns the content of a row */
  children: (row: T) => ComponentChildren;
}) {
  const { first, end, before, after, ref } = useVirtual<HTMLUListElement>(rows.length, (i) => keyOf(rows[i]));
  const gap = (key: string, height: number) =>
    height > 0 && <li key={key} class="gap" aria-hidden="true" style={{ height: `${height}px` }} />;
  return (
    <ul class="plain" ref={ref}>
      {gap("before", before)}
      {rows.slice(first, end).map((row, i) => (
        <li key={keyOf(row)} class="row between" aria-setsize={rows.length} aria-posinset={first + i + 1}>
          {children(row)}
        </li>
      ))}
      {gap("after", after)}
    </ul>
  );
}

// Gap stands for the rows that are left out.
function Gap({ columns, height }: { columns: number; height: number }) {
  return (
    <tr class="gap" aria-hidden="true">
      <td colSpan={columns} style={{ height: `${height}px` }} />
    </tr>
  );
}
