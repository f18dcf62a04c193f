// The page of settings: its sections, their values, backup and audit log.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { after, before, test } from "node:test";
import { compatible, secrets } from "../e2e/gateway.mjs";
import { sections } from "../../worker/dashboard/src/pages/settings/sections.ts";
import { actionText } from "../../worker/dashboard/src/pages/settings/words.ts";
import { answered, bench, holds, looks, open, settled } from "./browser.mjs";

let b;
before(async () => {
  b = await bench();
});
after(() => b?.close());

async function settings(t, section, options = {}) {
  const { machineId } = await b.operator.machine({ name: "Test" });
  const call = (method, path, body) => b.operator.call(method, `/${machineId}/api${path}`, body);
  await b.operator.connect(machineId, compatible(b.upstream, { apiKey: "sk-canary-upstream-key-0123456789" }));
  await call("PUT", "/models/alias", { alias: "fast", model: "up/test-chat" });
  const page = await open(t, b, { at: `#/m/${machineId}/settings/${section}`, ...options });
  await page.getByRole("heading", { level: 1, name: "Settings" }).waitFor();
  await settled(page);
  return { machineId, page, call };
}

async function saved(page, button) {
  const [file] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: button }).click()]);
  const path = await file.path();
  return { path, name: file.suggestedFilename(), text: await readFile(path, "utf8") };
}

// Regression: one page of eight sections was 3,614 px high on a desktop and 6,167 px on a phone.
test("each section is at most two screens high on a desktop and five on a phone", async (t) => {
  const { page, machineId, call } = await settings(t, "routing");
  for (let i = 0; i < 30; i++) await call("PUT", "/models/alias", { alias: `a${i}`, model: "up/test-chat" });
  for (const [kind, field] of [
    ["webhook", "url"],
    ["otlp", "endpoint"],
  ])
    for (let i = 0; i < 3; i++)
      await call("POST", "/destinations", { kind, name: `${i}`, settings: { [field]: `${b.upstream.url}/${i}` } });
  for (const { id } of sections) {
    await page.goto(`${b.url}/#/m/${machineId}/settings/${id}`);
    await settled(page);
    for (const [width, height, most] of [
      [1440, 900, 2],
      [390, 844, 5],
    ]) {
      await page.setViewportSize({ width, height });
      const screens = await page.evaluate(() => document.documentElement.scrollHeight / innerHeight);
      t.diagnostic(`${id} at ${width} px: ${screens.toFixed(1)} screens`);
      assert.ok(screens <= most, `${id} has ${screens.toFixed(1)} screens of ${width} px`);
    }
  }
});

test("each setting has an address, and is found and reached with the keyboard alone", async (t) => {
  const { page, machineId } = await settings(t, "routing");
  const focused = (label) =>
    holds(page, (want) => document.activeElement?.closest("label")?.firstElementChild?.textContent === want, label);
  for (const section of sections) {
    await page.goto(`${b.url}/#/m/${machineId}/settings/${section.id}`);
    await page.getByRole("radio", { name: section.title, checked: true }).waitFor();
    await page.getByRole("region", { name: section.title, exact: true }).waitFor();
    await settled(page);
    const shown = await page.locator("main :is(form, .grid) .field > label > span").allTextContents();
    if (section.settings.length > 0) assert.deepEqual(shown, section.settings, `${section.id} in sections.ts`);
    for (const label of section.settings) {
      await page.goto(`${b.url}/#/m/${machineId}/overview`);
      await page.keyboard.press("Control+k");
      await page.getByRole("dialog", { name: "Go to" }).getByRole("combobox").waitFor();
      await page.keyboard.type(label);
      await page.getByRole("option", { name: `${label} Setting`, selected: true }).waitFor();
      await page.keyboard.press("Enter");
      await focused(label);
      assert.ok(page.url().endsWith(`/settings/${section.id}/${encodeURIComponent(label)}`), page.url());
    }
  }
  // The sections are radio buttons: Tab reaches them, and arrow keys choose.
  await page.goto(`${b.url}/#/m/${machineId}/overview`);
  await page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
  await page.goto(`${b.url}/#/m/${machineId}/settings`);
  await page.getByRole("heading", { level: 1, name: "Settings" }).waitFor();
  await holds(page, () => document.activeElement?.tagName === "H1");
  await page.keyboard.press("Tab");
  for (const { id, title } of sections.slice(1)) {
    await page.keyboard.press("ArrowRight");
    await page.getByRole("region", { name: title, exact: true }).waitFor();
    assert.ok(page.url().endsWith(`/settings/${id}`), page.url());
  }
});

