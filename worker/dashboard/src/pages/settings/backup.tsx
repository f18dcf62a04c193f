import { useState } from "preact/hooks";
import { ApiError, type Machine, type Tagged } from "../../api";
import { TypedConfirm } from "../../dialog";
import { useAction } from "../../hooks";
import { toast } from "../../toast";
import { Badge, Button, ErrorBox, Field, Notice, Section, count, when } from "../../ui";

type Counts = Record<string, number>;

interface Difference {
  added: string[];
  changed: string[];
  deleted: string[];
}

// Preview lists the changes of an import.
interface Preview {
  keysSkipped?: number;
  from?: string;
  /** Unix milliseconds */
  exportedAt?: number;
  changes: Record<string, Difference>;
}

const minPassphrase = 12; // characters

const countNames: [field: string, name: string][] = [
  ["connections", "connection"],
  ["combos", "combo"],
  ["customModels", "custom model"],
  ["modelAliases", "alias"],
  ["keys", "key"],
];

const changeNames: [field: string, name: string][] = [
  ["connections", "Connections"],
  ["combos", "Combos"],
  ["customModels", "Custom models"],
  ["modelAliases", "Aliases"],
  ["disabledModels", "Disabled models of"],
  ["settings", "Settings"],
  ["keys", "API keys"],
];
const kinds: [kind: keyof Difference, text: string][] = [
  ["added", "Added"],
  ["changed", "Changed"],
  ["deleted", "Deleted"],
];
const maxNames = 20; // shown of one kind

// download keeps a document as a file on the person's own machine.
function download(name: string, doc: unknown) {
  const url = URL.createObjectURL(new Blob([JSON.stringify(doc, null, 2)], { type: "application/json" }));
  const a = document.createElement("a");
  a.href = url;
  a.download = name;
  a.click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}

// Backup takes the machine's configuration out, and brings one in.
export function Backup({ machine, onImport }: { machine: Machine; onImport: () => void }) {
  return (
    <Section
      title="Backup"
      intro="The whole configuration as a file. Credentials and keys are in it only when a passphrase encrypts it."
    >
      <Out machine={machine} />
      <hr />
      <In machine={machine} onImport={onImport} />
    </Section>
  );
}

function Out({ machine }: { machine: Machine }) {
  const [pass, setPass] = useState("");
  const act = useAction();
  const name = `weir-${machine.id}-${new Date().toISOString().slice(0, 10)}`;
  const sealed = (e: Event) => {
    e.preventDefault();
    void act.run(async () => {
      download(`${name}-encrypted.json`, await machine.post("/export", { passphrase: pass }));
      setPass("");
      toast("Encrypted backup downloaded.");
    });
  };
  const open = () =>
    act.run(async () => {
      download(`${name}.json`, await machine.get("/export"));
      toast("Backup downloaded.");
    });
  return (
    <form onSubmit={sealed}>
      <h3>Export</h3>
      <Field label="Passphrase" hint={`At least ${minPassphrase} characters. Nobody can open the file without it.`}>
        <input
          type="password"
          autocomplete="new-password"
          required
          minLength={minPassphrase}
          value={pass}
          onInput={(e) => setPass(e.currentTarget.value)}
        />
      </Field>
      <div class="row wrap">
        <Button type="submit" kind="main" busy={act.busy}>
          Download everything, encrypted
        </Button>
        <Button onClick={() => void open()}>Download without secrets</Button>
      </div>
      {act.error && <ErrorBox>{act.error}</ErrorBox>}
    </form>
  );
}

function names(list: string[]) {
  const shown = list.slice(0, maxNames).join(", ");
  return list.length > maxNames ? `${shown} and ${list.length - maxNames} more` : shown;
}

