// The first page of a machine: its checklist, figures, accounts, failures and budgets.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { compatible } from "../e2e/gateway.mjs";
import { answered, becomes, bench, canary, looks, open, settled } from "./browser.mjs";
import { ask, used } from "./used.mjs";

let b;
before(async () => {
  b = await bench();
});
after(() => b?.close());

// overview opens the page of a machine; prepare is called before.
async function overview(t, { prepare = async () => {}, ...options } = {}) {
  const me = await b.operator.machine({ name: "Test" });
  const call = (method, path, body) => b.operator.call(method, `/${me.machineId}/api${path}`, body);
  await prepare(call, me);
  const page = await open(t, b, { at: `#/m/${me.machineId}/overview`, ...options });
  await page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
  await settled(page);
  return { page, call, ...me };
}

// figure returns the text of a figure, its note and the number of its bars.
const figure = (page, name) =>
  page
    .locator(".stat")
    .filter({ has: page.getByRole("link", { name, exact: true }) })
    .evaluate((e) => [
      ...[...e.querySelectorAll("dd")].slice(0, 2).map((d) => d.textContent),
      e.querySelectorAll("g").length,
    ]);

test("the checklist is ticked by what the machine has", async (t) => {
  const { page, call, machineId, apiKey } = await overview(t);
  const list = page.getByRole("region", { name: "Get started" });
  const steps = async () =>
    (await list.getByRole("heading", { level: 3 }).allInnerTexts()).map((s) => / ?: done$/.test(s.trim()));
  assert.deepEqual(await steps(), [false, false, false]);
  assert.equal(
    await list
      .locator("[aria-current=step]")
      .innerText()
      .then((s) => s.includes("Connect an account")),
    true,
  );
  await looks(page, "overview-new");
  assert.equal(await page.locator("main .stat").count(), 0, "no figures of nothing");
  assert.equal(await list.getByRole("link", { name: "All tools" }).count(), 0, "a tool needs an account");
  const { id } = await b.operator.connect(machineId, compatible(b.upstream));
  await list.getByText("No account has answered yet.").waitFor();
  await list.getByRole("button", { name: "Codex CLI" }).waitFor();
  assert.deepEqual(await steps(), [false, false, false], "an account that has not answered is not connected");
  const own = await call("POST", "/keys", { name: "weir call" });
  assert.equal(await ask(b, own.apiKey, "up/wrong!status=400"), 400);
  await becomes(async () => (await call("GET", "/keys")).data.some((k) => k.id === own.id && k.lastUsedAt), true);
  await page.reload();
  await settled(page);
  assert.deepEqual(await steps(), [false, false, false], "weir call is not a tool");
  assert.equal(await ask(b, apiKey, "up/wrong!status=400"), 400);
  await becomes(steps, [false, true, false]);
  assert.equal((await call("POST", `/providers/${id}/test`, {})).ok, true);
  await becomes(steps, [true, true, false]);
  assert.equal(await ask(b, apiKey, "up/test-chat"), 200);
  await list.waitFor({ state: "detached" });
});

test("a key that names no provider asks for it, and one that is refused is not kept", async (t) => {
  b.upstream.script = (got) =>
    got.headers.authorization === "Bearer gsk_refused0123456789"
      ? { status: 401, body: `{"error":{"message":"no"}}` }
      : null;
  t.after(() => {
    b.upstream.script = null;
  });
  const { page, call } = await overview(t);
  const key = page.getByLabel("Paste a provider’s key");
  // beside is how far the middle of the link is from that of the field.
  const beside = async () => {
    const of = [key, page.getByRole("link", { name: "All providers, your own servers" })];
    const [a, b] = await Promise.all(of.map((e) => e.boundingBox()));
    return Math.abs(a.y + a.height / 2 - b.y - b.height / 2);
  };
  assert.ok((await beside()) < 2);
  await page.locator(":focus").and(key).waitFor();
  await page.evaluate(() => navigator.clipboard.writeText("gsk_refused0123456789"));
  await page.keyboard.press("ControlOrMeta+V");
  await page.getByText("Groq was not added. The provider refused the API key (status 401).").waitFor();
  assert.deepEqual((await call("GET", "/providers")).data, []);
  assert.ok((await beside()) < 2, "the error is below both");
  await looks(page, "overview-key-refused");
  await page.evaluate(() => navigator.clipboard.writeText(" sk-0123456789abcdef0123 "));
  await page.keyboard.press("ControlOrMeta+V");
  const choice = page.getByRole("main").getByRole("combobox");
  await choice.waitFor();
  const offered = await choice.getByRole("option").allInnerTexts();
  assert.deepEqual(offered.slice(0, 3), ["Choose…", "OpenAI", "Anthropic"]);
  await choice.selectOption("DeepSeek");
  await page.getByRole("button", { name: "Add and test" }).click();
  await page.getByText("DeepSeek is connected.").waitFor();
  assert.deepEqual(
    (await call("GET", "/providers")).data.map((c) => c.provider),
    ["deepseek"],
  );
});