test("settings are changed, and invalid values are refused", async (t) => {
  const { page, call } = await settings(t, "routing", { failures: ["PATCH /* 400"] });
  await looks(page, "settings");
  assert.equal(await page.getByLabel("Account strategy").inputValue(), "affinity");
  await page.getByLabel("Account strategy").selectOption("least-busy");
  await page.getByLabel(/^Prompt caching/).selectOption("on");
  await page.getByLabel("First-byte timeout (seconds)").fill("45");
  await page.getByLabel("Concurrent requests").fill("200");
  await page.getByLabel("Tags from request fields").fill("user, metadata.project,");
  await page.getByText("Models for Claude Code").click();
  await page.getByLabel("Model for Claude Haiku").fill("fast");
  await page.getByRole("region", { name: "Routing and timeouts" }).getByRole("button", { name: "Save" }).click();
  await page.getByText("Settings saved.").waitFor();
  assert.deepEqual(await call("GET", "/settings"), {
    strategy: "least-busy",
    firstByteSeconds: 45,
    idleSeconds: 300,
    embeddingInputType: "document",
    responsesWebSocket: "on",
    promptCaching: "on",
    streamCost: "off",
    statusFeeds: "on",
    publicStatus: "off",
    claudeHaikuModel: "fast",
    timeZone: "UTC",
    keyNetworks: "on",
    tagsFrom: ["user", "metadata.project"],
    capturePercent: 0,
    captureHours: 24,
    maxParallel: 200,
  });
  await page.getByLabel("Model for Claude Haiku").fill("");
  await answered(page, "PATCH", () =>
    page.getByRole("region", { name: "Routing and timeouts" }).getByRole("button", { name: "Save" }).click(),
  );
  assert.equal((await call("GET", "/settings")).claudeHaikuModel, undefined);
  const fields = page.getByLabel("Tags from request fields");
  assert.equal(await fields.inputValue(), "user, metadata.project");
  await fields.fill("messages");
  await page.getByRole("region", { name: "Routing and timeouts" }).getByRole("button", { name: "Save" }).click();
  await page.getByText("must be user, safety_identifier or metadata.NAME").waitFor();
  await fields.fill("");
  await answered(page, "PATCH", () =>
    page.getByRole("region", { name: "Routing and timeouts" }).getByRole("button", { name: "Save" }).click(),
  );
  assert.equal((await call("GET", "/settings")).tagsFrom, undefined);
  await page.getByLabel("First-byte timeout (seconds)").fill("100000");
  await page.getByRole("region", { name: "Routing and timeouts" }).getByRole("button", { name: "Save" }).click();
  assert.equal(await page.getByLabel("First-byte timeout (seconds)").evaluate((e) => e.validity.rangeOverflow), true);
  assert.equal((await call("GET", "/settings")).firstByteSeconds, 45);
});

