import { useState } from "preact/hooks";
import { duration, words, type Machine } from "../../api";
import type { PageProps } from "../../app";
import { Dialog, TypedConfirm } from "../../dialog";
import { useDraft } from "../../drafts";
import { useAction, useLoad, useNow } from "../../hooks";
import { go, to } from "../../route";
import { toast } from "../../toast";
import { Badge, Button, Failed, Field, Load, Notice, Page, Section, Text, when } from "../../ui";
import {
  address,
  errorText,
  family,
  prefixesOf,
  providerName,
  servedBy,
  testText,
  varLabel,
  type ConnectionRow,
  type ProviderRow,
  type TestResult,
} from "../../connections";
import { Credential, ProxyField, secretBody, type Typed } from "./credential";
import { SignInFlow, type Flow } from "./oauth";
import { ModelPicker } from "./picker";
import { statusOf } from "./status";

// Connection is one account: how it does, what it is, which models it offers.
export function Connection({ machine, args: [id] }: PageProps) {
  const row = useLoad(() => machine.get<ConnectionRow>(`/providers/${encodeURIComponent(id)}`), [machine, id]);
  const catalog = useLoad(
    async () => (await machine.get<{ data: ProviderRow[] }>("/catalog/providers")).data,
    [machine],
  );
  const known = catalog.data?.find((p) => p.id === row.data?.provider);
  const provider = row.data ? providerName(row.data.provider, catalog.data ?? []) : "";
  return (
    <Page
      title={row.data ? row.data.name || provider : "Connection"}
      actions={
        <a class="button" href={to(machine.id, "providers")}>
          Back to the providers
        </a>
      }
      intro={
        row.data && (
          <>
            {provider} ·{" "}
            {row.data.hasKey
              ? row.data.last4
                ? `${row.data.authType === "oauth" ? "token" : "key"} …${row.data.last4}`
                : "credential set"
              : "no credential"}{" "}
            · changed {when(row.data.updatedAt)}
          </>
        )
      }
    >
      <Load of={row} what="the connection" rows={4}>
        {(c) => (
          <>
            <Status machine={machine} c={c} known={known} onChange={row.reload} />
            <Details
              key={c.generation}
              machine={machine}
              c={c}
              known={known}
              onChange={row.set}
              onReload={row.reload}
            />
            <ModelPicker machine={machine} c={c} onChange={row.set} onReload={row.reload} />
          </>
        )}
      </Load>
    </Page>
  );
}

const againNames: Record<Flow, string> = { authorize: "Sign in there again", device: "Sign in again with a code" };

interface Cooling {
  connectionId: string;
  model?: string;
  reason: string;
  until?: number;
  failures?: number;
}

