import { useState } from "preact/hooks";
import { duration, words, type Machine } from "../api";
import type { PageProps } from "../app";
import { useAction, useLoad, useNow } from "../hooks";
import { moved, Order } from "../order";
import { Badge, Button, Empty, ErrorBox, Load, Page, Switch } from "../ui";
import { providerName, testText, type ConnectionRow, type ProviderRow, type TestResult } from "./connections";

type Kind = "" | "good" | "warn" | "bad";
const statusWords: Record<string, [kind: Kind, text: string]> = {
  active: ["good", "Ready"], inactive: ["", "Switched off"], cooling: ["warn", "Cooling down"],
  needs_credential: ["bad", "Needs a credential"], needs_reauth: ["bad", "Needs a new sign-in"],
};

// Providers lists the connections of a machine in the order they are tried.
export default function Providers({ machine, machineName }: PageProps) {
  const rows = useLoad(async () => {
    const [conns, catalog] = await Promise.all([
      machine.get<{ data: ConnectionRow[] }>("/providers"),
      machine.get<{ data: ProviderRow[] }>("/catalog/providers"),
    ]);
    return { conns: conns.data.toSorted((a, b) => a.priority - b.priority), catalog: catalog.data };
  }, [machine]);
  const order = useAction();
  const now = useNow(!!rows.data?.conns.some((c) => c.cooldownUntil));

  const move = (from: number, to: number) => {
    const { conns, catalog } = rows.data!;
    const next = moved(conns, from, to).map((c, i) => ({ ...c, was: c.priority, priority: i + 1 }));
    rows.set({ conns: next, catalog });
    void order.run(async () => {
      for (const c of next) if (c.was !== c.priority) await machine.put(`/providers/${c.id}`, { priority: c.priority });
    }).then(() => rows.reload());
  };

  return (
    <Page title="Providers" intro={<>Connections of {machineName ? <strong>{machineName}</strong> : "this machine"}, tried from the first to the last.</>}>
      {order.error && <ErrorBox>{order.error}</ErrorBox>}
      <Load of={rows} what="the connections">{({ conns, catalog }) => conns.length === 0
        ? (
          <Empty title="No providers yet">
            <p class="muted">Connect an account that you have with a provider, then its models can be called with one key.</p>
          </Empty>
        )
        : (
          <Order items={conns} label="Connections, in the order they are tried" keyOf={(c) => c.id} onMove={move} name={(c) => c.name || providerName(c.provider, catalog)}>
            {(c) => <Row machine={machine} c={c} now={now} provider={providerName(c.provider, catalog)} onChange={rows.reload} />}
          </Order>
        )}</Load>
    </Page>
  );
}

function Row({ machine, c, now, provider, onChange }: { machine: Machine; c: ConnectionRow; now: number; provider: string; onChange: () => Promise<void> }) {
  const [result, setResult] = useState<TestResult | string | null>(null);
  const test = useAction(), toggle = useAction();
  const label = c.name || provider;
  const wait = c.cooldownUntil ? c.cooldownUntil - now : 0;
  const [kind, text] = c.status === "cooling" && wait <= 0 ? statusWords.active : statusWords[c.status] ?? ["", c.status];
  const picked = c.providerSpecificData.enabledModels;
  const turn = (isActive: boolean) => toggle.run(async () => { await machine.put(`/providers/${c.id}`, { isActive }); await onChange(); });
  const run = () => test.run(async () => {
    setResult(null);
    try { setResult(await machine.post<TestResult>(`/providers/${c.id}/test`, {})); } catch (e) { setResult(words(e)); }
    await onChange();
  });
  return (
    <div class="conn">
      <div>
        <h2 class="row tight wrap">{label} <Badge kind={kind}>{text}</Badge>{wait > 0 && <small class="muted">ready in {duration(wait)}</small>}</h2>
        <p class="muted small">
          {provider}
          {c.providerSpecificData.prefix && <> · <code>{c.providerSpecificData.prefix}/</code></>}
          {c.last4 ? <> · key …{c.last4}</> : c.hasKey && " · key set"}
          {picked && ` · ${picked.length} models picked`}
        </p>
        {c.lastError && <p class="small"><strong>Last error:</strong> {c.lastError}</p>}
        <p class={typeof result === "object" && result?.ok ? "small good" : "small bad"} role="status">
          {result && (typeof result === "string" ? result : testText(result))}
        </p>
        {toggle.error && <ErrorBox>{toggle.error}</ErrorBox>}
      </div>
      <div class="row">
        <Switch on={c.isActive} busy={toggle.busy} label={`${label} is on`} onTurn={(on) => void turn(on)} />
        <Button busy={test.busy} aria-label={`Test ${label}`} onClick={() => void run()}>Test</Button>
      </div>
    </div>
  );
}
