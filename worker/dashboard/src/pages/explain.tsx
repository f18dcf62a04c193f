import { useEffect, useState } from "preact/hooks";
import type { ConnectionRow, KeyRow, Plan } from "../api-types";
import { useMemoryState } from "../draft";
import { useAction, useLoad } from "../hooks";
import type { PageProps } from "../page";
import { keyName } from "../names";
import { useFilter } from "../route";
import { Page, Section } from "../layout";
import { Button, ErrorBox, Field } from "../ui";
import { pasted } from "./explain/curl";
import { exampleOf, examples, geminiRoute, isExample } from "./explain/examples";
import { Steps } from "./explain/steps";

const paths = [...examples.map((e) => e.path), geminiRoute];

// Explain shows which accounts a request would try, without sending it. With a model
// in the address, an example call of that model is explained at once. The input is
// remembered until the dashboard is closed.
export default function Explain({ machine }: PageProps) {
  const [lastPath, setLastPath] = useMemoryState(`explain path ${machine.id}`, paths[0]);
  const [path, putPath] = useFilter("path", lastPath, paths);
  const setPath = (p: string) => {
    putPath(p);
    setLastPath(p);
  };
  const [model, setModel] = useFilter("model", ""),
    [stream, setStream] = useFilter("stream", ""),
    [key, setKey] = useFilter("key", ""),
    [session, setSession] = useFilter("session", ""),
    [headers, setHeaders] = useFilter("headers", ""),
    [account] = useFilter("account", "");
  const [text, putText] = useMemoryState(`explain ${machine.id}`, ""),
    [pin, setPin] = useMemoryState(`explain pin ${machine.id}`, "");
  const setText = (t: string) => {
    putText(t);
    setModel(""); // the address no longer describes the call
    setStream("");
    setSession("");
    setHeaders("");
  };
  const [plan, setPlan] = useState<Plan | null>(null);
  const act = useAction();
  const example = examples.find((e) => e.path === path) ?? examples[0];
  const models = useLoad(() => machine.modelIds(example.segment), [machine, example.segment]);
  const keys = useLoad(() => machine.list<KeyRow>("/keys"), [machine]);
  const conns = useLoad(() => machine.list<ConnectionRow>("/providers"), [machine]);
  const fill = () => setText(exampleOf(example.path, models.data?.[0] ?? "provider/model", false));
  const run = (body = text, pinned = pin) =>
    void act.run(async () => {
      setPlan(null);
      const call = pasted(body);
      // A curl command includes the path. A known one is selected.
      const known = examples.find((e) => call.path?.endsWith(e.path))?.path;
      if (known) setPath(known);
      setPlan(
        await machine.post<Plan>("/explain", {
          path: known ?? call.path ?? example.path,
          body: call.body,
          ...(pinned ? { connectionId: pinned } : {}),
          ...(key ? { keyId: key } : {}),
          ...(session ? { session } : {}),
          headers: { ...(headers && (JSON.parse(headers) as object)), ...call.headers },
        }),
      );
    });
  useEffect(() => {
    if (!model) return;
    const example = exampleOf(path, model, stream === "true");
    putText(example);
    setPin(account);
    run(example, account);
  }, []);
  return (
    <Page title="Explain" intro="Preview how a request is routed. Nothing is sent to a provider.">
      <Section title="Request">
        <form
          onSubmit={(e) => {
            e.preventDefault();
            run();
          }}
        >
          <div class="grid">
            <Field label="Path">
              <select
                value={example.path}
                onChange={(e) => {
                  setPath(e.currentTarget.value);
                  setPlan(null);
                }}
              >
                {examples.map((e) => (
                  <option key={e.path}>{e.path}</option>
                ))}
              </select>
            </Field>
            <Field label="Account" hint="Same as the x-connection-id header.">
              <select value={pin} onChange={(e) => setPin(e.currentTarget.value)}>
                <option value="">Any</option>
                {conns.data?.map((c) => (
                  <option key={c.id} value={c.id}>
                    {c.name || c.provider}
                  </option>
                ))}
              </select>
            </Field>
            <Field label="Key" hint="Its models, limits and budgets apply.">
              <select value={key} onChange={(e) => setKey(e.currentTarget.value)}>
                <option value="">None</option>
                {keys.data?.map((k) => (
                  <option key={k.id} value={k.id}>
                    {keyName(k)}
                  </option>
                ))}
              </select>
            </Field>
          </div>
          <Field
            label="Body"
            hint={
              isExample(path, text) &&
              "An example. Without the request’s own token limit, such as max_tokens, budgets reserve the longest answer of the model."
            }
          >
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
            <Button kind="main" data-reads type="submit" busy={act.busy}>
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
