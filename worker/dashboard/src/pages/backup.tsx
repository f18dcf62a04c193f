import { useState } from "preact/hooks";
import type { Machine } from "../api";
import { useAction } from "../hooks";
import { toast } from "../toast";
import { Button, ErrorBox, Field, Notice, Section, count } from "../ui";

type Counts = Record<string, number>;

const minPassphrase = 12; // characters

const countNames: [field: string, name: string][] = [
  ["connections", "connection"], ["combos", "combo"], ["customModels", "custom model"], ["modelAliases", "alias"], ["keys", "key"],
];

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
    <Section title="Backup" intro="The whole configuration as a file. Credentials and keys are in it only when a passphrase encrypts it.">
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
      toast("The encrypted backup is downloaded.");
    });
  };
  const open = () => act.run(async () => {
    download(`${name}.json`, await machine.get("/export"));
    toast("The backup is downloaded.");
  });
  return (
    <form onSubmit={sealed}>
      <h3>Take a backup</h3>
      <Field label="Passphrase" hint={`At least ${minPassphrase} characters. Nobody can open the file without it.`}>
        <input type="password" autocomplete="new-password" required minLength={minPassphrase} value={pass} onInput={(e) => setPass(e.currentTarget.value)} />
      </Field>
      <div class="row wrap">
        <Button type="submit" kind="main" busy={act.busy}>Download everything, encrypted</Button>
        <Button onClick={() => void open()}>Download without secrets</Button>
      </div>
      {act.error && <ErrorBox>{act.error}</ErrorBox>}
    </form>
  );
}

function In({ machine, onImport }: { machine: Machine; onImport: () => void }) {
  const [file, setFile] = useState<File | null>(null), [pass, setPass] = useState(""), [replace, setReplace] = useState(false);
  const [done, setDone] = useState<Counts | null>(null);
  const act = useAction();
  const submit = (e: Event) => {
    e.preventDefault();
    setDone(null);
    void act.run(async () => {
      let document: unknown;
      try { document = JSON.parse(await file!.text()); } catch { throw new Error("The file is no backup: it has no JSON."); }
      setDone(await machine.post<Counts>("/import", { document, replace, ...(pass ? { passphrase: pass } : {}) }));
      setPass("");
      onImport();
    });
  };
  return (
    <form onSubmit={submit}>
      <h3>Bring a backup in</h3>
      <div class="grid">
        <Field label="File"><input type="file" accept=".json,application/json" required onChange={(e) => setFile(e.currentTarget.files?.[0] ?? null)} /></Field>
        <Field label="Its passphrase" hint="Empty for a backup without secrets."><input type="password" autocomplete="off" value={pass} onInput={(e) => setPass(e.currentTarget.value)} /></Field>
      </div>
      <label class="tick"><input type="checkbox" checked={replace} onChange={(e) => setReplace(e.currentTarget.checked)} />Delete what is not in the file</label>
      <Button type="submit" kind={replace ? "danger" : undefined} busy={act.busy} disabled={!file}>Bring in</Button>
      {act.error && <ErrorBox>{act.error}</ErrorBox>}
      {done && <Notice kind="good">Brought in: {countNames.filter(([f]) => done[f]).map(([f, n]) => count(done[f], n)).join(", ") || "nothing but settings"}.</Notice>}
    </form>
  );
}
