// Unsaved input survives navigation, losing it needs a confirmation, and a deletion
// lists what depends on the deleted record.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { address } from "../../worker/dashboard/src/connections.ts";
import { compatible, secrets } from "../e2e/gateway.mjs";
import { answered, becomes, bench, open, settled, signIn } from "./browser.mjs";

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
  await page.getByRole("button", { name: "Sign out everywhere" }).click(); // asks in any case
  const all = page.getByRole("dialog", { name: "Sign out?" });
  await all.getByText("Every session of this token, key or person ends").waitFor();
  await all.getByRole("button", { name: "Stay signed in" }).click();
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
  const leave = made.getByRole("button", { name: "Close without copying" });
  for (const width of [1440, 390]) {
    await page.setViewportSize({ width, height: 800 });
    const { button, box } = await leave.evaluate((e) => ({
      button: e.getBoundingClientRect().right,
      box: e.closest(".notice").getBoundingClientRect().right,
    }));
    assert.ok(button <= box, `the button ends at ${button}, its box at ${box}, at ${width} px`);
  }
  await leave.click();
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
  await page.getByText("Last request failed", { exact: true }).waitFor();
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

// Regressions: a budget was overwritten without a word; a key could not be read again in its dialog; and of
// a destination what was typed was lost.
for (const { what, create, path, theirs, mine } of [
  {
    what: "budget",
    create: ["/budgets", { name: "shared", unit: "usd", limit: 5, window: "month" }],
    path: "budgets",
    theirs: [{ name: "theirs" }, "Name", "theirs"],
    mine: ["Limit", "9", (r) => [r.name, r.limit], ["theirs", 9]],
  },
  {
    what: "key",
    create: ["/keys", { name: "shared" }],
    path: "keys",
    theirs: [{ name: "theirs" }, "Name", "theirs"],
    mine: ["Requests per minute", "7", (r) => [r.name, r.rpm], ["theirs", 7]],
  },
  {
    what: "destination",
    create: ["/destinations", { kind: "webhook", name: "shared", settings: { url: "https://hooks.example/" } }],
    path: "settings/notifications",
    theirs: [{ settings: { quietHours: "22:00-07:00" } }, "Quiet hours", "22:00-07:00"],
    mine: ["Name", "mine", (r) => [r.name, r.settings.quietHours], ["mine", "22:00-07:00"]],
  },
])
  test(`a ${what} that is edited in two tabs is not overwritten, and what was typed stays`, async (t) => {
    const { page, machineId, call } = await machine(t, "overview", { failures: ["PUT /* 412"] });
    const [rows, body] = create;
    const { id } = await call("POST", rows, body);
    await page.goto(`${b.url}/#/m/${machineId}/${path}/${id}`);
    const dialog = page.getByRole("dialog"),
      field = (label) => dialog.getByRole("textbox", { name: label, exact: true }).or(dialog.getByLabel(label)).first();
    const [label, typed, of, want] = mine;
    await field(label).fill(typed);
    await call("PUT", `${rows}/${id}`, theirs[0]);
    const save = dialog.getByRole("button", { name: "Save", exact: true });
    await save.click();
    const alert = dialog.getByRole("alert").filter({ hasText: "Someone else changed this." });
    await alert.waitFor();
    assert.notDeepEqual(of(await stored()), want);
    await alert.getByRole("button", { name: "Reload" }).click();
    await alert.waitFor({ state: "detached" });
    await becomes(() => field(theirs[1]).inputValue(), theirs[2]);
    assert.equal(await field(label).inputValue(), typed);
    await answered(page, "PUT", () => save.click());
    await dialog.waitFor({ state: "detached" });
    assert.deepEqual(of(await stored()), want);
    async function stored() {
      return (await call("GET", rows)).data.find((r) => r.id === id);
    }
  });

test("a dialog keeps what was typed while the gateway is away, and is saved when it is back", async (t) => {
  const { page, machineId, call } = await machine(t, "budgets/new", { failures: ["POST /* 0", "GET /* 0"] });
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Name").fill("Typed");
  await dialog.getByLabel("Limit").fill("12");
  const away = (route) => route.abort("connectionrefused");
  await page.route(/\/(api|assets)\//, away);
  const create = dialog.getByRole("button", { name: "Create budget" });
  await create.click();
  await dialog.getByRole("alert").getByText("The gateway cannot be reached.").waitFor();
  // A page whose code was not loaded before says so, and is not left for an error of the browser.
  await page.goto(`${b.url}/#/m/${machineId}/explain`);
  await page.getByText("Couldn’t load this page").waitFor();
  await page.getByRole("alert").getByText("The gateway cannot be reached. Check that it runs").waitFor();
  await page.getByRole("button", { name: "Reload" }).click();
  await page.getByRole("alert").getByText("The gateway cannot be reached.").waitFor();
  await page.goto(`${b.url}/#/m/${machineId}/budgets/new`);
  await becomes(() => dialog.getByLabel("Name").inputValue(), "Typed");
  await page.unrouteAll({ behavior: "wait" });
  await answered(page, "POST", () => create.click());
  await dialog.waitFor({ state: "detached" });
  assert.deepEqual(
    (await call("GET", "/budgets")).data.map((r) => [r.name, r.limit]),
    [["Typed", 12]],
  );
});
