import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { Button, type Children } from "./ui";

// Question is asked before Escape or the close button closes a dialog.
export interface Question {
  text: string;
  /** label of the button that closes the dialog */
  action: string;
  onClose?: () => void;
}

// losing returns the question for a form with unsaved input.
export const losing = (draft: { dirty: boolean; clear: () => void }): Question | undefined =>
  draft.dirty ? { text: "Discard unsaved changes?", action: "Discard", onClose: draft.clear } : undefined;

// shownOnce is the question of a dialog that shows a new key.
export const shownOnce: Question = {
  text: "Have you copied the key? You won’t see it again.",
  action: "Close without copying",
};

// Dialog is a modal dialog, with drawer at the right edge of the screen: the dialog
// element traps the focus, closes on Escape and restores the focus. Escape calls onClose
// immediately, because the close event of the element is a task later and would undo a
// key pressed in between.
export function Dialog({
  title,
  onClose,
  children,
  wide,
  drawer,
  ask,
}: Children & { title: string; onClose: () => void; wide?: boolean; drawer?: boolean; ask?: Question }) {
  const ref = useRef<HTMLDialogElement>(null),
    gone = useRef(false);
  const [asking, setAsking] = useState(false);
  const close = () => {
    if (ask) setAsking(true);
    else onClose();
  };
  useLayoutEffect(() => {
    const dialog = ref.current!;
    dialog.showModal();
    // A form and a search start at their first field, not at the close button.
    dialog
      .querySelector<HTMLElement>(
        "form :is(input:not([type=checkbox], [type=radio]), textarea, select), input[role=combobox]",
      )
      ?.focus();
    return () => {
      gone.current = true;
      dialog.close();
    };
  }, []);
  return (
    <dialog
      ref={ref}
      class={wide ? "wide" : drawer ? "drawer" : ""}
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
        <Ask
          text={ask.text}
          action={ask.action}
          onBack={() => setAsking(false)}
          onConfirm={() => {
            ask.onClose?.();
            onClose();
          }}
        />
      )}
      {children}
    </dialog>
  );
}

// Ask asks for confirmation in place. The harmless answer gets the focus.
export function Ask({
  text,
  action,
  onBack,
  onConfirm,
}: {
  text: string;
  /** label of the button that confirms */
  action: string;
  onBack: () => void;
  onConfirm: () => void;
}) {
  const row = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => row.current?.querySelector("button")?.focus(), []);
  return (
    <div class="notice warn" role="alert">
      <div>{text}</div>
      <div class="row" ref={row}>
        <Button onClick={onBack}>Back</Button>
        <Button kind="danger" onClick={onConfirm}>
          {action}
        </Button>
      </div>
    </div>
  );
}
