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
