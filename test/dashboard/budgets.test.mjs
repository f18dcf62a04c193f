// The page of budgets: creation, what is spent, change and deletion.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { compatible } from "../e2e/gateway.mjs";
import { until } from "../e2e/wait.mjs";
import { accessible, bench, looks, open, settled } from "./browser.mjs";

let b;
before(async () => {
  b = await bench();
});
after(() => b?.close());

test("a budget is created, used, exhausted, changed and deleted", async (t) => {
  const { machineId, apiKey } = await b.operator.machine({ name: "Test" });
  await b.operator.connect(machineId, compatible(b.upstream));
  const list = async () => (await b.operator.call("GET", `/${machineId}/api/budgets`)).data;
  const page = await open(t, b, { at: `#/m/${machineId}/budgets` });
  await page.getByRole("heading", { level: 1, name: "Budgets" }).waitFor();
  await page.getByText("No budgets yet").waitFor();
  await settled(page);
  await looks(page, "budgets-empty");

  await page.getByRole("button", { name: "New budget" }).click();
  const form = page.getByRole("dialog", { name: "New budget" });
  await form.getByRole("textbox", { name: /^Name/ }).fill("Team");
  await form.getByLabel("Limit").fill("2");
  await form.getByLabel("Unit").selectOption({ label: "Requests" });
  await form.getByLabel("Resets").selectOption({ label: "Every day" });
  await form.getByText("A new budget counts from now on; what was used before is not in it.").waitFor();
  await form.getByLabel("Models").fill("up/test-chat");
  await form.getByLabel("Webhook").fill("https://hooks.example.com/weir");
  await looks(page, "budgets-new");
  await form.getByRole("button", { name: "Create budget" }).click();
  await page.getByRole("row", { name: /Team.*0 of 2 requests.*up\/test-chat/ }).waitFor();
  const [made] = await list();
  assert.deepEqual(
    [made.unit, made.limit, made.window, made.models, made.webhookUrl],
    ["requests", 2, "day", ["up/test-chat"], "https://hooks.example.com/weir"],
  );

  const statuses = [];
  await until("a refused call", async () => {
    const res = await b.gateway.fetch("/v1/chat/completions", {
      method: "POST",
      headers: { authorization: `Bearer ${apiKey}`, "content-type": "application/json" },
      body: JSON.stringify({ model: "up/test-chat", messages: [{ role: "user", content: "hi" }] }),
    });
    statuses.push(res.status);
    return res.status === 429;
  });
  await until("the count", async () => (await list())[0].spent === 2);
  await page.reload();
  await page.getByRole("row", { name: /Team.*2 of 2 requests.*Used up/ }).waitFor();
  await settled(page);
  await looks(page, "budgets");
  await accessible(page, "budgets");

  await page.getByRole("button", { name: "Edit Team" }).click();
  const edit = page.getByRole("dialog", { name: "Edit Team" });
  assert.ok(await edit.getByLabel("Unit").isDisabled());
  await edit.getByRole("region", { name: "Signing secret" }).getByText("whsec_").waitFor();
  await edit.getByLabel("Limit").fill("10");
  await edit.getByRole("button", { name: "Save" }).click();
  await page.getByRole("row", { name: /Team.*2 of 10 requests/ }).waitFor();

  await page.getByRole("button", { name: "Delete Team" }).click();
  await page.getByRole("dialog", { name: "Delete Team?" }).getByRole("button", { name: "Delete budget" }).click();
  await page.getByText("No budgets yet").waitFor();
  assert.deepEqual(await list(), []);
});

