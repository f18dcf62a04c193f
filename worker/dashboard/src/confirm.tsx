import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { Dialog } from "./dialog";
import { Finish } from "./finish";
import type { Action } from "./hooks";
import { Field } from "./ui";

// confirms reports whether the word was typed, ignoring case and surrounding spaces.
export const confirms = (typed: string, word: string) => fold(typed) === fold(word);
const fold = (s: string) => s.trim().replace(/\s+/g, " ").toLocaleLowerCase();

// TypedConfirm asks the user to type a word before an action that cannot be undone.
export function TypedConfirm({
  title,
  word,
  what,
  action,
  of,
  onDo,
  onClose,
  children,
}: {
  title: string;
  word: string;
  /** describes the word: "the name", or the word itself */
  what: string;
  /** label of the button */
  action: string;
  of: Action;
  onDo: () => void;
  onClose: () => void;
  children: ComponentChildren;
}) {
  const [typed, set] = useState("");
  return (
    <Dialog title={title} onClose={onClose}>
      <form
        onSubmit={(e) => {
          e.preventDefault();
          if (confirms(typed, word)) onDo();
        }}
      >
        {children}
        <Field label={`Type ${what} to confirm`} hint={<code>{word}</code>}>
          <input value={typed} onInput={(e) => set(e.currentTarget.value)} autocomplete="off" spellcheck={false} />
        </Field>
        <Finish of={of} action={action} danger disabled={!confirms(typed, word)} onCancel={onClose} />
      </form>
    </Dialog>
  );
}

// Confirm asks before an action, and shows what it affects.
export function Confirm({
  title,
  action,
  of,
  onDo,
  onClose,
  children,
}: {
  title: string;
  /** label of the button */
  action: string;
  of: Action;
  onDo: () => void;
  onClose: () => void;
  children: ComponentChildren;
}) {
  return (
    <Dialog title={title} onClose={onClose}>
      {children}
      <Finish of={of} action={action} danger onDo={onDo} onCancel={onClose} />
    </Dialog>
  );
}
