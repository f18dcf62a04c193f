import { useEffect, useRef, useState } from "preact/hooks";
import { apiError, errorText } from "../../api";
import { ask } from "../../client";
import { useMemoryState } from "../../drafts";
import { number } from "../../format";
import { Section } from "../../layout";
import { Button, ErrorBox, Field } from "../../ui";
import { Details, ModelField, type Sent, type TryProps } from "./call";
import { events } from "./events";

interface Turn {
  role: "user" | "assistant";
  content: string;
  /** the model that was asked, of an answer */
  model?: string;
  thought?: string;
  note?: string;
}

const path = "/v1/chat/completions";

// Chat is a conversation with a model. Answers are shown as plain text.
export function Chat({ machine, models }: TryProps) {
  const key = (name: string) => `chat ${machine.id} ${name}`;
  const [model, setModel] = useMemoryState(key("model"), models[0]),
    [system, setSystem] = useMemoryState(key("system"), ""),
    [draft, setDraft] = useMemoryState(key("draft"), "", (text) => text !== ""),
    [limit, setLimit] = useMemoryState(key("limit"), "");
  const [turns, setTurns] = useMemoryState<Turn[]>(key("turns"), [], (list) => list.length > 0),
    [sent, setSent] = useState<Sent | null>(null),
    [error, setError] = useState("");
  const running = useRef<AbortController | null>(null);
  const [busy, setBusy] = useState(false);
  const input = useRef<HTMLTextAreaElement>(null),
    end = useRef<HTMLDivElement>(null);
  useEffect(() => () => running.current?.abort(), []);
  useEffect(() => {
    end.current?.scrollIntoView({ block: "nearest" });
  }, [turns]);

  const send = async () => {
    const text = draft.trim();
    if (!text || busy) return;
    const ctl = new AbortController();
    running.current = ctl;
    const before = [...turns, { role: "user", content: text } as Turn];
    const answer: Turn = { role: "assistant", content: "", model };
    const show = () => setTurns([...before, { ...answer }]);
    show();
    setDraft("");
    setError("");
    setSent(null);
    setBusy(true);
    const body = {
      model,
      stream: true,
      stream_options: { include_usage: true },
      ...(limit ? { max_completion_tokens: Number(limit) } : {}),
      messages: [
        ...(system.trim() ? [{ role: "system", content: system.trim() }] : []),
        ...before.map(({ role, content }) => ({ role, content })),
      ],
    };
    const began = performance.now();
    try {
      const res = await ask(machine, path, body, ctl.signal);
      setSent({ path, body, res, ms: Math.round(performance.now() - began) });
      if (!res.ok) throw await apiError(res);
      let painted = 0;
      for await (const data of events(res.body!)) {
        if (data === "[DONE]") break;
        const part = JSON.parse(data);
        if (part.error) throw new Error(part.error.message ?? "The answer was interrupted.");
        const delta = part.choices?.[0]?.delta ?? {};
        if (typeof delta.content === "string") answer.content += delta.content;
        const thought = delta.reasoning_content ?? delta.reasoning;
        if (typeof thought === "string") answer.thought = (answer.thought ?? "") + thought;
        if (part.usage)
          answer.note = `${part.usage.prompt_tokens ?? "?"} tokens in, ${part.usage.completion_tokens ?? "?"} out, ${number(Math.round(performance.now() - began))} ms`;
        if (performance.now() - painted > 40) {
          painted = performance.now();
          show();
        }
      }
      show();
    } catch (e) {
      if (ctl.signal.aborted) {
        answer.note = "Stopped";
        show();
      } else {
        setError(errorText(e));
        if (answer.content || answer.thought) show();
        else {
          setTurns(turns);
          setDraft(text);
        }
      }
    } finally {
      running.current = null;
      setBusy(false);
      input.current?.focus();
    }
  };
  const submit = (e: Event) => {
    e.preventDefault();
    void send();
  };
  const sendOnEnter = (e: KeyboardEvent) => {
    if (e.key === "Enter" && !e.shiftKey && !e.isComposing) submit(e);
  };
  const restart = () => {
    running.current?.abort();
    setTurns([]);
    setSent(null);
    setError("");
  };
  return (
    <>
      <Section
        title="Chat"
        actions={
          <Button disabled={turns.length === 0} onClick={restart}>
            New chat
          </Button>
        }
      >
        <div class="grid">
          <ModelField models={models} value={model} onPick={setModel} />
          <Field label="System prompt">
            <input value={system} onInput={(e) => setSystem(e.currentTarget.value)} />
          </Field>
          <Field label="Max output tokens">
            <input
              type="number"
              min={1}
              placeholder="Default of the model"
              value={limit}
              onInput={(e) => setLimit(e.currentTarget.value)}
            />
          </Field>
        </div>
        <div class="talk" role="log" aria-label="Conversation" aria-busy={busy} tabIndex={0}>
          {turns.length === 0 && <p class="muted">Send a message to begin.</p>}
          {turns.map((t, i) => (
            <div key={i} class={`turn ${t.role}`}>
              <span class="muted small">{t.role === "user" ? "You" : t.model}</span>
              {t.thought && (
                <details>
                  <summary class="small">Reasoning</summary>
                  <p class="said muted" dir="auto">
                    {t.thought}
                  </p>
                </details>
              )}
              <p class="said" dir="auto">
                {t.content || (busy && i === turns.length - 1 && <span class="spinner" aria-hidden="true" />)}
              </p>
              {t.note && <small class="muted">{t.note}</small>}
            </div>
          ))}
          <div ref={end} />
        </div>
        {error && <ErrorBox>{error}</ErrorBox>}
        <form class="row end" onSubmit={submit}>
          <Field label="Message">
            <textarea
              class="prose"
              dir="auto"
              rows={2}
              ref={input}
              value={draft}
              onInput={(e) => setDraft(e.currentTarget.value)}
              onKeyDown={sendOnEnter}
            />
          </Field>
          {busy ? (
            <Button kind="danger" onClick={() => running.current?.abort()}>
              Stop
            </Button>
          ) : (
            <Button kind="main" type="submit" disabled={!draft.trim()}>
              Send
            </Button>
          )}
        </form>
      </Section>
      {sent && <Details sent={sent} />}
    </>
  );
}
