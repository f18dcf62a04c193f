// The page of API keys: creation, limits, use by real clients, revocation.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import { compatible } from "../e2e/gateway.mjs";
import { accessible, becomes, bench, canary, looks, open, settled } from "./browser.mjs";

let b;
before(async () => {
  b = await bench();
});
after(() => b?.close());

async function keys(t, options = {}) {
  const { machineId } = await b.operator.machine({ name: "Test" });
  await b.operator.connect(machineId, compatible(b.upstream));
  const page = await open(t, b, { at: `#/m/${machineId}/keys`, ...options });
  await page.getByRole("heading", { level: 1, name: "Keys" }).waitFor();
  await settled(page);
  const list = async () => (await b.operator.call("GET", `/${machineId}/api/keys`)).data;
  return { page, machineId, list };
}

const chat = (key, model = "up/test-chat") =>
  b.gateway.fetch("/v1/chat/completions", {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({ model, messages: [{ role: "user", content: "hi" }] }),
  });

test("a key is created with limits, shown once, copied, used and revoked", async (t) => {
  const { page, machineId, list } = await keys(t);
  await looks(page, "keys");
  await page.getByRole("button", { name: "New key" }).click();
  const form = page.getByRole("dialog", { name: "New key" });
  await form.getByRole("textbox", { name: /^Name/ }).fill("For tests");
  assert.equal(
    await form.getByLabel("Requests per minute").isVisible(),
    false,
    "of many fields the usual ones are open",
  );
  await looks(page, "keys-new");
  await form.getByLabel("Allowed models").fill("up/nonsense\nup/test-chat\nup/*");
  const warning = form.getByText("Its server does not list up/nonsense. Check the spelling.");
  await warning.waitFor();
  await form.getByLabel("Allowed models").fill("up/test-chat\nup/test-embed");
  await warning.waitFor({ state: "detached" });
  await form.getByText("Advanced", { exact: true }).click();
  await form.getByLabel("Requests per minute").fill("60");
  await form.getByLabel("Requests per day").fill("1000");
  await form.getByLabel("Tokens per minute").fill("50000");
  await form.getByLabel("Concurrent requests").fill("8");
  await form.getByLabel("Budget (US dollars)").fill("20");
  await form.getByLabel("Expires").selectOption({ label: "In 30 days" });
  await form.getByRole("button", { name: "Create key" }).click();
  const made = page.getByRole("dialog", { name: "Key created" });
  const shown = (await made.getByRole("region", { name: "API key" }).innerText()).trim();
  assert.match(shown, new RegExp(`^sk-${machineId}-`));
  await looks(page, "keys-made");
  await made.getByRole("button", { name: "Copy" }).first().click();
  await made.getByText("Copied").waitFor();
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), shown);
  await made.getByRole("button", { name: "Done" }).click();
  assert.equal(await page.getByText(shown).count(), 0);
  const row = (await list()).find((k) => k.name === "For tests");
  assert.deepEqual(
    [row.models, row.rpm, row.dailyMax, row.tpm, row.maxParallel, row.scopes],
    [["up/test-chat", "up/test-embed"], 60, 1000, 50_000, 8, ["data"]],
  );
  const [budget] = (await b.operator.call("GET", `/${machineId}/api/budgets`)).data;
  assert.deepEqual(
    [budget.name, budget.keyId, budget.unit, budget.limit, budget.window],
    ["For tests", row.id, "usd", 20, "month"],
  );
  assert.ok(Math.abs(row.expiresAt - Date.now() - 30 * 86_400_000) < 60_000);
  await page
    .getByRole("row", {
      name: /For tests.*60\/min 0 of 1,000\/day 50,000 tokens\/min 8 at a time 2 models until .*\$0\.00 of \$20\.00/,
    })
    .waitFor();
  const before = page.viewportSize();
  await page.setViewportSize({ width: 1024, height: 768 });
  const limits = page.getByRole("cell", { name: /^60\/min/ });
  assert.ok(await limits.evaluate((e) => e.scrollWidth <= e.clientWidth), "no limit is cut");
  await page.setViewportSize(before);
  assert.equal((await chat(shown)).status, 200);
  assert.equal((await chat(shown, "up/vendor/nested-model")).status, 403);

  await page.getByRole("button", { name: "Revoke For tests" }).click();
  await page.getByRole("dialog", { name: "Revoke For tests?" }).getByRole("button", { name: "Cancel" }).click();
  assert.equal(
    (await list()).some((k) => k.id === row.id),
    true,
  );
  await page.getByRole("button", { name: "Revoke For tests" }).focus();
  await page.keyboard.press("Enter");
  await looks(page, "keys-revoke");
  await page.getByRole("button", { name: "Revoke key" }).click();
  await page.getByText("Revoked For tests.").waitFor();
  assert.equal(
    (await list()).some((k) => k.id === row.id),
    false,
  );
  const stored = await page.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }]));
  assert.equal(stored.includes("sk-"), false, "no key is stored in the browser");
});

