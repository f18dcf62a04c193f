// The page that connects tools: the command, its expiry, default models, texts to copy,
// the first call.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import { compatible } from "../e2e/gateway.mjs";
import { answered, becomes, bench, looks, open, settled } from "./browser.mjs";
import { ask } from "./used.mjs";

const run = promisify(execFile);

let b;
before(async () => {
  b = await bench();
});
after(() => b?.close());

async function connect(t, tool, options = {}) {
  const { machineId, apiKey } = await b.operator.machine({ name: "Test" });
  await b.operator.connect(machineId, compatible(b.upstream));
  const page = await open(t, b, { at: `#/m/${machineId}/connect`, ...options });
  await page.getByRole("heading", { level: 1, name: "Connect a tool" }).waitFor();
  await settled(page);
  const call = (method, path, body) => b.operator.call(method, `/${machineId}/api${path}`, body);
  if (tool) await choose(page, tool);
  return { page, machineId, apiKey, call };
}

const tile = (page, tool) => page.getByRole("listitem").filter({ has: page.getByText(tool, { exact: true }) });

// choose opens the page of a tool from the tiles.
async function choose(page, tool) {
  const back = page.getByRole("link", { name: "All tools" });
  if ((await back.count()) > 0) await back.click();
  await tile(page, tool).getByRole("link").click();
  await page.getByRole("heading", { level: 1, name: `Connect ${tool}`, exact: true }).waitFor();
  await settled(page);
}

const command = (page, tool) => page.getByRole("region", { name: `Command for ${tool}`, exact: true });

test("no two tools have the same mark", async (t) => {
  const { page } = await connect(t);
  const marks = await page.locator(".monogram").allInnerTexts();
  assert.ok(marks.length > 20 && marks.every((m) => /^.{1,2}$/.test(m)), marks.join(" "));
  const of = async (tool) => tile(page, tool).locator(".monogram").innerText();
  assert.deepEqual([await of("GitHub Copilot CLI"), await of("curl")], ["GH", "c"], "a mark begins as its name");
  assert.equal(new Set(marks).size, marks.length, marks.sort().join(" "));
});

