// Unsaved input survives navigation, losing it needs a confirmation, and a deletion
// lists what depends on the deleted record.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { address } from "../../worker/dashboard/src/connections.ts";
import { compatible, secrets } from "../e2e/gateway.mjs";
import { becomes, bench, open, settled, signIn } from "./browser.mjs";

let b;
before(async () => {
  b = await bench();
});
after(() => b?.close());

async function machine(t, at, options = {}) {
  const { machineId } = await b.operator.machine({ name: "Test" });
  const call = (method, path, body) => b.operator.call(method, `/${machineId}/api${path}`, body);
  const c = await b.operator.connect(machineId, compatible(b.upstream, { prefix: "up", name: "Mine" }));
  await options.prepare?.(call, c);
  const page = await open(t, b, { at: `#/m/${machineId}/${at}`, ...options });
  await page.getByRole("heading", { level: 1 }).waitFor();
  await settled(page);
  return { page, machineId, call, c };
}

test("an unsaved combo survives navigation and the end of the session", async (t) => {
  const { page } = await machine(t, "combos", { failures: ["GET /* 401"] });
  await page.getByRole("button", { name: "New combo" }).first().click();
  await page.getByLabel("Name").fill("half done");
  await page.getByRole("button", { name: "Add up/test-chat", exact: true }).click();
  assert.match(await page.getByLabel("Name").evaluate((e) => e.validationMessage), /^Spaces are not allowed\./);
  await page.getByRole("link", { name: "Keys" }).click();
  await page.getByRole("heading", { level: 1, name: "Keys" }).waitFor();
  await page.goBack();
  await page.getByText("Unsaved changes restored.").waitFor();
  assert.equal(await page.getByLabel("Name").inputValue(), "half done");
  await page.getByLabel("Name").fill("half-done");
  // The session ends, as when another tab signs out.
  await page.context().clearCookies();
  await page.getByRole("link", { name: "Usage" }).click();
  await page.getByText("Your session has ended. Sign in again.").waitFor();
  await signIn(page, secrets.ADMIN_TOKEN);
  await page.getByRole("link", { name: "Combos" }).click();
  await becomes(() => page.getByLabel("Name").inputValue(), "half-done");
  await page.getByRole("button", { name: "Remove up/test-chat" }).waitFor();
  // Signing out would lose it, so it needs a confirmation.
  await page.getByRole("button", { name: "Sign out", exact: true }).click();
  await page.getByRole("dialog", { name: "Sign out?" }).getByRole("button", { name: "Stay signed in" }).click();
  await page.getByRole("button", { name: "Save combo" }).click();
  await page.getByText("Saved half-done.").waitFor();
  await page.getByRole("button", { name: "Sign out", exact: true }).click();
  await page.getByText("You have been signed out.").waitFor();
});

test("a dialog asks before it discards input or a new key", async (t) => {
  const { page } = await machine(t, "keys");
  await page.getByRole("button", { name: "New key" }).click();
  const form = page.getByRole("dialog", { name: "New key" });
  await form.waitFor();
  await page.keyboard.press("Escape"); // nothing typed: closed at once
  await form.waitFor({ state: "detached" });
  await page.getByRole("button", { name: "New key" }).click();
  await form.getByRole("textbox", { name: /^Name/ }).fill("laptop");
  await page.keyboard.press("Escape");
  await form.getByText("Discard unsaved changes?").waitFor();
  await form.getByRole("button", { name: "Back" }).click();
  assert.equal(await form.getByRole("textbox", { name: /^Name/ }).inputValue(), "laptop");
  await form.getByRole("button", { name: "Create key" }).click();
  const made = page.getByRole("dialog", { name: "Key created" });
  await made.getByRole("region", { name: "API key" }).waitFor();
  await page.keyboard.press("Escape");
  await made.getByText("Have you copied the key?").waitFor();
  await page.keyboard.press("Escape");
  await made.getByRole("button", { name: "Back" }).click();
  await made.getByRole("region", { name: "API key" }).waitFor();
  await made.getByRole("button", { name: "Close", exact: true }).click();
  await made.getByRole("button", { name: "Close without copying" }).click();
  await made.waitFor({ state: "detached" });
});

