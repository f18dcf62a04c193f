import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import type { Machine } from "../../api";
import type { ConnectionRow, ProviderRow } from "../../api-types";
import { address, type Family, families, suffix, varLabel, varsOf } from "../../connections";
import { Dialog, losing } from "../../dialog";
import { useDraft } from "../../draft";
import { Finish } from "../../finish";
import { useAction } from "../../hooks";
import { Restored, Text } from "../../forms";
import { Tabs } from "../../tabs";
import { Field } from "../../ui";
import { Added } from "./added";
import {
  Advanced,
  BaseUrlInput,
  Credential,
  ProxyInput,
  secretBody,
  secretNames,
  type Typed,
  WeightInput,
} from "./inputs";
import { type Flow, flowNames, SignInFlow } from "./oauth";
import type { Server } from "./servers";

// Addable is a provider of the table, a format of compatible providers, or a program
// whose servers have OpenAI's format.
export type Addable = ProviderRow | Family | Server;

const isServer = (of: Addable): of is Server => typeof of === "object" && !("alias" in of);

interface Props {
  machine: Machine;
  of: Addable;
  /** of the new connection; unset if the others are not loaded yet */
  priority?: number;
  onClose: () => void;
}

// guideOf returns the page of what is added in the documentation; programs share the page
// of their format.
const guideOf = (of: Addable) =>
  `/docs/providers/${typeof of === "string" ? of : isServer(of) ? "openai-compatible" : of.id}`;

// AddConnection creates a connection, tried after all others, and tests it.
export function AddConnection({ machine, of, priority, onClose }: Props) {
  const [added, setAdded] = useState<[id: string, name: string] | null>(null);
  const title = typeof of === "string" ? families.find(([id]) => id === of)![1] : of.name;
  if (added) return <Added machine={machine} id={added[0]} name={added[1]} onClose={onClose} />;
  return (
    <Form
      title={title}
      machine={machine}
      of={of}
      priority={priority}
      onAdded={(id, name) => setAdded([id, name || title])}
      onClose={onClose}
    />
  );
}

// withoutSecrets returns the part of a form's input that is remembered.
const withoutSecrets = (typed: Typed): Typed =>
  Object.fromEntries(Object.entries(typed).filter(([name]) => !secretNames.has(name)));

