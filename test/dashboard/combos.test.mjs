// The page of combos: dragging, keyboard, test calls and errors.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { strategyName } from "../../worker/dashboard/src/pages/combos/strategies.ts";
import { compatible } from "../e2e/gateway.mjs";
import { accessible, answered, becomes, bench, canary, holds, looks, open, settled } from "./browser.mjs";

let b;
before(async () => {
  b = await bench();
});
after(() => b?.close());

async function combos(t, made = [], options = {}) {
  const { machineId, apiKey } = await b.operator.machine({ name: "Test" });
  await b.operator.connect(machineId, compatible(b.upstream));
  for (const c of made) await b.operator.call("POST", `/${machineId}/api/combos`, c);
  const page = await open(t, b, { at: `#/m/${machineId}/combos`, ...options });
  await page.getByRole("heading", { level: 1, name: "Combos" }).waitFor();
  await settled(page);
  const list = async () => (await b.operator.call("GET", `/${machineId}/api/combos`)).data;
  const members = () =>
    page.getByRole("list", { name: "Models", exact: true }).getByRole("listitem").locator("code").allInnerTexts();
  return { page, machineId, apiKey, list, members };
}

test("a combo is created by dragging, reordered and tried", async (t) => {
  const { page, list, members } = await combos(t);
  await page.getByText("No combos yet").waitFor();
  await looks(page, "combos-empty");
  await page.getByRole("button", { name: "Create a combo" }).click();
  await page.getByLabel("Name").fill("best");
  const offered = page.getByRole("list", { name: "Models and combos" }).getByRole("listitem");
  await offered.filter({ hasText: "up/test-chat" }).first().dragTo(page.locator(".drop"));
  await offered.filter({ hasText: "up/vendor/nested-model" }).dragTo(page.locator(".drop"));
  await becomes(members, ["up/test-chat", "up/vendor/nested-model"]);
  const items = page.getByRole("list", { name: "Models", exact: true }).getByRole("listitem");
  await items.nth(1).locator(".grip").dragTo(items.nth(0));
  await holds(page, () => document.querySelector(".order li code").textContent === "up/vendor/nested-model");
  await looks(page, "combos-edit");
  await page.getByRole("button", { name: "Save combo" }).click();
  await page.getByRole("heading", { level: 2, name: "best" }).waitFor();
  const [c] = await list();
  assert.deepEqual(
    [c.name, c.models, c.strategy, c.kind],
    ["best", ["up/vendor/nested-model", "up/test-chat"], "fallback", "llm"],
  );

  await page.getByRole("button", { name: "Try it: best" }).click();
  await page.getByText("Answered by up/vendor/nested-model · 1 attempt").waitFor();
  await looks(page, "combos");
});

test("a combo is created, changed and deleted with the keyboard only", async (t) => {
  const { page, list, members } = await combos(t);
  const press = async (name) => {
    await page.getByRole("button", { name, exact: true }).focus();
    await page.keyboard.press("Enter");
  };
  await press("New combo");
  await page.getByLabel("Name").focus();
  await page.keyboard.type("turns");
  await page.getByLabel("Kind").focus();
  await page.keyboard.press("E"); // Embeddings
  await page.getByLabel("Strategy").focus();
  await page.keyboard.press("R");
  await press("Add up/test-embed");
  await press("Added up/test-embed");
  await page.getByText("up/test-embed is already in the combo.").waitFor();
  await becomes(members, ["up/test-embed"]);
  await press("Add up/test-embed-large");
  await press("Remove up/test-embed-large");
  await becomes(members, ["up/test-embed"]);
  await press("Save combo");
  await page.getByRole("heading", { level: 2, name: "turns" }).waitFor();
  let [c] = await list();
  assert.deepEqual([c.name, c.models, c.strategy, c.kind], ["turns", ["up/test-embed"], "round-robin", "embedding"]);
  await press("Try it: turns");
  await page.getByText("Answered by up/test-embed").waitFor();

  await press("Edit turns");
  await page.getByLabel("Name").fill("turns-2");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { level: 2, name: "turns-2" }).waitFor();
  [c] = await list();
  assert.equal(c.name, "turns-2");
  await press("Delete turns-2");
  await page.getByRole("dialog").waitFor();
  await press("Delete combo");
  await page.getByText("No combos yet").waitFor();
  assert.deepEqual(await list(), []);
});

