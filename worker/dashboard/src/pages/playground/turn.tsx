import type { Machine } from "../../api";
import { Copy } from "../../code";
import { money } from "../../amounts";
import { indented, number } from "../../format";
import { to } from "../../route";
import type { Result, Turn } from "./body";
import { CodeBlock, Markdown } from "./markdown";
import { Pictures } from "./pictures";

// TurnView shows a message of a conversation.
export function TurnView({ machine, turn, running }: { machine: Machine; turn: Turn; running: boolean }) {
  return (
    <div class={`turn ${turn.role}`}>
      <span class="muted small">
        {turn.role === "user" ? "You" : turn.role === "tool" ? "Tool result" : turn.model}
      </span>
      {turn.thought && (
        <details>
          <summary class="small">Reasoning</summary>
          <p class="said muted" dir="auto">
            {turn.thought}
          </p>
        </details>
      )}
      {turn.role === "assistant" ? (
        <Answer turn={turn} running={running} />
      ) : (
        turn.content && (
          <p class="said" dir="auto">
            {turn.content}
          </p>
        )
      )}
      <Pictures list={turn.pictures ?? []} />
      {turn.result && (
        <div class="row tight wrap">
          <small class="muted">{summary(turn.result)}</small>
          {(turn.result.costUsd !== undefined || turn.result.unpriced) && (
            <a class="small" href={to(machine.id, "requests", turn.result.requestId)}>
              Request
            </a>
          )}
          {turn.content && <Copy text={turn.content} label="Copy answer" />}
        </div>
      )}
    </div>
  );
}

function Answer({ turn, running }: { turn: Turn; running: boolean }) {
  const json = turn.json && !running ? indented(turn.content) : "";
  return (
    <>
      {json ? (
        <CodeBlock text={json} language="json" />
      ) : turn.content ? (
        <Markdown text={turn.content} />
      ) : (
        running && !turn.calls && <span class="spinner" aria-hidden="true" />
      )}
      {turn.calls?.map((c, i) => (
        <div key={i} class="stack">
          <p class="small">
            Calls <code>{c.name}</code>
          </p>
          <CodeBlock text={indented(c.arguments) || c.arguments} language="json" />
        </div>
      ))}
    </>
  );
}

// summary returns what an answer took: "12 tokens in, 34 out · 812 ms (first token
// after 120 ms) · $0.0012".
function summary(r: Result): string {
  const first = r.firstMs !== undefined ? ` (first token after ${number(r.firstMs)} ms)` : "";
  return [
    r.stopped && "Stopped",
    r.output !== undefined && `${number(r.input ?? 0)} tokens in, ${number(r.output)} out`,
    `${number(r.ms)} ms${first}`,
    r.costUsd !== undefined && money(r.costUsd),
    r.unpriced && "price unknown",
  ]
    .filter(Boolean)
    .join(" · ");
}
