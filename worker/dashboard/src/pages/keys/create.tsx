import { Finish } from "../../finish";
import type { Machine } from "../../api";
import type { KeyRow } from "../../api-types";
import { Dialog, losing, shownOnce } from "../../dialog";
import { useDraft } from "../../draft";
import { useAction } from "../../hooks";
import { Code } from "../../code";
import { Button, Notice } from "../../ui";
import { corrected, Refused } from "../../unknown";
import { changesOf, emptyForm, Fields, type Form, modelsOf, scopesOf } from "./fields";
import { Snippets } from "./snippets";

// Create is the form of a new key.
export function Create({
  machine,
  onDone,
  onClose,
}: {
  machine: Machine;
  onDone: (k: KeyRow) => Promise<void>;
  onClose: () => void;
}) {
  const [form, setForm, draft] = useDraft(`key ${machine.id}`, emptyForm);
  const put = (part: Partial<Form>) => setForm((f) => ({ ...f, ...part }));
  const act = useAction();
  const submit = (e: Event | null, allowUnknown = false) => {
    e?.preventDefault();
    void act.run(async () => {
      const created = await machine.post<KeyRow>("/keys", {
        ...changesOf(emptyForm, form),
        ...(machine.may("viewer") && { scopes: scopesOf(form) }),
        ...(allowUnknown && { allowUnknown }),
      });
      draft.clear();
      await onDone(created);
    });
  };
  return (
    <Dialog title="New key" ask={losing(draft)} onClose={onClose}>
      <form onSubmit={submit}>
        <Fields machine={machine} form={form} put={put} />
        <Finish of={act} action="Create key" disabled={scopesOf(form).length === 0} draft={draft} onCancel={onClose}>
          <Refused
            of={act}
            onUse={(u) => put({ models: corrected(modelsOf(form), u).join("\n") })}
            onAnyway={() => submit(null, true)}
          />
        </Finish>
      </form>
    </Dialog>
  );
}

// Created shows a new key, which cannot be shown again.
export function Created({
  machine,
  k,
  title,
  onClose,
}: {
  machine: Machine;
  k: KeyRow;
  title: string;
  onClose: () => void;
}) {
  return (
    <Dialog title={title} wide ask={shownOnce} onClose={onClose}>
      <Notice kind="warn">Copy your API key now. You won’t see it again.</Notice>
      <Code label="API key" text={k.apiKey ?? ""} />
      {k.scopes.includes("data") && (
        <>
          <h3>Use the key</h3>
          <Snippets machine={machine} apiKey={k.apiKey} />
        </>
      )}
      <Button kind="main" onClick={onClose}>
        Done
      </Button>
    </Dialog>
  );
}