test("a combo states which failures continue with its next model", async (t) => {
  const { page, list } = await combos(t, [{ name: "pair", models: ["up/test-chat", "up/vendor/nested-model"] }]);
  await page.getByRole("button", { name: "Edit pair" }).click();
  await page.getByText("When a model fails").click();
  await page.getByLabel("Rate limit or no credit").selectOption("Return the error");
  await page.getByLabel("Content filtered").selectOption("Try the next model");
  await looks(page, "combos-policy");
  await answered(page, "PUT", () => page.getByRole("button", { name: "Save combo" }).click());
  assert.deepEqual((await list())[0].on, { limit: "stop", content_filter: "next" });
  await page.getByRole("button", { name: "Edit pair" }).click();
  await page.getByLabel("Rate limit or no credit").selectOption({ index: 0 });
  await answered(page, "PUT", () => page.getByRole("button", { name: "Save combo" }).click());
  assert.deepEqual((await list())[0].on, { content_filter: "next" });
});

test("a canary has weights, and keeps the calls of a key together", async (t) => {
  const { page, list } = await combos(t, [{ name: "main", models: ["up/test-chat", "up/vendor/nested-model"] }]);
  await page.getByRole("button", { name: "Edit main" }).click();
  await page.getByLabel("Strategy").selectOption("weighted");
  await page.getByLabel("Weight of up/test-chat").fill("90");
  await page.getByLabel("Weight of up/vendor/nested-model").fill("10");
  await page.getByLabel("Sticky by").selectOption("key");
  await answered(page, "PUT", () => page.getByRole("button", { name: "Save combo" }).click());
  const [c] = await list();
  assert.deepEqual(
    [c.strategy, c.weights, c.splitBy],
    ["weighted", { "up/test-chat": 90, "up/vendor/nested-model": 10 }, "key"],
  );
  await page.getByText("2 models, weighted").waitFor();
  await page.getByRole("button", { name: "Edit main" }).click();
  assert.equal(await page.getByLabel("Weight of up/test-chat").inputValue(), "90");
  await page.getByRole("button", { name: "Remove up/test-chat" }).click();
  await answered(page, "PUT", () => page.getByRole("button", { name: "Save combo" }).click());
  assert.deepEqual((await list())[0].weights, { "up/vendor/nested-model": 10 });
});

test("a picture shows the way of a request, and members that are gone", async (t) => {
  const { page, machineId } = await combos(t, [
    { name: "inner", models: ["up/test-chat", "up/vendor/nested-model"], strategy: "round-robin" },
    {
      name: "main",
      models: ["inner", "up/long", "an-alias", "groq/llama", "lost/model", "gone"],
      strategy: "weighted",
      weights: { inner: 5 },
      on: { any_4xx: "next", limit: "stop" },
      allowUnknown: true,
    },
  ]);
  const call = (method, path, body) => b.operator.call(method, `/${machineId}/api${path}`, body);
  await call("POST", "/models/disabled", { providerAlias: "up", ids: ["long"] });
  await call("PUT", "/models/alias", { alias: "an-alias", model: "up/test-chat" });
  await page.reload();
  const route = page.getByRole("list", { name: "Route of main" });
  const member = (name) => route.locator(":scope > li").filter({ has: page.getByText(name, { exact: true }) });
  for (const [name, text] of [
    ["inner", "50%"],
    ["up/long", "Disabled"],
    ["an-alias", "1 account"],
    ["groq/llama", "No account"],
    ["lost/model", "No account"],
    ["gone", "Not found"],
  ])
    await member(name).getByText(text, { exact: true }).first().waitFor();
  assert.deepEqual(
    await route.getByRole("list", { name: "Route of inner" }).getByRole("listitem").locator("code").allInnerTexts(),
    ["up/test-chat", "up/vendor/nested-model"],
  );
  await page
    .getByText(
      "The first model is chosen by weight, the same for a session. Tries the next model after: not available, request too long, model does not exist, content filtered, other refusals (4xx). Returns the error after: rate limit or no credit.",
    )
    .waitFor();
  await looks(page, "combos-route");
  // The editor shows the picture of what is not saved yet.
  await page.getByRole("button", { name: "Edit main" }).click();
  assert.ok(page.url().includes("/combos/"), page.url());
  await page.getByRole("button", { name: "Remove gone" }).click();
  await page.getByLabel("Strategy").selectOption("cheapest");
  await page.getByText("The cheapest model is first.", { exact: false }).waitFor();
  await page.getByText("5 models, weighted").waitFor({ state: "detached" });
  await answered(page, "PUT", () => page.getByRole("button", { name: "Save combo" }).click());
  await page.getByText("5 models, cheapest").waitFor();
});

