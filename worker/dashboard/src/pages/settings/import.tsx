import { useState } from "preact/hooks";
import { ApiError, type Machine, type Tagged } from "../../api";
import type { Difference, ImportPreview } from "../../api-types";
import { TypedConfirm } from "../../confirm";
import { count, when } from "../../format";
import { useAction } from "../../hooks";
import { Badge, Button, ErrorBox, Field, Notice } from "../../ui";
import "./import.css";

// Counts is the result of an import: the number of records of each kind.
type Counts = Record<string, number>;

const countNames: [field: string, name: string][] = [
  ["connections", "account"],
  ["combos", "combo"],
  ["customModels", "custom model"],
  ["modelAliases", "alias"],
  ["budgets", "budget"],
  ["destinations", "destination"],
  ["keys", "key"],
  ["people", "person"],
];

const changeNames: [field: string, name: string][] = [
  ["connections", "Accounts"],
  ["combos", "Combos"],
  ["customModels", "Custom models"],
  ["modelAliases", "Aliases"],
  ["disabledModels", "Disabled models of"],
  ["budgets", "Budgets"],
  ["destinations", "Destinations"],
  ["settings", "Settings"],
  ["keys", "API keys"],
];
const kinds: [kind: keyof Difference, text: string][] = [
  ["added", "Added"],
  ["changed", "Changed"],
  ["deleted", "Deleted"],
];
const maxNames = 20; // shown of one kind

// names returns a list of names, shortened.
function names(list: string[]) {
  const shown = list.slice(0, maxNames).join(", ");
  return list.length > maxNames ? `${shown} and ${list.length - maxNames} more` : shown;
}

// Changes lists what an import adds, changes and deletes.
function Changes({ of, withKeys }: { of: ImportPreview; withKeys: boolean }) {
  const rows = changeNames.flatMap(([field, name]) =>
    kinds
      .filter(([kind]) => of.changes[field]?.[kind].length)
      .map(([kind, text]) => ({ id: field + kind, kind, name, text, list: of.changes[field][kind] })),
  );
  return (
    <section class="preview" aria-label="Preview">
      <h4>Changes</h4>
      {of.from && (
        <p class="muted">
          Exported from machine <code>{of.from}</code>
          {of.exportedAt ? `, ${when(of.exportedAt)}` : ""}.
        </p>
      )}
      {rows.length === 0 && <p>No changes. The machine already has everything in this backup.</p>}
      <ul>
        {rows.map((r) => (
          <li key={r.id}>
            <Badge kind={r.kind === "deleted" ? "bad" : r.kind === "added" ? "good" : "warn"}>{r.text}</Badge> {r.name}
            {r.id.startsWith("settings") ? "" : `: ${names(r.list)}`}
          </li>
        ))}
      </ul>
      {!!of.unknownProviders && (
        <Notice kind="warn">
          This version of weir does not know {names(of.unknownProviders)}: accounts of it cannot be called.
        </Notice>
      )}
      {!!of.budgetsSkipped && (
        <p class="muted">
          {count(of.budgetsSkipped, "budget")} of API keys that this machine does not have will not be imported.
        </p>
      )}
      {!!of.keysUnusable && (
        <Notice kind="warn">
          {count(of.keysUnusable, "API key")} will not be imported: {of.keysUnusable === 1 ? "it names" : "they name"}{" "}
          another machine, or {of.keysUnusable === 1 ? "was" : "were"} made with another <code>API_KEY_SECRET</code>.
          Create new keys after the import.
        </Notice>
      )}
      {!withKeys && !!of.keysSkipped && (
        <p class="muted">{count(of.keysSkipped, "API key")} in the backup will not be imported.</p>
      )}
      {!!of.people && <p>{count(of.people, "person")} will have the role of the backup.</p>}
      {!!of.peopleSkipped && (
        <p class="muted">{count(of.peopleSkipped, "person")} in the backup will not be imported.</p>
      )}
    </section>
  );
}

