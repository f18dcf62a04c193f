import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Action } from "./hooks";
import { Button, ErrorBox, Field, type Children } from "./ui";

// Dialog is modal while it is shown: the element itself keeps the focus inside,
// closes on Escape, and gives the focus back. Escape goes through onClose at
// once: the element's own close event comes a task later, and would undo what
// was pressed in between.
export function Dialog({ title, onClose, children, wide }: Children & { title: string; onClose: () => void; wide?: boolean }) {
  const ref = useRef<HTMLDialogElement>(null), gone = useRef(false);
  useLayoutEffect(() => {
    const dialog = ref.current!;
    dialog.showModal();
    // A form begins at its first field, not at the button that closes it.
    dialog.querySelector<HTMLElement>("form :is(input:not([type=checkbox], [type=radio]), textarea, select)")?.focus();
    return () => { gone.current = true; dialog.close(); };
  }, []);
  return (
    <dialog ref={ref} class={wide ? "wide" : ""} aria-label={title} onCancel={(e) => { e.preventDefault(); onClose(); }} onClose={() => { if (!gone.current) onClose(); }}>
      <div class="row between head">
        <h2>{title}</h2>
        <Button kind="quiet" icon="close" aria-label="Close" onClick={onClose} />
      </div>
      {children}
    </dialog>
  );
}

// TypedConfirm asks for a word before something that cannot be undone.
export function TypedConfirm({ title, word, what, action, of, onDo, onClose, children }: {
  title: string;
  word: string;
  /** of the word: "its name" */
  what: string;
  /** on the button */
  action: string;
  of: Action;
  onDo: () => void;
  onClose: () => void;
  children: ComponentChildren;
}) {
  const [typed, set] = useState("");
  return (
    <Dialog title={title} onClose={onClose}>
      <form onSubmit={(e) => { e.preventDefault(); if (typed === word) onDo(); }}>
        {children}
        <Field label={`Type ${what} to go on`} hint={<code>{word}</code>}>
          <input value={typed} onInput={(e) => set(e.currentTarget.value)} autocomplete="off" spellcheck={false} />
        </Field>
        {of.error && <ErrorBox>{of.error}</ErrorBox>}
        <div class="row">
          <Button type="submit" kind="danger" busy={of.busy} disabled={typed !== word}>{action}</Button>
          <Button onClick={onClose}>Cancel</Button>
        </div>
      </form>
    </Dialog>
  );
}