test("an editor has an address, and going back closes it with its draft kept", async (t) => {
  const { page, list } = await combos(t, [{ name: "pair", models: ["up/test-chat"] }]);
  await page.getByRole("button", { name: "Edit pair" }).click();
  const [{ id }] = await list();
  assert.ok(page.url().endsWith(`/combos/${id}`), page.url());
  await page.getByLabel("Name").fill("pair-2");
  await page.goBack();
  await page.getByLabel("Name").waitFor({ state: "detached" });
  await page.goForward();
  await becomes(() => page.getByLabel("Name").inputValue(), "pair-2");
  await page.getByRole("button", { name: "Cancel" }).click();
  await page.getByRole("button", { name: "Discard", exact: true }).click();
  await page.getByLabel("Name").waitFor({ state: "detached" });
  await page.reload(); // nothing is unsaved
  await page.evaluate(() => {
    location.hash += "/new";
  });
  await page.getByRole("heading", { level: 2, name: "New combo" }).waitFor();
});

test("a member that was deleted while the form was open is named, and the combo saved anyway", async (t) => {
  const { page, list, machineId } = await combos(t, [{ name: "inner", models: ["up/test-chat"] }], {
    failures: ["POST /* 400"],
  });
  await page.getByRole("button", { name: "New combo" }).click();
  await page.getByLabel("Name").fill("outer");
  await page.getByRole("button", { name: "Add inner" }).click();
  const [{ id }] = await list();
  await b.operator.call("DELETE", `/${machineId}/api/combos/${id}`);
  await b.operator.call("POST", `/${machineId}/api/combos`, { name: "innes", models: ["up/test-chat"] });
  await page.getByRole("button", { name: "Save combo" }).click();
  await page.getByRole("alert").getByText("Unknown model “inner”. Did you mean “innes”?").waitFor();
  await accessible(page, "an unknown member");
  await page.getByRole("button", { name: "Save anyway" }).click();
  await page.getByText("Saved outer.").waitFor();
  const route = page.getByRole("list", { name: "Route of outer" });
  await route.getByText("Not found", { exact: true }).waitFor();
  await page.getByRole("button", { name: "Edit outer" }).click();
  await page.getByRole("button", { name: "Remove inner" }).click();
  await page.getByRole("button", { name: "Add innes" }).click();
  await page.getByRole("button", { name: "Save combo" }).click();
  await becomes(async () => (await list()).find((c) => c.name === "outer").models, ["innes"]);
});

test("deleting a combo says what uses it and can be undone", async (t) => {
  const { page, list, machineId } = await combos(t, [
    {
      name: "inner",
      models: ["up/test-chat", "up/vendor/nested-model"],
      strategy: "weighted",
      weights: { "up/test-chat": 3 },
    },
    { name: "outer", models: ["inner"] },
  ]);
  const call = (method, path, body) => b.operator.call(method, `/${machineId}/api${path}`, body);
  await call("POST", "/keys", { name: "laptop", models: ["inner"] });
  await call("POST", "/budgets", { name: "small", models: ["inner"], unit: "requests", limit: 5, window: "day" });
  await call("PATCH", "/settings", { claudeHaikuModel: "inner" });
  await page.getByRole("button", { name: "Delete inner" }).click();
  const dialog = page.getByRole("dialog", { name: "Delete inner?" });
  for (const text of ["Combos: outer", "Keys limited to it: laptop", "Budgets: small", "The settings of Claude models"])
    await dialog.getByText(text).waitFor();
  await accessible(page, "the deletion of a combo");
  await dialog.getByRole("button", { name: "Delete combo" }).click();
  await page.getByText("Deleted inner.").waitFor();
  assert.deepEqual(
    (await list()).map((c) => c.name),
    ["outer"],
  );
  await page.getByRole("list", { name: "Route of outer" }).getByText("Not found", { exact: true }).waitFor();
  await accessible(page, "an offer to undo");
  await page.getByRole("button", { name: "Undo" }).click();
  await page.getByText("Restored.").waitFor();
  await page.getByRole("heading", { level: 2, name: "inner" }).waitFor();
  const c = (await list()).find((c) => c.name === "inner");
  assert.deepEqual(
    [c.models, c.strategy, c.weights],
    [["up/test-chat", "up/vendor/nested-model"], "weighted", { "up/test-chat": 3 }],
  );
});

