import { useState } from "preact/hooks";
import { Icon } from "./icons";

type Theme = "auto" | "light" | "dark";
const name = "weir-theme";
const next: Record<Theme, Theme> = { auto: "light", light: "dark", dark: "auto" };
const words: Record<Theme, string> = { auto: "as the system", light: "light", dark: "dark" };
const icons = { auto: "auto", light: "sun", dark: "moon" } as const;

function stored(): Theme {
  try {
    const v = localStorage.getItem(name);
    return v === "light" || v === "dark" ? v : "auto";
  } catch {
    return "auto";
  }
}

export function applyTheme(theme = stored()) {
  if (theme === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
}

// ThemeButton turns the colours; whoever draws on a canvas hears "weir-theme".
export function ThemeButton() {
  const [theme, set] = useState(stored);
  const turn = () => {
    const t = next[theme];
    try {
      localStorage.setItem(name, t);
    } catch {
      /* lasts as long as this page then */
    }
    applyTheme(t);
    set(t);
    dispatchEvent(new Event("weir-theme"));
  };
  return (
    <button
      type="button"
      class="quiet icon"
      onClick={turn}
      aria-label={`Colours: ${words[theme]}. Change`}
      title={`Colours: ${words[theme]}`}
    >
      <Icon name={icons[theme]} />
    </button>
  );
}