function Status({
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
  const cooling = useLoad(
    async () =>
      (await machine.get<{ data: Cooling[] }>("/models/availability")).data.filter(
        (r) => r.connectionId === c.id && r.until,
      ),
    [machine, c],
  );
  const now = useNow(!!cooling.data?.length);
  const [result, setResult] = useState<TestResult | string | null>(null);
  const [flow, setFlow] = useState<Flow | null>(null);
  const test = useAction();
  const flows = c.authType === "oauth" ? (known?.connect ?? []) : [];
  const [kind, text] = statusOf(c, now);
  const run = () =>
    test.run(async () => {
      setResult(null);
      try {
        setResult(await machine.post<TestResult>(`/providers/${c.id}/test`, {}));
      } catch (e) {
        setResult(words(e));
      }
      await onChange();
    });
  const waiting = (cooling.data ?? []).filter((r) => r.until! > now);
  return (
    <Section
      title="Status"
      actions={
        <Button busy={test.busy} onClick={() => void run()}>
          Test
        </Button>
      }
    >
      <p class="row tight wrap">
        <Badge kind={kind}>{text}</Badge>
        {c.lastSuccessAt && <span class="muted">last success {when(c.lastSuccessAt)}</span>}
        {c.expiresAt && c.status !== "needs_reauth" && <span class="muted">token valid until {when(c.expiresAt)}</span>}
      </p>
      <div role="status">
        {result &&
          (typeof result === "string" ? (
            <p class="bad">{result}</p>
          ) : (
            <p class={result.ok ? "good" : "bad"}>{testText(result)}</p>
          ))}
      </div>
      {c.status === "needs_reauth" && <Notice kind="warn">Sign in again before this account can be used.</Notice>}
      {flows.length > 0 && (
        <div class="row wrap">
          {flows.map((f) => (
            <Button key={f} kind={c.status === "needs_reauth" ? "main" : undefined} onClick={() => setFlow(f)}>
              {againNames[f]}
            </Button>
          ))}
        </div>
      )}
      {flow && (
        <Dialog title={`Sign in to ${known!.name} again`} onClose={() => setFlow(null)}>
          <SignInFlow
            flow={flow}
            machine={machine}
            provider={known!}
            body={{ connectionId: c.id }}
            onCancel={() => setFlow(null)}
            onDone={() => {
              setFlow(null);
              toast("The account is connected again.");
              void onChange();
            }}
          />
        </Dialog>
      )}
      {c.lastError && (c.health !== "ready" || c.status !== "active") && (
        <p class="bad">
          <strong>Last error:</strong> {errorText(c.lastError)}
        </p>
      )}
      {waiting.length > 0 && (
        <ul class="plain">
          {waiting.map((r) => (
            <li key={r.model ?? ""} class="row between wrap">
              <span>
                {r.model ? <code>{r.model}</code> : "Every model"}{" "}
                <span class="muted">{r.reason.replaceAll("_", " ")}</span>
              </span>
              <span>retry in {duration(r.until! - now)}</span>
            </li>
          ))}
        </ul>
      )}
    </Section>
  );
}

function Details({
  machine,
  c,
  known,
  onChange,
  onReload,
}: {
  machine: Machine;
  c: ConnectionRow;
  known?: ProviderRow;
  onChange: (c: ConnectionRow) => void;
  onReload: () => Promise<void>;
}) {
  const data = c.providerSpecificData;
  const [form, setForm, draft] = useDraft(
    `connection ${c.id} ${c.generation}`,
    { name: c.name ?? "", base: data.baseUrl ?? "", prefix: data.prefix ?? "", vars: {} as Typed },
    (f) => ({ ...f, vars: Object.fromEntries(Object.entries(f.vars).filter(([n]) => n !== "proxyUrl")) }),
  );
  const { name, base, prefix, vars } = form;
  const put = (part: Partial<typeof form>) => setForm((f) => ({ ...f, ...part }));
  const [typed, setTyped] = useState<Typed>({});
  const names = [...new Set([...(known?.vars ?? []), ...(known?.optionalVars ?? [])])].filter((n) => n !== "baseUrl");
  const proxied = c.authType === "oauth" || c.authType === "service_account"; // gets tokens
  const varOf = (n: string) => vars[n] ?? (typeof data[n] === "string" ? data[n] : "");
  const [going, setGoing] = useState(false);
  const save = useAction(),
    remove = useAction();
  const compatible = family(c.provider) !== "";
  const auth = known?.auth ?? "bearer";
  const hasBase = compatible || known?.baseUrlAllowed || !!data.baseUrl;
  const submit = (e: Event) => {
    e.preventDefault();
    void save.run(async () => {
      const next = await machine.put<ConnectionRow>(
        `/providers/${c.id}`,
        {
          name: name.trim(),
          ...secretBody(auth, typed),
          providerSpecificData: {
            prefix: prefix.trim() || null,
            ...(hasBase ? { baseUrl: address(base) || null } : {}),
            ...Object.fromEntries(
              [...names, ...(proxied ? ["proxyUrl"] : [])].map((n) => [n, varOf(n).trim() || null]),
            ),
          },
        },
        c.generation,
      );
      toast("Saved.");
      draft.clear();
      onChange(next);
    });
  };
  const doRemove = () =>
    remove.run(async () => {
      await machine.del(`/providers/${c.id}`);
      toast("Connection deleted.");
      go(to(machine.id, "providers"));
    });
  return (
    <Section title="Details">
      <form onSubmit={submit} class="grid">
        {draft.restored && (
          <p class="muted small full">
            Your unsaved changes are still here.{" "}
            <Button kind="link" onClick={draft.clear}>
              Discard them
            </Button>
          </p>
        )}
        <Field label="Name">
          <Text value={name} max={200} onText={(name) => put({ name })} />
        </Field>
        <Field label="Prefix" hint="Prefix of its model names.">
          <Text name max={64} value={prefix} required={compatible} onText={(prefix) => put({ prefix })} />
        </Field>
        {hasBase && (
          <Field
            label="Base URL"
            hint={
              base && address(base) !== base.trim() ? (
                <>
                  Saved as <code>{address(base)}</code>
                </>
              ) : (
                "Changing the host clears the saved key."
              )
            }
          >
            <input
              inputMode="url"
              autocapitalize="none"
              spellcheck={false}
              value={base}
              required={compatible}
              onInput={(e) => put({ base: e.currentTarget.value })}
            />
          </Field>
        )}
        {c.authType !== "oauth" && auth !== "none" && (
          <Credential
            auth={auth}
            typed={typed}
            hint="Leave blank to keep the current key."
            onType={(f, v) => setTyped((all) => ({ ...all, [f]: v }))}
          />
        )}
        {names.map((n) => (
          <Field key={n} label={varLabel(n, known!.vars.includes(n))}>
            <input
              required={known!.vars.includes(n)}
              value={varOf(n)}
              onInput={(e) => {
                const v = e.currentTarget.value;
                setForm((f) => ({ ...f, vars: { ...f.vars, [n]: v } }));
              }}
            />
          </Field>
        ))}
        {proxied && (
          <ProxyField
            value={varOf("proxyUrl")}
            onType={(v) => setForm((f) => ({ ...f, vars: { ...f.vars, proxyUrl: v } }))}
          />
        )}
        {save.error && (
          <div class="full">
            <Failed
              of={save}
              reload={async () => {
                draft.clear();
                await onReload();
              }}
            />
          </div>
        )}
        <div class="row full between">
          <Button type="submit" kind="main" busy={save.busy}>
            Save
          </Button>
          <Button
            kind="quiet"
            onClick={() => {
              remove.clear();
              setGoing(true);
            }}
          >
            Delete the connection…
          </Button>
        </div>
      </form>
      {going && (
        <TypedConfirm
          title="Delete the connection?"
          word="delete"
          what="delete"
          action="Delete the connection"
          of={remove}
          onClose={() => setGoing(false)}
          onDo={() => void doRemove()}
        >
          <p>Its credential is deleted, and its models are gone from the list.</p>
          <Dependents machine={machine} c={c} />
        </TypedConfirm>
      )}
    </Section>
  );
}

// Dependents lists what fails after a connection is deleted: the combos and
// aliases whose models no other connection serves.
function Dependents({ machine, c }: { machine: Machine; c: ConnectionRow }) {
  const uses = useLoad(async () => {
    const [conns, combos, { aliases }, catalog] = await Promise.all([
      machine.get<{ data: ConnectionRow[] }>("/providers"),
      machine.get<{ data: { name: string; models: string[] }[] }>("/combos"),
      machine.get<{ aliases: Record<string, string> }>("/models/alias"),
      machine.get<{ data: ProviderRow[] }>("/catalog/providers"),
    ]);
    const mine = prefixesOf(c, catalog.data),
      others = conns.data.filter((o) => o.id !== c.id);
    const lost = (id: string) =>
      mine.includes(id.split("/")[0]) && id.includes("/") && !servedBy(id, others, catalog.data);
    return {
      combos: combos.data.filter((o) => o.models.some(lost)).map((o) => o.name),
      aliases: Object.entries(aliases)
        .filter(([, of]) => lost(of))
        .map(([name]) => name),
    };
  }, [machine, c]);
  if (uses.error)
    return <p class="muted">The combos and aliases that use this connection could not be loaded: {uses.error}</p>;
  const { combos, aliases } = uses.data ?? { combos: [], aliases: [] };
  if (combos.length + aliases.length === 0) return null;
  return (
    <Notice kind="warn">
      No other connection serves its models.{" "}
      {combos.length > 0 && (
        <>
          Combos that use it: <strong>{combos.join(", ")}</strong>.{" "}
        </>
      )}
      {aliases.length > 0 && (
        <>
          Aliases that point to it: <strong>{aliases.join(", ")}</strong>.
        </>
      )}
    </Notice>
  );
}
