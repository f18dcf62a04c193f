import { useState } from "preact/hooks";
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

// ThemeButton switches the theme. Charts listen for the event "weir-theme".
export function ThemeButton() {
  const [theme, set] = useState(stored);
  const turn = () => {
    const t = next[theme];
    remember(name, t); // otherwise it applies until the page is closed
    applyTheme(t);
    set(t);
    dispatchEvent(new Event("weir-theme"));
  };
  return (
    <button
      type="button"
      class="quiet icon"
      onClick={turn}
      aria-label={`Theme: ${labels[theme]}. Switch to ${labels[next[theme]]}`}
      title={`Theme: ${labels[theme]}`}
    >
      <Icon name={icons[theme]} />
    </button>
  );
}
