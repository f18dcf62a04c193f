import { useState } from "preact/hooks";
import type { Machine } from "../../api";
import type { Budget, KeyRow } from "../../api-types";
import { now } from "../../clock";
import { count, when } from "../../format";
import { ModelNames, Text } from "../../forms";
import { useManaged } from "../../managed";
import { Field, Options } from "../../ui";
import { Unlisted, useListed } from "../../unlisted";
import { windowNames } from "../budgets/windows";
import { usedText } from "../budgets/used";

// Form is what is typed into the form of a key.
export interface Form {
  name: string;
  data: boolean;
  manage: boolean;
  exports: boolean;
  metrics: boolean;
  /** in how many ms the key expires; 0 for never, unchanged for an existing key */
  span: number;
  models: string;
  rpm: string;
  daily: string;
  tpm: string;
  parallel: string;
  tags: string;
  /** of the key's own budget: US dollars, empty for none */
  budget: string;
  window: Budget["window"];
  /** percent of the calls whose bodies are stored; empty for the machine's setting */
  capture: string;
}

const unchanged = -1;

export const emptyForm: Form = {
  name: "",
  data: true,
  manage: false,
  exports: false,
  metrics: false,
  span: 0,
  models: "",
  rpm: "",
  daily: "",
  tpm: "",
  parallel: "",
  tags: "",
  budget: "",
  window: "month",
  capture: "",
};

// usual are the fields that are always in sight. The others are for a key that exists, or if one of them is set.
const usual: Partial<Form> = { name: "", span: 0, models: "", budget: "", window: "month" };
const text = JSON.stringify;

// budgetOf returns the budget that the form of a key changes, the first of its own in US
// dollars for all models, and the number of others that are its own.
export function budgetOf(k: KeyRow, budgets: Budget[]): { own?: Budget; others: number } {
  const all = budgets.filter((b) => b.keyId === k.id);
  const own = all.find((b) => b.unit === "usd" && !b.models?.length);
  return { own, others: all.length - (own ? 1 : 0) };
}

// formOf returns the form of an existing key.
export const formOf = (k: KeyRow, own?: Budget): Form => ({
  name: k.name ?? "",
  data: k.scopes.includes("data"),
  manage: k.scopes.includes("manage"),
  exports: k.scopes.includes("export"),
  metrics: k.scopes.includes("metrics"),
  span: unchanged,
  models: (k.models ?? []).join("\n"),
  rpm: k.rpm ? String(k.rpm) : "",
  daily: k.dailyMax ? String(k.dailyMax) : "",
  tpm: k.tpm ? String(k.tpm) : "",
  parallel: k.maxParallel ? String(k.maxParallel) : "",
  tags: (k.tags ?? []).join(", "),
  budget: own ? String(own.limit) : "",
  window: own?.window ?? "month",
  capture: k.capturePercent === undefined ? "" : String(k.capturePercent),
});

// bodyOf returns the fields of a form as they are sent.
const bodyOf = (f: Form): Record<string, unknown> => ({
  name: f.name.trim(),
  scopes: scopesOf(f),
  models: modelsOf(f),
  rpm: Number(f.rpm),
  dailyMax: Number(f.daily),
  tpm: Number(f.tpm),
  maxParallel: Number(f.parallel),
  tags: f.tags
    .split(",")
    .map((tag) => tag.trim())
    .filter(Boolean),
  budget: f.budget === "" ? null : { unit: "usd", limit: Number(f.budget), window: f.window },
  capturePercent: f.capture === "" ? null : Number(f.capture),
  ...(f.span === unchanged ? {} : { expiresAt: f.span ? now() + f.span : null }),
});

// modelsOf returns the models of a form.
export const modelsOf = (f: Form) => f.models.split(/[\s,]+/).filter(Boolean);

// changesOf returns the fields that differ from those of another form.
export function changesOf(was: Form, form: Form) {
  const before = bodyOf(was);
  const changed = ([name, value]: [string, unknown]) => JSON.stringify(value) !== JSON.stringify(before[name]);
  return Object.fromEntries(Object.entries(bodyOf(form)).filter(changed));
}

// scopesOf returns the scopes of a form.
export const scopesOf = (f: Form) =>
  [f.data && "data", f.manage && "manage", f.manage && f.exports && "export", f.metrics && "metrics"].filter(Boolean);

// lifetimes are the choices of when the key expires.
const lifetimes: [label: string, ms: number][] = [
  ["Never", 0],
  ["In 1 hour", 3_600_000],
  ["In 1 day", 86_400_000],
  ["In 30 days", 30 * 86_400_000],
  ["In 90 days", 90 * 86_400_000],
  ["In 1 year", 365 * 86_400_000],
];

const budgetHint = ({ own, others }: ReturnType<typeof budgetOf>) =>
  `${own ? `Spent: ${usedText(own)}. Leave empty to remove it.` : "Leave empty for none."}${
    others > 0 ? ` ${count(others, "other budget")} of this key under Budgets.` : ""
  }`;

