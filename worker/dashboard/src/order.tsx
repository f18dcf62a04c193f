import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { Button } from "./ui";
import { Icon } from "./icons";

// Order is a list whose items are moved by dragging, or with their buttons.
export function Order<T>({ items, label, name, keyOf, onMove, children }: {
  items: T[];
  label: string;
  name: (item: T) => string;
  keyOf: (item: T, i: number) => string;
  onMove: (from: number, to: number) => void;
  children: (item: T, i: number) => ComponentChildren;
}) {
  const [from, setFrom] = useState(-1), [over, setOver] = useState(-1), [said, say] = useState("");
  const list = useRef<HTMLOListElement>(null), focus = useRef<[at: number, which: number] | null>(null);
  const move = (a: number, b: number) => {
    if (a === b || b < 0 || b >= items.length) return;
    say(`${name(items[a])} is number ${b + 1} of ${items.length} now.`);
    onMove(a, b);
  };
  // The button that moved an item goes with it; at an end the other one has the focus.
  useLayoutEffect(() => {
    if (!focus.current) return;
    const [at, which] = focus.current;
    focus.current = null;
    const buttons = list.current?.children[at]?.querySelectorAll<HTMLButtonElement>(":scope > .moves button");
    const wanted = buttons?.[which];
    (wanted?.disabled ? buttons?.[1 - which] : wanted)?.focus();
  }, [items]);
  const press = (a: number, b: number) => { focus.current = [b, b < a ? 0 : 1]; move(a, b); };
  const stop = () => { setFrom(-1); setOver(-1); };
  return (
    <>
      <ol class="order" aria-label={label} ref={list}>
        {items.map((item, i) => (
          <li key={keyOf(item, i)} class={over === i && from !== i ? (from < i ? "over below" : "over") : from === i ? "held" : ""}
            onDragOver={(e) => { if (from >= 0) { e.preventDefault(); setOver(i); } }}
            onDrop={(e) => { e.preventDefault(); if (from >= 0) move(from, i); stop(); }}>
            <span class="grip" draggable aria-hidden="true" title="Drag to change the order" onDragEnd={stop}
              onDragStart={(e) => {
                setFrom(i);
                if (!e.dataTransfer) return;
                e.dataTransfer.effectAllowed = "move";
                e.dataTransfer.setData("text/plain", String(i));
                e.dataTransfer.setDragImage(e.currentTarget.parentElement!, 12, 24);
              }}>
              <Icon name="grip" />
            </span>
            <div class="body">{children(item, i)}</div>
            <span class="moves">
              <Button kind="quiet" icon="up" disabled={i === 0} aria-label={`Move ${name(item)} up`} onClick={() => press(i, i - 1)} />
              <Button kind="quiet" icon="down" disabled={i === items.length - 1} aria-label={`Move ${name(item)} down`} onClick={() => press(i, i + 1)} />
            </span>
          </li>
        ))}
      </ol>
      <p class="hidden" role="status">{said}</p>
    </>
  );
}

// moved gives a copy of the list with one item elsewhere.
export function moved<T>(list: T[], from: number, to: number): T[] {
  const out = list.slice();
  out.splice(to, 0, ...out.splice(from, 1));
  return out;
}