test("an account whose provider does not answer is kept with its key, and tested again", async (t) => {
  let status = 503;
  b.upstream.script = (got) =>
    got.headers.authorization === "Bearer gsk_kept0123456789" && status
      ? { status, body: `{"error":{"message":"no"}}` }
      : null;
  t.after(() => {
    b.upstream.script = null;
  });
  const { page, call } = await overview(t);
  await page.locator(":focus").and(page.getByLabel("Paste a provider’s key")).waitFor();
  await page.evaluate(() => navigator.clipboard.writeText("gsk_kept0123456789"));
  await page.keyboard.press("ControlOrMeta+V");
  const error = page.getByRole("alert").filter({ hasText: "Groq was saved, but the test failed." });
  await error.waitFor();
  const [kept, ...others] = (await call("GET", "/providers")).data;
  assert.deepEqual([kept.provider, kept.hasKey, others.length], ["groq", true, 0]);
  await looks(page, "overview-test-failed");
  status = 0;
  await error.getByRole("button", { name: "Try again" }).click();
  await page.getByText("Groq is connected.").waitFor();
  assert.equal((await call("GET", "/providers")).data.length, 1);
});

test("the checklist can be hidden", async (t) => {
  const { page } = await overview(t);
  const list = page.getByRole("region", { name: "Get started" });
  await list.getByRole("button", { name: "Hide" }).click();
  await list.waitFor({ state: "detached" });
  await page.reload();
  await settled(page);
  assert.equal(await list.count(), 0);
});

test("figures are those of the last hour, day or week", async (t) => {
  const me = await used(b);
  const page = await open(t, b, { at: `#/m/${me.machineId}/overview` });
  await settled(page);
  const { total } = await me.api("/usage?period=24h&groupBy=hour");
  assert.deepEqual([total.requests, total.failedRequests], [6, 2]);
  const steps = { "Last hour": 12, "24 hours": 24, "7 days": 7 };
  for (const [range, n] of Object.entries(steps)) {
    await page.getByRole("radio", { name: range }).check();
    await becomes(() => figure(page, "Requests"), ["6", "", n]);
    assert.deepEqual(await figure(page, "Success rate"), ["80%", "1 failed, 1 refused", n]);
    const tokens = await figure(page, "Tokens");
    assert.ok(total.estimatedAttempts > 0);
    assert.equal(tokens[0], `≈ ${(total.inputTokens + total.outputTokens).toLocaleString("en")}`);
    assert.match((await figure(page, "Latency p95"))[0], /^([≤≈] \d+ ms|≈ [\d.]+ s)$/);
    const [spend, unpriced] = await figure(page, "Spend");
    assert.deepEqual([spend, unpriced], ["–", `cost of ${total.unpricedAttempts} attempts unknown. Set prices`]);
  }
  await looks(page, "overview");
  await page.reload();
  await settled(page);
  assert.equal(await page.getByRole("radio", { name: "7 days" }).isChecked(), true, "the range is in the address");
  await page.getByRole("link", { name: "Tokens", exact: true }).click();
  await page.getByRole("heading", { level: 1, name: "Usage" }).waitFor();
  await page.getByRole("img", { name: /^Tokens per day/ }).waitFor();
});

test("figures say which part is estimated, and which tokens are of tests", async (t) => {
  const me = await used(b);
  const page = await open(t, b, { at: `#/m/${me.machineId}/settings` });
  await page.route(/\/api\/usage\?/, async (route) => {
    const report = await (await route.fetch()).json();
    for (const row of [...report.data, report.total])
      Object.assign(row, { requests: 0, unpricedAttempts: 0, estimatedAttempts: 1, costUsd: 0.5 });
    await route.fulfill({ json: report });
  });
  await page.goto(`${b.url}/#/m/${me.machineId}/overview`);
  await settled(page);
  const [[tokens, note], [spend]] = [await figure(page, "Tokens"), await figure(page, "Spend")];
  assert.match(note, /^\d+ in, \d+ out, by account tests$/);
  assert.match(`${tokens}, ${spend}`, /^≈ [\d,.]+, ≈ \$0\.50$/);
});