test("settings that someone else changed are not overwritten", async (t) => {
  const { page, call } = await settings(t, "routing", { failures: ["PATCH /* 412"] });
  const seconds = page.getByLabel("First-byte timeout (seconds)"),
    save = page.getByRole("region", { name: "Routing and timeouts" }).getByRole("button", { name: "Save" });
  const stale = page.getByRole("alert").filter({ hasText: "Someone else changed this." });
  // They were the defaults when the page read them, then what the page itself had saved.
  for (const [theirs, mine] of [
    [7, 45],
    [8, 46],
  ]) {
    await call("PATCH", "/settings", { idleSeconds: theirs });
    await seconds.fill(String(mine));
    await save.click();
    await stale.waitFor();
    assert.equal(await seconds.inputValue(), String(mine), "what was typed is still there");
    assert.equal((await call("GET", "/settings")).idleSeconds, theirs);
    await stale.getByRole("button", { name: "Reload" }).click();
    await stale.waitFor({ state: "detached" });
    assert.equal(await page.getByLabel("Stream idle timeout (seconds)").inputValue(), String(theirs));
    await seconds.fill(String(mine));
    await answered(page, "PATCH", () => save.click());
    await holds(page, () => !document.querySelector("button[aria-disabled]"));
    const now = await call("GET", "/settings");
    assert.deepEqual([now.idleSeconds, now.firstByteSeconds], [theirs, mine]);
  }
});

test("a backup is exported and imported into another machine, and a wrong passphrase is refused", async (t) => {
  const { page, machineId } = await settings(t, "backup", { failures: ["POST /* 400"] });
  const open = await saved(page, "Export without credentials");
  assert.match(open.name, new RegExp(`^weir-${machineId}-\\d{4}-\\d\\d-\\d\\d\\.json$`));
  assert.equal(JSON.parse(open.text).modelAliases.fast, "up/test-chat");
  assert.doesNotMatch(open.text, /canary/);
  await page.getByLabel("Passphrase", { exact: true }).fill("correct horse battery");
  const sealed = await saved(page, "Export with credentials (encrypted)");
  assert.equal(JSON.parse(sealed.text).format, "weir-export-encrypted");
  assert.doesNotMatch(sealed.text, /canary|up\/test-chat/);

  const other = (await b.operator.machine({ name: "Other" })).machineId;
  await page.goto(`${b.url}/#/m/${other}/settings/backup`);
  await settled(page);
  await page.getByLabel("File", { exact: true }).setInputFiles(sealed.path);
  await page.getByLabel("Backup passphrase").fill("wrong horse battery");
  const preview = page.getByRole("button", { name: "Preview import" });
  await preview.click();
  await page.getByRole("alert").getByText("cannot be opened with this passphrase").waitFor();
  await page.getByLabel("Backup passphrase").fill("correct horse battery");
  await preview.click();
  const changes = page.getByRole("region", { name: "Preview" });
  const left = changes.getByText(/API keys? will not be imported: (it names|they name) another machine/);
  await left.waitFor();
  await page.getByLabel("Import API keys").check();
  await changes.waitFor({ state: "detached" });
  await preview.click();
  await changes.getByText("Accounts: up").waitFor();
  await left.waitFor();
  assert.equal(
    (await b.operator.call("GET", `/${other}/api/providers`)).data.length,
    0,
    "the preview changed something",
  );
  await page.getByRole("button", { name: "Import", exact: true }).click();
  await page.getByText(/^Imported 1 account, 1 alias\b/).waitFor();
  const [c] = (await b.operator.call("GET", `/${other}/api/providers`)).data;
  assert.deepEqual([c.hasKey, c.status], [true, "active"]);
});