// Import previews a backup and imports it. Deletions need a typed confirmation.
export function Import({ machine, operator }: { machine: Machine; operator: boolean }) {
  const [file, setFile] = useState<File | null>(null),
    [pass, setPass] = useState("");
  const [replace, setReplace] = useState(false),
    [keys, setKeys] = useState(false),
    [people, setPeople] = useState(false),
    [confirming, setConfirming] = useState(false);
  const [preview, setPreview] = useState<Tagged<ImportPreview> | null>(null);
  const [done, setDone] = useState<Counts | null>(null);
  const act = useAction();
  const body = async () => {
    let document: unknown;
    try {
      document = JSON.parse(await file!.text());
    } catch {
      throw new Error("This is not a weir backup: the file is not valid JSON.");
    }
    return { document, replace, keys, people, ...(pass ? { passphrase: pass } : {}) };
  };
  // Any change of the form requires a new preview.
  const change =
    <T,>(set: (v: T) => void) =>
    (v: T) => {
      set(v);
      setPreview(null);
      setDone(null);
    };
  const submit = (e: Event) => {
    e.preventDefault();
    setPreview(null);
    setDone(null);
    void act.run(async () =>
      setPreview(await machine.tagged<ImportPreview>("POST", "/import", { ...(await body()), preview: true })),
    );
  };
  const doImport = () =>
    act.run(async () => {
      try {
        setDone(await machine.post<Counts>("/import", await body(), { "if-match": preview!.tag }));
      } catch (e) {
        if (e instanceof ApiError && e.status === 412) {
          setPreview(null);
          setConfirming(false);
          throw new Error("The machine has changed since the preview. Preview the import again.");
        }
        throw e;
      }
      setPass("");
      setPreview(null);
      setConfirming(false);
    });
  const deletes = preview !== null && Object.values(preview.value.changes).some((d) => d.deleted.length > 0);
  return (
    <>
      <form onSubmit={submit}>
        <h3>Import</h3>
        <div class="grid">
          <Field label="File">
            <input
              type="file"
              accept=".json,application/json"
              required
              onChange={(e) => change(setFile)(e.currentTarget.files?.[0] ?? null)}
            />
          </Field>
          <Field label="Backup passphrase" hint="Leave empty for a backup without credentials.">
            <input
              type="password"
              autocomplete="off"
              value={pass}
              onInput={(e) => change(setPass)(e.currentTarget.value)}
            />
          </Field>
        </div>
        <label class="tick">
          <input type="checkbox" checked={keys} onChange={(e) => change(setKeys)(e.currentTarget.checked)} />
          Import API keys
        </label>
        {operator && (
          <label class="tick">
            <input type="checkbox" checked={people} onChange={(e) => change(setPeople)(e.currentTarget.checked)} />
            Import people and their roles
          </label>
        )}
        <label class="tick">
          <input type="checkbox" checked={replace} onChange={(e) => change(setReplace)(e.currentTarget.checked)} />
          Replace everything (deletes what is not in the file)
        </label>
        <Button type="submit" busy={act.busy} changes="/import" disabled={!file}>
          Preview import
        </Button>
        {preview && <Changes of={preview.value} withKeys={keys} />}
        {preview && (
          <div class="row">
            <Button
              kind={deletes ? "danger" : "main"}
              busy={act.busy}
              onClick={() => (deletes ? setConfirming(true) : void doImport())}
            >
              {deletes ? "Replace everything…" : "Import"}
            </Button>
            <Button onClick={() => setPreview(null)}>Cancel</Button>
          </div>
        )}
        {act.error && !confirming && <ErrorBox>{act.error}</ErrorBox>}
        {done && (
          <Notice kind="good">
            Imported{" "}
            {countNames
              .filter(([f]) => done[f])
              .map(([f, n]) => count(done[f], n))
              .join(", ") || "settings only"}
            .
          </Notice>
        )}
      </form>
      {confirming && preview && (
        <TypedConfirm
          title="Replace everything?"
          word="replace"
          what="replace"
          action="Delete and import"
          of={act}
          onDo={() => void doImport()}
          onClose={() => setConfirming(false)}
        >
          <p>This deletes everything that the backup does not contain, with its credentials. This cannot be undone.</p>
          <ul>
            {changeNames
              .filter(([f]) => preview.value.changes[f]?.deleted.length)
              .map(([f, n]) => (
                <li key={f}>
                  {n}: {names(preview.value.changes[f].deleted)}
                </li>
              ))}
          </ul>
        </TypedConfirm>
      )}
    </>
  );
}
