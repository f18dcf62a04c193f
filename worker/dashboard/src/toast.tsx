import { useEffect, useRef, useState } from "preact/hooks";
import { errorText } from "./api";
import { Button } from "./ui";

type Undo = () => Promise<unknown>;

let show: (text: string, undo?: Undo) => void = () => {};

const shownMs = 4000;
const undoMs = 10_000;

// toast shows for a few seconds that something is done, and announces it to screen
// readers; with undo it offers for ten seconds to restore the previous state. Errors
// are shown where they happen instead.
export function toast(text: string, undo?: Undo) {
  show(text, undo);
}

interface Shown {
  id: number;
  text: string;
  undo?: Undo;
}

// Toasts is the place of the toasts; the page has one.
export function Toasts() {
  const [list, set] = useState<Shown[]>([]);
  useEffect(() => {
    let last = 0;
    show = (text, undo) => {
      const id = ++last;
      set((all) => [...all.slice(-2), { id, text, undo }]);
    };
    return () => {
      show = () => {};
    };
  }, []);
  const close = (id: number) => set((all) => all.filter((t) => t.id !== id));
  return (
    <div class="toasts" role="status">
      {list.map((t) => (
        <Toast key={t.id} of={t} onClose={() => close(t.id)} />
      ))}
    </div>
  );
}

function Toast({ of, onClose }: { of: Shown; onClose: () => void }) {
  const ref = useRef<HTMLDivElement>(null);
  const [busy, setBusy] = useState(false);
  useEffect(() => {
    if (busy) return;
    let timer = 0;
    // It stays while the pointer or the focus is on it.
    const close = () => {
      if (ref.current?.matches(":hover, :focus-within")) timer = window.setTimeout(close, 1000);
      else onClose();
    };
    timer = window.setTimeout(close, of.undo ? undoMs : shownMs);
    return () => clearTimeout(timer);
  }, [busy]);
  const undo = async () => {
    setBusy(true);
    try {
      await of.undo!();
      toast("Restored.");
    } catch (e) {
      toast(`Couldn’t undo. ${errorText(e)}`);
    }
    onClose();
  };
  return (
    <div class="toast" ref={ref}>
      <span>{of.text}</span>
      {of.undo && (
        <Button busy={busy} onClick={() => void undo()}>
          Undo
        </Button>
      )}
    </div>
  );
}
