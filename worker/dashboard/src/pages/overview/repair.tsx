import { useState } from "preact/hooks";
import type { Machine } from "../../api";
import type { ConnectionRow, ProviderRow } from "../../api-types";
import { Dialog } from "../../dialog";
import { Finish } from "../../finish";
import { useAction } from "../../hooks";
import { Credential, secretBody, type Typed } from "../providers/inputs";
import { SignInFlow } from "../providers/oauth";
import { testSaved } from "../providers/added";
import type { Need } from "./accounts";

// Repair is the dialog that solves what an account needs: a sign-in or a key.
export default function Repair({
  machine,
  need: { c, fix },
  provider,
  name,
  onDone,
  onClose,
}: {
  machine: Machine;
  need: Need;
  provider?: ProviderRow;
  name: string;
  onDone: (message: string) => void;
  onClose: () => void;
}) {
  if (fix === "signin" && provider)
    return (
      <Dialog title={`Sign in with ${provider.name}`} onClose={onClose}>
        <SignInFlow
          flow={provider.connect[0]}
          machine={machine}
          provider={provider}
          body={{ connectionId: c.id }}
          onCancel={onClose}
          onDone={() => onDone("Account connected again.")}
        />
      </Dialog>
    );
  return (
    <ReplaceKey
      machine={machine}
      c={c}
      name={name}
      auth={provider?.auth ?? "bearer"}
      onDone={onDone}
      onClose={onClose}
    />
  );
}

// ReplaceKey asks for another credential and tests it.
function ReplaceKey({
  machine,
  c,
  name,
  auth,
  onDone,
  onClose,
}: {
  machine: Machine;
  c: ConnectionRow;
  name: string;
  auth: string;
  onDone: (message: string) => void;
  onClose: () => void;
}) {
  const [typed, setTyped] = useState<Typed>({});
  const save = useAction();
  const secrets = secretBody(auth, typed);
  const submit = (e: Event) => {
    e.preventDefault();
    void save.run(async () => {
      await machine.put(`/providers/${c.id}`, secrets);
      onDone(await testSaved(machine, c.id, name));
    });
  };
  return (
    <Dialog title={`New key for ${name}`} onClose={onClose}>
      <form onSubmit={submit}>
        <Credential
          auth={auth}
          typed={typed}
          hint="Stored encrypted and never shown again."
          required
          onType={(field, value) => setTyped((all) => ({ ...all, [field]: value }))}
        />
        <Finish
          of={save}
          action="Save and test"
          changes={`/providers/${c.id}`}
          disabled={Object.keys(secrets).length === 0}
          onCancel={onClose}
        />
      </form>
    </Dialog>
  );
}
