// The page of models: the list as clients see it, disabled models, aliases and
// custom models.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { compatible } from "../e2e/gateway.mjs";
import { bench, looks, open, settled } from "./browser.mjs";

let b;
before(async () => {
  b = await bench();
  // The provider's list fails, so the built-in catalog is used.
  b.upstream.script = (got) =>
    got.host === "api.anthropic.com" && got.path.includes("/models") ? { status: 503 } : null;
});
after(() => b?.close());

// models opens the page of a machine with one connection to the test upstream and
// one to a provider of the table.
async function models(t, { connected = true, ...options } = {}) {
  const { machineId, apiKey } = await b.operator.machine({ name: "Test" });
  if (connected) {
    await b.operator.connect(machineId, compatible(b.upstream));
    await b.operator.connect(machineId, { provider: "anthropic", apiKey: "sk-ant-test-0123456789abcdef" });
  }
  const page = await open(t, b, { at: `#/m/${machineId}/models`, ...options });
  await page.getByRole("heading", { level: 1, name: "Models" }).waitFor();
  await settled(page);
  const seen = async (segment = "") => {
    const res = await b.gateway.fetch(`/v1/models${segment}`, { headers: { authorization: `Bearer ${apiKey}` } });
    return (await res.json()).data.map((m) => m.id);
  };
  const shown = () => page.getByRole("region", { name: "Models", exact: true }).getByRole("rowheader").allInnerTexts();
  return { machineId, apiKey, page, seen, shown };
}

test("the list is the one that clients see, by kind and search", async (t) => {
  const { page, seen, shown } = await models(t);
  const chat = await seen();
  assert.ok(chat.includes("up/test-chat") && chat.length > 5);
  assert.deepEqual(await shown(), chat);
  await looks(page, "models");

  await page.getByRole("radio", { name: "Embeddings" }).check();
  await page.getByRole("button", { name: "up/test-embed", exact: true }).waitFor();
  assert.deepEqual(await shown(), await seen("/embedding"));

  await page.getByRole("radio", { name: "Embeddings" }).focus();
  await page.keyboard.press("ArrowRight");
  await page.getByRole("radio", { name: "Images" }).and(page.locator(":checked")).waitFor();
  await page.getByRole("button", { name: "up/test-image", exact: true }).waitFor();

  await page.getByRole("radio", { name: "Chat" }).check();
  await page.getByRole("button", { name: "up/test-chat", exact: true }).waitFor();
  await page.getByRole("searchbox", { name: "Search models" }).fill("HAIKU");
  const haiku = chat.filter((id) => id.includes("haiku"));
  assert.deepEqual(await shown(), haiku);
  await page.getByText(`${haiku.length} of ${chat.length} models`).waitFor();
  await page.getByRole("searchbox", { name: "Search models" }).fill("no such model");
  await page.getByText("No models found").waitFor();
});

test("limits and prices of a model are shown", async (t) => {
  const { page, machineId, shown } = await models(t);
  const id = (await shown()).find((m) => m.startsWith("anthropic/") && m.includes("haiku"));
  const info = await b.operator.call("GET", `/${machineId}/api/models/info?id=${encodeURIComponent(id)}&kind=llm`);
  assert.ok(info.pricing.input > 0 && info.context_length > 0);
  const row = page.getByRole("row").filter({ has: page.getByRole("button", { name: id, exact: true }) });
  const price = info.pricing.input.toLocaleString("en", { minimumFractionDigits: 2 });
  await row.getByRole("cell", { name: price, exact: true }).waitFor();
  await row.getByRole("cell", { name: info.context_length.toLocaleString("en"), exact: true }).waitFor();
  await page.getByRole("button", { name: id, exact: true }).click();
  const dialog = page.getByRole("dialog", { name: id });
  await dialog.getByText(`input: $${info.pricing.input} per million tokens`).waitFor();
  await dialog.getByText(`${info.context_length.toLocaleString("en")} tokens of context`).waitFor();
  await dialog.getByText("/v1/chat/completions").waitFor();
  await looks(page, "model");
  await page.keyboard.press("Escape");
  await dialog.waitFor({ state: "detached" });
  assert.equal(await page.evaluate(() => document.activeElement.textContent), id, "the focus is back");
});

test("models are disabled and enabled again", async (t) => {
  const { page, seen } = await models(t);
  await page.getByRole("button", { name: "Disable up/vendor/nested-model" }).click();
  await page.getByRole("button", { name: "Enable up/vendor/nested-model" }).waitFor();
  await page.getByRole("button", { name: "Disable up/vendor/nested-model" }).waitFor({ state: "detached" });
  assert.equal((await seen()).includes("up/vendor/nested-model"), false);
  await looks(page, "models-disabled");
  await page.getByRole("button", { name: "Enable up/vendor/nested-model" }).click();
  await page.getByRole("button", { name: "Disable up/vendor/nested-model" }).waitFor();
  assert.equal((await seen()).includes("up/vendor/nested-model"), true);
});

