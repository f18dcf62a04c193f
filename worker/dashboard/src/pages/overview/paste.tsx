import { useEffect, useRef, useState } from "preact/hooks";
import type { Machine } from "../../api";
import type { ConnectionRow, ProviderRow } from "../../api-types";
import { popular } from "../../connections";
import type { Action } from "../../hooks";
import { toast } from "../../toast";
import { Button, ErrorBox, Field } from "../../ui";
import { isOk, isUntested, outcomeText, savedText, testConnection } from "../providers/test";

// copied is what may stand before a key, which the gateway leaves out too.
const copied = /^["'`\s]*(export\s+)?(\w*_\w*\s*=)?["'`\s]*(authorization:\s*)?(bearer\s+)?["'`]*/i;

// providerOf returns the provider whose keys alone begin as this one does.
const providerOf = (text: string, catalog: ProviderRow[]) => {
  const key = text.replace(copied, "");
  return catalog.find((p) => p.keyPrefixes?.some((prefix) => key.startsWith(prefix)));
};

// withKeyAlone returns the providers that need nothing but a key, the popular ones first.
function withKeyAlone(catalog: ProviderRow[]) {
  const rank = (p: ProviderRow) => (popular.indexOf(p.id) + popular.length + 1) % (popular.length + 1);
  return catalog
    .filter((p) => p.kinds.includes("llm") && !p.keyFree && /^(bearer|key)$/.test(p.auth) && !p.vars.length)
    .toSorted((a, b) => rank(a) - rank(b) || a.name.localeCompare(b.name));
}

// PasteKey adds an account by its key alone. A pasted key that names its provider is added at once.
// An account whose key is refused is deleted again, so that another key can be pasted.
export function PasteKey({
  machine,
  catalog,
  adding,
  onChange,
}: {
  machine: Machine;
  catalog: ProviderRow[];
  adding: Action;
  /** the accounts have changed; with a model that has answered the test */
  onChange: (model?: string) => Promise<void>;
}) {
  const [key, setKey] = useState(""),
    [chosen, choose] = useState(""),
    [failed, setFailed] = useState<[id: string, name: string] | null>(null); // saved, but its test has failed
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => {
    if (!document.activeElement?.matches("input, select, textarea, dialog *")) field.current?.focus();
  }, []);
  const known = providerOf(key, catalog);
  const provider = known ?? catalog.find((p) => p.id === chosen);
  const test = async (id: string, name: string) => {
    const found = await testConnection(machine, id);
    const ok = isOk(found) || isUntested(found),
      refused = typeof found === "object" && found.error === "unauthorized";
    if (refused) await machine.del(`/providers/${id}`);
    setFailed(ok || refused ? null : [id, name]);
    await onChange(typeof found === "object" && found.ok ? found.model : undefined);
    setKey(""); // for another one
    if (refused) throw new Error(`${name} was not added. ${outcomeText(found)}`);
    if (!ok) throw new Error(`${savedText(name, found)}. ${outcomeText(found)}`);
    toast(`${name} is connected.`);
  };
  const add = (apiKey: string, p: ProviderRow) =>
    adding.run(async () => {
      setFailed(null);
      const { id } = await machine.post<ConnectionRow>("/providers", { provider: p.id, apiKey });
      await test(id, p.name);
    });
  return (
    <form
      onSubmit={(e) => {
        e.preventDefault();
        if (provider) void add(key, provider);
      }}
    >
      <Field
        label="Paste a provider’s key"
        hint={
          known ? known.name : "The provider is recognized by the key. It is stored encrypted and never shown again."
        }
      >
        <input
          ref={field}
          type="password"
          autocomplete="off"
          value={key}
          onInput={(e) => {
            adding.clear();
            setKey(e.currentTarget.value.trim());
          }}
          onPaste={(e) => {
            const text = e.clipboardData?.getData("text").trim() ?? "",
              p = providerOf(text, catalog);
            if (!p || key || adding.busy) return;
            e.preventDefault();
            setKey(text);
            void add(text, p);
          }}
        />
      </Field>
      {key && !known && (
        <Field label="Provider">
          <select required value={chosen} onChange={(e) => choose(e.currentTarget.value)}>
            <option value="">Choose…</option>
            {withKeyAlone(catalog).map((p) => (
              <option key={p.id} value={p.id}>
                {p.name}
              </option>
            ))}
          </select>
        </Field>
      )}
      {adding.error && (
        <ErrorBox retry={failed ? () => adding.run(() => test(...failed)) : undefined}>{adding.error}</ErrorBox>
      )}
      {key && (
        <Button type="submit" kind="main" busy={adding.busy}>
          Add and test
        </Button>
      )}
    </form>
  );
}