test("a conversation survives leaving the playground", async (t) => {
  const { page } = await machine(t, "playground");
  await page.getByLabel("Message").fill("hello there");
  await page.getByRole("button", { name: "Send" }).click();
  await page.getByText(/tokens in/).waitFor();
  await page.getByLabel("Message").fill("and then");
  await page.getByRole("link", { name: "Keys" }).click();
  await page.getByRole("heading", { level: 1, name: "Keys" }).waitFor();
  await page.goBack();
  await page.getByRole("log").getByText("hello there").first().waitFor();
  assert.equal(await page.getByLabel("Message").inputValue(), "and then");
  await page.getByRole("button", { name: "New chat" }).click();
  await page.getByText("Send a message to begin.").waitFor();
});

test("unsaved settings survive leaving the page", async (t) => {
  const { page, call } = await machine(t, "settings");
  const seconds = page.getByLabel("First-byte timeout (seconds)");
  await seconds.fill("77");
  await page.getByRole("link", { name: "Keys" }).click();
  await page.getByRole("heading", { level: 1, name: "Keys" }).waitFor();
  await page.goBack();
  await page.getByText("Unsaved changes restored.").waitFor();
  assert.equal(await seconds.inputValue(), "77");
  await page.getByRole("button", { name: "Discard changes" }).click();
  await becomes(() => seconds.inputValue(), "300");
  await seconds.fill("78");
  await page.getByRole("region", { name: "Routing and timeouts" }).getByRole("button", { name: "Save" }).click();
  await page.getByText("Settings saved.").waitFor();
  assert.equal((await call("GET", "/settings")).firstByteSeconds, 78);
});

