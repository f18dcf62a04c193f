import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Action } from "./hooks";
import { Button, ErrorBox, Field, type Children } from "./ui";

// Question is asked before a dialog is closed by Escape or its cross.
export interface Question {
  text: string /** on the button that closes it */;
  action: string;
  onClose?: () => void;
}

// losing returns the question for a form with unsaved input.
export const losing = (draft: { dirty: boolean; clear: () => void }): Question | undefined =>
  draft.dirty ? { text: "Discard what you typed?", action: "Discard", onClose: draft.clear } : undefined;

// lastSight is the question for a dialog that shows a new key.
export const lastSight: Question = {
  text: "Have you copied the key? You won’t be able to see it again.",
  action: "Close without copying",
};

// Dialog is modal while it is shown: the element itself keeps the focus inside,
// closes on Escape, and gives the focus back. Escape goes through onClose at
// once: the element's own close event comes a task later, and would undo what
// was pressed in between.
export function Dialog({
  title,
  onClose,
  children,
  wide,
  ask,
}: Children & { title: string; onClose: () => void; wide?: boolean; ask?: Question }) {
  const ref = useRef<HTMLDialogElement>(null),
    gone = useRef(false),
    keep = useRef<HTMLDivElement>(null);
  const [asking, setAsking] = useState(false);
  const close = () => {
    if (ask) setAsking(true);
    else onClose();
  };
  useLayoutEffect(() => {
    const dialog = ref.current!;
    dialog.showModal();
    // A form begins at its first field, not at the button that closes it.
    dialog.querySelector<HTMLElement>("form :is(input:not([type=checkbox], [type=radio]), textarea, select)")?.focus();
    return () => {
      gone.current = true;
      dialog.close();
    };
  }, []);
  useLayoutEffect(() => {
    if (asking) keep.current?.querySelector("button")?.focus();
  }, [asking]);
  return (
    <dialog
      ref={ref}
      class={wide ? "wide" : ""}
      aria-label={title}
      onCancel={(e) => {
        e.preventDefault();
        close();
      }}
      onClose={() => {
        if (!gone.current) {
          if (ask) {
            ref.current?.showModal();
            setAsking(true);
          } else onClose();
        }
      }}
    >
      <div class="row between head">
        <h2>{title}</h2>
        <Button kind="quiet" icon="close" aria-label="Close" onClick={close} />
      </div>
      {asking && ask && (
        <div class="notice warn" role="alert">
          <div>{ask.text}</div>
          <div class="row" ref={keep}>
            <Button onClick={() => setAsking(false)}>Back</Button>
            <Button
              kind="danger"
              onClick={() => {
                ask.onClose?.();
                onClose();
              }}
            >
              {ask.action}
            </Button>
          </div>
        </div>
      )}
      {children}
    </dialog>
  );
}

// confirms reports whether a word was typed, ignoring case and surrounding spaces.
export const confirms = (typed: string, word: string) => fold(typed) === fold(word);
const fold = (s: string) => s.trim().replace(/\s+/g, " ").toLocaleLowerCase();

// TypedConfirm asks for a word before something that cannot be undone.
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
  /** of the word: "its name", or the word itself */
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
        {of.error && <ErrorBox>{of.error}</ErrorBox>}
        <div class="row">
          <Button type="submit" kind="danger" busy={of.busy} disabled={!confirms(typed, word)}>
            {action}
          </Button>
          <Button onClick={onClose}>Cancel</Button>
        </div>
      </form>
    </Dialog>
  );
}