// Regression: any JSON file, one checkbox and one click deleted all connections.
test("an import shows a preview, and deletes nothing without confirmation", async (t) => {
  const { page, machineId, call } = await settings(t, "backup", { failures: ["POST /* 400", "POST /* 412"] });
  const providers = async () => (await call("GET", "/providers")).data.length;
  const put = (doc) =>
    page
      .getByLabel("File", { exact: true })
      .setInputFiles({ name: "file.json", mimeType: "application/json", buffer: Buffer.from(JSON.stringify(doc)) });
  const preview = page.getByRole("button", { name: "Preview import" }),
    changes = page.getByRole("region", { name: "Preview" });
  await page.getByLabel("Replace everything").check();
  await put({ name: "weir", version: "1.0.0", dependencies: {} });
  await preview.click();
  await page.getByRole("alert").getByText("this is not a weir backup").waitFor();
  const doc = { ...(await call("GET", "/export")), connections: [], modelAliases: { quick: "up/test-chat" } };
  await put(doc);
  await preview.click();
  await changes.getByText("Accounts: up").waitFor();
  await changes.getByText("Aliases: quick").waitFor();
  assert.equal(await providers(), 1);
  await call("PUT", "/models/alias", { alias: "meanwhile", model: "up/test-chat" });
  await page.getByRole("button", { name: "Replace everything…" }).click();
  const dialog = page.getByRole("dialog", { name: "Replace everything?" }),
    go = dialog.getByRole("button", { name: "Delete and import" });
  assert.equal(await go.isDisabled(), true);
  await dialog.getByRole("textbox").fill("replace");
  await go.click();
  await page.getByRole("alert").getByText("The machine has changed since the preview").waitFor();
  assert.equal(await providers(), 1);
  await preview.click();
  await page.getByRole("button", { name: "Replace everything…" }).click();
  await dialog.getByText("Accounts: up").waitFor();
  await dialog.getByRole("textbox").fill("replace");
  await go.click();
  await page.getByText("Imported 1 alias.").waitFor();
  assert.equal(await providers(), 0);
  const record = (await b.operator.call("GET", `/${machineId}/api/audit`)).data[0];
  assert.ok(record.fields.includes("replace"), JSON.stringify(record));
});

test("a backup needs a recent sign-in", async (t) => {
  const { page, machineId } = await settings(t, "backup", { failures: [`POST /* 403`] });
  // As five minutes later: the gateway asks for the token once more.
  let asked = 0;
  await page.route(`**/${machineId}/api/export`, async (route) => {
    if (route.request().method() !== "POST" || asked++) return route.continue();
    await route.fulfill({
      status: 403,
      contentType: "application/json",
      body: `{"error":{"message":"sign in again to do this","type":"permission_error","code":"reauth_required"}}`,
    });
  });
  await page.getByLabel("Passphrase", { exact: true }).fill("correct horse battery");
  const waiting = page.waitForEvent("download");
  await page.getByRole("button", { name: "Export with credentials (encrypted)" }).click();
  const dialog = page.getByRole("dialog", { name: "Sign in again" });
  await dialog.getByLabel("Token or key").fill(secrets.ADMIN_TOKEN);
  await dialog.getByRole("button", { name: "Sign in" }).click();
  await waiting;
  assert.equal(asked, 2);
});

test("the audit log lists all changes, page by page", async (t) => {
  const { page, call } = await settings(t, "audit");
  await page.getByText("Digests match").waitFor();
  const rows = page.getByRole("region", { name: "Changes" }).getByRole("row");
  await rows.filter({ hasText: "Saved a model alias" }).first().waitFor();
  for (let i = 0; i < 30; i++) await call("PUT", "/models/alias", { alias: `a${i}`, model: "up/test-chat" });
  await page.reload();
  await settled(page);
  assert.equal(await rows.count(), 26);
  await page.getByRole("button", { name: "Load more" }).click();
  await page.getByRole("button", { name: "Load more" }).waitFor({ state: "detached" });
  assert.equal(await rows.count(), 1 + (await call("GET", "/audit?limit=500")).data.length);
});