// Changes shows the changes of an import.
function Changes({ of, withKeys }: { of: Preview; withKeys: boolean }) {
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
      {rows.length === 0 && <p>No changes: the machine already has everything in this backup.</p>}
      <ul>
        {rows.map((r) => (
          <li key={r.id}>
            <Badge kind={r.kind === "deleted" ? "bad" : r.kind === "added" ? "good" : "warn"}>{r.text}</Badge> {r.name}
            {r.id.startsWith("settings") ? "" : `: ${names(r.list)}`}
          </li>
        ))}
      </ul>
      {!withKeys && !!of.keysSkipped && (
        <p class="muted">{count(of.keysSkipped, "API key")} in the backup will not be added.</p>
      )}
    </section>
  );
}

function In({ machine, onImport }: { machine: Machine; onImport: () => void }) {
  const [file, setFile] = useState<File | null>(null),
    [pass, setPass] = useState("");
  const [replace, setReplace] = useState(false),
    [keys, setKeys] = useState(false),
    [sure, setSure] = useState(false);
  const [preview, setPreview] = useState<Tagged<Preview> | null>(null);
  const [done, setDone] = useState<Counts | null>(null);
  const act = useAction();
  const body = async () => {
    let document: unknown;
    try {
      document = JSON.parse(await file!.text());
    } catch {
      throw new Error("This is not a weir backup: the file is not JSON.");
    }
    return { document, replace, keys, ...(pass ? { passphrase: pass } : {}) };
  };
  // Any change of the form requires a new preview.
  const change =
    <T,>(set: (v: T) => void) =>
    (v: T) => {
      set(v);
      setPreview(null);
      setDone(null);
    };
  const look = (e: Event) => {
    e.preventDefault();
    setPreview(null);
    setDone(null);
    void act.run(async () =>
      setPreview(await machine.tagged<Preview>("POST", "/import", { ...(await body()), preview: true })),
    );
  };
  const doImport = () =>
    act.run(async () => {
      try {
        setDone(await machine.post<Counts>("/import", await body(), { "if-match": preview!.tag }));
      } catch (e) {
        if (e instanceof ApiError && e.status === 412) {
          setPreview(null);
          setSure(false);
          throw new Error("The machine has changed since the preview. Preview the import again.");
        }
        throw e;
      }
      setPass("");
      setPreview(null);
      setSure(false);
      onImport();
    });
  const deletes = preview !== null && Object.values(preview.value.changes).some((d) => d.deleted.length > 0);
  return (
    <>
      <form onSubmit={look}>
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
          <Field label="Backup passphrase" hint="Leave empty for a backup without secrets.">
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
          Add the API keys in the backup
        </label>
        <label class="tick">
          <input type="checkbox" checked={replace} onChange={(e) => change(setReplace)(e.currentTarget.checked)} />
          Replace everything: delete what is not in the backup
        </label>
        <Button type="submit" busy={act.busy} disabled={!file}>
          Preview import
        </Button>
        {preview && <Changes of={preview.value} withKeys={keys} />}
        {preview && (
          <div class="row">
            <Button
              kind={deletes ? "danger" : "main"}
              busy={act.busy}
              onClick={() => (deletes ? setSure(true) : void doImport())}
            >
              {deletes ? "Replace everything…" : "Import"}
            </Button>
            <Button onClick={() => setPreview(null)}>Cancel</Button>
          </div>
        )}
        {act.error && !sure && <ErrorBox>{act.error}</ErrorBox>}
        {done && (
          <Notice kind="good">
            Imported:{" "}
            {countNames
              .filter(([f]) => done[f])
              .map(([f, n]) => count(done[f], n))
              .join(", ") || "settings only"}
            .
          </Notice>
        )}
      </form>
      {sure && preview && (
        <TypedConfirm
          title="Replace everything?"
          word="replace"
          what="replace"
          action="Delete and import"
          of={act}
          onDo={() => void doImport()}
          onClose={() => setSure(false)}
        >
          <p>What is not in the backup is deleted, with its credentials. This cannot be undone.</p>
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
