import { useEffect, useState } from "preact/hooks";

let show: (text: string) => void = () => {};

// toast says that something is done, for a few seconds and to screen readers.
// Failures stay where they happened: they are no toasts.
export function toast(text: string) {
  show(text);
}

// Toasts is where they appear, once on the page.
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
