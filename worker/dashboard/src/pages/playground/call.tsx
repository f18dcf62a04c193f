// A call of the playground: its model, its answer and how it was served.
import { useState } from "preact/hooks";
import { apiError, type Machine } from "../../api";
import type { ConnectionRow } from "../../api-types";
import { ask, curlOf, served } from "../../client";
import { count, number } from "../../format";
import { useAction } from "../../hooks";
import { Code } from "../../code";
import { Table } from "../../layout";
import { Field, Notice } from "../../ui";

// TryProps is what every part of the playground receives.
export interface TryProps {
  machine: Machine;
  models: string[];
  connections: ConnectionRow[];
}

// Sent is a call that was answered.
export interface Sent {
  path: string;
  body: unknown;
  res: Response;
  ms: number;
}

// useTry makes calls of one path and holds the result of the last one. read parses
// the body of a successful answer.
export function useTry<T>(machine: TryProps["machine"], path: string, read: (res: Response) => Promise<T>) {
  const [sent, setSent] = useState<Sent | null>(null),
    [result, setResult] = useState<T | null>(null);
  const act = useAction();
  // The body may be a function that makes another call first.
  const run = (of: unknown) =>
    act.run(async () => {
      setSent(null);
      setResult(null);
      const body: unknown = typeof of === "function" ? await of() : of;
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
  models,
  value,
  onPick,
}: {
  models: string[];
  value: string;
  onPick: (m: string) => void;
}) {
  return (
    <Field label="Model">
      <input
        list="try-models"
        required
        autocapitalize="none"
        spellcheck={false}
        value={value}
        onInput={(e) => onPick(e.currentTarget.value)}
      />
      <datalist id="try-models">
        {models.slice(0, 800).map((m) => (
          <option key={m} value={m} />
        ))}
      </datalist>
    </Field>
  );
}

// Details shows the status and headers of an answer, and the call as a command.
export function Details({ sent }: { sent: Sent }) {
  const s = served(sent.res);
  return (
    <div class="stack">
      <p class="muted small" role="status">
        {sent.res.status} · {number(sent.ms)} ms
        {s.model && (
          <>
            {" "}
            · <code>{s.model}</code>
          </>
        )}
        {s.attempts > 0 && ` · ${count(s.attempts, "attempt")}`}
      </p>
      {s.dropped.length > 0 && (
        <Notice kind="warn">
          The provider does not support these fields, so they were not sent: {s.dropped.join(", ")}
        </Notice>
      )}
      <details>
        <summary>Response headers</summary>
        <Table label="Response headers" stacked>
          <tbody class="heads">
            {[...sent.res.headers].map(([k, v]) => (
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
      <details>
        <summary>Copy as curl</summary>
        <Code label="curl command" text={curlOf(sent.path, sent.body)} />
      </details>
    </div>
  );
}
