import { useState } from "preact/hooks";
import type { Machine } from "../../api";
import type { ConnectionRow, ProviderRow } from "../../api-types";
import { address, family, originOf, varLabel, varsOf } from "../../connections";
import { Confirm } from "../../confirm";
import { useDraft } from "../../draft";
import { useAction } from "../../hooks";
import { go, to, useFilter } from "../../route";
import { toast } from "../../toast";
import { Restored, Text } from "../../forms";
import { Failed, Section } from "../../layout";
import { Button, Field } from "../../ui";
import { BaseUrlInput, Credential, ProxyInput, secretBody, type Typed, WeightInput } from "./inputs";
import { Dependents } from "./dependents";
import { testSaved } from "./added";

// Details is the form of a connection's settings.
export function Details({
  machine,
  c,
  known,
  title,
  onChange,
  onReload,
}: {
  machine: Machine;
  c: ConnectionRow;
  known?: ProviderRow;
  /** of the account */
  title: string;
  onChange: (c: ConnectionRow) => void;
  onReload: () => Promise<void>;
}) {
  const data = c.providerSpecificData;
  const [form, setForm, draft] = useDraft(
    `connection ${c.id} ${c.generation}`,
    {
      name: c.name ?? "",
      base: data.baseUrl ?? "",
      prefix: data.prefix ?? "",
      weight: String(c.weight),
      vars: {} as Typed,
    },
    (f) => ({ ...f, vars: Object.fromEntries(Object.entries(f.vars).filter(([n]) => n !== "proxyUrl")) }),
  );
  const { name, base, prefix, weight, vars } = form;
  const put = (part: Partial<typeof form>) => setForm((f) => ({ ...f, ...part }));
  const [typed, setTyped] = useState<Typed>({});
  const names = varsOf(known);
  const usesOAuth = c.authType === "oauth" || c.authType === "service_account";
  const varOf = (n: string) => vars[n] ?? (typeof data[n] === "string" ? data[n] : "");
  const [deleting, setDeleting] = useState(false);
  const [fix] = useFilter("fix", ""); // what a link wants to be changed
  const save = useAction(),
    remove = useAction();
  const compatible = family(c.provider) !== "";
  const auth = known?.auth ?? "bearer";
  const hasBase = compatible || known?.baseUrlAllowed || !!data.baseUrl;
  const moved =
    hasBase && c.hasKey && originOf(address(base) || known?.baseUrl) !== originOf(data.baseUrl || known?.baseUrl); // docs/reference/reliability.md, T14
  const submit = (e: Event) => {
    e.preventDefault();
    const secrets = secretBody(auth, typed);
    void save.run(async () => {
      const next = await machine.put<ConnectionRow>(
        `/providers/${c.id}`,
        {
          name: name.trim(),
          weight: Number(weight) || null,
          ...secrets,
          providerSpecificData: {
            prefix: prefix.trim() || null,
            ...(hasBase ? { baseUrl: address(base) || null } : {}),
            ...Object.fromEntries(
              [...names, ...(usesOAuth ? ["proxyUrl"] : [])].map((n) => [n, varOf(n).trim() || null]),
            ),
          },
        },
        c.generation,
      );
      draft.clear();
      setTyped({});
      onChange(next);
      if (Object.keys(secrets).length === 0 && next.providerSpecificData.baseUrl === data.baseUrl)
        return toast("Account saved.");
      // With other credentials or at another address it may not work any more.
      toast(await testSaved(machine, c.id, next.name || title).finally(onReload));
    });
  };
  const doRemove = () =>
    remove.run(async () => {
      await machine.del(`/providers/${c.id}`);
      toast("Account deleted.", async () => {
        await machine.post(`/providers/${c.id}/restore`, {});
        go(to(machine.id, "providers", c.id));
      });
      go(to(machine.id, "providers"));
    });
  return (
    <Section title="Details">
      <form onSubmit={submit} class="grid wide">
        <Restored draft={draft} />
        <Field label="Name">
          <Text value={name} max={200} onText={(name) => put({ name })} />
        </Field>
        <Field label="Prefix" hint="Models appear as prefix/model.">
          <Text
            name
            max={64}
            placeholder={known?.alias}
            value={prefix}
            required={compatible}
            onText={(prefix) => put({ prefix })}
          />
        </Field>
        {hasBase && (
          <BaseUrlInput
            value={base}
            onText={(base) => put({ base })}
            required={compatible}
            placeholder={known?.baseUrl}
            focused={fix === "url"}
            hint="The saved key is not sent to another host or port."
          />
        )}
        {c.authType !== "oauth" && auth !== "none" && (
          <Credential
            auth={auth}
            typed={typed}
            focused={fix === "key"}
            required={moved}
            hint={
              moved
                ? "The address has another host or port: enter the key for it. The saved one is removed."
                : "Leave empty to keep the current key."
            }
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
        <WeightInput value={weight} onText={(weight) => put({ weight })} />
        {usesOAuth && (
          <ProxyInput
            value={varOf("proxyUrl")}
            onType={(v) => setForm((f) => ({ ...f, vars: { ...f.vars, proxyUrl: v } }))}
          />
        )}
        {save.error && (
          <div class="full">
            <Failed of={save} reload={onReload} />
          </div>
        )}
        <div class="row full between">
          <Button type="submit" kind="main" busy={save.busy} changes={`/providers/${c.id}`}>
            Save
          </Button>
          <Button
            kind="quiet"
            changes={`/providers/${c.id}`}
            onClick={() => {
              remove.clear();
              setDeleting(true);
            }}
          >
            Delete account…
          </Button>
        </div>
      </form>
      {deleting && (
        <Confirm
          title="Delete account?"
          action="Delete account"
          of={remove}
          onClose={() => setDeleting(false)}
          onDo={() => void doRemove()}
        >
          <p>
            Its models can no longer be called with this account. You can undo this for 10 seconds; then its credentials
            are erased.
          </p>
          <Dependents machine={machine} c={c} />
        </Confirm>
      )}
    </Section>
  );
}
