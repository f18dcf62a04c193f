import { useDraft } from "./draft";
import { Dialog, losing } from "./dialog";
import { Finish } from "./finish";
import { Text } from "./forms";
import { useAction } from "./hooks";
import { Field } from "./ui";

// Name asks for the name of what is created or renamed.
export function Name({
  title,
  hint,
  draft: key,
  name: initial = "",
  action,
  onDo,
  onClose,
}: {
  title: string;
  hint?: string;
  /** name of its draft */
  draft: string;
  /** that it has */
  name?: string;
  /** label of the button */
  action: string;
  onDo: (name: string) => Promise<void>;
  onClose: () => void;
}) {
  const [name, setName, draft] = useDraft(key, initial);
  const act = useAction();
  const submit = (e: Event) => {
    e.preventDefault();
    void act.run(async () => {
      await onDo(name.trim());
      draft.clear();
    });
  };
  return (
    <Dialog title={title} ask={losing(draft)} onClose={onClose}>
      <form onSubmit={submit}>
        <Field label="Name" hint={hint}>
          <Text value={name} max={200} required onText={setName} />
        </Field>
        <Finish of={act} action={action} disabled={!name.trim()} draft={draft} onCancel={onClose} />
      </form>
    </Dialog>
  );
}
