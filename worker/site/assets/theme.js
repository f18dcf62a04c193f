// The theme that the reader chose. The pages load it before their text, so that
// a page is never painted in the other theme first.
try {
  const theme = localStorage.getItem("weir-docs-theme");
  if (["light", "dark"].includes(theme)) document.documentElement.dataset.theme = theme;
} catch {
  // storage is turned off: the system's theme
}