function Form({
  title,
  machine,
  of,
  priority,
  onAdded,
  onClose,
}: Props & { title: string; onAdded: (id: string, name?: string) => void }) {
  const row = typeof of === "string" || isServer(of) ? null : of;
  const server = isServer(of) ? of : null;
  const [method, setMethod] = useState<Flow | "key">(row?.connect[0] ?? "key");
  const [flowBody, setFlowBody] = useState<Record<string, unknown> | null>(null);
  const [typed, setTyped, draft] = useDraft<Typed>(
    `add ${machine.id} ${typeof of === "string" ? of : of.id}`,
    server ? { name: server.name, baseUrl: server.baseUrl, prefix: server.prefix } : {},
    withoutSecrets,
  );
  const done = (id: string) => {
    draft.clear();
    onAdded(id, typed.name?.trim());
  };
  const save = useAction();
  const type = (name: string, value: string) => setTyped((all) => ({ ...all, [name]: value }));
  const input = (name: string) => ({
    value: typed[name] ?? "",
    onInput: (e: { currentTarget: HTMLInputElement }) => type(name, e.currentTarget.value),
  });
  const auth = row?.auth ?? "bearer";
  const vars = varsOf(row ?? undefined);
  const usesOAuth = method !== "key" || auth === "google";

  const submit = (e: Event) => {
    e.preventDefault();
    const data: Record<string, string> = {};
    for (const n of ["baseUrl", "prefix", ...vars, ...(usesOAuth ? ["proxyUrl"] : [])])
      if (typed[n]?.trim()) data[n] = n === "baseUrl" ? address(typed[n]) : typed[n].trim();
    const body: Record<string, unknown> = priority === undefined ? {} : { priority };
    if (typed.name?.trim()) body.name = typed.name.trim();
    if (Number(typed.weight) > 1) body.weight = Number(typed.weight);
    if (Object.keys(data).length) body.providerSpecificData = data;
    if (method !== "key") return setFlowBody(body);
    const secrets = secretBody(auth, typed);
    void save.run(async () => {
      if (row && !row.keyFree && Object.keys(secrets).length === 0)
        throw new Error("Enter an API key or other credentials.");
      done(
        (
          await machine.post<ConnectionRow>("/providers", {
            provider: row?.id ?? `${server ? "openai-compatible" : of}-${suffix()}`,
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
      <p class="small">
        <a href={guideOf(of)} target="_blank" rel="noreferrer">
          About {title} and its models
        </a>
      </p>
    </Dialog>
  );
  if (flowBody && method !== "key") {
    return within(
      <SignInFlow
        flow={method}
        machine={machine}
        provider={row!}
        body={flowBody}
        onDone={done}
        onCancel={() => setFlowBody(null)}
      />,
    );
  }
  const baseRequired = !row?.baseUrl && (!row || row.vars.includes("baseUrl"));
  const baseUrl = (
    <BaseUrlInput
      value={typed.baseUrl ?? ""}
      onText={(v) => type("baseUrl", v)}
      required={baseRequired}
      placeholder={row?.baseUrl ?? "https://host.example/v1"}
      hint={
        row?.baseUrl
          ? "Leave empty to use the provider’s own address."
          : server
            ? "The gateway must reach this address; one of a private network needs ALLOW_PRIVATE_UPSTREAMS=true."
            : "Include /v1, e.g. http://localhost:11434/v1"
      }
    />
  );
  const prefix = (
    <Field
      label={row ? "Prefix (optional)" : "Prefix"}
      hint={
        <>
          Call its models as <code>{`${typed.prefix || row?.alias || "prefix"}/model`}</code>
        </>
      }
    >
      <Text required={!row} name max={64} value={typed.prefix ?? ""} onText={(v) => type("prefix", v)} />
    </Field>
  );
  const varInput = (n: string) => (
    <Field key={n} label={varLabel(n, row!.vars.includes(n))}>
      <input required={row!.vars.includes(n)} {...input(n)} />
    </Field>
  );
  return within(
    <form onSubmit={submit}>
      <Restored draft={draft} note="Enter the credentials again." />
      {row && row.connect.length > 0 && (
        <Tabs
          label="Authentication"
          value={method}
          onPick={setMethod}
          items={[...row.connect.map((f): [Flow, string] => [f, flowNames[f](title)]), ["key", "Use an API key"]]}
        />
      )}
      {row?.connectError && (
        <p class="small">Sign-in is not available: {row.connectError}. The operator has to correct it.</p>
      )}
      {!row && baseUrl}
      {method === "key" && auth !== "none" && (
        <Credential
          auth={auth}
          typed={typed}
          onType={type}
          required={!!row && !row.keyFree}
          optional={!row || row.keyFree}
          hint={
            <>
              Stored encrypted and never shown again.
              {row?.keyUrl && (
                <>
                  {" "}
                  <a href={row.keyUrl} target="_blank" rel="noreferrer">
                    {auth === "google" ? `Create a key file at ${title}` : `Get an API key from ${title}`}
                  </a>
                </>
              )}
            </>
          }
        />
      )}
      {row && (baseRequired || row.local) && baseUrl}
      {row?.vars.filter((n) => vars.includes(n)).map(varInput)}
      {!row && prefix}
      <Field label="Name (optional)" hint="Label, e.g. “Team billing”.">
        <Text
          value={typed.name ?? ""}
          max={200}
          placeholder={row?.name ?? server?.name}
          onText={(v) => type("name", v)}
        />
      </Field>
      <Advanced>
        {row && !baseRequired && !row.local && row.baseUrlAllowed && baseUrl}
        {row && prefix}
        {vars.filter((n) => !row!.vars.includes(n)).map(varInput)}
        <WeightInput value={typed.weight ?? "1"} onText={(v) => type("weight", v)} />
        {usesOAuth && <ProxyInput value={typed.proxyUrl ?? ""} onType={(v) => type("proxyUrl", v)} />}
      </Advanced>
      <Finish of={save} action={method === "key" ? "Add and test" : "Continue"} draft={draft} onCancel={onClose} />
    </form>,
  );
}
