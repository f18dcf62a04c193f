import { useEffect, useState } from "preact/hooks";
import { Icon } from "./icons";
import { remember, remembered } from "./remembered";

type Theme = "auto" | "light" | "dark";
const name = "weir-theme";
const next: Record<Theme, Theme> = { auto: "light", light: "dark", dark: "auto" };
const labels: Record<Theme, string> = { auto: "system", light: "light", dark: "dark" };
const icons = { auto: "auto", light: "sun", dark: "moon" } as const;

function stored(): Theme {
  const v = remembered(name);
  return v === "light" || v === "dark" ? v : "auto";
}

export function applyTheme(theme = stored()) {
  if (theme === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
}

// setTheme changes the theme. Charts listen for the event "weir-theme".
export function setTheme(t: Theme) {
  remember(name, t); // otherwise it applies until the page is closed
  applyTheme(t);
  dispatchEvent(new CustomEvent("weir-theme", { detail: t }));
}

// ThemeButton switches the theme.
export function ThemeButton() {
  const [theme, set] = useState(stored);
  useEffect(() => {
    const changed = (e: Event) => set((e as CustomEvent<Theme>).detail);
    addEventListener("weir-theme", changed);
    return () => removeEventListener("weir-theme", changed);
  }, []);
  return (
    <button
      type="button"
      class="quiet icon"
      onClick={() => setTheme(next[theme])}
      aria-label={`Theme: ${labels[theme]}. Switch to ${labels[next[theme]]}`}
      title={`Theme: ${labels[theme]}`}
    >
      <Icon name={icons[theme]} />
    </button>
  );
}