test("a week is shown by day, read as a table, and the next step is one", async (t) => {
  const me = await used(b);
  const page = await open(t, b, { at: `#/m/${me.machineId}/overview` });
  await settled(page);
  const week = page.getByRole("table", { name: "Last 7 days" });
  const cells = (name) =>
    week
      .getByRole("row")
      .filter({ has: page.getByRole("rowheader", { name }) })
      .getByRole("cell")
      .allInnerTexts();
  assert.equal(await week.getByRole("columnheader").count(), 7);
  assert.deepEqual(await cells("Requests"), ["0", "0", "0", "0", "0", "0", "6"]);
  assert.deepEqual(await cells("Failed"), ["0", "0", "0", "0", "0", "0", "1"]);
  assert.equal((await cells("Spend")).at(-1), "–", "without prices the spend is unknown");
  assert.deepEqual([await week.locator("svg").count(), await week.locator("rect.bad").count()], [7, 1], "one scale");
  // Refused requests are no part of the succeeded ones; the colors are those of Usage.
  const colorsOf = (legend) =>
    legend
      .getByRole("listitem")
      .evaluateAll((all) =>
        all.filter((e) => e.firstElementChild).map((e) => [e.textContent, getComputedStyle(e.firstElementChild).color]),
      );
  const legend = page.getByRole("region", { name: "Last 7 days" }).locator(".legend");
  const colors = await colorsOf(legend);
  assert.deepEqual(
    colors.map(([name]) => name),
    ["Succeeded", "Provider failed", "Refused"],
  );
  const bar = await week
    .locator("svg")
    .last()
    .locator("rect:not(.slot)")
    .evaluateAll((all) => all.map((e) => [getComputedStyle(e).fill, Math.round(e.getBBox().height * 10)]));
  assert.deepEqual(bar, [
    [colors[0][1], 320],
    [colors[2][1], 53],
    [colors[1][1], 53],
  ]);
  const usage = await open(t, b, { at: `#/m/${me.machineId}/usage` });
  await usage.getByRole("img", { name: /^Requests per day/ }).waitFor();
  const ofUsage = new Map(await colorsOf(usage.locator(".chart .legend")));
  assert.deepEqual(
    colors.map(([name]) => ofUsage.get(name)),
    colors.map(([, color]) => color),
  );
  const next = page.getByRole("region", { name: "Next step" });
  const step = async () => [
    (await next.getByRole("paragraph").innerText()).replace(/^Next step\s*/, ""),
    await next.getByRole("link").allInnerTexts(),
  ];
  assert.equal(await page.locator(".next.warn").count(), 0);
  assert.deepEqual(await step(), [
    "4 attempts in the last 7 days without a price, so the spend shown is too low. The price of your own server can be 0.",
    ["Set prices"],
  ]);
  // The most urgent comes first: a budget that is used up, then an account that is refused.
  await b.operator.call("POST", `/${me.machineId}/api/budgets`, {
    name: "Small",
    unit: "requests",
    limit: 6,
    window: "day",
  });
  await me.call("/v1/chat/completions", { model: "up/test-chat", messages: [] });
  await page.route(`**/${me.machineId}/api/budgets`, async (route) => {
    const answer = await (await route.fetch()).json();
    await route.fulfill({ json: { data: answer.data.map((row) => ({ ...row, spent: 6, exhausted: true })) } });
  });
  await page.reload();
  await settled(page);
  await page.locator(".next.warn").and(next).waitFor(); // of a fault
  assert.deepEqual(await step(), ["Budget Small is used up: 6 of 6 requests.", ["Change the budget"]]);
  await page.route(`**/${me.machineId}/api/providers`, async (route) => {
    const answer = await (await route.fetch()).json();
    const data = answer.data.map((row, i) => (i ? row : { ...row, health: "key_refused" }));
    await route.fulfill({ json: { data } });
  });
  await page.reload();
  await settled(page);
  assert.deepEqual(await step(), ["First: key refused.", ["Fix it"]]);
  await next.getByRole("link").click();
  await page.waitForURL(`**/providers/${me.first.id}?fix=key`);
  await page.locator("input:focus").and(page.getByLabel("API key")).waitFor(); // what has to change
});

