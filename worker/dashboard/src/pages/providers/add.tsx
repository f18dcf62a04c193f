import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import type { Machine } from "../../api";
import type { ConnectionRow, ProviderRow } from "../../api-types";
import { address, type Family, families, suffix, varLabel, varsOf } from "../../connections";
import { Dialog, losing } from "../../dialog";
import { useDraft } from "../../drafts";
import { useAction } from "../../hooks";
import { Restored, Tabs, Text } from "../../forms";
import { Button, ErrorBox, Field } from "../../ui";
import { Added } from "./added";
import { BaseUrlInput, Credential, ProxyInput, secretBody, secretNames, type Typed } from "./inputs";
import { type Flow, flowNames, SignInFlow } from "./oauth";

// Addable is a provider of the table, or a format of compatible providers.
export type Addable = ProviderRow | Family;

interface Props {
  machine: Machine;
  of: Addable;
  /** of the new connection; unset if the others are not loaded yet */
  priority?: number;
  onClose: () => void;
}

// AddConnection creates a connection, tried after all others, and tests it.
export function AddConnection({ machine, of, priority, onClose }: Props) {
  const [added, setAdded] = useState(""); // id
  const title = typeof of === "string" ? families.find(([id]) => id === of)![1] : of.name;
  if (added) return <Added machine={machine} title={title} id={added} onClose={onClose} />;
  return <Form title={title} machine={machine} of={of} priority={priority} onAdded={setAdded} onClose={onClose} />;
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
}: Props & { title: string; onAdded: (id: string) => void }) {
  const row = typeof of === "string" ? null : of;
  const [method, setMethod] = useState<Flow | "key">(row?.connect[0] ?? "key");
  const [flowBody, setFlowBody] = useState<Record<string, unknown> | null>(null);
  const [typed, setTyped, draft] = useDraft<Typed>(`add ${machine.id} ${row?.id ?? of}`, {}, withoutSecrets);
  const done = (id: string) => {
    draft.clear();
    onAdded(id);
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
    if (Object.keys(data).length) body.providerSpecificData = data;
    if (method !== "key") return setFlowBody(body);
    const secrets = secretBody(auth, typed);
    void save.run(async () => {
      if (row && !row.keyFree && Object.keys(secrets).length === 0)
        throw new Error("Enter an API key or other credentials.");
      done(
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
      <Field label="Name" hint="Label, e.g. “Team billing”.">
        <Text value={typed.name ?? ""} max={200} placeholder={row?.name} onText={(v) => type("name", v)} />
      </Field>
      {(!row || row.baseUrlAllowed || row.vars.includes("baseUrl")) && (
        <BaseUrlInput
          value={typed.baseUrl ?? ""}
          onText={(v) => type("baseUrl", v)}
          required={!row?.baseUrl && (!row || row.vars.includes("baseUrl"))}
          placeholder={row?.baseUrl ?? "https://host.example/v1"}
          hint={
            row?.baseUrl
              ? "Leave blank to use the provider’s own address."
              : "Include /v1, e.g. http://localhost:11434/v1"
          }
        />
      )}
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
      {method === "key" && auth !== "none" && (
        <Credential
          auth={auth}
          typed={typed}
          onType={type}
          required={!!row && !row.keyFree}
          hint={
            row
              ? "Stored encrypted and never shown again."
              : "Stored encrypted and never shown again. Leave blank if the server needs no key."
          }
        />
      )}
      {vars.map((n) => (
        <Field key={n} label={varLabel(n, row!.vars.includes(n))}>
          <input required={row!.vars.includes(n)} {...input(n)} />
        </Field>
      ))}
      {usesOAuth && <ProxyInput value={typed.proxyUrl ?? ""} onType={(v) => type("proxyUrl", v)} />}
      {save.error && <ErrorBox>{save.error}</ErrorBox>}
      <div class="row">
        <Button type="submit" kind="main" busy={save.busy}>
          {method === "key" ? "Add and test" : "Continue"}
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
