import { useState } from "preact/hooks";
import { apiError, type Machine } from "../../api";
import { ask, served, type Served } from "../../client";
import { count } from "../../format";
import { useAction } from "../../hooks";
import { Button } from "../../ui";

// calls are the test calls of the kinds that have one.
const calls: Record<string, [path: string, body: (model: string) => object]> = {
  llm: [
    "/v1/chat/completions",
    (model) => ({ model, messages: [{ role: "user", content: "Say hello in one word." }], max_completion_tokens: 64 }),
  ],
  embedding: ["/v1/embeddings", (model) => ({ model, input: "hello" })],
  rerank: ["/v1/rerank", (model) => ({ model, query: "hello", documents: ["hello", "goodbye"] })],
  webSearch: ["/v1/search", (model) => ({ model, query: "hello", max_results: 1 })],
};

// useTry returns the button that makes a test call of a combo, and what came of it.
export function useTry(machine: Machine, model: string, kind: string) {
  const [result, setResult] = useState<Served | null>(null);
  const act = useAction();
  const call = calls[kind];
  if (!call) return {};
  const run = () =>
    act.run(async () => {
      setResult(null);
      const res = await ask(machine, call[0], call[1](model));
      if (!res.ok) throw await apiError(res);
      await res.text();
      setResult(served(res));
    });
  return {
    button: (
      <Button busy={act.busy} aria-label={`Try it: ${model}`} onClick={() => void run()}>
        Try it
      </Button>
    ),
    said: (
      <p role="status" class={act.error ? "small bad" : "small"}>
        {act.error ||
          (result && (
            <>
              <span class="good">Answered</span> by <code>{result.model}</code> · {count(result.attempts, "attempt")}
            </>
          ))}
      </p>
    ),
  };
}
