// Unsaved input of every form survives leaving the page and the end of the session; a
// deletion can be undone.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { compatible, secrets } from "../e2e/gateway.mjs";
import { accessible, becomes, bench, open, settled, signIn } from "./browser.mjs";

let b;
before(async () => {
  b = await bench();
});
after(() => b?.close());

// forms are: the page, how its form is opened, and what is typed, by label.
const forms = [
  [
    "keys",
    (page) => page.getByRole("button", { name: "New key" }).first().click(),
    { Name: "laptop", "Allowed models": "up/*" },
  ],
  ["keys", (page) => page.getByRole("button", { name: "Edit Default key" }).click(), { Name: "renamed" }],
  ["budgets", (page) => openUnlessOpen(page, "New budget"), { Name: "monthly", Limit: "5" }],
  ["combos", (page) => openUnlessOpen(page, "New combo"), { Name: "best" }],
  ["models?view=aliases", null, { Alias: "quick", "Target model": "up/test-chat" }],
  ["models?view=custom", null, { "Model ID": "mine", "Provider alias or prefix": "up" }],
  ["models?view=prices", null, { "Priced model": "up/test-chat", "Input price": "1", "Output price": "2" }],
  ["settings", null, { "First-byte timeout (seconds)": "77" }],
  ["explain", null, { Body: '{"model":"up/test-chat"}' }],
];

const openUnlessOpen = async (page, name) => {
  await settled(page);
  if ((await page.getByLabel("Name", { exact: true }).count()) === 0) {
    await page.getByRole("button", { name }).first().click();
  }
};

test("deleting an alias that is used lists its users, and can be undone", async (t) => {
  const { machineId } = await b.operator.machine({ name: "Test" });
  await b.operator.connect(machineId, compatible(b.upstream));
  const call = (method, path, body) => b.operator.call(method, `/${machineId}/api${path}`, body);
  for (const alias of ["quick", "unused"]) await call("PUT", "/models/alias", { alias, model: "up/test-chat" });
  await call("POST", "/combos", { name: "best", models: ["quick"] });
  const page = await open(t, b, { at: `#/m/${machineId}/models?view=aliases` });
  await page.getByRole("button", { name: "Delete alias unused" }).click();
  await page.getByText("Deleted unused.").waitFor();
  await page.getByRole("button", { name: "Delete alias quick" }).click();
  const dialog = page.getByRole("dialog", { name: "Delete quick?" });
  await dialog.getByText("Combos: best").waitFor();
  await accessible(page, "the deletion of an alias");
  await dialog.getByRole("button", { name: "Delete", exact: true }).click();
  const toast = page.locator(".toast").filter({ hasText: "Deleted quick." });
  await toast.waitFor();
  assert.deepEqual((await call("GET", "/models/alias")).aliases, {});
  await toast.getByRole("button", { name: "Undo" }).click();
  await page.getByText("Restored.").waitFor();
  assert.deepEqual((await call("GET", "/models/alias")).aliases, { quick: "up/test-chat" });
});

for (const [at, opened, typed] of forms)
  test(`the form of ${at} keeps ${Object.keys(typed).join(" and ")}`, async (t) => {
    const { machineId } = await b.operator.machine({ name: "Test" });
    await b.operator.connect(machineId, compatible(b.upstream));
    const page = await open(t, b, { at: `#/m/${machineId}/${at}`, failures: ["GET /* 401"] });
    await settled(page);
    await opened?.(page);
    const field = (name) => page.getByLabel(name, { exact: true }).first();
    for (const [name, text] of Object.entries(typed)) await field(name).fill(text);
    // The session ends while another page is open.
    await page.evaluate((hash) => {
      location.hash = hash;
    }, `#/m/${machineId}/playground`);
    await page.getByRole("heading", { level: 1, name: "Playground" }).waitFor();
    await page.context().clearCookies();
    await page.evaluate((hash) => {
      location.hash = hash;
    }, `#/m/${machineId}/usage`);
    await page.getByText("Your session has ended. Sign in again.").waitFor();
    await signIn(page, secrets.ADMIN_TOKEN);
    await page.evaluate((hash) => {
      location.hash = hash;
    }, `#/m/${machineId}/${at}`);
    await page.getByRole("heading", { level: 1 }).first().waitFor();
    await settled(page);
    await opened?.(page);
    for (const [name, text] of Object.entries(typed)) await becomes(() => field(name).inputValue(), text);
    // The browser asks before it closes the page; Explain has nothing to save.
    const closes = await page.evaluate(() => dispatchEvent(new Event("beforeunload", { cancelable: true })));
    assert.equal(closes, at === "explain");
  });
