import { useState } from "preact/hooks";
import type { ConnectionRow, Plan } from "../api-types";
import { useAction, useLoad } from "../hooks";
import type { PageProps } from "../page";
import { Page, Section } from "../layout";
import { Button, ErrorBox, Field } from "../ui";
import { pasted } from "./explain/curl";
import { Steps } from "./explain/steps";

// examples are the paths that can be explained, each with an example body.
const examples: [path: string, segment: string, body: (model: string) => object][] = [
  ["/v1/chat/completions", "llm", (model) => ({ model, messages: [{ role: "user", content: "Hello" }] })],
  ["/v1/messages", "llm", (model) => ({ model, max_tokens: 256, messages: [{ role: "user", content: "Hello" }] })],
  ["/v1/messages/count_tokens", "llm", (model) => ({ model, messages: [{ role: "user", content: "Hello" }] })],
  ["/v1/responses", "llm", (model) => ({ model, input: "Hello" })],
  ["/v1/embeddings", "embedding", (model) => ({ model, input: "Hello" })],
  ["/v1/rerank", "rerank", (model) => ({ model, query: "Hello", documents: ["Hello", "Goodbye"] })],
  ["/v1/audio/speech", "tts", (model) => ({ model, input: "Hello", voice: "alloy" })],
  ["/v1/images/generations", "image", (model) => ({ model, prompt: "A river" })],
  ["/v1/videos/generations", "video", (model) => ({ model, prompt: "A river" })],
  ["/v1/search", "web", (model) => ({ model, query: "Hello" })],
  ["/v1/web/fetch", "web", (model) => ({ model, url: "https://example.com/" })],
  ["/v1/moderations", "llm", (model) => ({ model, input: "Hello" })],
];

// Explain shows which accounts a request would try, without sending it.
export default function Explain({ machine }: PageProps) {
  const [path, setPath] = useState(examples[0][0]),
    [text, setText] = useState(""),
    [pin, setPin] = useState("");
  const [plan, setPlan] = useState<Plan | null>(null);
  const act = useAction();
  const example = examples.find(([p]) => p === path) ?? examples[0];
  const models = useLoad(() => machine.modelIds(example[1]), [machine, example[1]]);
  const conns = useLoad(() => machine.list<ConnectionRow>("/providers"), [machine]);
  const fill = () => setText(JSON.stringify(example[2](models.data?.[0] ?? "provider/model"), null, 2));
  const run = (e: Event) => {
    e.preventDefault();
    void act.run(async () => {
      setPlan(null);
      const call = pasted(text);
      // A curl command includes the path. A known one is selected.
      const known = examples.find(([p]) => call.path?.endsWith(p))?.[0];
      if (known) setPath(known);
      setPlan(
        await machine.post<Plan>("/explain", {
          path: known ?? call.path ?? path,
          body: call.body,
          ...(pin ? { connectionId: pin } : {}),
        }),
      );
    });
  };
  return (
    <Page title="Explain" intro="Preview how a request is routed. Nothing is sent to a provider.">
      <Section title="Request">
        <form onSubmit={run}>
          <div class="grid">
            <Field label="Path">
              <select
                value={path}
                onChange={(e) => {
                  setPath(e.currentTarget.value);
                  setPlan(null);
                }}
              >
                {examples.map(([p]) => (
                  <option key={p}>{p}</option>
                ))}
              </select>
            </Field>
            <Field label="Connection" hint="Same as the x-connection-id header.">
              <select value={pin} onChange={(e) => setPin(e.currentTarget.value)}>
                <option value="">Any</option>
                {conns.data?.map((c) => (
                  <option key={c.id} value={c.id}>
                    {c.name || c.provider}
                  </option>
                ))}
              </select>
            </Field>
          </div>
          <Field label="Body">
            <textarea
              required
              rows={10}
              spellcheck={false}
              placeholder="Paste the JSON body of a request, or a curl command"
              value={text}
              onInput={(e) => setText(e.currentTarget.value)}
            />
          </Field>
          {act.error && <ErrorBox>{act.error}</ErrorBox>}
          <div class="row">
            <Button kind="main" type="submit" busy={act.busy}>
              Explain
            </Button>
            <Button onClick={fill} disabled={models.loading}>
              Insert example
            </Button>
          </div>
        </form>
      </Section>
      {plan && <Steps plan={plan} machineId={machine.id} />}
    </Page>
  );
}
