// The page of models: the list as clients see it, disabled models, aliases and
// custom models.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { compatible } from "../e2e/gateway.mjs";
import { becomes, bench, looks, open, settled } from "./browser.mjs";

let b;
before(async () => {
  b = await bench();
  // The provider's list fails, so the built-in catalogue is used.
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
  // seen lists the models that clients see as the page does: deprecated ones are last.
  const seen = async (segment = "") => {
    const res = await b.gateway.fetch(`/v1/models${segment}`, { headers: { authorization: `Bearer ${apiKey}` } });
    const ids = (await res.json()).data.map((m) => m.id);
    const kind = segment.slice(1) || "llm";
    const { data } = await b.operator.call("GET", `/${machineId}/api/models/list/${kind}`);
    const old = new Set(data.filter((m) => m.deprecated).map((m) => m.id));
    return [...ids.filter((id) => !old.has(id)), ...ids.filter((id) => old.has(id))];
  };
  // Rows that left the page between being found and being read are left out: their text
  // is no longer laid out, and words run together. An id whose middle is cut is its tooltip.
  const texts = () =>
    page
      .getByRole("region", { name: "Models", exact: true })
      .getByRole("rowheader")
      .evaluateAll((rows) =>
        rows
          .filter((row) => row.isConnected)
          .map((row) => {
            const id = row.querySelector(".middle[title]");
            return id ? row.innerText.replace(id.innerText, id.title) : row.innerText;
          }),
      );
  const shown = async () => (await texts()).map((text) => text.replace(/\sdeprecated$/, ""));
  return { machineId, apiKey, page, seen, shown, texts };
}

const view = (page, name) => page.getByRole("radio", { name, exact: true }).check();

test("the list is the one that clients see, by kind and search", async (t) => {
  const { page, seen, shown } = await models(t);
  const chat = await seen();
  assert.ok(chat.includes("up/test-chat") && chat.length > 5);
  assert.deepEqual(await shown(), chat);
  await looks(page, "models");

  await page.getByLabel("Kind").selectOption("Embeddings");
  await page.getByRole("button", { name: "up/test-embed", exact: true }).waitFor();
  assert.deepEqual(await shown(), await seen("/embedding"));
  await page.getByLabel("Kind").selectOption("Images");
  await page.getByRole("button", { name: "up/test-image", exact: true }).waitFor();
  await page.getByLabel("Kind").selectOption("Chat");
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
  const price = "$" + info.pricing.input.toLocaleString("en", { minimumFractionDigits: 2 });
  await row.getByRole("cell", { name: price, exact: true }).waitFor();
  await row.getByRole("cell", { name: info.context_length.toLocaleString("en"), exact: true }).waitFor();
  await page.getByRole("button", { name: id, exact: true }).click();
  const dialog = page.getByRole("dialog", { name: id });
  await dialog.getByText(`input: ${price} per million tokens`).waitFor();
  await dialog.getByText(`${info.context_length.toLocaleString("en")} tokens of context`).waitFor();
  await dialog.getByText("/v1/chat/completions").waitFor();
  await looks(page, "model");
  await page.keyboard.press("Escape");
  await dialog.waitFor({ state: "detached" });
  await page
    .locator("button:focus")
    .and(page.getByRole("button", { name: id, exact: true }))
    .waitFor(); // it is back
  await page.getByRole("button", { name: "up/test-chat", exact: true }).click();
  await page.getByRole("button", { name: "Set price" }).click();
  await page.getByText("No custom prices yet.").waitFor();
  assert.equal(await page.getByLabel("Priced model").inputValue(), "up/test-chat");
});

test("the list is sorted and grouped, as its address says", async (t) => {
  const { page, machineId, shown } = await models(t);
  await b.operator.call("PATCH", `/${machineId}/api/settings`, {
    modelPrices: { "up/vendor/nested-model": "1000/2000", "up/test-chat": "0/0" },
  });
  await b.operator.call("POST", `/${machineId}/api/models/custom`, {
    id: "unpriced",
    providerAlias: "up",
    type: "llm",
  });
  await page.reload();
  await settled(page);
  const chat = await shown();
  // Deprecated models are last in every order.
  const list = (await b.operator.call("GET", `/${machineId}/api/models/list/llm`)).data;
  const parts = [list.filter((m) => !m.deprecated), list.filter((m) => m.deprecated)];
  const ids = (turn) => parts.flatMap((part) => part.map((m) => m.id).sort((x, y) => turn * (x < y ? -1 : 1)));
  const head = (name) => page.getByRole("columnheader", { name, exact: true });
  const by = (name) => head(name).getByRole("button").click();
  await by("Model");
  await head("Model").and(page.locator('[aria-sort="ascending"]')).waitFor();
  assert.deepEqual(await shown(), ids(1));
  await by("Model");
  assert.deepEqual(await shown(), ids(-1));
  await by("Model");
  assert.deepEqual(await shown(), chat);
  assert.ok(!page.url().includes("sort="), page.url());

  // Own prices count; models without the figure are last, whatever the direction.
  const of = new Map(list.map((m) => [m.id, m.pricing?.input]));
  const inputs = async () => (await shown()).map((id) => of.get(id));
  const prices = (turn) =>
    parts.flatMap((part) => {
      const all = part.map((m) => m.pricing?.input);
      const known = all.filter((price) => price !== undefined).sort((x, y) => turn * (x - y));
      return [...known, ...all.filter((price) => price === undefined)];
    });
  assert.ok(parts[0].length > 5 && prices(1).includes(undefined));
  await by("Input price");
  assert.equal((await shown())[0], "up/test-chat");
  assert.deepEqual(await inputs(), prices(1));
  await by("Input price");
  assert.equal((await shown())[0], "up/vendor/nested-model");
  assert.deepEqual(await inputs(), prices(-1));
  await page
    .getByRole("row")
    .filter({ has: page.getByRole("button", { name: "up/vendor/nested-model", exact: true }) })
    .getByRole("cell", { name: "$1,000.00", exact: true })
    .waitFor();

  await page.getByLabel("Group by").selectOption("Provider");
  const anthropic = list.filter((m) => m.owned_by === "anthropic").length;
  const heads = async () => (await shown()).filter((text) => / models$/.test(text));
  assert.deepEqual(await heads(), [`anthropic ${anthropic} models`, `up ${list.length - anthropic} models`]);
  await looks(page, "models-grouped");
  assert.ok(page.url().endsWith("?sort=-input&group=provider"), page.url());
  await page.reload();
  await settled(page);
  assert.deepEqual(await heads(), [`anthropic ${anthropic} models`, `up ${list.length - anthropic} models`]);
  assert.equal((await shown())[anthropic + 2], "up/vendor/nested-model");
});

test("on a phone the list shows figures below the names and is sorted by a menu", async (t) => {
  const { page, texts } = await models(t, { phone: true });
  await page.getByLabel("Sort by").selectOption("Model, descending");
  const rows = await texts();
  const ids = (old) => rows.filter((text) => /^\S+\sdeprecated/.test(text) === old).map((text) => text.split(/\s/)[0]);
  const order = [false, true].flatMap((old) => ids(old).sort().reverse());
  assert.deepEqual(
    rows.map((text) => text.split(/\s/)[0]),
    order,
  );
  assert.ok(
    rows.some((text) => /Context [\d,]+ · .*Input price \$[\d.]+ · Output price \$[\d.]+/.test(text)),
    rows.join("\n"),
  );
});

test("a model is copied and tried from its row", async (t) => {
  const { page } = await models(t);
  await page.getByRole("button", { name: "Copy up/vendor/nested-model" }).click();
  await becomes(() => page.evaluate(() => navigator.clipboard.readText()), "up/vendor/nested-model");
  await page.getByLabel("Kind").selectOption("Speech");
  await page.getByRole("link", { name: "Try up/test-tts" }).waitFor();
  await page.getByLabel("Kind").selectOption("Chat");
  await page.getByRole("link", { name: "Try up/vendor/nested-model" }).click();
  await page.getByRole("heading", { level: 1, name: "Playground" }).waitFor();
  assert.equal(await page.getByLabel("Model", { exact: true }).inputValue(), "up/vendor/nested-model");
  await page.getByLabel("Message").fill("hello");
  await page.keyboard.press("Enter");
  await page.getByText(/tokens in/).waitFor();
});

test("models are disabled and enabled again", async (t) => {
  const { page, seen } = await models(t);
  const disable = page.getByRole("button", { name: "Disable up/vendor/nested-model" });
  await disable.click();
  await page.getByRole("button", { name: "Undo" }).click();
  await becomes(async () => (await seen()).includes("up/vendor/nested-model"), true);
  await disable.click();
  await disable.waitFor({ state: "detached" });
  assert.equal((await seen()).includes("up/vendor/nested-model"), false);
  // Also from the details of a model.
  await page.getByRole("button", { name: "up/test-chat", exact: true }).click();
  await page.getByRole("dialog", { name: "up/test-chat" }).getByRole("button", { name: "Disable" }).click();
  await page.getByRole("button", { name: "Disable up/test-chat" }).waitFor({ state: "detached" });
  await view(page, "Disabled");
  await looks(page, "models-disabled");
  await page.getByRole("button", { name: "Enable up/vendor/nested-model" }).click();
  await page.getByRole("button", { name: "Enable up/vendor/nested-model" }).waitFor({ state: "detached" });
  assert.equal((await seen()).includes("up/vendor/nested-model"), true);
  await page.goBack(); // the view is in the address, not in the history
  await page.goForward();
  await page.getByRole("button", { name: "Enable up/test-chat" }).click();
  await page.getByText("No models are disabled.").waitFor();
  await view(page, "All models");
  await disable.waitFor();
});

test("a long list of disabled models has only the rows near the screen", async (t) => {
  const { page, machineId } = await models(t);
  const ids = Array.from({ length: 400 }, (_, i) => `model-${i}`);
  await b.operator.call("POST", `/${machineId}/api/models/disabled`, { providerAlias: "up", ids });
  await page.reload();
  await view(page, "Disabled");
  const enable = page.getByRole("button", { name: /^Enable up\// });
  await enable.first().waitFor();
  const names = () => enable.evaluateAll((list) => list.map((e) => e.getAttribute("aria-label")));
  const all = (await b.operator.call("GET", `/${machineId}/api/models/disabled`)).disabled.up;
  assert.equal(all.length, 400);
  assert.equal((await names())[0], `Enable up/${all[0]}`);
  assert.ok((await names()).length < 120);
  await becomes(
    async () => {
      await page.evaluate(() => scrollTo(0, document.documentElement.scrollHeight));
      return (await names()).at(-1);
    },
    `Enable up/${all.at(-1)}`,
  );
  assert.ok((await names()).length < 120);
  assert.equal(await page.getByRole("listitem").last().getAttribute("aria-posinset"), "400");
  await page.getByRole("button", { name: `Enable up/${all.at(-1)}`, exact: true }).click();
  await page.getByRole("button", { name: `Enable up/${all.at(-1)}`, exact: true }).waitFor({ state: "detached" });
});

test("aliases are added and deleted, and an invalid one is refused with an error", async (t) => {
  const { page, apiKey, machineId } = await models(t, { failures: ["PUT /* 400"] });
  await view(page, "Aliases");
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
  await view(page, "Prices");
  await page.getByLabel("Priced model").fill("up/nonsense");
  const warning = page.getByText("Its server does not list up/nonsense. Check the spelling.");
  await warning.waitFor();
  await page.getByLabel("Input price", { exact: true }).fill("1");
  await page.getByRole("button", { name: "Save price" }).click();
  await page.getByText("Not listed by its server").waitFor();
  await looks(page, "models-prices-unlisted");
  await page.getByRole("button", { name: "Delete price of up/nonsense" }).click();
  await page.getByLabel("Priced model").fill("up/test-chat");
  await warning.waitFor({ state: "detached" });
  await page.getByLabel("Input price", { exact: true }).fill("cheap");
  await page.getByRole("button", { name: "Save price" }).click();
  await page.getByRole("alert").getByText("in USD per million tokens").waitFor();
  await page.getByLabel("Input price", { exact: true }).fill("4");
  await page.getByLabel("Output price", { exact: true }).fill("20");
  await page.getByLabel("Cache read", { exact: true }).fill("0.4");
  await page.getByRole("button", { name: "Save price" }).click();
  const remove = page.getByRole("button", { name: "Delete price of up/test-chat" });
  await remove.waitFor();
  assert.equal(await page.locator(":user-invalid").count(), 0, "the emptied fields are not marked as missing");
  const prices = async () => (await b.operator.call("GET", `/${machineId}/api/settings`)).modelPrices;
  assert.deepEqual(await prices(), { "up/test-chat": "4/20/0.4" });
  await page.getByText("input $4.00 · output $20.00 · cache read $0.40", { exact: true }).waitFor();
  await remove.click();
  await page.getByText("No custom prices yet.").waitFor();
  assert.equal(await prices(), undefined);
});

test("custom models are added with their limits, and deleted", async (t) => {
  const { page, seen, machineId } = await models(t);
  await view(page, "Custom");
  await page.getByLabel("Provider alias or prefix").fill("up");
  await page.getByLabel("Model ID").fill("secret-model");
  await page.getByLabel("Context (tokens)").fill("128000");
  await page.getByLabel("Output limit (tokens)").fill("8000");
  await page.getByRole("button", { name: "Add model" }).click();
  await page.getByText("128,000 tokens of context").waitFor();
  await view(page, "All models");
  await page.getByRole("button", { name: "up/secret-model", exact: true }).waitFor();
  await view(page, "Custom");
  assert.ok((await seen()).includes("up/secret-model"));
  const [custom] = (await b.operator.call("GET", `/${machineId}/api/models/custom`)).data;
  assert.deepEqual([custom.contextLength, custom.maxTokens], [128000, 8000]);
  await page.getByRole("button", { name: "Delete up/secret-model" }).click();
  await page.getByText("No custom models yet.").waitFor();
  assert.equal((await seen()).includes("up/secret-model"), false);
});

test("a kind without models links to the providers", async (t) => {
  const { page } = await models(t);
  await page.getByLabel("Kind").selectOption("Music");
  await page.getByText("No models of this kind").waitFor();
  await looks(page, "models-empty");
  await page.getByRole("link", { name: "Add account" }).click();
  await page.getByRole("heading", { level: 1, name: "Add account" }).waitFor();
});

test("without a provider the page says that the catalogue cannot be called", async (t) => {
  const { machineId, page, seen, texts } = await models(t, { connected: false });
  await page.getByText("No account is connected. This is the built-in catalogue").waitFor();
  // Deprecated models are marked, and last.
  const { data } = await b.operator.call("GET", `/${machineId}/api/models/list/llm`);
  const old = new Set(data.filter((m) => m.deprecated).map((m) => m.id));
  assert.ok(old.size > 10, `${old.size} deprecated models`);
  const all = await seen();
  const shown = async () =>
    (await texts()).map((text) => {
      const [id, mark] = text.split(/\s+/);
      assert.equal(mark === "deprecated", old.has(id), text);
      return id;
    });
  // A list of this length has only the rows near the screen in the page.
  const table = page.getByRole("region", { name: "Models", exact: true }).getByRole("table");
  assert.ok(all.length > 400);
  assert.equal(await table.getAttribute("aria-rowcount"), `${all.length + 1}`);
  const top = await shown();
  assert.ok(top.length < 120, `${top.length} rows`);
  assert.deepEqual(top, all.slice(0, top.length));
  await becomes(async () => {
    await page.evaluate(() => scrollTo(0, document.documentElement.scrollHeight));
    return (await shown()).at(-1);
  }, all.at(-1));
  assert.ok((await shown()).length < 120);
  assert.equal(await page.getByRole("link", { name: /^Try / }).count(), 0);
  await page.evaluate(() => scrollTo(0, 0));
  await page.getByRole("searchbox", { name: "Search models" }).fill(all.at(-1));
  await becomes(shown, [all.at(-1)]);
  // The mark says when the model ends and what to use instead.
  const ended = data.find((m) => m.deprecated?.date && m.deprecated.successor);
  await page.getByRole("searchbox", { name: "Search models" }).fill(ended.id);
  const { date, successor } = ended.deprecated;
  const mark = page.getByTitle(`Ends ${date}, use ${successor}`, { exact: true });
  await page.getByRole("row").filter({ hasText: ended.id }).filter({ has: mark }).first().waitFor();
  await page.getByRole("searchbox", { name: "Search models" }).fill("");
  await becomes(async () => (await shown())[0], all[0]);
  // They are last in every order.
  for (const order of ["ascending", "descending"]) {
    await page.getByRole("columnheader", { name: "Model" }).getByRole("button").click();
    await page
      .getByRole("columnheader", { name: "Model" })
      .and(page.locator(`[aria-sort="${order}"]`))
      .waitFor();
    assert.ok(
      (await shown()).every((id) => !old.has(id)),
      order,
    );
    await becomes(async () => {
      await page.evaluate(() => scrollTo(0, document.documentElement.scrollHeight));
      return old.has((await shown()).at(-1));
    }, true);
    await page.evaluate(() => scrollTo(0, 0));
    await becomes(async () => old.has((await shown())[0]), false);
  }
  await page.getByRole("columnheader", { name: "Model" }).getByRole("button").click();
  await becomes(async () => (await shown())[0], all[0]);
  await looks(page, "models-catalogue");
  await page.getByRole("link", { name: "Add account" }).click();
  await page.getByRole("heading", { level: 1, name: "Add account" }).waitFor();
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
