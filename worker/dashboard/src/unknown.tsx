// The refusal of a form that names a model, provider or prefix which does not exist.
import type { Action } from "./hooks";
import { Failed } from "./layout";
import { Button, ErrorBox } from "./ui";

export interface Unknown {
  /** what does not exist: "model", or "provider or prefix" */
  what: string;
  name: string;
  /** the similar name of a whole entry, "" without one */
  meant: string;
}

// unknownName returns what the error of a save says, see suggest.go of pkg/api; null
// for another error.
export function unknownName(error: string): Unknown | null {
  const parts =
    /names (no provider|no combo|an unknown)[^:]*: (\S+?)(?:; did you mean (\S+)\?)? \(set allowUnknown/.exec(error);
  if (!parts) return null;
  const [, kind, name, meant = ""] = parts;
  return { what: kind === "no provider" ? "provider or prefix" : "model", name, meant };
}

// corrected replaces the unknown name in a list of entries.
export const corrected = (entries: string[], { name, meant }: Unknown) =>
  entries.map((entry) => {
    const slash = meant.indexOf("/");
    // An unknown prefix is named without the model that follows it.
    const whole = name.includes("/") || slash < 0 ? name : name + meant.slice(slash);
    return entry === whole ? meant : entry;
  });

// Refused shows the error of a save. For an unknown name it offers the similar one, and
// to save the form anyway.
export function Refused({
  of,
  onUse,
  onAnyway,
  onReload,
}: {
  of: Action;
  onUse: (unknown: Unknown) => void;
  onAnyway: () => void;
  /** reads the record again, which someone else has changed */
  onReload?: () => Promise<void>;
}) {
  if (!of.error) return null;
  const unknown = unknownName(of.error);
  if (!unknown) return <Failed of={of} reload={onReload} />;
  const { what, name, meant } = unknown;
  return (
    <ErrorBox>
      <p>
        Unknown {what} “{name}”. {meant && `Did you mean “${meant}”?`}
      </p>
      <div class="row wrap">
        {meant && (
          <Button
            onClick={() => {
              of.clear();
              onUse(unknown);
            }}
          >
            Use {meant}
          </Button>
        )}
        <Button onClick={onAnyway}>Save anyway</Button>
      </div>
    </ErrorBox>
  );
}