test("combos nest, and a cycle is refused with an error", async (t) => {
  const { page, list } = await combos(t, [{ name: "inner", models: ["up/test-chat"] }], {
    failures: ["PUT /* 400", "POST /* 409"],
  });
  await page.getByRole("button", { name: "New combo" }).click();
  await page.getByLabel("Name").fill("outer");
  await page.getByRole("button", { name: "Add inner" }).click();
  await page.getByRole("button", { name: "Save combo" }).click();
  await page.getByRole("heading", { level: 2, name: "outer" }).waitFor();
  await page.getByRole("button", { name: "Try it: outer" }).click();
  await page.getByText("Answered by up/test-chat").waitFor();
  await page.getByRole("button", { name: "Edit inner" }).click();
  await page.getByRole("button", { name: "Add outer" }).click();
  await page.getByRole("button", { name: "Save combo" }).click();
  await page.getByRole("alert").getByText("leads back to itself").waitFor();
  await looks(page, "combos-loop");
  assert.deepEqual((await list()).find((c) => c.name === "inner").models, ["up/test-chat"]);
  await page.getByRole("button", { name: "Cancel" }).click();
  await page.getByRole("alert").getByText("Discard unsaved changes?").waitFor();
  await page.getByRole("button", { name: "Discard", exact: true }).click();

  await page.getByRole("button", { name: "New combo" }).click();
  await page.getByLabel("Name").fill("inner");
  await page.getByRole("button", { name: "Add up/test-chat" }).click();
  await page.getByRole("button", { name: "Save combo" }).click();
  await page.getByRole("alert").getByText("A combo named inner exists already").waitFor();
});

test("a combo that someone else changed is not overwritten", async (t) => {
  const { page, list, machineId, members } = await combos(t, [{ name: "shared", models: ["up/test-chat"] }], {
    failures: ["PUT /* 412"],
  });
  await page.getByRole("button", { name: "Edit shared" }).click();
  const [c] = await list();
  await b.operator.call("PUT", `/${machineId}/api/combos/${c.id}`, { models: ["up/vendor/nested-model"] });
  await page.getByLabel("Strategy").selectOption("round-robin");
  await page.getByRole("button", { name: "Save combo" }).click();
  await page.getByRole("alert").getByText("Someone else changed this.").waitFor();
  assert.deepEqual(
    (await list()).map((x) => [x.strategy ?? "fallback", x.models]),
    [["fallback", ["up/vendor/nested-model"]]],
  );
  await page.getByRole("button", { name: "Reload" }).click();
  await page.getByRole("alert").waitFor({ state: "detached" });
  await becomes(members, ["up/vendor/nested-model"]);
  assert.equal(await page.getByLabel("Strategy").inputValue(), "round-robin", "what was chosen stays");
  await page.getByRole("button", { name: "Save combo" }).click();
  await page.getByText("Saved shared.").waitFor();
  assert.deepEqual(
    (await list()).map((x) => [x.strategy, x.models]),
    [["round-robin", ["up/vendor/nested-model"]]],
  );
});

test("the error of a tried combo is shown next to its button, as text", async (t) => {
  const html = canary.replace(/<script.*/, ""); // the gateway redacts texts with a script
  const { page } = await combos(
    t,
    [
      { name: "broken", models: ["up/test-chat!status=400"] },
      { name: "second", models: ["up/bad-1!status=503", "up/test-chat"] },
    ],
    { failures: ["POST /v1/chat/completions 400"] },
  );
  b.upstream.script = (got) =>
    got.json?.model?.includes("status=400")
      ? { status: 400, body: JSON.stringify({ error: { message: `No. ${html}` } }) }
      : null;
  t.after(() => {
    b.upstream.script = null;
  });
  await page.getByRole("button", { name: "Try it: broken" }).click();
  await page.getByText(html, { exact: false }).waitFor();
  await page.getByRole("button", { name: "Try it: second" }).click();
  await page.getByText("Answered by up/test-chat · 2 attempts").waitFor();
});

test("the list names strategies as the form does", () => {
  const names = ["fallback", "priority", undefined, "affinity", "weighted", "of-another-version"].map(strategyName);
  assert.deepEqual(names, ["in order", "in order", "in order", "sticky sessions", "weighted", "of-another-version"]);
});
