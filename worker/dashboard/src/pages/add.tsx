import { useEffect, useState } from "preact/hooks";
import { words, type Machine } from "../api";
import type { Has } from "../app";
import { Dialog } from "../dialog";
import { useAction } from "../hooks";
import { go, to } from "../route";
import { toast } from "../toast";
import { Badge, Button, ErrorBox, Field } from "../ui";
import { families, suffix, testText, type ConnectionRow, type Family, type ProviderRow, type TestResult } from "./connections";
import { Credential, secretBody, type Typed } from "./credential";
import { OAuth, oauthServed } from "./oauth";

// Addable is a provider of the table, or a family of compatible ones.
export type Addable = ProviderRow | Family;

interface Check { test: TestResult | string | null; models: string }

// AddConnection makes a connection and checks it at once.
export function AddConnection({ machine, has, of, onClose }: { machine: Machine; has: Has; of: Addable; onClose: () => void }) {
  const [made, setMade] = useState<ConnectionRow | null>(null);
  const title = typeof of === "string" ? families.find(([id]) => id === of)![1] : of.name;
  if (made) return <Made machine={machine} title={title} made={made} onClose={onClose} />;
  const connected = () => { toast(`${title} is connected.`); go(to(machine.id, "providers")); };
  return (
    <Dialog title={`Add ${title}`} onClose={onClose}>
      {typeof of !== "string" && oauthServed(has) && <OAuth machine={machine} has={has} provider={of} onDone={connected} />}
      <Form machine={machine} of={of} onMade={setMade} onClose={onClose} />
    </Dialog>
  );
}

function Form({ machine, of, onMade, onClose }: { machine: Machine; of: Addable; onMade: (c: ConnectionRow) => void; onClose: () => void }) {
  const row = typeof of === "string" ? null : of;
  const [typed, setTyped] = useState<Typed>({});
  const save = useAction();
  const type = (name: string, value: string) => setTyped((all) => ({ ...all, [name]: value }));
  const input = (name: string) => ({ value: typed[name] ?? "", onInput: (e: { currentTarget: HTMLInputElement }) => type(name, e.currentTarget.value) });
  const auth = row?.auth ?? "bearer";
  const vars = row ? [...new Set([...row.vars, ...row.optionalVars])].filter((n) => n !== "baseUrl") : [];

  const submit = (e: Event) => {
    e.preventDefault();
    void save.run(async () => {
      const data: Record<string, string> = {};
      for (const n of ["baseUrl", "prefix", ...vars]) if (typed[n]?.trim()) data[n] = typed[n].trim();
      onMade(await machine.post<ConnectionRow>("/providers", {
        provider: row?.id ?? `${of}-${suffix()}`,
        ...(typed.name?.trim() ? { name: typed.name.trim() } : {}),
        ...secretBody(auth, typed),
        providerSpecificData: data,
      }));
    });
  };
  return (
    <form onSubmit={submit}>
      <Field label="Name" hint="How you tell this account from others."><input {...input("name")} maxLength={200} placeholder={row?.name} /></Field>
      {(!row || row.baseUrlAllowed || row.vars.includes("baseUrl")) && (
        <Field label="Base URL" hint={row ? "Leave it empty for the provider’s own address." : "With its version, as in https://host.example/v1"}>
          <input type="url" required={!row || row.vars.includes("baseUrl")} {...input("baseUrl")} placeholder={row?.baseUrl ?? "https://host.example/v1"} />
        </Field>
      )}
      <Field label={row ? "Prefix (optional)" : "Prefix"} hint={<>Models are called <code>{(typed.prefix || row?.alias || "prefix") + "/model"}</code></>}>
        <input required={!row} pattern="[A-Za-z0-9._\-]{1,64}" autocapitalize="none" spellcheck={false} {...input("prefix")} />
      </Field>
      {row?.auth !== "none" && <Credential auth={auth} typed={typed} onType={type} required={!!row && !row.keyFree} hint="Stored encrypted; never shown again." />}
      {vars.map((n) => <Field key={n} label={varLabel(n, row!.vars.includes(n))}><input required={row!.vars.includes(n)} {...input(n)} /></Field>)}
      {save.error && <ErrorBox>{save.error}</ErrorBox>}
      <div class="row">
        <Button type="submit" kind="main" busy={save.busy}>Add and check</Button>
        <Button onClick={onClose}>Cancel</Button>
      </div>
    </form>
  );
}

function varLabel(name: string, required: boolean): string {
  const text = name.replaceAll("_", " ");
  return text.charAt(0).toUpperCase() + text.slice(1) + (required ? "" : " (optional)");
}

// Made tells how the new connection does: the model list and a test call.
function Made({ machine, title, made, onClose }: { machine: Machine; title: string; made: ConnectionRow; onClose: () => void }) {
  const [check, setCheck] = useState<Check | null>(null);
  const remove = useAction();
  const run = async () => {
    setCheck(null);
    const [models, test] = await Promise.allSettled([
      machine.get<{ data: unknown[]; source: string }>(`/providers/${made.id}/models`),
      machine.post<TestResult>(`/providers/${made.id}/test`, {}),
    ]);
    setCheck({
      models: models.status === "rejected" ? words(models.reason) : models.value.source === "upstream" ? `It lists ${models.value.data.length} models.` : "It gave no list of models.",
      test: test.status === "rejected" ? words(test.reason) : test.value,
    });
  };
  useEffect(() => { void run(); }, []);
  const ok = typeof check?.test === "object" && check.test?.ok;
  return (
    <Dialog title={`${title} is connected`} onClose={onClose}>
      <div class="stack" role="status">
        {!check ? <p class="row tight muted"><span class="spinner" />Checking…</p> : (
          <>
            <p class="row tight"><Badge kind={ok ? "good" : "bad"}>{ok ? "Works" : "Check failed"}</Badge><span>{typeof check.test === "string" ? check.test : testText(check.test!)}</span></p>
            <p class="muted">{check.models}</p>
          </>
        )}
      </div>
      <div class="row wrap">
        <a class="button main" href={to(machine.id, "providers", made.id)}>{ok || !check ? "Pick its models" : "Change it"}</a>
        <a class="button" href={to(machine.id, "providers")}>All providers</a>
        {check && !ok && <Button onClick={() => void run()}>Check again</Button>}
        <Button kind="quiet" busy={remove.busy} onClick={() => void remove.run(async () => { await machine.del(`/providers/${made.id}`); toast("The connection is removed."); onClose(); })}>Remove it again</Button>
      </div>
      {remove.error && <ErrorBox>{remove.error}</ErrorBox>}
    </Dialog>
  );
}
