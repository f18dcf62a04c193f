import { useState } from "preact/hooks";
import { duration } from "../api";
import type { PageProps } from "../app";
import { useAction, useLoad } from "../hooks";
import { to } from "../route";
import { Badge, Button, Empty, ErrorBox, Field, Notice, Page, Section } from "../ui";
import type { ConnectionRow } from "../connections";
import { pasted } from "./explain/curl";

interface Step {
  try: number;
  model: string;
  provider: string;
  connectionId: string;
  connectionName: string;
  upstream: string;
  translated: string[];
  dropped: string[];
  skipped: string;
  cooldownMs: number;
  trial: boolean;
}

interface Plan {
  path: string;
  maxAttempts: number;
  billable: boolean;
  plan: Step[];
}

// examples are the paths whose calls are planned, each with a body to begin with.
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

const skips: Record<string, string> = {
  rate_limited: "the provider limits its rate",
  unauthorized: "its credential was refused",
  quota: "it has no credit left",
  unavailable: "it failed several times",
  needs_reauth: "it must be signed in again",
  needs_key: "it has no usable credential",
  pinned: "the call names another connection",
  incomplete: "it lacks something that its address needs",
  no_credential: "it has no credential for this model",
  needs_credential: "it has no credential",
  inactive: "it is switched off",
  refused: "its model takes no such request: the call would end here",
  not_reached: "the call has ended before",
};

// Explain shows what a request would lead to, without sending it.
export default function Explain({ machine }: PageProps) {
  const [path, setPath] = useState(examples[0][0]),
    [text, setText] = useState(""),
    [pin, setPin] = useState("");
  const [plan, setPlan] = useState<Plan | null>(null);
  const act = useAction();
  const example = examples.find(([p]) => p === path) ?? examples[0];
  const models = useLoad(
    async () => (await machine.get<{ data: { id: string }[] }>(`/models/list/${example[1]}`)).data.map((m) => m.id),
    [machine, example[1]],
  );
  const conns = useLoad(async () => (await machine.get<{ data: ConnectionRow[] }>("/providers")).data, [machine]);
  const fill = () => setText(JSON.stringify(example[2](models.data?.[0] ?? "provider/model"), null, 2));
  const run = (e: Event) => {
    e.preventDefault();
    void act.run(async () => {
      setPlan(null);
      const call = pasted(text);
      // A command names its path; one that is offered here is picked.
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
    <Page title="Explain" intro="What a request would lead to now. Nothing is sent to a provider.">
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
            <Field label="Connection" hint="As the header x-connection-id would name it.">
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
              placeholder="Paste the JSON of a request, or a curl command that sends it"
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
              Put in an example
            </Button>
          </div>
        </form>
      </Section>
      {plan && <Steps plan={plan} machineId={machine.id} />}
    </Page>
  );
}

function Steps({ plan, machineId }: { plan: Plan; machineId: string }) {
  const tried = plan.plan.filter((s) => s.try > 0 && !s.skipped),
    left = plan.plan.filter((s) => s.try === 0 || s.skipped);
  return (
    <Section
      title="Plan"
      intro={
        tried.length > 0
          ? `Tried from the first on until one answers, ${plan.maxAttempts} attempts at most.`
          : undefined
      }
    >
      <p class="hidden" role="status">
        {tried.length} of {plan.plan.length} accounts would be tried.
      </p>
      {plan.billable && (
        <Notice kind="warn">
          This makes something that is paid for: it is sent again only after a definite refusal.
        </Notice>
      )}
      {plan.plan.length === 0 && <Empty title="No account serves this model" />}
      {plan.plan.length > 0 && tried.length === 0 && (
        <Notice kind="warn">
          No account can be tried now. The call would be refused
          {Math.max(...left.map((s) => s.cooldownMs)) > 0
            ? ` until the first one is ready again, in ${duration(Math.min(...left.filter((s) => s.cooldownMs > 0).map((s) => s.cooldownMs)))}`
            : ""}
          .
        </Notice>
      )}
      {tried.length > 0 && (
        <ol class="steps" aria-label="Attempts">
          {tried.map((s) => (
            <li key={`${s.try}`} class={s.try > plan.maxAttempts ? "muted" : ""}>
              <span class="place" aria-hidden="true">
                {s.try}
              </span>
              <div>
                <p>
                  <a href={to(machineId, "providers", s.connectionId)}>
                    <bdi>{s.connectionName || s.provider}</bdi>
                  </a>{" "}
                  as <code>{s.model}</code> {s.trial && <Badge kind="warn">on trial</Badge>}{" "}
                  {s.try > plan.maxAttempts && <Badge>never reached</Badge>}
                </p>
                <p class="small muted">
                  <code>{s.upstream}</code>
                </p>
                {s.trial && <p class="small">It comes back from a long cooldown: one request at a time tries it.</p>}
                {s.translated.length > 0 && (
                  <p class="small">
                    Sent under another name or in another form: <code>{s.translated.join(", ")}</code>
                  </p>
                )}
                {s.dropped.length > 0 && (
                  <p class="small">
                    Not sent, because the provider does not know them: <code>{s.dropped.join(", ")}</code>
                  </p>
                )}
              </div>
            </li>
          ))}
        </ol>
      )}
      {left.length > 0 && (
        <>
          <h3>Left out</h3>
          <ul class="plain" aria-label="Left out">
            {left.map((s) => (
              <li key={s.connectionId + s.model}>
                <a href={to(machineId, "providers", s.connectionId)}>
                  <bdi>{s.connectionName || s.provider}</bdi>
                </a>{" "}
                as <code>{s.model}</code>: {skips[s.skipped] ?? s.skipped}
                {s.cooldownMs > 0 && `, ready in ${duration(s.cooldownMs)}`}
              </li>
            ))}
          </ul>
        </>
      )}
    </Section>
  );
}
