import { clock, day, time, when } from "./format";

const forms = { full: when, day, time, clock };

// Time shows a time in the browser's time zone, with UTC in its tooltip; "Never" for
// a missing one.
export function Time({ at, as = "full" }: { at?: number; as?: keyof typeof forms }) {
  if (!at) return <>Never</>;
  const iso = new Date(at).toISOString();
  return (
    <time dateTime={iso} title={`${iso.slice(0, 19).replace("T", " ")} UTC`}>
      {forms[as](at)}
    </time>
  );
}