test("the command of the page sets a tool up", async (t) => {
  const { page, machineId, call } = await connect(t);
  await looks(page, "connect");
  await choose(page, "Codex CLI");
  const top = async (of) => (await of.boundingBox()).y;
  const model = page.getByLabel("Model", { exact: true });
  assert.ok(
    (await top(model)) < (await top(page.getByRole("button", { name: "Copy command" }))),
    "the choice is first",
  );
  await model.fill("up/test-chat");
  await looks(page, "connect-tool");
  await page.getByRole("button", { name: "Copy command" }).click();
  await page.getByText("Copied. Paste it into a terminal.").waitFor();
  const text = (await command(page, "Codex CLI").innerText()).trim();
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), text);
  assert.match(
    text,
    new RegExp(
      `^curl -fsSL '${b.url}/setup/codex.sh' \\| WEIR_LEASE='setup-${machineId}-[a-z0-9-]+' sh -s -- '${b.url}'$`,
    ),
  );
  await looks(page, "connect-command");
  await page.getByLabel("Windows").check();
  assert.match(
    await command(page, "Codex CLI").innerText(),
    /^& \(\[scriptblock\]::Create\(\(irm '.*\/setup\/codex\.ps1'/,
  );
  assert.equal((await call("GET", "/keys")).data.length, 1, "no key exists yet");

  const home = await mkdtemp(join(tmpdir(), "weir-setup-"));
  let key;
  try {
    await run("sh", ["-c", text], { env: { PATH: process.env.PATH, HOME: home, no_proxy: "*" } });
    const written = await readFile(join(home, ".codex/config.toml"), "utf8");
    assert.match(written, /^model = "up\/test-chat"$/m);
    key = /sk-[a-z0-9-]+/.exec(written)[0];
    await page.getByText("Manual setup").click();
    const shown = await page.getByRole("region", { name: "Settings for Codex CLI" }).innerText();
    assert.equal(written.replace(/sk-[a-z0-9-]+/, "YOUR_KEY").trim(), shown.trim());
  } finally {
    await rm(home, { recursive: true, force: true });
  }
  assert.equal((await call("GET", "/keys")).data[1].name, "Codex CLI");
  await page.getByText("Its key was created on").waitFor();
  const answer = await fetch(`${b.url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({ model: "up/test-chat", messages: [{ role: "user", content: "hello" }] }),
  });
  assert.equal(answer.status, 200, await answer.text());
  await page.getByText("Codex CLI is connected.").waitFor();
  await command(page, "Codex CLI").waitFor({ state: "detached" });
  assert.equal(await page.getByText("The command has expired").count(), 0);
});

test("a command is not shown for another tool or model, nor once it has expired", async (t) => {
  const { page } = await connect(t, "Claude Code");
  await page.clock.install();
  const create = page.getByRole("button", { name: "Copy command" });
  await create.click();
  await command(page, "Claude Code").waitFor();
  await page.getByLabel("Model", { exact: true }).fill("up/vendor/nested-model");
  await command(page, "Claude Code").waitFor({ state: "detached" });
  await create.click();
  await command(page, "Claude Code").waitFor();
  await choose(page, "Cursor");
  await command(page, "Claude Code").waitFor({ state: "detached" });
  assert.equal(await create.count(), 0, "Cursor has no script");
  await choose(page, "OpenCode");
  await create.click();
  await command(page, "OpenCode").waitFor();
  await page.clock.fastForward(5 * 60_000);
  await page.getByText("The command has expired. Create a new one.").waitFor();
  assert.equal(await command(page, "OpenCode").count(), 0);
  await page.getByRole("button", { name: "Copy a new command" }).click();
  await command(page, "OpenCode").waitFor();
});

test("default models are saved and filled in", async (t) => {
  const { page, call } = await connect(t, "Claude Code");
  await page.getByLabel("Model", { exact: true }).fill("up/test-chat");
  await page.getByLabel("Small model").fill("up/vendor/nested-model");
  await answered(page, "PATCH", () => page.getByRole("button", { name: "Save as default models" }).click());
  await page.getByText("Default models saved.").waitFor();
  const now = await call("GET", "/settings");
  assert.deepEqual([now.defaultModel, now.smallModel], ["up/test-chat", "up/vendor/nested-model"]);
  await page.reload();
  await settled(page);
  await page.getByText("Manual setup").click();
  const text = await page.getByRole("region", { name: "Settings for Claude Code" }).innerText();
  const { env } = JSON.parse(text);
  assert.deepEqual(
    [env.ANTHROPIC_MODEL, env.ANTHROPIC_DEFAULT_HAIKU_MODEL, env.ANTHROPIC_BASE_URL, env.ANTHROPIC_AUTH_TOKEN],
    ["up/test-chat", "up/vendor/nested-model", b.url, "YOUR_KEY"],
  );
  assert.equal(await page.getByRole("button", { name: "Save as default models" }).count(), 0);
});

test("a model that is unknown or needs quoting is refused in words", async (t) => {
  const { page } = await connect(t, "Claude Code", { failures: ["POST /* 400"] });
  await page.getByLabel("Model", { exact: true }).fill("nothing-like-it");
  await page.getByRole("button", { name: "Copy command" }).click();
  await page.getByRole("alert").getByText("names no combo, alias or model").waitFor();
  await page.getByLabel("Model", { exact: true }).fill(`up/"x'`);
  await page.getByText("Manual setup").click();
  await page.getByText("A model name may have letters").waitFor();
  await page.getByRole("button", { name: "Copy command" }).click();
  await page.getByRole("alert").getByText("add an alias for the model").waitFor();
});

test("every tool has its texts, without placeholders", async (t) => {
  const { page, call } = await connect(t);
  await call("PATCH", "/settings", { defaultModel: "up/test-chat" });
  for (const tool of (await call("GET", "/setup")).data) {
    await choose(page, tool.name);
    if (tool.script) await page.getByText("Manual setup").click();
    const guide = await page.getByRole("link", { name: "Guide" }).getAttribute("href");
    assert.equal((await b.gateway.fetch(guide)).status, 200, guide);
    await page
      .getByRole("region", { name: `Settings for ${tool.name}` })
      .first()
      .waitFor();
    const shown = (await page.getByRole("region", { name: `Settings for ${tool.name}` }).allInnerTexts()).join("\n");
    assert.ok(!/__[A-Z]+__/.test(shown) && shown.includes(b.url) && shown.includes("YOUR_KEY"), shown);
    assert.equal(await page.getByRole("button", { name: "Copy command" }).count(), tool.script ? 1 : 0);
  }
});

test("tools are searched, and one that has called is marked", async (t) => {
  const { page, call } = await connect(t);
  await page.getByLabel("Search tools").fill("open");
  await tile(page, "Zed").waitFor({ state: "detached" });
  assert.equal(await tile(page, "OpenCode").count(), 1);
  await page.reload();
  await tile(page, "OpenCode").waitFor();
  assert.equal(await tile(page, "Zed").count(), 0, "the search is in the address");
  await page.getByLabel("Search tools").fill("nothing like it");
  await page.getByText("Any client of the OpenAI").waitFor();

  const { apiKey } = await call("POST", "/keys", { name: "Zed" });
  assert.equal(await ask(b, apiKey, "up/test-chat"), 200);
  await becomes(async () => (await call("GET", "/keys")).data.filter((k) => k.lastUsedAt).length, 1);
  await page.reload();
  await page.getByLabel("Search tools").fill("zed");
  await tile(page, "Zed").getByText("Connected").waitFor();
});

test("the page waits for the first call of a tool and shows the last one", async (t) => {
  const { page } = await connect(t, "Cursor");
  const last = page.getByRole("region", { name: /^(First|Last) request$/ });
  await last.getByText("Waiting for the first request…").waitFor();
  await page.getByRole("button", { name: "Create a key" }).click();
  await page.getByText("The settings contain a new key.").waitFor();
  await last.getByText("Its key was created on").waitFor();
  await page.getByText(`Cursor’s servers make the calls, and cannot reach ${b.url}.`).waitFor();
  await page.getByRole("button", { name: "Copy OpenAI API Key" }).waitFor();
  const apiKey = await page.getByRole("region", { name: "Settings for Cursor: OpenAI API Key" }).innerText();
  assert.equal(await ask(b, apiKey, "up/wrong!status=400"), 400);
  await last.getByText("The last request of Cursor failed.").waitFor();
  await last.getByText("up/wrong!status=400").first().waitFor();
  assert.equal(await ask(b, apiKey, "up/test-chat"), 200);
  await last.getByText("Cursor is connected.").waitFor();
  await looks(page, "connect-called");
  await last.getByRole("link", { name: "Show request" }).click();
  await page.getByRole("dialog", { name: "Request" }).getByText("up/test-chat").first().waitFor();
});

test("a call with a key that is not the tool's is shown as that", async (t) => {
  const { page, apiKey } = await connect(t, "n8n");
  const last = page.getByRole("region", { name: /^(First|Last) request$/ });
  await last.getByText("Waiting for the first request…").waitFor();
  assert.equal(await ask(b, apiKey, "up/test-chat"), 200);
  await last.getByText("First request received.").waitFor();
});

test("a machine without an account and an unknown tool are told", async (t) => {
  const { machineId } = await b.operator.machine({ name: "Test" });
  const page = await open(t, b, { at: `#/m/${machineId}/connect/codex` });
  await page.getByText("No account is connected yet.").waitFor();
  await page.getByRole("link", { name: "Add an account" }).waitFor();
  await page.goto(`${b.url}/#/m/${machineId}/connect/nothing`);
  await page.getByText("Tool not found").waitFor();
});

test("a command is offered once the models are known", async (t) => {
  const { page, machineId } = await connect(t);
  let answer;
  const held = new Promise((r) => {
    answer = r;
  });
  await page.route(`**/${machineId}/api/models/list/llm`, async (route) => {
    await held;
    await route.continue();
  });
  await tile(page, "Codex CLI").getByRole("link").click();
  await page.getByRole("status", { name: "Loading models" }).waitFor();
  const copy = page.getByRole("button", { name: "Copy command" });
  assert.equal(await copy.count(), 0);
  answer();
  await copy.click();
  await command(page, "Codex CLI").waitFor();
});