test("the audit log is in words, names what was changed, and is filtered", async (t) => {
  const { page, call } = await settings(t, "audit");
  const { id } = await call("POST", "/keys", { name: "Laptop", scopes: ["data"] });
  await call("PUT", `/keys/${id}`, { rpm: 5, dailyMax: 100 });
  await call("PATCH", "/settings", { idleSeconds: 7 });
  await page.reload();
  await settled(page);
  const rows = page.getByRole("region", { name: "Changes" }).locator("tbody tr");
  const shown = async () => (await rows.allInnerTexts()).map((text) => text.replace(/\s+/g, " "));
  // The rows of the filters before may be as many.
  const becomesRows = (...wanted) =>
    holds(
      page,
      (patterns) => {
        const rows = [...document.querySelectorAll('[aria-label="Changes"] tbody tr')];
        const texts = rows.map((row) => row.innerText.replace(/\s+/g, " ").trim());
        return texts.length === patterns.length && texts.every((text, i) => new RegExp(patterns[i]).test(text));
      },
      wanted.map((w) => w.source),
    );
  assert.match((await shown())[0], /Operator Changed the settings stream idle timeout$/);
  await page.getByLabel("Kind").selectOption("keys");
  await becomesRows(
    /Operator Changed API key Laptop requests per minute, requests per day$/,
    /Operator Created API key Laptop name, scopes$/,
  );
  await looks(page, "settings-audit");
  await page.getByLabel("Search names").fill("lapt");
  await page.getByLabel("Kind").selectOption("");
  await becomesRows(/Changed API key Laptop/, /Created API key Laptop/);
  await page.getByLabel("Period").selectOption("7");
  assert.match(page.url(), /\?q=lapt&days=7$/);
  await page.reload();
  await settled(page);
  await becomesRows(/Changed API key Laptop/, /Created API key Laptop/);
  await page.getByLabel("User").selectOption("system");
  await page.getByText("No changes match the filters").waitFor();
});

// Regression: each look at 2,000 entries without a match needed another click.
test("a filter of the audit log finds an entry behind thousands of others", async (t) => {
  const { page, call } = await settings(t, "audit");
  const rows = page.getByRole("region", { name: "Changes" }).locator("tbody tr");
  await call("POST", "/combos", { name: "oldest", models: ["up/test-chat"] });
  for (let i = 0; i < 42; i++)
    await Promise.all(
      Array.from({ length: 50 }, (_, j) => call("PUT", "/models/alias", { alias: `a${j}`, model: "up/test-chat" })),
    );
  await page.reload();
  await settled(page);
  assert.equal(await rows.count(), 25);
  await page.getByLabel("Kind").selectOption("combos");
  await rows.filter({ hasText: "oldest" }).waitFor();
  assert.equal(await rows.count(), 1);
  await page.getByText("Digests match").waitFor();
  await page.getByLabel("Search names").fill("nowhere");
  await page.getByText("No changes match the filters").waitFor();
});

// A route that is added has words: none is shown as its method and path.
test("every action of the audit log has words", () => {
  const { paths } = JSON.parse(readFileSync(new URL("../../docs/reference/openapi.json", import.meta.url), "utf8"));
  const actions = Object.keys(paths)
    .filter((path) => path.startsWith("/api"))
    .flatMap((path) => Object.keys(paths[path]).map((method) => `${method.toUpperCase()} ${path}`))
    .filter((action) => !action.startsWith("GET "));
  assert.ok(actions.length > 25, actions.join());
  for (const action of [...actions, "sign-in", "refresh", "adopt", "GET /oauth/callback", "POST /setup/claim"]) {
    const text = actionText(action);
    assert.match(text, /^[A-Z][a-z]+(-[a-z]+)?( [\w-]+)+$/, `${action}: ${text}`);
  }
  assert.equal(actionText("DELETE /api/keys/{id}"), "Deleted API key");
  assert.equal(actionText("PUT /api/some-things/{id}/new_parts"), "Changed some things new parts");
});