// Fields are the inputs of a key. of is the key that is edited, budgets what it has of
// its own.
export function Fields({
  machine,
  form,
  of,
  budgets = { others: 0 },
  put,
}: {
  machine: Machine;
  form: Form;
  of?: KeyRow;
  budgets?: ReturnType<typeof budgetOf>;
  put: (part: Partial<Form>) => void;
}) {
  const {
    name,
    data,
    manage,
    exports,
    metrics,
    span,
    models,
    rpm,
    daily,
    tpm,
    parallel,
    tags,
    budget,
    window,
    capture,
  } = form;
  const [advanced] = useState(() => !!of || text({ ...form, ...usual }) !== text({ ...emptyForm, ...usual }));
  const managed = useManaged(budgets.own ? `/budgets/${budgets.own.id}` : "/budgets");
  const listed = useListed(machine, machine.may("viewer")).data;
  const spans: typeof lifetimes = of
    ? [[of.expiresAt ? when(of.expiresAt) : "Never", unchanged], ...lifetimes.slice(of.expiresAt ? 0 : 1)]
    : lifetimes;
  const expires = (
    <Field label="Expires">
      <select value={String(span)} onChange={(e) => put({ span: Number(e.currentTarget.value) })}>
        {spans.map(([label, ms]) => (
          <option key={ms} value={String(ms)}>
            {label}
          </option>
        ))}
      </select>
    </Field>
  );
  const named = (
    <Field label="Name" hint="Label, e.g. “Laptop” or “Production”.">
      <Text max={200} value={name} onText={(name) => put({ name })} />
    </Field>
  );
  return (
    <>
      {!machine.may("viewer") ? (
        <>
          {named}
          {!of && (
            <>
              <p class="muted small">The machine’s owners set its models, limits and budget.</p>
              {expires}
            </>
          )}
        </>
      ) : (
        <>
          <div class="grid">
            {named}
            {expires}
            <Field label="Budget (US dollars)" hint={managed ?? budgetHint(budgets)}>
              <input
                type="number"
                disabled={!!managed}
                min={0.000001}
                step="any"
                value={budget}
                onInput={(e) => put({ budget: e.currentTarget.value })}
              />
            </Field>
            <Field label="Budget resets">
              <select
                value={window}
                disabled={budget === "" || !!budgets.own}
                onChange={(e) => put({ window: e.currentTarget.value as Budget["window"] })}
              >
                <Options of={Object.entries(windowNames)} />
              </select>
            </Field>
          </div>
          <Field label="Allowed models" hint="One per line; combo names work too. Leave empty to allow all.">
            <ModelNames
              placeholder={listed?.ids[0] && `e.g. ${listed.ids[0]}`}
              value={models}
              onText={(models) => put({ models })}
            />
          </Field>
          <Unlisted names={modelsOf(form)} of={listed} />
          <details open={advanced}>
            <summary>Advanced</summary>
            <div class="stack">
              <fieldset class="stack">
                <legend>
                  <h3>Permissions</h3>
                </legend>
                <label class="row tight">
                  <input type="checkbox" checked={data} onChange={(e) => put({ data: e.currentTarget.checked })} />
                  Call models
                </label>
                <label class="row tight">
                  <input type="checkbox" checked={manage} onChange={(e) => put({ manage: e.currentTarget.checked })} />
                  Manage this machine (providers, keys and everything else in this dashboard)
                </label>
                {manage && (
                  <label class="row tight">
                    <input
                      type="checkbox"
                      checked={exports}
                      onChange={(e) => put({ exports: e.currentTarget.checked })}
                    />
                    Export the machine’s credentials
                  </label>
                )}
                <label class="row tight">
                  <input
                    type="checkbox"
                    checked={metrics}
                    onChange={(e) => put({ metrics: e.currentTarget.checked })}
                  />
                  Read metrics (Prometheus)
                </label>
              </fieldset>
              <div class="grid">
                <Field label="Requests per minute" hint="Leave empty for no limit.">
                  <input
                    type="number"
                    min={1}
                    max={1_000_000}
                    value={rpm}
                    onInput={(e) => put({ rpm: e.currentTarget.value })}
                  />
                </Field>
                <Field label="Requests per day" hint="Days start at 00:00 UTC.">
                  <input
                    type="number"
                    min={1}
                    max={1_000_000_000}
                    value={daily}
                    onInput={(e) => put({ daily: e.currentTarget.value })}
                  />
                </Field>
                <Field label="Tokens per minute" hint="Input and output. Leave empty for no limit.">
                  <input
                    type="number"
                    min={1}
                    max={1_000_000_000}
                    value={tpm}
                    onInput={(e) => put({ tpm: e.currentTarget.value })}
                  />
                </Field>
                <Field label="Concurrent requests" hint="Leave empty for no limit.">
                  <input
                    type="number"
                    min={1}
                    max={1_000_000}
                    value={parallel}
                    onInput={(e) => put({ parallel: e.currentTarget.value })}
                  />
                </Field>
                <Field
                  label="Tags"
                  hint="Added to each request, e.g. “project=atlas, team=core”. Clients cannot change them."
                >
                  <Text max={600} value={tags} onText={(tags) => put({ tags })} />
                </Field>
                <Field
                  label="Stored prompts and answers (%)"
                  hint="Share of requests to store. Leave empty for the machine’s setting."
                >
                  <input
                    type="number"
                    min={0}
                    max={100}
                    value={capture}
                    onInput={(e) => put({ capture: e.currentTarget.value })}
                  />
                </Field>
              </div>
            </div>
          </details>
        </>
      )}
    </>
  );
}
