// Builds the dashboard into build/dashboard: one page at / and its files under
// /assets, with nothing inline and nothing from another origin.
import { defineConfig } from "vite";

export default defineConfig({
  root: import.meta.dirname,
  cacheDir: "../../node_modules/.cache/vite",
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  build: {
    outDir: "../../build/dashboard",
    emptyOutDir: true,
    assetsInlineLimit: 0,
    reportCompressedSize: false,
    target: ["es2023", "chrome123", "firefox120", "safari17.5"],
    modulePreload: { polyfill: false },
  },
});
