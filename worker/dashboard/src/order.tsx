import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import "./order.css";
import { Button } from "./ui";
import { Icon } from "./icons";
import { useManaged } from "./managed";

// Order is a list whose items are moved by dragging with a mouse, pen or finger,
// or with buttons. Escape cancels a drag.
export function Order<T>({
  items,
  label,
  name,
  keyOf,
  changes = [],
  onMove,
  children,
}: {
  items: T[];
  label: string;
  name: (item: T) => string;
  keyOf: (item: T, i: number) => string;
  /** the paths of what a move may change, as of Button */
  changes?: string[];
  onMove: (from: number, to: number) => void;
  children: (item: T, i: number) => ComponentChildren;
}) {
  const [announcement, announce] = useState("");
  const list = useRef<HTMLOListElement>(null),
    focus = useRef<[at: number, which: number] | null>(null);
  const move = (a: number, b: number) => {
    if (a === b || b < 0 || b >= items.length) return;
    announce(`Moved ${name(items[a])} to position ${b + 1} of ${items.length}.`);
    onMove(a, b);
  };
  // The focus follows the moved item; at an end of the list it goes to the other button.
  useLayoutEffect(() => {
    if (!focus.current) return;
    const [at, which] = focus.current;
    focus.current = null;
    const buttons = list.current?.children[at]?.querySelectorAll<HTMLButtonElement>(":scope > .moves button");
    const wanted = buttons?.[which];
    (wanted?.disabled ? buttons?.[1 - which] : wanted)?.focus();
  }, [items]);
  const press = (a: number, b: number) => {
    focus.current = [b, b < a ? 0 : 1];
    move(a, b);
  };
  const { from, over, grip } = useDrag(list, move);
  const managed = useManaged(...changes);
  return (
    <>
      <ol class="order" aria-label={label} ref={list}>
        {items.map((item, i) => (
          <li key={keyOf(item, i)} class={from === i ? "held" : over === i ? (from < i ? "over below" : "over") : ""}>
            <span
              class={managed ? "grip managed" : "grip"}
              aria-hidden="true"
              title={managed ?? "Drag to reorder"}
              {...(managed ? {} : grip(i))}
            >
              <Icon name="grip" />
            </span>
            <div class="body">{children(item, i)}</div>
            <span class="moves">
              <Button
                kind="quiet"
                icon="up"
                disabled={i === 0}
                changes={changes}
                aria-label={`Move ${name(item)} up`}
                onClick={() => press(i, i - 1)}
              />
              <Button
                kind="quiet"
                icon="down"
                disabled={i === items.length - 1}
                changes={changes}
                aria-label={`Move ${name(item)} down`}
                onClick={() => press(i, i + 1)}
              />
            </span>
          </li>
        ))}
      </ol>
      <p class="hidden" role="status">
        {announcement}
      </p>
    </>
  );
}

const scrollMargin = 72; // px at the top and bottom of the screen where a drag scrolls the page

// useDrag follows the pointer that drags an item: from is the index of the dragged
// item, over that of its new place; both are -1 without a drag.
function useDrag(list: { current: HTMLOListElement | null }, move: (from: number, to: number) => void) {
  const [from, setFrom] = useState(-1),
    [over, setOver] = useState(-1);
  const held = useRef({ y: 0, grabbed: 0 });
  const stop = () => {
    setFrom(-1);
    setOver(-1);
  };
  // place finds the item at the height of the pointer, ignoring the shift of the
  // dragged one, and moves the dragged one to the pointer.
  const place = () => {
    const all = [...list.current!.children] as HTMLElement[],
      y = held.current.y - list.current!.getBoundingClientRect().top;
    all[from]?.style.setProperty("translate", `0 ${Math.round(y - held.current.grabbed)}px`);
    const at = all.findIndex((li) => y < li.offsetTop + li.offsetHeight);
    setOver(at < 0 ? all.length - 1 : at);
  };
  useLayoutEffect(() => {
    if (from < 0) return;
    let frame = requestAnimationFrame(function step() {
      const { y } = held.current,
        by = Math.min(0, y - scrollMargin) || Math.max(0, y - innerHeight + scrollMargin);
      const before = scrollY;
      if (by) scrollBy(0, by / 4);
      if (scrollY !== before) place();
      frame = requestAnimationFrame(step);
    });
    const key = (e: KeyboardEvent) => {
      if (e.key === "Escape") stop();
    };
    addEventListener("keydown", key);
    const item = list.current!.children[from] as HTMLElement | undefined;
    return () => {
      cancelAnimationFrame(frame);
      removeEventListener("keydown", key);
      item?.style.removeProperty("translate");
    };
  }, [from]);
  const grip = (i: number) => ({
    onPointerDown: (e: PointerEvent & { currentTarget: HTMLElement }) => {
      if (e.button !== 0 || !e.isPrimary) return;
      e.currentTarget.setPointerCapture(e.pointerId);
      held.current = { y: e.clientY, grabbed: e.clientY - list.current!.getBoundingClientRect().top };
      setFrom(i);
      setOver(i);
    },
    onPointerMove: (e: PointerEvent) => {
      if (from === i) {
        held.current.y = e.clientY;
        place();
      }
    },
    onPointerUp: () => {
      if (from === i) {
        stop();
        move(from, over);
      }
    },
    onLostPointerCapture: stop,
  });
  return { from, over, grip };
}

// moved returns a copy of the list with one item at another index.
export function moved<T>(list: T[], from: number, to: number): T[] {
  const out = list.slice();
  out.splice(to, 0, ...out.splice(from, 1));
  return out;
}
