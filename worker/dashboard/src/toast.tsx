import { useEffect, useState } from "preact/hooks";

let show: (text: string) => void = () => {};

// toast shows for a few seconds that something is done, and announces it to
// screen readers. Errors are shown where they happen instead.
export function toast(text: string) {
  show(text);
}

// Toasts is the place of the toasts; the page has one.
export function Toasts() {
  const [list, set] = useState<{ id: number; text: string }[]>([]);
  useEffect(() => {
    let last = 0;
    show = (text) => {
      const id = ++last;
      set((all) => [...all.slice(-2), { id, text }]);
      setTimeout(() => set((all) => all.filter((t) => t.id !== id)), 4000);
    };
    return () => {
      show = () => {};
    };
  }, []);
  return (
    <div class="toasts" role="status">
      {list.map((t) => (
        <p key={t.id}>{t.text}</p>
      ))}
    </div>
  );
}
