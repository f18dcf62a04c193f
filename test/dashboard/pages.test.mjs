// The table of pages: what a new page needs, and that each page opens.
import assert from "node:assert/strict";
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { after, before, test } from "node:test";
import { pages } from "../../worker/dashboard/src/pages.ts";
import { bench, holds, open, settled } from "./browser.mjs";

const sources = new URL("../../worker/dashboard/src/", import.meta.url);

let b;
before(async () => {
  b = await bench();
});
after(() => b?.close());

test("every page has a file, a row, a title, an icon and a test", () => {
  const files = readdirSync(new URL("pages/", sources)).filter((name) => name.endsWith(".tsx"));
  const icons = readFileSync(new URL("icons.tsx", sources), "utf8");
  const missing = [];
  for (const name of files) {
    if (!pages.some((p) => `${p.path}.tsx` === name)) missing.push(`pages/${name} has no row in pages.ts`);
  }
  for (const p of pages) {
    if (!files.includes(`${p.path}.tsx`)) missing.push(`${p.path} has no file pages/${p.path}.tsx`);
    if (!p.title) missing.push(`${p.path} has no title`);
    if (!new RegExp(`^  ${p.icon}: `, "m").test(icons)) missing.push(`${p.path} has no icon in icons.tsx`);
    if (!existsSync(new URL(`${p.path}.test.mjs`, import.meta.url))) missing.push(`${p.path} has no test`);
  }
  assert.deepEqual(missing, []);
  assert.equal(new Set(pages.map((p) => p.path)).size, pages.length, "a path is used once");
});

test("every page opens from the navigation, with its title as heading and document title", async (t) => {
  const { machineId } = await b.operator.machine({ name: "Test" });
  const page = await open(t, b, { at: `#/m/${machineId}/${pages.at(-1).path}` });
  await settled(page);
  for (const { path, title } of pages) {
    const link = page.getByRole("navigation", { name: "Pages" }).getByRole("link", { name: title, exact: true });
    assert.equal(await link.locator("svg").count(), 1, `${title} has an icon`);
    await link.click();
    await page.getByRole("heading", { level: 1, name: title, exact: true }).waitFor();
    await holds(page, (want) => document.title === want, `${title} · weir`);
    assert.ok(page.url().endsWith(`#/m/${machineId}/${path}`), page.url());
    await settled(page);
  }
});
