import { useState } from "preact/hooks";
import type { Machine } from "../../api";
import type { ConnectionRow, Cooldown, ProviderRow, Quota, StatusPage } from "../../api-types";
import { reasonText } from "../../connections";
import { Dialog } from "../../dialog";
import { duration } from "../../format";
import { useLoad, useNow } from "../../hooks";
import { toast } from "../../toast";
import { Section } from "../../layout";
import { Badge, Button, Notice } from "../../ui";
import { LastError, Since, Used } from "./facts";
import { Gauge } from "./gauge";
import { statusOf } from "./health";
import { Reported } from "./reported";
import { type Flow, SignInFlow } from "./oauth";
import { TestText, useTest } from "./test";
import { Time } from "../../time";

// signInAgain are the labels of the sign-in flows, for an account of a provider.
const signInAgain: Record<Flow, (provider: string) => string> = {
  authorize: (provider) => `Sign in with ${provider} again`,
  device: () => "Sign in again with a device code",
};

// Status shows whether a connection works: its last calls, its cooldowns, a test
// and the sign-in at the provider.
export function Status({
  machine,
  c,
  known,
  onChange,
}: {
  machine: Machine;
  c: ConnectionRow;
  known?: ProviderRow;
  onChange: () => Promise<void>;
}) {
  const cooldowns = useLoad(
    async () =>
      (await machine.list<Cooldown>("/models/availability")).filter((r) => r.connectionId === c.id && r.until),
    [machine, c],
  );
  const quota = useLoad(
    async () => (await machine.list<Quota>("/quota")).find((q) => q.connectionId === c.id)?.windows ?? [],
    [machine, c],
  );
  const reported = useLoad(() => machine.list<StatusPage>("/health/providers"), [machine]);
  const now = useNow(!!cooldowns.data?.length || !!quota.data?.length);
  const [flow, setFlow] = useState<Flow | null>(null);
  const test = useTest(machine, c.id, onChange);
  const flows = c.authType === "oauth" ? (known?.connect ?? []) : [];
  const [kind, text] = statusOf(c, now);
  const waiting = (cooldowns.data ?? []).filter((r) => r.until! > now);
  return (
    <Section
      title="Status"
      actions={
        <Button busy={test.busy} onClick={() => void test.run()}>
          Test
        </Button>
      }
    >
      <p class="row tight wrap">
        <Badge kind={kind}>{text}</Badge>
        {c.expiresAt && c.status !== "needs_reauth" && (
          <span class="muted">
            Token valid until <Time at={c.expiresAt} />
          </span>
        )}
      </p>
      <p class="muted small facts">
        <Since c={c} />
        <Used c={c} />
      </p>
      <Reported page={reported.data?.find((p) => p.provider === c.provider)} />
      {c.health === "blocked" && c.status === "active" && (
        <Notice kind="warn">
          The provider doesn’t serve the region that the gateway calls from
          {c.blockedPlace && ` (data center ${c.blockedPlace})`}. Run the gateway in a region that it serves, or use
          another provider.
        </Notice>
      )}
      <TestText outcome={test.outcome} />
      {c.status === "needs_reauth" && <Notice kind="warn">Sign in again to use this account.</Notice>}
      {flows.length > 0 && (
        <div class="row wrap">
          {flows.map((f) => (
            <Button key={f} kind={c.status === "needs_reauth" ? "main" : undefined} onClick={() => setFlow(f)}>
              {signInAgain[f](known?.name ?? "")}
            </Button>
          ))}
        </div>
      )}
      {flow && (
        <Dialog title={`Sign in with ${known!.name}`} onClose={() => setFlow(null)}>
          <SignInFlow
            flow={flow}
            machine={machine}
            provider={known!}
            body={{ connectionId: c.id }}
            onCancel={() => setFlow(null)}
            onDone={() => {
              setFlow(null);
              toast("Account connected again.");
              void onChange();
            }}
          />
        </Dialog>
      )}
      <LastError c={c} />
      {!!quota.data?.length && (
        <>
          <h3>Limits</h3>
          <ul class="plain" aria-label="Limits">
            {quota.data.map((w) => (
              <li key={`${w.name} ${w.model ?? ""}`}>
                <Gauge w={w} now={now} />
              </li>
            ))}
          </ul>
        </>
      )}
      {waiting.length > 0 && (
        <ul class="plain">
          {waiting.map((r) => (
            <li key={r.model ?? ""} class="row between wrap">
              <span>
                {r.model ? <code>{r.model}</code> : "All models"} <span class="muted">{reasonText(r.reason)}</span>
              </span>
              <span>retry in {duration(r.until! - now)}</span>
            </li>
          ))}
        </ul>
      )}
    </Section>
  );
}