test("an account that was called without success is not called untested", async (t) => {
  const { page, machineId, apiKey } = await overview(t);
  await b.operator.connect(machineId, compatible(b.upstream));
  assert.equal(await ask(b, apiKey, "up/wrong!status=400"), 400);
  await becomes(
    async () => (await b.operator.call("GET", `/${machineId}/api/providers`)).data[0].lastHour.failedAttempts,
    1,
  );
  await page.reload();
  await page.getByText("1 of 1 account has not answered yet.").waitFor();
  await page.goto(`${b.url}/#/m/${machineId}/providers`);
  await page.getByText("No success yet", { exact: true }).waitFor();
  await page.getByText("Last hour: 1 attempt, 1 failed").waitFor();
});

test("failures lead to their requests", async (t) => {
  const me = await used(b);
  const page = await open(t, b, { at: `#/m/${me.machineId}/overview` });
  await settled(page);
  const list = page.getByRole("region", { name: "Recent failures and refusals" });
  assert.equal(await list.getByRole("listitem").count(), 2);
  const [refused, failed] = (await list.getByRole("listitem").allInnerTexts()).map((s) => s.split(/\s+/).join(" "));
  assert.match(refused, /^Refused Unknown model "nothing\/like-it"\. .+ nothing\/like-it Default key /);
  assert.match(failed, /^Failed First does not accept the request\. up\/wrong!status=400 Default key /);
  await list.getByRole("link", { name: "up/wrong!status=400" }).click();
  await page.getByRole("dialog", { name: "Request" }).getByText("up/wrong!status=400").first().waitFor();
});

