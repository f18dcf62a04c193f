// The search, the theme, the buttons that copy code, and the menu of small screens. Without
// this script the pages are complete.
import { excerpt, find, indexOf } from "./search.js";

const root = new URL(document.body.dataset.root, location.href);
const html = document.documentElement;
html.classList.add("scripted");

// Theme: the system's until the reader chooses one, which theme.js applies.
const theme = document.querySelector(".theme");
const dark = () =>
  (html.dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
const show = () => {
  theme.textContent = dark() ? "Light" : "Dark";
};
theme.hidden = false;
show();
theme.addEventListener("click", () => {
  html.dataset.theme = dark() ? "light" : "dark";
  show();
  try {
    localStorage.setItem("weir-docs-theme", html.dataset.theme);
  } catch {
    // the choice lasts for this page
  }
});

// A button copies each block of code.
for (const block of document.querySelectorAll("main pre")) {
  const frame = document.createElement("div");
  frame.className = "code";
  const button = document.createElement("button");
  button.type = "button";
  button.className = "copy";
  button.textContent = "Copy";
  button.addEventListener("click", async () => {
    const done = await navigator.clipboard?.writeText(block.textContent.trimEnd()).then(
      () => true,
      () => false,
    );
    button.textContent = done ? "Copied" : "Not allowed";
    setTimeout(() => {
      button.textContent = "Copy";
    }, 2000);
  });
  block.replaceWith(frame);
  frame.append(block, button);
}

// Menu of small screens.
const menu = document.querySelector(".menu");
const navigation = document.getElementById("navigation");
menu.hidden = false;
const here = navigation.querySelector("[aria-current]");
if (here) navigation.scrollTop = here.offsetTop - navigation.clientHeight / 2;
menu.addEventListener("click", () => {
  menu.setAttribute("aria-expanded", String(navigation.classList.toggle("open")));
});

// Search: the index is loaded when the field gets the focus.
const form = document.querySelector("form[role=search]");
const input = form.querySelector("input");
const results = document.getElementById("results");
const status = form.querySelector("[role=status]");
form.hidden = false;
let index;
const load = () => {
  index ??= Promise.all([import("./minisearch.js"), fetch(new URL("search.json", root)).then((r) => r.json())]).then(
    ([{ default: MiniSearch }, sections]) => indexOf(MiniSearch, sections),
  );
  return index;
};

function item(found) {
  const a = document.createElement("a");
  a.href = new URL(`${found.url.replace(/index\.html$|\.html$/, "")}#${found.anchor}`, root).href;
  a.setAttribute("role", "option");
  a.append(found.title === found.page ? found.title : `${found.page}: ${found.title}`);
  const small = document.createElement("small");
  excerpt(found.text, found.terms).forEach((piece, i) => {
    const mark = i % 2 === 1 ? document.createElement("mark") : "";
    if (mark) mark.textContent = piece;
    small.append(mark || piece);
  });
  a.append(small);
  return a;
}

const close = () => {
  results.hidden = true;
  status.textContent = "";
  input.setAttribute("aria-expanded", "false");
};
async function search() {
  const query = input.value.trim();
  if (!query) return close();
  const found = find(await load(), query).slice(0, 12);
  if (query !== input.value.trim()) return;
  close();
  if (found.length === 0) {
    status.textContent = `No results for “${query}”.`;
    return;
  }
  results.replaceChildren(...found.map(item));
  results.hidden = false;
  input.setAttribute("aria-expanded", "true");
}
input.addEventListener("focus", () => load());
input.addEventListener("input", () => search());
// The command palette of the dashboard asks by the address: /docs/?q=budget.
const asked = new URLSearchParams(location.search).get("q");
if (asked) {
  input.value = asked;
  input.focus();
  search();
}
form.addEventListener("submit", (e) => {
  e.preventDefault();
  (results.querySelector("[aria-selected=true]") ?? results.querySelector("a"))?.click();
});
form.addEventListener("keydown", (e) => {
  const links = [...results.querySelectorAll("a")];
  const at = links.findIndex((a) => a.getAttribute("aria-selected") === "true");
  if (e.key === "Escape") close();
  else if ((e.key === "ArrowDown" || e.key === "ArrowUp") && links.length > 0) {
    e.preventDefault();
    const next = (at + (e.key === "ArrowDown" ? 1 : links.length - (at < 0 ? 0 : 1))) % links.length;
    links.forEach((a, i) => {
      a.setAttribute("aria-selected", String(i === next));
    });
    links[next].scrollIntoView({ block: "nearest" });
  }
});
document.addEventListener("click", (e) => {
  if (!form.contains(e.target)) close();
});
document.addEventListener("keydown", (e) => {
  if (e.key === "/" && !/^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement.tagName)) {
    e.preventDefault();
    input.focus();
  }
});
