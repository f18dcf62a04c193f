import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { words, type Machine } from "../../api";
import { Dialog, losing } from "../../dialog";
import { useDraft } from "../../drafts";
import { useAction } from "../../hooks";
import { to } from "../../route";
import { toast } from "../../toast";
import { Badge, Button, ErrorBox, Field, Tabs, Text, count } from "../../ui";
import {
  address,
  families,
  suffix,
  testText,
  varLabel,
  type ConnectionRow,
  type Family,
  type ProviderRow,
  type TestResult,
} from "../../connections";
import { Credential, ProxyField, secretBody, secretNames, type Typed } from "./credential";
import { flowNames, SignInFlow, type Flow } from "./oauth";

// Addable is a provider of the table, or a family of compatible ones.
export type Addable = ProviderRow | Family;

interface Check {
  test: TestResult | string | null;
  models: string;
}

interface Props {
  machine: Machine;
  of: Addable;
  /** of the new connection, where it is known */
  priority?: number;
  onClose: () => void;
}

// AddConnection makes a connection, tried after all others, and checks it at once.
export function AddConnection({ machine, of, priority, onClose }: Props) {
  const [made, setMade] = useState("");
  const title = typeof of === "string" ? families.find(([id]) => id === of)![1] : of.name;
  if (made) return <Made machine={machine} title={title} id={made} onClose={onClose} />;
  return <Form title={title} machine={machine} of={of} priority={priority} onMade={setMade} onClose={onClose} />;
}

// withoutSecrets returns the part of a form's input that is remembered.
const withoutSecrets = (typed: Typed): Typed =>
  Object.fromEntries(Object.entries(typed).filter(([name]) => !secretNames.has(name)));

function Form({
  title,
  machine,
  of,
  priority,
  onMade: made,
  onClose,
}: Props & { title: string; onMade: (id: string) => void }) {
  const row = typeof of === "string" ? null : of;
  const [way, setWay] = useState<Flow | "key">(row?.connect[0] ?? "key");
  const [flowing, setFlowing] = useState<Record<string, unknown> | null>(null);
  const [typed, setTyped, draft] = useDraft<Typed>(`add ${machine.id} ${row?.id ?? of}`, {}, withoutSecrets);
  const onMade = (id: string) => {
    draft.clear();
    made(id);
  };
  const save = useAction();
  const type = (name: string, value: string) => setTyped((all) => ({ ...all, [name]: value }));
  const input = (name: string) => ({
    value: typed[name] ?? "",
    onInput: (e: { currentTarget: HTMLInputElement }) => type(name, e.currentTarget.value),
  });
  const auth = row?.auth ?? "bearer";
  const vars = row ? [...new Set([...row.vars, ...row.optionalVars])].filter((n) => n !== "baseUrl") : [];

  const proxied = way !== "key" || auth === "google"; // gets tokens

  const submit = (e: Event) => {
    e.preventDefault();
    const data: Record<string, string> = {};
    for (const n of ["baseUrl", "prefix", ...vars, ...(proxied ? ["proxyUrl"] : [])])
      if (typed[n]?.trim()) data[n] = n === "baseUrl" ? address(typed[n]) : typed[n].trim();
    const body: Record<string, unknown> = priority === undefined ? {} : { priority };
    if (typed.name?.trim()) body.name = typed.name.trim();
    if (Object.keys(data).length) body.providerSpecificData = data;
    if (way !== "key") return setFlowing(body);
    const secrets = secretBody(auth, typed);
    void save.run(async () => {
      if (row && !row.keyFree && Object.keys(secrets).length === 0)
        throw new Error("Enter the credentials of this account.");
      onMade(
        (
          await machine.post<ConnectionRow>("/providers", {
            provider: row?.id ?? `${of}-${suffix()}`,
            ...body,
            ...secrets,
          })
        ).id,
      );
    });
  };
  const within = (body: ComponentChildren) => (
    <Dialog title={`Add ${title}`} ask={losing(draft)} onClose={onClose}>
      {body}
    </Dialog>
  );
  if (flowing && way !== "key") {
    return within(
      <SignInFlow
        flow={way}
        machine={machine}
        provider={row!}
        body={flowing}
        onDone={onMade}
        onCancel={() => setFlowing(null)}
      />,
    );
  }
  return within(
    <form onSubmit={submit}>
      {draft.restored && <p class="muted small">Your unsaved changes are still here. Enter the credentials again.</p>}
      {row && row.connect.length > 0 && (
        <Tabs
          label="How to connect"
          value={way}
          onPick={setWay}
          items={[...row.connect.map((f): [Flow, string] => [f, flowNames[f]]), ["key", "Use a key"]]}
        />
      )}
      <Field label="Name" hint="A label, e.g. “Team billing”.">
        <Text value={typed.name ?? ""} max={200} placeholder={row?.name} onText={(v) => type("name", v)} />
      </Field>
      {(!row || row.baseUrlAllowed || row.vars.includes("baseUrl")) && (
        <Field
          label="Base URL"
          hint={
            typed.baseUrl?.trim() && address(typed.baseUrl) !== typed.baseUrl.trim() ? (
              <>
                Saved as <code>{address(typed.baseUrl)}</code>
              </>
            ) : row?.baseUrl ? (
              "Leave it empty for the provider’s own address."
            ) : (
              "Include the version, e.g. https://host.example/v1 or http://localhost:11434/v1"
            )
          }
        >
          <input
            inputMode="url"
            autocapitalize="none"
            spellcheck={false}
            required={!row?.baseUrl && (!row || row.vars.includes("baseUrl"))}
            {...input("baseUrl")}
            placeholder={row?.baseUrl ?? "https://host.example/v1"}
          />
        </Field>
      )}
      <Field
        label={row ? "Prefix (optional)" : "Prefix"}
        hint={
          <>
            Call its models as <code>{(typed.prefix || row?.alias || "prefix") + "/model"}</code>
          </>
        }
      >
        <Text required={!row} name max={64} value={typed.prefix ?? ""} onText={(v) => type("prefix", v)} />
      </Field>
      {way === "key" && auth !== "none" && (
        <Credential
          auth={auth}
          typed={typed}
          onType={type}
          required={!!row && !row.keyFree}
          hint={
            row
              ? "Stored encrypted; never shown again."
              : "Stored encrypted; never shown again. Leave blank for a server without keys."
          }
        />
      )}
      {vars.map((n) => (
        <Field key={n} label={varLabel(n, row!.vars.includes(n))}>
          <input required={row!.vars.includes(n)} {...input(n)} />
        </Field>
      ))}
      {proxied && <ProxyField value={typed.proxyUrl ?? ""} onType={(v) => type("proxyUrl", v)} />}
      {save.error && <ErrorBox>{save.error}</ErrorBox>}
      <div class="row">
        <Button type="submit" kind="main" busy={save.busy}>
          {way === "key" ? "Add and check" : "Continue"}
        </Button>
        <Button
          onClick={() => {
            draft.clear();
            onClose();
          }}
        >
          Cancel
        </Button>
      </div>
    </form>,
  );
}

