import { useState } from "preact/hooks";
import type { Machine } from "../../api";
import { download } from "../../download";
import { useAction } from "../../hooks";
import { toast } from "../../toast";
import { Section } from "../../layout";
import { Button, ErrorBox, Field } from "../../ui";
import { Import } from "./import";

// Backup exports the machine's configuration and imports one.
export function Backup(props: { machine: Machine; operator: boolean }) {
  return (
    <Section
      title="Backup"
      intro="The machine’s configuration as a file. Credentials, keys and people are included only if you encrypt it with a passphrase. Usage, requests and what budgets have spent are not in it: the command weir backup copies all of a server."
    >
      <Export machine={props.machine} />
      <hr />
      <Import {...props} />
    </Section>
  );
}

const minPassphrase = 12; // characters

// save downloads a document as JSON.
const save = (name: string, doc: unknown) => download(name, "application/json", JSON.stringify(doc, null, 2));

function Export({ machine }: { machine: Machine }) {
  const [pass, setPass] = useState("");
  const act = useAction();
  const name = `weir-${machine.id}-${new Date().toISOString().slice(0, 10)}`;
  const saveEncrypted = (e: Event) => {
    e.preventDefault();
    void act.run(async () => {
      save(`${name}-encrypted.json`, await machine.post("/export", { passphrase: pass }));
      setPass("");
      toast("Encrypted backup downloaded.");
    });
  };
  const savePlain = () =>
    act.run(async () => {
      save(`${name}.json`, await machine.get("/export"));
      toast("Backup downloaded.");
    });
  return (
    <form onSubmit={saveEncrypted}>
      <h3>Export</h3>
      <Field label="Passphrase" hint={`At least ${minPassphrase} characters. The file cannot be opened without it.`}>
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
          Export with credentials (encrypted)
        </Button>
        <Button onClick={() => void savePlain()}>Export without credentials</Button>
      </div>
      {act.error && <ErrorBox>{act.error}</ErrorBox>}
    </form>
  );
}