test("a compatible server is found by its name, and a wrong base URL fails the test", async (t) => {
  const { page, machineId } = await machine(t, "providers/add");
  await page.getByLabel("Search providers").fill("vLLM");
  await page.getByText(/^0 of \d+ providers, 1 server$/).waitFor();
  assert.equal(await page.getByText("No providers found").count(), 0);
  await page.getByRole("button", { name: "Add OpenAI-compatible" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Base URL").fill(`${b.upstream.url}/nowhere/v1`);
  await dialog.getByLabel("Prefix").fill("lost");
  await dialog.getByLabel("API key").fill("EMPTY");
  b.upstream.script = (got) => (got.path.startsWith("/nowhere") ? { status: 404, body: "<h1>Not Found</h1>" } : null);
  t.after(() => {
    b.upstream.script = null;
  });
  await dialog.getByRole("button", { name: "Add and test" }).click();
  await page
    .getByRole("dialog", { name: "OpenAI-compatible was saved, but the test failed" })
    .getByText("or the base URL is wrong (status 404)")
    .waitFor();
  await page.goto(`${b.url}/#/m/${machineId}/providers`);
  await page.getByText("Last call failed", { exact: true }).waitFor();
});

test("filters are stored in the URL, and going back restores the scroll position", async (t) => {
  const { page, machineId } = await machine(t, "models");
  await page.getByLabel("Kind").selectOption("Embeddings");
  await page.getByRole("button", { name: "up/test-embed", exact: true }).waitFor();
  assert.ok(page.url().endsWith("/models?kind=embedding"), page.url());
  await page.reload();
  await page.getByRole("button", { name: "up/test-embed", exact: true }).waitFor();
  // A long page: the gallery.
  await page.goto(`${b.url}/#/m/${machineId}/providers/add`);
  await page.getByText(/^\d+ of \d+ providers$/).waitFor();
  await page.evaluate(() => scrollTo(0, 900));
  await becomes(() => page.evaluate(() => scrollY), 900);
  await page.getByRole("link", { name: "Keys" }).evaluate((a) => a.click());
  await page.getByRole("heading", { level: 1, name: "Keys" }).waitFor();
  await page.goBack();
  await page.getByText(/^\d+ of \d+ providers$/).waitFor();
  await becomes(() => page.evaluate(() => scrollY), 900);
});

test("deleting a connection lists what depends on it, and marks it afterwards", async (t) => {
  const { page, machineId } = await machine(t, "providers", {
    prepare: async (call) => {
      await call("POST", "/combos", { name: "smart", models: ["up/test-chat"] });
      await call("PUT", "/models/alias", { alias: "quick", model: "up/test-chat" });
      await call("POST", "/keys", { name: "ci", models: ["up/test-chat"] });
      await call("POST", "/budgets", {
        name: "chat",
        unit: "requests",
        limit: 10,
        window: "day",
        models: ["up/test-chat"],
      });
    },
  });
  await page.getByRole("link", { name: "Mine", exact: true }).click();
  await page.getByRole("button", { name: "Delete account…" }).click();
  const dialog = page.getByRole("dialog");
  for (const text of [
    "Combos: smart",
    "Aliases: quick",
    "Keys limited to its models: ci",
    "Budgets for its models: chat",
  ])
    await dialog.getByText(text).waitFor();
  await dialog.getByRole("button", { name: "Delete account" }).click();
  await page.getByRole("heading", { level: 1, name: "Providers" }).waitFor();
  await page.goto(`${b.url}/#/m/${machineId}/combos`);
  await page.getByText("No account", { exact: true }).waitFor();
});

test("revoking your own key or the last management key shows a warning", async (t) => {
  const { machineId } = await b.operator.machine({ name: "Mine" });
  const { apiKey } = await b.operator.call("POST", `/${machineId}/api/keys`, { name: "boss", scopes: ["manage"] });
  const page = await open(t, b, { as: apiKey, at: `#/m/${machineId}/keys` });
  await page.getByRole("button", { name: "Revoke boss" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByText("You are signed in with this key").waitFor();
  await dialog.getByText("the last key that can manage this machine").waitFor();
  await dialog.getByRole("button", { name: "Cancel" }).click();
  await page.getByRole("button", { name: "Revoke Default key" }).click();
  await dialog.getByText("the last key that can call models").waitFor();
  assert.equal(await dialog.getByText("signed in with this key").count(), 0);
});

test("the speech page creates no key before a request", async (t) => {
  const { page, call } = await machine(t, "playground/speech", {
    prepare: (call) => call("POST", "/providers", { provider: "elevenlabs", apiKey: "el-test-key-0123456789" }),
  });
  await page.getByRole("button", { name: "Generate speech" }).waitFor();
  await page.getByLabel("Model", { exact: true }).fill("el/eleven_multilingual_v2");
  await page.getByRole("button", { name: "List voices" }).waitFor();
  await settled(page);
  const names = async () => (await call("GET", "/keys")).data.map((k) => k.name);
  assert.equal((await names()).includes("Dashboard playground"), false);
  const audit = (await call("GET", "/audit")).data.map((r) => r.action);
  assert.equal(audit.includes("POST /api/keys"), false);
});

test("an unknown target of an alias is refused with a suggestion, and saved on confirmation", async (t) => {
  const { page, call, c } = await machine(t, "models?view=aliases", {
    failures: ["PUT /* 400"],
    prepare: (call, c) => call("PUT", `/providers/${c.id}`, { providerSpecificData: { enabledModels: ["test-chat"] } }),
  });
  assert.ok(c.id);
  await page.getByLabel("Alias", { exact: true }).fill("quick");
  await page.getByLabel("Target model").fill("up/tset-chat");
  await page.getByRole("button", { name: "Add alias" }).click();
  await page.getByRole("alert").getByText("Did you mean “up/test-chat”?").waitFor();
  await page.getByRole("button", { name: "Save anyway" }).click();
  await page.getByRole("button", { name: "Delete alias quick" }).waitFor();
  assert.deepEqual((await call("GET", "/models/alias")).aliases, { quick: "up/tset-chat" });
});

test("a base URL without a scheme gets http for private hosts and https for others", () => {
  for (const [typed, want] of [
    ["localhost:11434/v1", "http://localhost:11434/v1"],
    ["127.0.0.1:8000", "http://127.0.0.1:8000"],
    ["192.168.1.5:1234/v1", "http://192.168.1.5:1234/v1"],
    ["nas.local/v1", "http://nas.local/v1"],
    ["ollama:11434", "http://ollama:11434"],
    ["api.example.com/v1", "https://api.example.com/v1"],
    ["https://api.example.com", "https://api.example.com"],
    ["  ", ""],
  ])
    assert.equal(address(typed), want);
});