test("aliases are added and deleted, and an invalid one is refused with an error", async (t) => {
  const { page, apiKey, machineId } = await models(t, { failures: ["PUT /* 400"] });
  await page.getByLabel("Alias", { exact: true }).fill("fast");
  await page.getByLabel("Target model").fill("nothing");
  await page.getByRole("button", { name: "Add alias" }).click();
  await page.getByRole("alert").getByText("must be <alias or provider id>/<model>").waitFor();
  await page.getByLabel("Target model").fill("up/test-chat");
  await page.getByRole("button", { name: "Add alias" }).click();
  await page.getByRole("button", { name: "Delete alias fast" }).waitFor();
  const res = await b.gateway.fetch("/v1/chat/completions", {
    method: "POST",
    headers: { authorization: `Bearer ${apiKey}`, "content-type": "application/json" },
    body: JSON.stringify({ model: "fast", messages: [{ role: "user", content: "hi" }] }),
  });
  assert.equal(res.status, 200);
  await page.getByRole("button", { name: "Delete alias fast" }).click();
  await page.getByText("No aliases yet.").waitFor();
  assert.deepEqual((await b.operator.call("GET", `/${machineId}/api/models/alias`)).aliases, {});
});

test("own prices are added and deleted, and one that cannot be read is refused with an error", async (t) => {
  const { page, machineId } = await models(t, { failures: ["PATCH /* 400"] });
  await page.getByLabel("Priced model").fill("up/test-chat");
  await page.getByLabel("Price", { exact: true }).fill("cheap");
  await page.getByRole("button", { name: "Save price" }).click();
  await page.getByRole("alert").getByText("in USD per million tokens").waitFor();
  await page.getByLabel("Price", { exact: true }).fill("4/20/0.4");
  await page.getByRole("button", { name: "Save price" }).click();
  const remove = page.getByRole("button", { name: "Delete price of up/test-chat" });
  await remove.waitFor();
  const prices = async () => (await b.operator.call("GET", `/${machineId}/api/settings`)).modelPrices;
  assert.deepEqual(await prices(), { "up/test-chat": "4/20/0.4" });
  await remove.click();
  await page.getByText("No own prices yet.").waitFor();
  assert.equal(await prices(), undefined);
});

test("custom models are added with their limits, and deleted", async (t) => {
  const { page, seen, machineId } = await models(t);
  await page.getByLabel("Provider alias or prefix").fill("up");
  await page.getByLabel("Model ID").fill("secret-model");
  await page.getByLabel("Context (tokens)").fill("128000");
  await page.getByLabel("Output limit (tokens)").fill("8000");
  await page.getByRole("button", { name: "Add model" }).click();
  await page.getByRole("button", { name: "up/secret-model", exact: true }).waitFor();
  await page.getByText("128,000 tokens of context").waitFor();
  assert.ok((await seen()).includes("up/secret-model"));
  const [custom] = (await b.operator.call("GET", `/${machineId}/api/models/custom`)).data;
  assert.deepEqual([custom.contextLength, custom.maxTokens], [128000, 8000]);
  await page.getByRole("button", { name: "Delete up/secret-model" }).click();
  await page.getByText("No custom models yet.").waitFor();
  assert.equal((await seen()).includes("up/secret-model"), false);
});

test("a kind without models links to the providers", async (t) => {
  const { page } = await models(t);
  await page.getByRole("radio", { name: "Music" }).check();
  await page.getByText("No models of this kind").waitFor();
  await looks(page, "models-empty");
  await page.getByRole("link", { name: "Add provider" }).click();
  await page.getByRole("heading", { level: 1, name: "Add provider" }).waitFor();
});

test("without a provider the page says that the catalog cannot be called", async (t) => {
  const { page, seen, shown } = await models(t, { connected: false });
  await page.getByText("No provider is connected. This is the built-in catalog").waitFor();
  assert.deepEqual(await shown(), (await seen()).slice(0, 300));
  await page.getByText(/^[\d,]+ more\. Search to see them\.$/).waitFor();
  await looks(page, "models-catalogue");
  await page.getByRole("link", { name: "Add provider" }).click();
  await page.getByRole("heading", { level: 1, name: "Add provider" }).waitFor();
});

test("the menu opens and closes on a phone", async (t) => {
  const { page } = await models(t, { phone: true });
  const menu = page.getByRole("button", { name: "Menu" });
  assert.equal(await page.getByRole("link", { name: "Providers" }).isVisible(), false);
  await menu.click();
  assert.equal(await menu.getAttribute("aria-expanded"), "true");
  await page.getByRole("link", { name: "Providers" }).click();
  await page.getByRole("heading", { level: 1, name: "Providers" }).waitFor();
  assert.equal(await menu.getAttribute("aria-expanded"), "false");
});
