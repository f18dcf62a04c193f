// A call of the playground: its model, its answer and how it was served.
import { useEffect, useId } from "preact/hooks";
import { apiError, type Machine } from "../../api";
import type { ConnectionRow } from "../../api-types";
import { ask, served } from "../../client";
import { Code } from "../../code";
import { useMemoryState } from "../../draft";
import { count, number } from "../../format";
import { Tabs } from "../../tabs";
import { useAction } from "../../hooks";
import { Table } from "../../layout";
import { useFilter } from "../../route";
import { Field, Notice } from "../../ui";
import { type Language, snippet } from "./snippets";

// TryProps is what every part of the playground receives.
export interface TryProps {
  machine: Machine;
  models: string[];
  connections: ConnectionRow[];
}

// Sent is a call that was answered.
export interface Sent {
  path: string;
  body: object;
  res: Response;
  /** until the answer began; a turn of a conversation has its own times */
  ms?: number;
}

// useInput is useState for an input of a part of the playground, which is remembered
// until the page is closed.
export const useInput = <T,>(machine: Machine, name: string, initial: T) =>
  useMemoryState<T>(`try ${machine.id} ${name}`, initial);

// useModel returns the model of a part of the playground: the one in the address, the
// one of an earlier visit, or the first.
export function useModel(
  { machine, models }: Pick<TryProps, "machine" | "models">,
  name: string,
): [model: string, set: (model: string) => void] {
  const [asked, ask] = useFilter("model", "");
  const [model, set] = useInput(machine, `${name} model`, asked || models[0]);
  useEffect(() => {
    if (asked) set(asked);
  }, []);
  return [
    model,
    (next) => {
      ask(next);
      set(next);
    },
  ];
}

// useTry makes calls of one path and remembers the result of the last one. read parses
// the body of a successful answer.
export function useTry<T>(machine: TryProps["machine"], path: string, read: (res: Response) => Promise<T>) {
  const [sent, setSent] = useInput<Sent | null>(machine, `${path} sent`, null),
    [result, setResult] = useInput<T | null>(machine, `${path} result`, null);
  const act = useAction();
  // The body may be a function that makes another call first.
  const run = (of: object | (() => Promise<object>)) =>
    act.run(async () => {
      setSent(null);
      setResult(null);
      const body = typeof of === "function" ? await of() : of;
      const began = performance.now();
      const res = await ask(machine, path, body);
      setSent({ path, body, res, ms: Math.round(performance.now() - began) });
      if (!res.ok) throw await apiError(res);
      setResult(await read(res));
    });
  return { sent, result, act, run };
}

// ModelField selects a model.
export function ModelField({
  label = "Model",
  models,
  value,
  onPick,
}: {
  label?: string;
  models: string[];
  value: string;
  onPick: (m: string) => void;
}) {
  const id = useId();
  return (
    <>
      <Field label={label}>
        <input
          list={id}
          required
          autocapitalize="none"
          spellcheck={false}
          value={value}
          onInput={(e) => onPick(e.currentTarget.value)}
        />
      </Field>
      <datalist id={id}>
        {models.slice(0, 800).map((m) => (
          <option key={m} value={m} />
        ))}
      </datalist>
    </>
  );
}

const languages: [Language, string][] = [
  ["curl", "curl"],
  ["python", "Python"],
  ["node", "Node.js"],
];

// Snippets shows a call as code. body is a function, because it is called only while
// the code is shown.
export function Snippets({ machine, path, body }: { machine: Machine; path: string; body: () => object }) {
  const [open, setOpen] = useInput(machine, "code open", false),
    [language, setLanguage] = useInput<Language>(machine, "language", "curl");
  return (
    <details open={open} onToggle={(e) => setOpen(e.currentTarget.open)}>
      <summary>Copy as code</summary>
      {open && (
        <div class="stack">
          <Tabs label="Language" value={language} items={languages} onPick={setLanguage} />
          <Code
            label={`${languages.find(([l]) => l === language)![1]} code`}
            text={snippet(language, location.origin, path, body())}
          />
        </div>
      )}
    </details>
  );
}

// Details shows how a call was served, and the call as code with machine. of is the name
// of the answer if there are two.
export function Details({ machine, sent, of = "" }: { machine?: Machine; sent: Sent; of?: string }) {
  const s = served(sent.res);
  return (
    <div class="stack">
      <p class="muted small" role="status">
        {sent.res.status}
        {sent.ms !== undefined && ` · ${number(sent.ms)} ms`}
        {s.model && (
          <>
            {" "}
            · <code>{s.model}</code>
          </>
        )}
        {s.attempts > 0 && ` · ${count(s.attempts, "attempt")}`}
      </p>
      {s.dropped && (
        <Notice kind="warn">The provider does not support these fields, so they were not sent: {s.dropped}</Notice>
      )}
      {s.set && <p class="muted small">Set by weir: {s.set}</p>}
      <details>
        <summary>Response headers</summary>
        <Table label={of ? `Response headers, ${of}` : "Response headers"} stacked>
          <tbody class="heads">
            {[...sent.res.headers]
              .filter(([k]) => !k.startsWith("access-control-"))
              .map(([k, v]) => (
                <tr key={k}>
                  <th scope="row">
                    <code>{k}</code>
                  </th>
                  <td>
                    <code>{v}</code>
                  </td>
                </tr>
              ))}
          </tbody>
        </Table>
      </details>
      {machine && <Snippets machine={machine} path={sent.path} body={() => sent.body} />}
    </div>
  );
}
