import type { ComponentChildren } from "preact";
import type { Draft } from "./draft";
import type { Action } from "./hooks";
import { Button, ErrorBox } from "./ui";

// Finish is the end of a form or of a question: its error, what it does, and Cancel, which discards the draft.
export function Finish({
  of,
  action,
  danger,
  changes,
  disabled,
  draft,
  onDo,
  onCancel,
  children,
}: {
  of: Action;
  /** label of the button */
  action: string;
  danger?: boolean;
  /** as of Button */
  changes?: string;
  disabled?: boolean;
  draft?: Draft;
  /** if there is no form that the button submits */
  onDo?: () => void;
  onCancel: () => void;
  /** what shows the error, if it offers more than its text */
  children?: ComponentChildren;
}) {
  return (
    <div class="finish stack">
      {children ?? (of.error && <ErrorBox>{of.error}</ErrorBox>)}
      <div class="row">
        <Button
          type={onDo ? "button" : "submit"}
          kind={danger ? "danger" : "main"}
          busy={of.busy}
          changes={changes}
          disabled={disabled}
          onClick={onDo}
        >
          {action}
        </Button>
        <Button
          onClick={() => {
            draft?.clear();
            onCancel();
          }}
        >
          Cancel
        </Button>
      </div>
    </div>
  );
}