// Made tells how the new connection does: the model list and a test call.
function Made({ machine, title, id, onClose }: { machine: Machine; title: string; id: string; onClose: () => void }) {
  const [check, setCheck] = useState<Check | null>(null);
  const remove = useAction();
  const run = async () => {
    setCheck(null);
    const [models, test] = await Promise.allSettled([
      machine.get<{ data: unknown[]; source: string }>(`/providers/${id}/models`),
      machine.post<TestResult>(`/providers/${id}/test`, {}),
    ]);
    setCheck({
      models:
        models.status === "rejected"
          ? words(models.reason)
          : models.value.source === "upstream"
            ? `It lists ${count(models.value.data.length, "model")}.`
            : "No model list received.",
      test: test.status === "rejected" ? words(test.reason) : test.value,
    });
  };
  useEffect(() => {
    void run();
  }, []);
  const ok = typeof check?.test === "object" && check.test?.ok;
  const untested = typeof check?.test === "object" && check.test?.error === "unsupported";
  return (
    <Dialog
      title={
        !check
          ? `Checking ${title}`
          : ok
            ? `${title} is connected`
            : untested
              ? `${title} was saved`
              : `${title} was saved, but the test failed`
      }
      onClose={onClose}
    >
      <div class="stack" role="status">
        {!check ? (
          <p class="row tight muted">
            <span class="spinner" />
            Checking…
          </p>
        ) : (
          <>
            <p class="row tight">
              <Badge kind={ok ? "good" : untested ? "" : "bad"}>
                {ok ? "Works" : untested ? "Not tested" : "Test failed"}
              </Badge>
              <span>{typeof check.test === "string" ? check.test : testText(check.test!)}</span>
            </p>
            <p class="muted">{check.models}</p>
          </>
        )}
      </div>
      <div class="row wrap">
        <a class="button main" href={to(machine.id, "providers", id)}>
          {ok || !check ? "Pick its models" : "Edit"}
        </a>
        <a class="button" href={to(machine.id, "providers")}>
          All providers
        </a>
        {check && !ok && <Button onClick={() => void run()}>Test again</Button>}
        <Button
          kind="quiet"
          busy={remove.busy}
          onClick={() =>
            void remove.run(async () => {
              await machine.del(`/providers/${id}`);
              toast("Connection deleted.");
              onClose();
            })
          }
        >
          Delete
        </Button>
      </div>
      {remove.error && <ErrorBox>{remove.error}</ErrorBox>}
    </Dialog>
  );
}
