import "./middle.css";

const whole = 16; // characters that are never cut
const least = 3; // characters that have room for an ellipsis

// Middle shows the id of a model on one line. A long one has its ellipsis in the middle, since ids
// differ in the alias before the slash and at the end; the tooltip has it whole.
export function Middle({
  children: id,
  end = 10,
}: {
  children: string;
  /** characters at the end that are always shown: the size or the version of a model */
  end?: number;
}) {
  const all = [...id];
  if (all.length <= whole) return <bdi class="middle whole">{id}</bdi>;
  const slash = all.indexOf("/") + 1;
  const rest = all.length - end;
  const from = rest - slash < least ? slash : rest;
  return (
    <bdi class="middle" title={id}>
      <span class="hidden">{id}</span>
      <span aria-hidden="true" class="one alias">
        {all.slice(0, slash).join("")}
      </span>
      <span aria-hidden="true" class="one">
        {all.slice(slash, from).join("")}
      </span>
      <span aria-hidden="true">{all.slice(from).join("")}</span>
    </bdi>
  );
}
