// The page that sets tools up: the command, its expiry, default models, texts to copy.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import { compatible } from "../e2e/gateway.mjs";
import { answered, bench, looks, open, settled } from "./browser.mjs";

const run = promisify(execFile);

let b;
before(async () => {
  b = await bench();
});
after(() => b?.close());

async function setup(t, options = {}) {
  const { machineId } = await b.operator.machine({ name: "Test" });
  await b.operator.connect(machineId, compatible(b.upstream));
  const page = await open(t, b, { at: `#/m/${machineId}/setup`, ...options });
  await page.getByRole("heading", { level: 1, name: "Set up" }).waitFor();
  await settled(page);
  const call = (method, path, body) => b.operator.call(method, `/${machineId}/api${path}`, body);
  return { page, machineId, call };
}

const command = (page, tool) => page.getByRole("region", { name: `Command for ${tool}`, exact: true });

test("the command of the page sets a tool up", async (t) => {
  const { page, machineId, call } = await setup(t);
  await page.getByRole("combobox", { name: "Tool", exact: true }).selectOption("Codex CLI");
  await page.getByLabel("Model", { exact: true }).fill("up/test-chat");
  await looks(page, "setup");
  await page.getByRole("button", { name: "Create command" }).click();
  const text = (await command(page, "Codex CLI").innerText()).trim();
  assert.match(
    text,
    new RegExp(`^curl -fsSL '${b.url}/setup/codex.sh' \\| sh -s -- '${b.url}' 'setup-${machineId}-[a-z0-9-]+'$`),
  );
  await looks(page, "setup-command");
  await page.getByLabel("Windows").check();
  assert.match(
    await command(page, "Codex CLI").innerText(),
    /^& \(\[scriptblock\]::Create\(\(irm '.*\/setup\/codex\.ps1'/,
  );
  assert.equal((await call("GET", "/keys")).data.length, 1, "no key exists yet");

  const home = await mkdtemp(join(tmpdir(), "weir-setup-"));
  try {
    await run("sh", ["-c", text], { env: { PATH: process.env.PATH, HOME: home, no_proxy: "*" } });
    const written = await readFile(join(home, ".codex/config.toml"), "utf8");
    assert.match(written, /^model = "up\/test-chat"$/m);
    const shown = await page.getByRole("region", { name: "Settings for Codex CLI" }).innerText();
    assert.equal(written.replace(/sk-[a-z0-9-]+/, "YOUR_KEY").trim(), shown.trim());
  } finally {
    await rm(home, { recursive: true, force: true });
  }
  assert.equal((await call("GET", "/keys")).data[1].name, "Codex CLI");
});

test("a command is not shown for another tool or model, nor once it has expired", async (t) => {
  const { page } = await setup(t);
  await page.clock.install();
  const create = page.getByRole("button", { name: "Create command" });
  await create.click();
  await command(page, "Claude Code").waitFor();
  await page.getByLabel("Model", { exact: true }).fill("up/vendor/nested-model");
  await command(page, "Claude Code").waitFor({ state: "detached" });
  await create.click();
  await command(page, "Claude Code").waitFor();
  await page.getByRole("combobox", { name: "Tool", exact: true }).selectOption("Cursor");
  await command(page, "Claude Code").waitFor({ state: "detached" });
  assert.equal(await create.count(), 0, "Cursor has no script");
  await page.getByRole("combobox", { name: "Tool", exact: true }).selectOption("OpenCode");
  await create.click();
  await command(page, "OpenCode").waitFor();
  await page.clock.fastForward(5 * 60_000);
  await page.getByText("The command has expired. Create a new one.").waitFor();
  assert.equal(await command(page, "OpenCode").count(), 0);
  await page.getByRole("button", { name: "Create a new command" }).click();
  await command(page, "OpenCode").waitFor();
});

test("default models are saved and filled in", async (t) => {
  const { page, call } = await setup(t);
  await page.getByLabel("Model", { exact: true }).fill("up/test-chat");
  await page.getByLabel("Small model").fill("up/vendor/nested-model");
  await answered(page, "PATCH", () => page.getByRole("button", { name: "Save as default models" }).click());
  await page.getByText("Default models saved.").waitFor();
  const now = await call("GET", "/settings");
  assert.deepEqual([now.defaultModel, now.smallModel], ["up/test-chat", "up/vendor/nested-model"]);
  await page.reload();
  await settled(page);
  const text = await page.getByRole("region", { name: "Settings for Claude Code" }).innerText();
  const { env } = JSON.parse(text);
  assert.deepEqual(
    [env.ANTHROPIC_MODEL, env.ANTHROPIC_DEFAULT_HAIKU_MODEL, env.ANTHROPIC_BASE_URL, env.ANTHROPIC_AUTH_TOKEN],
    ["up/test-chat", "up/vendor/nested-model", b.url, "YOUR_KEY"],
  );
  assert.equal(await page.getByRole("button", { name: "Save as default models" }).count(), 0);
});

test("a model that is unknown or needs quoting is refused in words", async (t) => {
  const { page } = await setup(t, { failures: ["POST /* 400"] });
  await page.getByLabel("Model", { exact: true }).fill("nothing-like-it");
  await page.getByRole("button", { name: "Create command" }).click();
  await page.getByRole("alert").getByText("names no combo, alias or model").waitFor();
  await page.getByLabel("Model", { exact: true }).fill(`up/"x'`);
  await page.getByText("A model name may have letters").waitFor();
  await page.getByRole("button", { name: "Create command" }).click();
  await page.getByRole("alert").getByText("add an alias for the model").waitFor();
});

test("every tool has its texts, without placeholders", async (t) => {
  const { page, call } = await setup(t);
  await page.getByLabel("Model", { exact: true }).fill("up/test-chat");
  for (const tool of (await call("GET", "/setup")).data) {
    await page.getByRole("combobox", { name: "Tool", exact: true }).selectOption(tool.id);
    const first = page.getByRole("region", { name: `Settings for ${tool.name}`, exact: true });
    await first.waitFor();
    const shown = (await page.getByRole("region", { name: `Settings for ${tool.name}` }).allInnerTexts()).join("\n");
    assert.ok(!/__[A-Z]+__/.test(shown) && shown.includes(b.url) && shown.includes("YOUR_KEY"), shown);
    assert.equal(await page.getByRole("button", { name: "Create command" }).count(), tool.script ? 1 : 0);
  }
});