test("an account whose key is refused gets another one, and is tested", async (t) => {
  b.upstream.script = (got) =>
    got.headers.authorization?.startsWith("Bearer refused-")
      ? { status: 401, body: `{"error":{"message":"no"}}` }
      : null;
  t.after(() => {
    b.upstream.script = null;
  });
  const { page, call } = await overview(t, {
    prepare: async (call, { machineId }) => {
      await b.operator.connect(machineId, {
        provider: "deepseek",
        name: `Dead ${canary}`,
        apiKey: "refused-key-0123456789",
      });
      const [{ id }] = (await call("GET", "/providers")).data;
      assert.equal((await call("POST", `/providers/${id}/test`, {})).ok, false);
    },
  });
  const accounts = page.getByRole("region", { name: "Accounts" });
  await accounts.getByText("Key refused", { exact: true }).waitFor();
  await accounts.getByText(/^since /).waitFor();
  await looks(page, "overview-refused");
  await accounts.getByRole("button", { name: `Replace key: Dead ${canary}` }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("API key").fill("refused-key-9876543210");
  await dialog.getByRole("button", { name: "Save and test" }).click();
  await dialog.getByText("The provider refused the API key (status 401).").waitFor();
  await dialog.getByLabel("API key").fill("good-key-0123456789");
  await dialog.getByRole("button", { name: "Save and test" }).click();
  await dialog.waitFor({ state: "detached" });
  await page.getByText(`Dead ${canary} is connected.`).waitFor();
  await accounts.getByText(/^1 account answered last time\./).waitFor();
  assert.equal((await call("GET", "/providers")).data[0].health, "ready");
});

test("each state of an account has the button that solves it", async (t) => {
  const base = {
    authType: "api_key",
    hasKey: true,
    secrets: ["apiKey"],
    priority: 0,
    isActive: true,
    providerSpecificData: {},
    status: "active",
    health: "ready",
    generation: 1,
    tokenGeneration: 0,
    updatedAt: 1,
    provider: "deepseek",
  };
  const soon = Date.now() + 3_600_000;
  const rows = [
    { id: "a1", name: "Signed out", authType: "oauth", status: "needs_reauth" },
    { id: "a2", name: "Keyless", hasKey: false, status: "needs_credential" },
    { id: "b2", name: "Open", hasKey: false, secrets: [], health: "key_refused" },
    { id: "a3", name: "Broke", health: "out_of_credit" },
    { id: "a4", name: "Away", health: "unreachable", lastError: "no answer" },
    { id: "a5", name: "Expiring", authType: "oauth", secrets: ["accessToken"], expiresAt: soon },
    { id: "a6", name: "Renewed", authType: "oauth", secrets: ["accessToken", "refreshToken"], expiresAt: soon },
    { id: "a7", name: "Low" },
    { id: "a8", name: "Off", isActive: false, health: "key_refused" },
    { id: "b1", name: "Sealed", health: "key_unavailable", lastError: "cannot be decrypted" },
    { id: "a9", name: "Limited", health: "limited", cooldownUntil: soon },
  ].map((c) => ({ ...base, ...c }));
  const quotas = [
    { connectionId: "a7", windows: [{ name: "requests-per-day", left: 0.04, observedAt: 1, resetsAt: soon }] },
  ];
  const { page, machineId } = await overview(t);
  await page.route(`**/${machineId}/api/providers`, (route) => route.fulfill({ json: { data: rows } }));
  await page.route(`**/${machineId}/api/quota`, (route) => route.fulfill({ json: { data: quotas } }));
  await page.reload();
  const list = page.getByRole("list", { name: "Accounts that need your attention" });
  await list.waitFor();
  const shown = await list
    .getByRole("listitem")
    .evaluateAll((all) =>
      all.map((li) => [
        li.querySelector("bdi").textContent,
        li.querySelector(".badge").textContent,
        li.querySelector("button, a.button").textContent,
      ]),
    );
  assert.deepEqual(shown, [
    ["Signed out", "Sign in again", "Sign in again"],
    ["Keyless", "Credentials missing", "Add credentials"],
    ["Open", "Needs a key", "Add credentials"],
    ["Broke", "Out of credit", "Test"],
    ["Away", "Unreachable", "Test"],
    ["Expiring", "Sign-in expires soon", "Sign in again"],
    ["Low", "Limit almost used up", "Add another account"],
    ["Sealed", "Credentials unreadable", "Replace key"],
  ]);
  await looks(page, "overview-accounts");
});

test("budgets are shown by what is used", async (t) => {
  const { page, machineId } = await overview(t, {
    prepare: async (call) => {
      await call("POST", "/budgets", { name: "Requests a day", unit: "requests", limit: 10, window: "day" });
      await call("POST", "/budgets", { name: `Dollars ${canary}`, unit: "usd", limit: 5, window: "month" });
    },
  });
  const budgets = page.getByRole("region", { name: "Budgets" });
  await budgets.getByText("0 of 10 requests").waitFor();
  await budgets.getByText("$0.00 of $5.00", { exact: true }).waitFor();
  await page.route(`**/${machineId}/api/budgets`, async (route) => {
    const { data } = await (await route.fetch()).json();
    await route.fulfill({
      json: { data: data.map((row) => ({ ...row, unpricedCalls: row.unit === "usd" ? 28 : 0 })) },
    });
  });
  await page.reload();
  const unknown = budgets.getByText("≥ $0.00 of $5.00", { exact: true });
  assert.equal(await unknown.getAttribute("title"), "cost of 28 requests unknown");
  await budgets.getByRole("link", { name: "All budgets" }).click();
  await page.getByRole("heading", { level: 1, name: "Budgets" }).waitFor();
});

test("figures that cannot be loaded show an error and can be tried again", async (t) => {
  const { page, machineId } = await overview(t, { failures: ["GET /* 503"] });
  await page.route(`**/${machineId}/api/usage?*`, (route) =>
    route.fulfill({ status: 503, contentType: "application/json", body: `{"error":{"message":"not now"}}` }),
  );
  await page.reload();
  const alert = page.getByRole("alert").filter({ hasText: "Not now." });
  await alert.waitFor();
  await page.unrouteAll({ behavior: "wait" });
  await answered(page, "GET", () => alert.getByRole("button", { name: "Try again" }).click());
  await alert.waitFor({ state: "detached" });
});

test("the page recovers by itself, within seconds", async (t) => {
  const me = await used(b);
  const page = await open(t, b, { at: `#/m/${me.machineId}/keys`, failures: ["GET /* 0"] });
  await settled(page);
  await page.clock.install();
  await page.route(/\/api\/(usage|requests|budgets|providers|quota)/, (route) => route.abort("connectionrefused"));
  await page.goto(`${b.url}/#/m/${me.machineId}/overview`);
  const alert = page.getByRole("alert").filter({ hasText: "The gateway cannot be reached." });
  await alert.waitFor();
  await page.clock.pauseAt(new Date(Date.now() + 60_000));
  await alert.waitFor();
  await page.unrouteAll({ behavior: "wait" });
  for (let i = 0; i < 10; i++) await page.clock.runFor(500);
  await alert.waitFor({ state: "detached" });
});
