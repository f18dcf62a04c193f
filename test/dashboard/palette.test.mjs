// The command palette: pages, accounts, keys, requests and machines by name, with the keyboard alone.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { accessible, becomes, bench, canary, looks, open, settled } from "./browser.mjs";
import { used } from "./used.mjs";

let b;
before(async () => {
  b = await bench();
});
after(() => b?.close());

const heading = (page, name) => page.getByRole("heading", { level: 1, name });

test("each kind of target opens with the keyboard alone", async (t) => {
  const me = await used(b);
  const other = await b.operator.machine({ name: `Other ${canary}` });
  const key = await b.operator.call("POST", `/${me.machineId}/api/keys`, { name: "Laptop of مريم 👩‍💻" });
  const [failed] = (await me.api("/requests?status=error&limit=1")).data;
  const page = await open(t, b, { at: `#/m/${me.machineId}/overview` });
  await settled(page);
  const scripts = [];
  page.on("request", (r) => scripts.push(r.url()));
  const palette = page.getByRole("dialog", { name: "Go to" });
  const box = palette.getByRole("combobox", { name: "Search pages, actions, accounts, tools and requests" });
  const options = palette.getByRole("option");
  // type opens the palette and types; what is typed before it is there would be lost.
  const type = async (text, keys = "Control+k") => {
    await page.locator("dialog[open]").waitFor({ state: "detached" });
    await page.keyboard.press(keys);
    await box.waitFor();
    assert.equal(await box.evaluate((el) => el === document.activeElement), true); // from the first moment
    await page.keyboard.type(text);
  };
  // leave closes the dialog. One that is still loading may not take the first key.
  const leave = () =>
    becomes(async () => {
      const dialogs = await page.locator("dialog[open]").count();
      if (dialogs) await page.keyboard.press("Escape");
      return dialogs;
    }, 0);
  // find types, waits for the option that is chosen, and presses Enter.
  const find = async (text, option, keys) => {
    await type(text, keys);
    await palette.getByRole("option", { name: option, selected: true }).waitFor();
    const active = await box.getAttribute("aria-activedescendant");
    assert.equal(await page.locator(`#${escaped(active)}`).getAttribute("aria-selected"), "true");
    await page.keyboard.press("Enter");
    await palette.waitFor({ state: "detached" });
  };
  await find("budg", "Budgets Page");
  await heading(page, "Budgets").waitFor();
  assert.ok(
    scripts.some((url) => /\/assets\/palette-/.test(url)),
    "it is loaded when it is first opened",
  );
  await find("second", "Second Account", "Meta+k");
  await page.waitForURL(`**/providers/${me.second.id}`);
  await find("مريم key", "Laptop of مريم 👩‍💻 Key");
  await page.waitForURL(`**/keys/${key.id}`);
  await page.getByRole("dialog", { name: /^Edit Laptop/ }).waitFor();
  await page.keyboard.press("Control+k");
  assert.equal(await palette.count(), 0, "not above another dialog");
  await leave();
  await find(failed.id, new RegExp(failed.asked));
  await page.getByRole("dialog", { name: "Request" }).waitFor();
  await leave();
  await find("cursor", "Connect Cursor Tool");
  await page.waitForURL("**/connect/cursor");
  await find("add account", "Add account Action");
  await heading(page, "Add account").waitFor();
  await find("new key", "New key Action");
  await page.getByRole("dialog", { name: "New key" }).waitFor();
  await leave();
  await find("dark", "Dark theme Action");
  await page.getByRole("button", { name: /^Theme: dark/ }).waitFor();
  // Requests are the last, and a few.
  await type("request");
  const search = options.filter({ hasText: "Search the documentation for “request”" });
  await search.waitFor(); // so that the others are those of the whole word
  await options.filter({ hasText: "up/test-chat" }).first().waitFor();
  const offered = await options.allInnerTexts();
  const requests = offered.map((text) => / · /.test(text));
  assert.deepEqual(requests.slice(-7), [true, true, true, true, true, false, false], offered.join("\n"));
  assert.equal(requests.filter(Boolean).length, 5);
  const [docs] = await Promise.all([page.waitForEvent("popup"), search.click()]);
  await docs.locator("#results a").first().waitFor();
  assert.equal(await docs.getByRole("combobox").inputValue(), "request");
  await type("zzz nowhere");
  await palette.getByRole("option", { name: "Search the documentation for “zzz nowhere”", selected: true }).waitFor();
  await page.keyboard.press("ArrowDown");
  await palette.getByRole("option", { name: "Search requests for “zzz nowhere”", selected: true }).waitFor();
  await page.keyboard.press("Enter");
  await heading(page, "Requests").waitFor();
  assert.match(page.url(), /requests\?q=zzz\+nowhere$/);
  await find(other.machineId, /^Other .* Machine$/);
  await page.waitForURL(`**/m/${other.machineId}/overview`);
});

test("it is closed by Escape, which returns the focus, and is read and seen in both themes", async (t) => {
  const me = await used(b);
  const page = await open(t, b, { at: `#/m/${me.machineId}/keys`, failures: ["GET /* 503"] });
  await settled(page);
  const button = page.getByRole("button", { name: "Go to…" });
  await button.focus();
  await page.keyboard.press("Enter");
  const palette = page.getByRole("dialog", { name: "Go to" });
  const options = palette.getByRole("option");
  await options
    .filter({ hasText: /Account$/ })
    .first()
    .waitFor();
  await looks(page, "palette");
  await accessible(page, "palette");
  await page.keyboard.press("ArrowDown");
  await options
    .nth(1)
    .and(palette.getByRole("option", { selected: true }))
    .waitFor();
  await page.keyboard.press("Escape");
  await palette.waitFor({ state: "detached" });
  await page.locator(":focus").and(button).waitFor();
  // A list that does not answer leaves the pages.
  await page.route("**/api/keys", (route) => route.fulfill({ status: 503, json: {} }));
  await page.keyboard.press("Control+k");
  await options
    .filter({ hasText: /Account$/ })
    .first()
    .waitFor();
  assert.equal(
    await options
      .filter({ hasText: "Key" })
      .filter({ hasNotText: /Page|Setting|Action/ })
      .count(),
    0,
  );
});

const escaped = (id) => id.replace(/[^\w-]/g, "\\$&");