test("the address names the budget that is edited", async (t) => {
  const { machineId } = await b.operator.machine({ name: "Test" });
  const made = await b.operator.call("POST", `/${machineId}/api/budgets`, {
    name: "Team",
    unit: "usd",
    limit: 5,
    window: "month",
  });
  const at = `#/m/${machineId}/budgets`;
  const page = await open(t, b, { at: `${at}/${made.id}` });
  const edit = page.getByRole("dialog", { name: "Edit Team" });
  await edit.waitFor();
  await page.reload();
  await edit.waitFor();
  await edit.getByRole("button", { name: "Close" }).click();
  await edit.waitFor({ state: "detached" });
  assert.equal(await page.evaluate(() => location.hash), at);
  await page.getByRole("button", { name: "New budget" }).click();
  await page.getByRole("dialog", { name: "New budget" }).waitFor();
  assert.equal(await page.evaluate(() => location.hash), `${at}/new`);
  await page.goBack();
  await page.getByRole("dialog").waitFor({ state: "detached" });
});

test("on a phone a budget takes three lines", async (t) => {
  const { machineId } = await b.operator.machine({ name: "Test" });
  const add = (budget) => b.operator.call("POST", `/${machineId}/api/budgets`, { window: "month", ...budget });
  await add({ name: "Team", unit: "usd", limit: 50 });
  await add({
    name: "Tokens of vision models",
    unit: "tokens",
    limit: 1_000_000,
    models: ["gpt-4.1", "gpt-4o"],
    allowUnknown: true,
  });
  const page = await open(t, b, { at: `#/m/${machineId}/budgets`, viewport: { width: 390, height: 844 } });
  await page.getByRole("row", { name: /Tokens of vision models/ }).waitFor();
  const heights = await page.locator("tbody tr").evaluateAll((rows) => rows.map((r) => r.offsetHeight));
  assert.ok(
    heights.every((px) => px <= 110),
    `${heights} px`,
  );
  await page.getByRole("button", { name: "Edit Team" }).click();
  await page.getByRole("dialog", { name: "Edit Team" }).waitFor();
});

test("a budget with unknown costs has its buttons in sight on a narrow screen", async (t) => {
  const { machineId } = await b.operator.machine({ name: "Test" });
  const path = `/${machineId}/api/budgets`;
  const made = await b.operator.call("POST", path, { name: "Team", unit: "usd", limit: 1000, window: "month" });
  const page = await open(t, b, { at: `#/m/${machineId}/keys`, viewport: { width: 1024, height: 768 } });
  await page.route(`**${path}`, (route) =>
    route.fulfill({ json: { data: [{ ...made, spent: 0.0023, unpricedCalls: 28 }] } }),
  );
  await page.goto(`${b.url}/#/m/${machineId}/budgets`);
  await page.getByText("Cost of 28 requests unknown").waitFor();
  const list = page.getByRole("region", { name: "Budgets" });
  assert.ok(await list.evaluate((e) => e.scrollWidth <= e.clientWidth), "the list is as wide as the page");
});

test("a budget that is almost used shows its share", async (t) => {
  const { machineId } = await b.operator.machine({ name: "Test" });
  const api = (path, method = "GET", body) => b.operator.call(method, `/${machineId}/api${path}`, body);
  const made = await api("/budgets", "POST", { name: "Team", unit: "requests", limit: 100, window: "day" });
  const page = await open(t, b, { at: `#/m/${machineId}/keys` });
  await page.route(`**/${machineId}/api/budgets`, (route) =>
    route.fulfill({ json: { data: [{ ...made, spent: 93 }] } }),
  );
  for (const path of ["budgets", "overview"]) {
    await page.goto(`${b.url}/#/m/${machineId}/${path}`);
    await page.getByText("93% used", { exact: true }).waitFor();
  }
  // The share is rounded as the amounts are, but what is left is never "100% used".
  const shown = { ...made, unit: "usd", limit: 2, spent: 1.95989 };
  await page.route(`**/${machineId}/api/budgets`, (route) =>
    route.fulfill({ json: { data: [shown, { ...shown, id: "b2", name: "Other", spent: 1.9999 }] } }),
  );
  await page.goto(`${b.url}/#/m/${machineId}/budgets`);
  await page.getByText("98% used", { exact: true }).waitFor();
  await page.getByText("99.9% used", { exact: true }).waitFor();
});