test("a management key signs in to its own machine", async (t) => {
  const { page, machineId, list } = await keys(t);
  await page.getByRole("button", { name: "New key" }).click();
  const form = page.getByRole("dialog");
  await form.getByText("Advanced", { exact: true }).click();
  assert.equal(await form.getByLabel(/^Export the machine/).count(), 0);
  await form.getByLabel("Call models").uncheck();
  assert.equal(await form.getByRole("button", { name: "Create key" }).isDisabled(), true);
  await form.getByLabel(/^Manage this machine/).check();
  await form.getByLabel(/^Export the machine/).check();
  await form.getByRole("textbox", { name: /^Name/ }).fill(canary.slice(0, 150));
  await form.getByRole("button", { name: "Create key" }).click();
  const key = (await page.getByRole("region", { name: "API key" }).innerText()).trim();
  assert.equal((await chat(key)).status === 200, false);
  assert.deepEqual((await list()).find((k) => k.name === canary.slice(0, 150)).scopes, ["manage", "export"]);
  const other = await open(t, b, { as: key, at: `#/m/${machineId}/keys` });
  await other.getByRole("heading", { level: 1, name: "Keys" }).waitFor();
  await settled(other);
  await other.getByText(canary.slice(0, 150)).first().waitFor();
});

test("a key that reads metrics can do nothing else", async (t) => {
  const { page, list } = await keys(t);
  await page.getByRole("button", { name: "New key" }).click();
  const form = page.getByRole("dialog");
  await form.getByText("Advanced", { exact: true }).click();
  await form.getByLabel("Call models").uncheck();
  await form.getByLabel(/^Read metrics/).check();
  await form.getByRole("textbox", { name: /^Name/ }).fill("Prometheus");
  await form.getByRole("button", { name: "Create key" }).click();
  const key = (await page.getByRole("region", { name: "API key" }).innerText()).trim();
  assert.deepEqual((await list()).find((k) => k.name === "Prometheus").scopes, ["metrics"]);
  assert.equal((await chat(key)).status, 403);
  const read = await b.gateway.fetch("/metrics", { headers: { authorization: `Bearer ${key}` } });
  assert.equal(read.status, 200);
  assert.match(await read.text(), /^weir_machine_info\{machine="/m);
});

test("a key is edited, paused, resumed and rotated", async (t) => {
  const { page, machineId, list } = await keys(t);
  const made = await b.operator.call("POST", `/${machineId}/api/keys`, { name: "Old name", rpm: 60, models: ["up/*"] });
  const api = () => b.operator.call("GET", `/${machineId}/api/keys/${made.id}`);
  assert.equal((await chat(made.apiKey)).status, 200);
  for (const end = Date.now() + 60_000; (await api()).requests === 0; await new Promise((r) => setTimeout(r, 50)))
    assert.ok(Date.now() < end, "the call is counted");
  await page.reload();
  await settled(page);
  const row = (name) => page.getByRole("region", { name: "Keys" }).getByRole("row", { name: new RegExp(name) });
  assert.doesNotMatch(await row("Old name").innerText(), /Never.*Never/s, "it was used");
  await page.getByRole("button", { name: "Edit Old name" }).click();
  const form = page.getByRole("dialog", { name: "Edit Old name" });
  await form.getByText(/Last used: \w+ \d/).waitFor();
  assert.deepEqual(
    [await form.getByLabel("Requests per minute").inputValue(), await form.getByLabel("Allowed models").inputValue()],
    ["60", "up/*"],
  );
  assert.equal(await form.getByRole("button", { name: "Save" }).isDisabled(), true);
  await looks(page, "keys-edit");
  await form.getByRole("textbox", { name: /^Name/ }).fill("New name");
  await form.getByLabel("Requests per minute").fill("");
  await form.getByLabel("Requests per day").fill("500");
  await form.getByLabel("Expires").selectOption({ label: "In 30 days" });
  await form.getByRole("button", { name: "Save" }).click();
  await page.getByText("Saved New name.").or(page.getByText("Saved Old name.")).waitFor();
  const edited = (await list()).find((k) => k.id === made.id);
  assert.deepEqual(
    [edited.name, edited.rpm, edited.dailyMax, edited.models, edited.scopes],
    ["New name", undefined, 500, ["up/*"], ["data"]],
  );
  assert.ok(edited.expiresAt > Date.now());

  const status = async (key) => (await chat(key)).status;
  await page.getByRole("button", { name: "Edit New name" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Pause" }).click();
  await row("New name").getByText("Paused").waitFor();
  assert.equal(await status(made.apiKey), 403);
  await page.getByRole("button", { name: "Edit New name" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Resume" }).click();
  await row("New name").getByText("Paused").waitFor({ state: "detached" });
  assert.equal(await status(made.apiKey), 200);

  const rotate = async (overlap) => {
    await page.getByRole("button", { name: "Edit New name" }).click();
    const dialog = page.getByRole("dialog", { name: "Edit New name" });
    await dialog.getByLabel("Keep the old key working for").selectOption({ label: overlap });
    await dialog.getByRole("button", { name: "Rotate key" }).click();
    const shown = page.getByRole("dialog", { name: "Key rotated" });
    const key = (await shown.getByRole("region", { name: "API key" }).innerText()).trim();
    await shown.getByRole("button", { name: "Done" }).click();
    return key;
  };
  const second = await rotate("1 hour");
  assert.deepEqual([await status(made.apiKey), await status(second)], [200, 200]);
  await page.getByRole("button", { name: "Edit New name" }).click();
  await page
    .getByRole("dialog")
    .getByText(/The key before the last rotation.*is valid until/)
    .waitFor();
  await page.keyboard.press("Escape");
  const third = await rotate("Revoke now");
  assert.deepEqual([await status(made.apiKey), await status(second), await status(third)], [401, 401, 200]);
  assert.equal((await list()).filter((k) => k.name === "New name").length, 1);
});

test("the budget of a key is set, changed and removed in its dialog", async (t) => {
  const { page, machineId } = await keys(t);
  const api = (method, path, body) => b.operator.call(method, `/${machineId}/api${path}`, body);
  const key = await api("POST", "/keys", { name: "Laptop" });
  const shared = { keyId: key.id, unit: "requests", limit: 1000, window: "day", name: "Laptop, requests" };
  await api("POST", "/budgets", shared);
  const spent = async () =>
    (await api("GET", "/budgets")).data
      .filter((x) => x.unit === "usd")
      .map((x) => [x.name, x.keyId, x.limit, x.window]);
  await page.reload();
  const dialog = page.getByRole("dialog", { name: "Edit Laptop" });
  const limit = dialog.getByLabel("Budget (US dollars)"),
    resets = dialog.getByLabel("Budget resets");
  const save = async (limitText, row) => {
    await limit.fill(limitText);
    await dialog.getByRole("button", { name: "Save" }).click();
    await dialog.waitFor({ state: "detached" });
    await page.getByRole("row", { name: row }).waitFor();
    await page.getByRole("button", { name: "Edit Laptop" }).click();
    await dialog.waitFor();
  };
  await page.getByRole("row", { name: /Laptop.*0 of 1,000 requests/ }).waitFor();
  await page.getByRole("button", { name: "Edit Laptop" }).click();
  await dialog.getByText("Leave empty for none. 1 other budget of this key under Budgets.").waitFor();
  assert.equal(await limit.inputValue(), "");
  await limit.fill("20");
  await resets.selectOption({ label: "Every day" });
  await save("20", /Laptop.*\$0\.00 of \$20\.00/);
  assert.deepEqual(await spent(), [["Laptop", key.id, 20, "day"]]);

  assert.deepEqual([await limit.inputValue(), await resets.isDisabled()], ["20", true]);
  await looks(page, "keys-edit");
  await dialog.getByLabel("Requests per minute").fill("60");
  await save("35.5", /Laptop.*60\/min.*\$0\.00 of \$35\.50/);
  assert.deepEqual(await spent(), [["Laptop", key.id, 35.5, "day"]]);

  await save("", /Laptop.*60\/min 0 of 1,000 requests/);
  assert.deepEqual(await spent(), []);
});

test("the list shows what a key has spent this month, and its budgets with their windows", async (t) => {
  const { page, machineId } = await keys(t);
  const api = (method, path, body) => b.operator.call(method, `/${machineId}/api${path}`, body);
  const own = { unit: "usd", limit: 20, window: "month" };
  const key = await api("POST", "/keys", { name: "Laptop", budget: own });
  await api("POST", "/keys", { name: "Weekly", budget: { ...own, window: "week" } });
  await api("POST", "/keys", { name: "Free" });
  const spent = async (path, change) =>
    page.route(`**/${machineId}/api/${path}`, async (route) => {
      const { data } = await (await route.fetch()).json();
      await route.fulfill({ json: { data: data.map((row) => ({ ...row, ...change(row) })) } });
    });
  await spent("keys", (k) => ({
    spentUsd: 250,
    spentMonthUsd: { Free: 12.5, Weekly: 3 }[k.name] ?? 0,
    unpricedAttempts: 28,
    lastUsedAt: Date.now() - (k.name === "Laptop" ? 40 * 86_400_000 : 0),
  }));
  await spent("budgets", (row) => ({
    ...(row.keyId === key.id ? { spent: 18 } : { spent: 0, unpricedCalls: 28 }),
    resetsAt: Date.now() + 86_400_000,
  }));
  await page.reload();
  await settled(page);
  const cell = (name) =>
    page.getByRole("row", { name: new RegExp(`^${name} `) }).locator("td[data-label='This month']");
  const limits = (name) => page.getByRole("row", { name: new RegExp(`^${name} `) }).locator("td.limits");
  // An unknown cost is not zero.
  assert.equal(await cell("Free").innerText(), "≥ $12.50");
  assert.equal(await cell("Free").getAttribute("title"), "≥ $250.00 in total, cost of 28 attempts unknown");
  assert.equal(await cell("Laptop").innerText(), "$0.00", "the attempts were before this month");
  // The amount of the month is not that of a week.
  assert.equal(await cell("Weekly").innerText(), "≥ $3.00");
  assert.equal((await limits("Laptop").innerText()).replace(/\s+/g, " ").trim(), "$18.00 of $20.00 per month 90% used");
  assert.equal(await limits("Laptop").getByRole("meter").getAttribute("value"), "0.9");
  assert.equal((await limits("Weekly").innerText()).trim(), "≥ $0.00 of $20.00 per week");
  assert.match(
    await limits("Weekly").locator("span").first().getAttribute("title"),
    /^Weekly: ≥ \$0\.00 of \$20\.00, resets .+, cost of 28 requests unknown$/,
  );
  await looks(page, "keys-spend");
});

test("a key has tags, and its dialog lists the networks that it was used from", async (t) => {
  const { page, machineId, list } = await keys(t);
  const api = (path) => b.operator.call("GET", `/${machineId}/api${path}`);
  const { apiKey, id } = await b.operator.call("POST", `/${machineId}/api/keys`, { name: "Tagged" });
  await page.reload();
  await page.getByRole("button", { name: "Edit Tagged" }).click();
  const form = page.getByRole("dialog", { name: "Edit Tagged" });
  await form.getByRole("textbox", { name: /^Tags/ }).fill("project=atlas, team=core");
  await form.getByRole("button", { name: "Save" }).click();
  await page.getByText("Saved Tagged.").waitFor();
  assert.deepEqual((await list()).find((k) => k.id === id).tags, ["project=atlas", "team=core"]);
  assert.equal((await chat(apiKey)).status, 200);
  await becomes(async () => (await api(`/keys/${id}/networks`)).data.length, 1);
  const [{ network }] = (await api(`/keys/${id}/networks`)).data;
  await page.getByRole("button", { name: "Edit Tagged" }).click();
  await form.getByText("Networks, last 30 days").click();
  await form.getByRole("region", { name: "Networks" }).getByRole("rowheader", { name: network }).waitFor();
  await looks(page, "keys-networks");
});

test("an error of the gateway is shown in the form", async (t) => {
  const { page } = await keys(t, { failures: ["POST /* 400"] });
  await page.getByRole("button", { name: "New key" }).click();
  await page.getByRole("dialog").getByLabel("Allowed models").fill("x".repeat(400));
  await page.getByRole("button", { name: "Create key" }).click();
  await page.getByRole("dialog").getByRole("alert").getByText("Models").waitFor();
});

test("a thousand keys are searched", async (t) => {
  const { page, machineId, list } = await keys(t);
  const [one] = await list();
  const many = Array.from({ length: 1000 }, (_, i) => ({
    ...one,
    id: `many${i}`,
    name: i % 2 ? `Key ${i}` : `مفتاح ${i}`,
    last4: String(i).padStart(4, "0"),
  }));
  await page.route(`**/${machineId}/api/keys`, (route) => route.fulfill({ json: { data: many } }));
  await page.reload();
  await settled(page);
  await page.getByText("1,000 keys").waitFor();
  await page.getByText("800 more. Search to see them.").waitFor();
  const rows = page.getByRole("region", { name: "Keys" }).getByRole("row");
  await accessible(page, "a thousand keys", [
    "color-contrast",
    "button-name",
    "scope-attr-valid",
    "td-headers-attr",
    "scrollable-region-focusable",
  ]);
  await page.getByRole("searchbox", { name: "Search keys" }).fill("key 99");
  await page.getByText("6 of 1,000 keys").waitFor();
  assert.equal(await rows.count(), 7);
  await page.getByRole("searchbox", { name: "Search keys" }).fill("0998");
  await rows.filter({ hasText: "مفتاح 998" }).waitFor();
  assert.equal(await rows.count(), 2);
  await page.getByRole("searchbox", { name: "Search keys" }).fill("nothing");
  await page.getByText("No keys found").waitFor();
});

// Every snippet is run unchanged, by a shell or by its client.
test("every snippet works", async (t) => {
  const { page } = await keys(t);
  await page.getByRole("button", { name: "New key" }).click();
  await page.getByRole("button", { name: "Create key" }).click();
  const made = page.getByRole("dialog", { name: "Key created" });
  const key = (await made.getByRole("region", { name: "API key" }).innerText()).trim();
  await made.getByLabel("Model", { exact: true }).fill("up/test-chat");
  const snippet = async (client) => {
    await made.getByLabel("Client").selectOption(client);
    const texts = made.getByRole("region", { name: `Settings for ${client}` });
    await texts.first().waitFor();
    return (await texts.allInnerTexts()).join("\n"); // a form has a text for each field
  };
  const run = promisify(execFile);
  const answered = JSON.parse((await run("sh", ["-c", await snippet("curl")])).stdout);
  assert.match(answered.choices[0].message.content, /Hello/);

  // The Node snippets, with the imports that are here already.
  for (const [client, Client] of [
    ["OpenAI, Node", OpenAI],
    ["Anthropic, Node", Anthropic],
  ]) {
    const text = (await snippet(client)).replace(/^import (\w+) from .*$/m, "");
    const said = [];
    const AsyncFunction = (async () => {}).constructor;
    await new AsyncFunction(client.startsWith("OpenAI") ? "OpenAI" : "Anthropic", "console", text)(Client, {
      log: (x) => said.push(x),
    });
    assert.match(said[0], /Hello/, client);
  }
  for (const client of ["OpenAI, Python", "Anthropic, Python"]) {
    const text = await snippet(client);
    await run("python3", ["-c", "import ast, sys; ast.parse(sys.argv[1])", text]);
    assert.ok(
      text.includes(`base_url="${b.url}${client.startsWith("OpenAI") ? "/v1" : ""}"`) && text.includes(key),
      text,
    );
  }
  const { env } = JSON.parse(await snippet("Claude Code"));
  assert.deepEqual(
    [env.ANTHROPIC_BASE_URL, env.ANTHROPIC_AUTH_TOKEN, env.ANTHROPIC_MODEL],
    [b.url, key, "up/test-chat"],
  );
  const aider = await snippet("Aider");
  assert.ok(aider.includes(`openai-api-base: "${b.url}/v1"`) && aider.includes(`openai-api-key: "${key}"`), aider);
  const opencode = JSON.parse(await snippet("OpenCode"));
  assert.deepEqual(opencode.provider.weir.options, { baseURL: `${b.url}/v1`, apiKey: key });
  const codex = JSON.parse(
    (
      await run("python3", [
        "-c",
        "import json, sys, tomllib; print(json.dumps(tomllib.loads(sys.argv[1])))",
        await snippet("Codex CLI"),
      ])
    ).stdout,
  );
  assert.deepEqual(codex, {
    model: "up/test-chat",
    model_provider: "weir",
    model_providers: {
      weir: { name: "weir", base_url: `${b.url}/v1`, experimental_bearer_token: key, wire_api: "responses" },
    },
  });
  assert.ok((await snippet("Cline, Roo Code, Kilo for VS Code")).split("\n").includes(`${b.url}/v1`));
});

test("the address names the key that is edited", async (t) => {
  const { page, machineId, list } = await keys(t);
  const [key] = await list();
  const at = `#/m/${machineId}/keys`;
  const address = () => page.evaluate(() => location.hash);
  await page.getByRole("button", { name: "New key" }).click();
  await page.getByRole("dialog", { name: "New key" }).waitFor();
  assert.equal(await address(), `${at}/new`);
  await page.goBack();
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await page.goto(`${b.url}/${at}/${key.id}`);
  await page.reload();
  const edit = page.getByRole("dialog", { name: /^Edit / });
  await edit.waitFor();
  await edit.getByRole("button", { name: "Close" }).click();
  await edit.waitFor({ state: "detached" });
  assert.equal(await address(), at);
});
