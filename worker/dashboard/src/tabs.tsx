import { useEffect, useRef } from "preact/hooks";

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
  const box = useRef<HTMLFieldSetElement>(null);
  // On a phone the tabs are one line, which may be longer than the screen.
  useEffect(() => {
    const tab = box.current!.querySelector(":checked")?.parentElement;
    if (tab) box.current!.scrollLeft = tab.offsetLeft - 32;
  }, [value]);
  return (
    <fieldset class="tabs" ref={box}>
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
