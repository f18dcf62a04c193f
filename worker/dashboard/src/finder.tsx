// A list that is searched: of a select with many options, and of the command palette.
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { number } from "./format";
import { Icon } from "./icons";
import { Cut } from "./ui";
import "./finder.css";

export interface Found {
  id: string;
  name: string;
  /** beside the name; it is searched too */
  note?: string;
}

const most = 50; // that are shown

// matches reports whether something has all words of a text.
export function matches(i: Found, text: string) {
  const all = `${i.name} ${i.note ?? ""} ${i.id}`.toLowerCase();
  return text
    .toLowerCase()
    .split(/\s+/)
    .every((w) => all.includes(w));
}

// Finder is a search with its results, which arrow keys and Enter choose from.
export function Finder<T extends Found>({
  label,
  items,
  value,
  more,
  onPick,
}: {
  label: string;
  items: T[];
  /** id of the present choice */
  value?: string;
  /** results behind the others, of the text that is typed */
  more?: (text: string) => T[];
  onPick: (item: T) => void;
}) {
  const [text, setText] = useState(""),
    [at, setAt] = useState(0);
  const id = useId();
  const input = useRef<HTMLInputElement>(null),
    list = useRef<HTMLUListElement>(null);
  const found = items.filter((i) => matches(i, text));
  const shown = [...found.slice(0, most), ...(more?.(text) ?? [])],
    current = Math.min(at, shown.length - 1);
  useEffect(() => input.current?.focus(), []);
  useEffect(() => list.current?.children[current]?.scrollIntoView({ block: "nearest" }), [current]);
  const pressed = (e: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[e.key];
    if (!step && e.key !== "Enter") return;
    e.preventDefault();
    if (step) setAt(Math.max(0, Math.min(current + step, shown.length - 1)));
    else if (shown[current]) onPick(shown[current]);
  };
  return (
    <div class="finder">
      <label class="search">
        <Icon name="search" />
        <input
          ref={input}
          type="search"
          list={undefined}
          role="combobox"
          aria-label={label}
          aria-expanded="true"
          aria-controls={id}
          aria-activedescendant={shown[current] && `${id}-${current}`}
          autocomplete="off"
          autocapitalize="none"
          spellcheck={false}
          placeholder={label}
          value={text}
          onInput={(e) => {
            setText(e.currentTarget.value);
            setAt(0);
          }}
          onKeyDown={pressed}
        />
      </label>
      <ul role="listbox" id={id} aria-label={label} ref={list}>
        {shown.map((item, i) => (
          <li
            key={item.id}
            id={`${id}-${i}`}
            role="option"
            tabIndex={-1}
            aria-selected={i === current}
            class={item.id === value ? "now" : ""}
            onPointerUp={() => onPick(item)}
          >
            <Cut>{item.name}</Cut> {item.note && <small class="muted">{item.note}</small>}
          </li>
        ))}
      </ul>
      <p class="muted small" role="status">
        {found.length === 0
          ? "Nothing found."
          : found.length > most && `${number(most)} of ${number(found.length)}. Type to narrow them down.`}
      </p>
    </div>
  );
}