test("the health of the gateway, its version and the documentation are shown", async (t) => {
  const { page, machineId } = await settings(t, "health");
  const section = page.getByRole("region", { name: "Gateway" });
  await section.getByText("Healthy").waitFor();
  await section.getByText(/^Checked \d.+: the gateway and this machine’s storage answered in [\d,]+ ms\./).waitFor();
  const { version } = await b.operator.call("GET", "/api/version");
  await section.getByText(version, { exact: true }).waitFor();
  await section.getByText("Within a minute of this computer’s").waitFor();
  await section.getByText("None is waiting to be sent").waitFor();
  for (const link of [
    ...(await section.getByRole("link").all()),
    ...(await page.getByRole("link", { name: /^(Learn more|More about)/ }).all()),
  ]) {
    const path = await link.getAttribute("href");
    assert.equal((await b.gateway.fetch(path, { redirect: "manual" })).status, 200, path);
  }
  await page.route(`**/${machineId}/api/health`, (route) =>
    route.fulfill({
      json: {
        object: "health",
        ok: false,
        now: Date.now() - 3_600_000,
        configuration: { bytes: 2_000_000, maxBytes: 2_097_152 },
        replica: { pending: true, failures: 3 },
        alerts: { waiting: 2, failing: 1 },
        auditRecords: 2,
        credentials: { unreadable: 3 },
      },
    }),
  );
  await section.getByText("Built-in prices; refreshing is off").waitFor();
  const prices = { source: "https://prices.example/api.json", failedAt: Date.now() - 600_000, error: "status 404" };
  await page.route("**/api/version", (route) => route.fulfill({ json: { version, newer: "v9.0.0", prices } }));
  await section.getByRole("button", { name: "Check again" }).click();
  await section.getByText("Needs attention").waitFor();
  await section.getByText("v9.0.0 is available").waitFor();
  await section.getByText("CREDENTIALS_KEY doesn’t open 3 credentials of accounts and destinations.").waitFor();
  await section
    .getByText(/Built in; not yet refreshed from https:\/\/prices\.example.*Failed .+: status 404/)
    .waitFor();
  await section.getByText("Failed 3 times.").waitFor();
  await section.getByText("2 waiting to be sent, 1 of them failed").waitFor();
  await section.getByText("2 entries since this machine was created").waitFor();
  await section.getByText(/^(60 min|1 h) behind this computer/).waitFor();
  await looks(page, "settings-health");
  prices.fetchedAt = Date.now() - 7_200_000;
  await section.getByRole("button", { name: "Check again" }).click();
  await section.getByText(/Refreshed .+ from https:\/\/prices\.example.*Failed .+: status 404/).waitFor();
});

test("budgets are in the preview of an import", async (t) => {
  const { page, call } = await settings(t, "backup");
  await call("POST", "/budgets", { name: "Monthly", unit: "usd", limit: 5, window: "month" });
  const doc = await call("GET", "/export");
  assert.equal(doc.budgets[0].name, "Monthly");
  doc.budgets[0].limit = 9;
  doc.budgets.push({ name: "Daily", unit: "requests", limit: 5, window: "day" });
  await page
    .getByLabel("File", { exact: true })
    .setInputFiles({ name: "file.json", mimeType: "application/json", buffer: Buffer.from(JSON.stringify(doc)) });
  await page.getByRole("button", { name: "Preview import" }).click();
  const changes = page.getByRole("region", { name: "Preview" });
  await changes.getByText("Budgets: Monthly").waitFor();
  await changes.getByText("Budgets: Daily").waitFor();
  await page.getByRole("button", { name: "Import", exact: true }).click();
  await page.getByText(/^Imported .*2 budgets\.$/).waitFor();
  assert.deepEqual(
    (await call("GET", "/budgets")).data.map((b) => [b.name, b.limit]),
    [
      ["Monthly", 9],
      ["Daily", 5],
    ],
  );
});

test("the public status page is turned on, is readable without a script, and is turned off", async (t) => {
  const { page, machineId } = await settings(t, "health", { failures: ["GET /*/status 404"] });
  const region = page.getByRole("region", { name: "Health", exact: true });
  await region.getByLabel("Public status page").selectOption("providers");
  const link = region.getByRole("link", { name: new RegExp(`/${machineId}/status$`) });
  assert.equal(await link.getAttribute("href"), `/${machineId}/status`);
  await looks(page, "settings-status");
  await page.goto(`${b.url}/${machineId}/status`);
  await page.getByRole("heading", { level: 1, name: "Status: No recent calls" }).waitFor();
  await looks(page, "status");
  await page.goto(`${b.url}/#/m/${machineId}/settings/health`);
  await region.getByLabel("Public status page").selectOption("off");
  await page.getByText("Settings saved.").waitFor();
  await link.waitFor({ state: "detached" });
});
