// The pages of connections: adding, testing, ordering, enabling, selecting models.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { families } from "../../worker/dashboard/src/connections.ts";
import { marksOf } from "../../worker/dashboard/src/marks.ts";
import { last, placed, sharing } from "../../worker/dashboard/src/pages/providers/priorities.ts";
import { servers } from "../../worker/dashboard/src/pages/providers/servers.ts";
import { compatible } from "../e2e/gateway.mjs";
import { until } from "../e2e/wait.mjs";
import { answered, becomes, bench, canary, holds, looks, open, settled } from "./browser.mjs";

let b;
before(async () => {
  b = await bench();
});
after(() => b?.close());

const heading = (page, name) => page.getByRole("heading", { level: 1, name });

// machine creates a machine with connections and opens the page of its providers.
async function machine(t, connections = [], options = {}) {
  const { machineId, apiKey } = await b.operator.machine({ name: "Test" });
  const made = [];
  for (const c of connections) made.push(await b.operator.connect(machineId, c));
  const page = await open(t, b, { at: `#/m/${machineId}/providers`, ...options });
  await heading(page, "Providers").waitFor();
  await settled(page);
  const list = async () =>
    (await b.operator.call("GET", `/${machineId}/api/providers`)).data.sort((x, y) => x.priority - y.priority);
  const models = async (kind = "llm") =>
    (await b.operator.call("GET", `/${machineId}/api/models/list/${kind}`)).data.map((m) => m.id);
  return { machineId, apiKey, made, page, list, models };
}

const three = () =>
  ["one", "two", "three"].map((name, i) =>
    compatible(b.upstream, {
      prefix: name,
      suffix: `aaaa000${i}`,
      name: name[0].toUpperCase() + name.slice(1),
      priority: i + 1,
    }),
  );

test("a provider is added with an API key and tested", async (t) => {
  const { page, list } = await machine(t);
  await page.getByRole("link", { name: "Add account" }).first().click();
  await heading(page, "Add account").waitFor();
  await settled(page);
  await looks(page, "gallery");
  const groups = await page.getByRole("main").getByRole("heading", { level: 2 }).allInnerTexts();
  assert.deepEqual(groups, ["Popular", "Your own server", "More providers"]);
  const tiles = (group) => page.getByRole("region", { name: group }).getByRole("button");
  assert.match(await tiles("Popular").first().innerText(), /OpenAI/);
  assert.equal(await tiles("Your own server").count(), families.length + servers.length + 2, "Ollama and SearXNG too");
  const names = await page.locator(".tile strong").allInnerTexts();
  assert.equal(new Set(names).size, names.length, "each provider is there once");
  const search = page.getByRole("searchbox", { name: "Search providers" });
  await search.fill("no such provider");
  await page.getByText("No providers found").waitFor();
  await search.fill("groq");
  await page.getByText(/^1 of \d+ providers$/).waitFor();
  await page.getByRole("button", { name: "Add Groq" }).click();
  const dialog = page.getByRole("dialog", { name: "Add Groq" });
  await dialog.getByLabel("Name").fill("Work account");
  await dialog.getByLabel("API key").fill("gsk-test-key-0123456789");
  await looks(page, "gallery-add");
  await dialog.getByRole("button", { name: "Add and test" }).click();
  const made = page.getByRole("dialog", { name: "Work account is connected" });
  await made.getByText("Works", { exact: true }).waitFor();
  await made.getByText(/^Answered in \d+ ms/).waitFor();
  await made.getByText("6 models available.").waitFor();
  await looks(page, "gallery-made");
  await made.getByRole("link", { name: "All providers" }).click();
  await page.getByRole("heading", { name: "Work account" }).waitFor();
  const [c] = await list();
  assert.equal(c.provider, "groq");
  assert.equal(c.hasKey, true);
  assert.equal(
    b.upstream.seen.findLast((r) => r.host === "api.groq.com")?.headers.authorization,
    "Bearer gsk-test-key-0123456789",
  );
  assert.equal(await page.getByText("gsk-test-key").count(), 0);
});

test("the gallery is filtered by kind, and a refused key shows an error", async (t) => {
  const { page } = await machine(t, [], {});
  b.upstream.script = (got) =>
    got.host === "api.mistral.ai"
      ? { status: 401, body: `{"error":{"message":"${canary.replaceAll('"', '\\"')}"}}` }
      : null;
  t.after(() => {
    b.upstream.script = null;
  });
  await page.getByRole("link", { name: "Add account" }).first().click();
  await page.getByRole("radio", { name: "Transcription" }).check();
  assert.equal(await page.getByRole("button", { name: "Add Cerebras" }).count(), 0);
  await page.getByRole("button", { name: "Add Mistral AI" }).click();
  await page.getByRole("dialog").getByLabel("API key").fill("refused-key-0123456789");
  await page.getByRole("button", { name: "Add and test" }).click();
  await page
    .getByRole("dialog", { name: "Mistral AI was saved, but the test failed" })
    .getByText("Test failed", { exact: true })
    .waitFor();
  await page.getByText("The provider refused the API key (status 401).").waitFor();
  assert.equal(await page.getByText("is connected").count(), 0, "a failed test is never read as connected");
  await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
  await page.getByText("Account deleted.").waitFor();
});

test("a compatible provider is added with its base URL, prefix and format", async (t) => {
  const { page, list, models } = await machine(t);
  await page.getByRole("link", { name: "Add account" }).first().click();
  await page.getByRole("button", { name: "Add OpenAI-compatible" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Base URL").fill(`${b.upstream.url}/v1`);
  await dialog.getByLabel("Prefix").fill("home");
  await dialog.getByText("home/model").waitFor();
  await dialog.getByLabel("API key").fill("compatible-key-0123");
  await dialog.getByRole("button", { name: "Add and test" }).click();
  await page.getByText("Works", { exact: true }).waitFor();
  await page.getByRole("link", { name: "Choose models" }).click();
  await page.getByText("All 6 allowed.").waitFor();
  const [c] = await list();
  assert.match(c.provider, /^openai-compatible-[0-9a-f]{8,}$/);
  assert.ok((await models()).includes("home/test-chat"));

  // Its key is for this address alone: with another port it is asked for again.
  const key = page.getByLabel("API key");
  await page.getByText("Leave empty to keep the current key.").waitFor();
  assert.equal(await key.evaluate((input) => input.required), false);
  await page.getByLabel("Base URL").fill("http://127.0.0.1:1/v1");
  await page.getByText("The address has another host or port: enter the key for it.").waitFor();
  assert.equal(await key.evaluate((input) => input.required), true);
  await page.getByLabel("Base URL").fill(`${b.upstream.url}/v2`);
  await page.getByText("Leave empty to keep the current key.").waitFor();

  await page.getByRole("link", { name: "Back to providers" }).click();
  await page.getByRole("link", { name: "Add account" }).click();
  await page.getByRole("button", { name: "Add Anthropic-compatible" }).click();
  await dialog.getByLabel("Base URL").fill(`${b.upstream.url}/anthropic/v1`);
  await dialog.getByLabel("Prefix").fill("cl");
  await dialog.getByLabel("API key").fill("compatible-key-0456");
  await dialog.getByRole("button", { name: "Add and test" }).click();
  await page.getByText("Works", { exact: true }).waitFor();
  assert.match((await list()).find((x) => x.id !== c.id).provider, /^anthropic-compatible-[0-9a-f]{8,}$/);
});

test("an error of the gateway is shown in the form", async (t) => {
  const { page, machineId } = await machine(t, [], { failures: ["POST /* 400"] });
  await page.goto(`${b.url}/#/m/${machineId}/providers/add`);
  await page.getByRole("button", { name: "Add OpenAI-compatible" }).click();
  await page.getByLabel("Base URL").fill("ftp://files.example");
  await page.getByLabel("Prefix").fill("x");
  await page.getByRole("button", { name: "Add and test" }).click();
  await page.getByRole("dialog").getByRole("alert").getByText("Base URL is not a valid http or https URL.").waitFor();
});

test("a row without others has its buttons at its end", async (t) => {
  const { page } = await machine(t, three().slice(0, 1));
  const row = page.locator(".order > li");
  const right = async (of) => {
    const { x, width } = await of.boundingBox();
    return x + width;
  };
  const end = (await right(row)) - (await right(row.getByRole("button", { name: /^Test / })));
  assert.ok(end < 20, `${end} px are free`);
});

test("connections are reordered by dragging", async (t) => {
  const { page, list } = await machine(t, three());
  const items = page.getByRole("list", { name: "Accounts of OpenAI-compatible" }).getByRole("listitem");
  await items.nth(2).locator(".grip").dragTo(items.nth(0));
  await holds(page, () => document.querySelector(".order li h3").textContent.startsWith("Three"));
  await becomes(async () => (await list()).map((c) => c.name), ["Three", "One", "Two"]);
  await page.reload();
  await settled(page);
  assert.match(await items.nth(0).innerText(), /^Three/);
  await looks(page, "providers");
});

test("connections are reordered by touch, and Escape cancels a drag", async (t) => {
  const { page, list } = await machine(t, three(), { hasTouch: true, phone: true });
  const items = page.getByRole("list", { name: "Accounts of OpenAI-compatible" }).getByRole("listitem");
  const finger = await page.context().newCDPSession(page);
  const touch = (type, ...touchPoints) => finger.send("Input.dispatchTouchEvent", { type, touchPoints });
  const middle = async (of) => {
    const r = await of.boundingBox();
    return { x: r.x + r.width / 2, y: r.y + r.height / 2 };
  };
  // drag goes there in steps, as fingers do.
  const drag = async (from, to) => {
    const a = await middle(from),
      z = await middle(to);
    await touch("touchStart", a);
    for (const part of [0.2, 0.5, 0.8, 1]) await touch("touchMove", { x: a.x, y: a.y + (z.y - a.y) * part });
  };
  await drag(items.nth(2).locator(".grip"), items.nth(0));
  await page.locator(".order li.held").filter({ hasText: "Three" }).waitFor();
  await page.locator(".order li.over").filter({ hasText: "One" }).waitFor();
  await touch("touchEnd");
  await page.getByText("Moved Three to position 1 of 3.").waitFor();
  await becomes(async () => (await list()).map((c) => c.name), ["Three", "One", "Two"]);

  await drag(items.nth(0).locator(".grip"), items.nth(2));
  await page.locator(".order li.over.below").waitFor();
  await page.keyboard.press("Escape");
  await page.locator(".order li.held").waitFor({ state: "detached" });
  await touch("touchEnd");
  assert.match(await items.nth(0).innerText(), /^Three/);
  assert.equal(await items.nth(0).evaluate((li) => li.style.translate), "");
});

test("a move changes one priority, or those on the shorter side if there is no gap", () => {
  const order = (...list) => list.map(([id, priority]) => ({ id, priority }));
  const told = (list) => list.map((c) => [c.id, c.priority]);
  assert.deepEqual(told(placed(order(["c", 30], ["a", 10], ["b", 20]), "c")), [
    ["c", 0],
    ["a", 10],
    ["b", 20],
  ]);
  assert.deepEqual(told(placed(order(["a", 10], ["c", 30], ["b", 20]), "c")), [
    ["a", 10],
    ["c", 15],
    ["b", 20],
  ]);
  assert.deepEqual(told(placed(order(["b", 20], ["c", 30], ["a", 10]), "a")), [
    ["b", 20],
    ["c", 30],
    ["a", 40],
  ]);
  assert.deepEqual(told(placed(order(["a", 1], ["c", 3], ["b", 2]), "c")), [
    ["a", 1],
    ["c", 11],
    ["b", 21],
  ]);
  assert.deepEqual(told(placed(order(["a", 1], ["e", 5], ["b", 2], ["c", 3], ["d", 40]), "e")), [
    ["a", -18],
    ["e", -8],
    ["b", 2],
    ["c", 3],
    ["d", 40],
  ]);
  assert.deepEqual(told(placed(order(["a", 1], ["b", 2], ["e", 0], ["c", 3], ["d", 40]), "e")), [
    ["a", 1],
    ["b", 2],
    ["e", 12],
    ["c", 22],
    ["d", 40],
  ]);
  assert.deepEqual(
    told(placed(order(["a", 0], ["c", 0], ["b", 0]), "c")),
    [
      ["a", 10],
      ["c", 20],
      ["b", 30],
    ],
    "equal ones have no order of their own",
  );
  const before = order(["a", 10], ["c", 30], ["b", 20]),
    after = placed(before, "c");
  assert.deepEqual(
    before.map((c) => after.includes(c)),
    [true, false, true],
    "the others are not sent",
  );
  assert.deepEqual([last([]), last(order(["a", 10], ["b", -5])), last(order(["a", -5]))], [0, 10, 0]);
});

test("five hundred connections are searched, and a move is one call", async (t) => {
  const { page, list } = await machine(t, three().slice(0, 1));
  const [row] = await list();
  const many = Array.from({ length: 500 }, (_, i) => ({
    ...row,
    id: `many${String(i).padStart(16, "0")}`,
    name: `Account ${i} of a team whose name is long`,
    priority: i * 10,
  }));
  const sent = [];
  await page.route(/\/api\/providers(\/many.*)?$/, (route) => {
    if (route.request().method() === "GET") return route.fulfill({ json: { data: many } });
    sent.push([new URL(route.request().url()).pathname.split("/").at(-1), route.request().postDataJSON()]);
    return route.fulfill({ json: {} });
  });
  await page.reload();
  await page.getByText("500 accounts").first().waitFor();
  const items = page.getByRole("list", { name: "Accounts of OpenAI-compatible" }).getByRole("listitem");
  assert.equal(await items.count(), 500);
  await page.getByRole("searchbox", { name: "Search accounts" }).fill("account 49");
  await page.getByText("11 of 500 accounts").waitFor();
  const last = page.waitForResponse((r) => r.request().method() === "PUT");
  await page.getByRole("button", { name: `Move ${many[499].name} up` }).click();
  await page.getByText(/^Moved Account 499 .+ to position 10 of 11\.$/).waitFor();
  await last;
  assert.deepEqual(sent, [[many[499].id, { priority: 4975 }]], "between 497 and 498");
  await page.getByRole("searchbox", { name: "Search accounts" }).fill("no such account");
  await page.getByText("No accounts found").waitFor();
});

test("a move among equal priorities assigns all of them, six calls at a time", async (t) => {
  const { page, list } = await machine(t, three().slice(0, 1), { failures: ["PUT /* 503"] });
  const [row] = await list();
  let many = Array.from({ length: 60 }, (_, i) => ({
    ...row,
    id: `many${String(i).padStart(16, "0")}`,
    name: `Account ${i}`,
    priority: 0,
  }));
  const held = [];
  let fails = false;
  await page.route(/\/api\/providers(\/many.*)?$/, async (route) => {
    const r = route.request();
    if (r.method() === "GET") return route.fulfill({ json: { data: many } });
    held.push({
      id: new URL(r.url()).pathname.split("/").at(-1),
      priority: r.postDataJSON().priority,
      end: () =>
        fails ? route.fulfill({ status: 503, json: { error: { message: "not now" } } }) : route.fulfill({ json: {} }),
    });
  });
  await page.reload();
  await page.getByText("60 accounts").first().waitFor();
  await page.getByRole("button", { name: "Move Account 59 up" }).click();
  let ended = 0;
  const end = async (n) => {
    for (; ended < n; ended++) {
      await becomes(() => held.length > ended, true);
      await held[ended].end();
    }
  };
  await becomes(() => held.length, 6);
  await end(30);
  await page.getByText("Saving order: 25 of 60").waitFor();
  await becomes(() => held.length, 36);
  many = many
    .toSpliced(59, 1)
    .toSpliced(58, 0, many[59])
    .map((c, i) => ({ ...c, priority: 10 * (i + 1) }));
  await end(60);
  await page.getByText(/^Saving order/).waitFor({ state: "detached" });
  assert.deepEqual(
    held.sort((x, y) => x.priority - y.priority).map((c) => [c.id, c.priority]),
    many.map((c) => [c.id, c.priority]),
  );

  // A failure is told, and the order shown again is the one that is stored.
  fails = true;
  held.length = ended = 0;
  await page.getByRole("button", { name: "Move Account 1 up" }).click();
  await end(1);
  await page.getByRole("alert").getByText("Not now.").waitFor();
  assert.equal(held.length, 1);
  await becomes(
    async () =>
      await page
        .getByRole("list", { name: "Accounts of OpenAI-compatible" })
        .getByRole("link", { name: /^Account/ })
        .first()
        .innerText(),
    "Account 0",
  );
});

test("a new connection is tried after the others", async (t) => {
  const { page, list, machineId } = await machine(t, three());
  await page.goto(`${b.url}/#/m/${machineId}/providers/add`);
  await settled(page);
  await page.getByRole("button", { name: "Add Groq" }).click();
  await page.locator(":focus").and(page.getByLabel("API key")).waitFor();
  await page.getByRole("dialog").getByLabel("API key").fill("gsk-test-key-0123456789");
  await page.getByRole("button", { name: "Add and test" }).click();
  await page.getByText("Works", { exact: true }).waitFor();
  assert.deepEqual(
    (await list()).map((c) => c.provider === "groq"),
    [false, false, false, true],
  );
  await page.getByRole("button", { name: "Close" }).click();
  await page.getByRole("button", { name: /^Add Groq .*Connected/ }).waitFor();
  // An account that does not work is not called connected.
  await page.route(`**/${machineId}/api/providers`, async (route) => {
    const { data } = await (await route.fetch()).json();
    await route.fulfill({ json: { data: data.map((c) => ({ ...c, health: "key_refused" })) } });
  });
  await page.reload();
  await page.getByRole("button", { name: /^Add Groq .*Key refused/ }).waitFor();
});

test("the page says whether accounts share the requests or have an order", async (t) => {
  const two = ["One", "Two"].map((name) => ({
    provider: "openai",
    apiKey: `sk-test-${name}-0123456789`,
    name,
    priority: 0,
  }));
  const { page, list } = await machine(t, two);
  const accounts = page.getByRole("region", { name: "OpenAI" });
  await accounts.getByText("These accounts share the requests; a conversation stays with one of them.").waitFor();
  await accounts.getByRole("button", { name: "Move Two up" }).click();
  await accounts.getByText("Tried from top to bottom.").waitFor();
  await until("the order is stored", async () => (await list()).map((c) => c.name).join() === "Two,One");

  const told = (strategy, ...priorities) =>
    sharing(
      priorities.map((priority) => ({ provider: "openai", priority })),
      strategy,
    );
  assert.equal(told("affinity", 0), "", "one account has no order");
  assert.match(told("round-robin", 1, 2), /^The accounts take turns/);
  assert.match(told("affinity", 1, 2, 2), /^Tried from top to bottom; accounts of equal priority share/);
  assert.equal(told("priority", 0, 0), "Tried from top to bottom.");
  assert.doesNotMatch(told("fastest", 0, 0), /conversation/);
  const servers = ["a", "b"].map((id) => ({ provider: `openai-compatible-${id}`, priority: 0 }));
  assert.equal(sharing(servers, "affinity"), "", "servers with addresses of their own share nothing");
});

test("a page that is left open shows what has changed", async (t) => {
  const { page, made, machineId } = await machine(t, three().slice(0, 1));
  await page.clock.install();
  await page.reload();
  await page.getByRole("link", { name: "One", exact: true }).waitFor();
  await b.operator.call("PUT", `/${machineId}/api/providers/${made[0].id}`, { name: "Theirs" });
  await page.clock.runFor(30_000);
  await page.getByRole("link", { name: "Theirs", exact: true }).waitFor();
});

test("a connection that someone else changed is not overwritten", async (t) => {
  const { page, list, made, machineId } = await machine(t, three().slice(0, 1), { failures: ["PUT /* 412"] });
  await page.getByRole("link", { name: "One", exact: true }).click();
  await page.getByText("All 6 allowed.").waitFor();
  const path = `/${machineId}/api/providers/${made[0].id}`;
  await b.operator.call("PUT", path, { name: "Theirs" });
  await page.getByLabel("Prefix").fill("mine");
  await page.getByRole("button", { name: "Save", exact: true }).click();
  const alert = page.getByRole("alert").filter({ hasText: "Someone else changed this." });
  await alert.waitFor();
  assert.deepEqual(
    (await list()).map((c) => [c.name, c.providerSpecificData.prefix]),
    [["Theirs", "one"]],
  );
  assert.equal(await page.getByLabel("Prefix").inputValue(), "mine", "what was typed is still there");
  await alert.getByRole("button", { name: "Reload" }).click();
  await heading(page, "Theirs").waitFor();
  await alert.waitFor({ state: "detached" });
  assert.equal(await page.getByLabel("Prefix").inputValue(), "mine");
  assert.equal(await page.getByLabel("Name", { exact: true }).inputValue(), "Theirs");
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await page.getByText("Account saved.").waitFor();
  assert.deepEqual(
    (await list()).map((c) => [c.name, c.providerSpecificData.prefix]),
    [["Theirs", "mine"]],
  );

  await b.operator.call("PUT", path, { name: "Theirs again" });
  await page.getByRole("button", { name: "Clear all" }).click();
  await page.getByRole("checkbox", { name: /test-chat/ }).check();
  await page.getByRole("button", { name: "Save selection" }).click();
  await page.getByRole("region", { name: "Models", exact: true }).getByRole("button", { name: "Reload" }).click();
  await heading(page, "Theirs again").waitFor();
  assert.equal((await list())[0].providerSpecificData.enabledModels, undefined);
});

test("the OAuth proxy of a connection is set, preserved and removed, and its password is never shown", async (t) => {
  const { page, list, machineId } = await machine(
    t,
    [
      {
        provider: "vertex",
        name: "Tokens",
        refreshToken: "refresh-token-0",
        providerSpecificData: { project: "p", location: "us-central1" },
      },
    ],
    { failures: ["PUT /* 400", "POST /* 400"] },
  );
  await page.getByRole("link", { name: "Tokens", exact: true }).click();
  const field = page.getByLabel("HTTP proxy for OAuth requests (optional)");
  const save = async (value) => {
    await field.fill(value);
    await page.getByRole("button", { name: "Save", exact: true }).click();
  };
  const state = async () => {
    const [c] = await list();
    return [c.providerSpecificData.proxyUrl, c.secrets.includes("proxyAuth")];
  };
  await save("socks5://proxy.example.com:1080");
  await page.getByRole("alert").getByText("Proxy URL is refused").waitFor();
  await answered(page, "PUT", () => save("http://me:secret-of-the-proxy@proxy.example.com:3128"));
  await holds(page, () =>
    [...document.querySelectorAll("input")].some((i) => i.value === "http://proxy.example.com:3128"),
  );
  assert.deepEqual(await state(), ["http://proxy.example.com:3128", true]);
  await page.reload();
  await settled(page);
  assert.equal(
    await page.evaluate(() =>
      [document.body.innerHTML, ...[...document.querySelectorAll("input")].map((i) => i.value)].some((v) =>
        v.includes("secret-of-the-proxy"),
      ),
    ),
    false,
  );
  await page.getByLabel("Name").fill("Renamed");
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await heading(page, "Renamed").waitFor();
  assert.deepEqual(
    await state(),
    ["http://proxy.example.com:3128", true],
    "an unchanged address keeps its user and password",
  );
  await answered(page, "PUT", () => save(""));
  assert.deepEqual(await state(), [undefined, false]);

  // A new connection that uses OAuth tokens asks for it; one with an API key does not.
  await page.goto(`${b.url}/#/m/${machineId}/providers/add`);
  await page.getByRole("button", { name: "Add Groq" }).click();
  await page.getByRole("dialog").getByLabel("API key").waitFor();
  assert.equal(await field.count(), 0);
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "Add Google Vertex AI" }).click();
  await page.getByRole("dialog").getByLabel("API key (instead of a key file)").fill("vertex-key-0123456789");
  await page.getByRole("dialog").getByText("Advanced", { exact: true }).click();
  await field.fill("http://proxy.example.com:3128");
  await page.getByRole("button", { name: "Add and test" }).click();
  await page.getByRole("dialog", { name: /^Google Vertex AI (is connected|was saved)/ }).waitFor();
  assert.deepEqual(
    (await list()).map((c) => c.providerSpecificData.proxyUrl),
    [undefined, "http://proxy.example.com:3128"],
  );
});

test("connections are reordered, enabled and tested with the keyboard only", async (t) => {
  const { page, list } = await machine(t, three());
  await page.getByRole("button", { name: "Move Three up" }).focus();
  await page.keyboard.press("Enter");
  await page.getByText("Moved Three to position 2 of 3.").waitFor();
  await page
    .locator(":focus")
    .and(page.getByRole("button", { name: "Move Three up" }))
    .waitFor();
  await page.keyboard.press("Enter");
  await page.getByText("Moved Three to position 1 of 3.").waitFor();
  await page
    .locator(":focus")
    .and(page.getByRole("button", { name: "Move Three down" }))
    .waitFor();
  await becomes(async () => (await list()).map((c) => c.name), ["Three", "One", "Two"]);

  await page.getByRole("switch", { name: "Enable Three" }).focus();
  await page.keyboard.press("Space");
  await page.getByText("Paused").waitFor();
  assert.equal((await list())[0].isActive, false);
  await page.locator("[role=switch][aria-disabled]").waitFor({ state: "detached" }); // until then it ignores input
  await page.keyboard.press("Space");
  await page.getByText("Paused").waitFor({ state: "detached" });
  assert.equal((await list())[0].isActive, true);

  await page.keyboard.press("Tab");
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement.getAttribute("aria-label")), "Test Three");
  await page.keyboard.press("Enter");
  await page.getByText(/^Answered in \d+ ms \(/).waitFor();
});

test("models of a connection are searched and selected", async (t) => {
  const { page, list, models } = await machine(t, three().slice(0, 1));
  await page.getByRole("link", { name: "One", exact: true }).click();
  await heading(page, "One").waitFor();
  await page.getByText("All 6 allowed.").waitFor();
  await looks(page, "connection");
  await page.getByRole("button", { name: "Clear all" }).click();
  await page.getByText("0 of 6 selected.").waitFor();
  assert.equal(await page.getByRole("button", { name: "Save selection" }).isDisabled(), true);
  await page.getByRole("searchbox", { name: "Search models" }).fill("chat");
  assert.equal(await page.getByRole("checkbox").count(), 1);
  await page.getByRole("checkbox", { name: /test-chat/ }).check();
  await page.getByRole("searchbox", { name: "Search models" }).fill("");
  await page.getByRole("button", { name: "Save selection" }).click();
  await page.getByText("Saved 1 model.").waitFor();
  assert.deepEqual((await list())[0].providerSpecificData.enabledModels, ["test-chat"]);
  assert.deepEqual(await models(), ["one/test-chat"]);
  await page.getByRole("button", { name: "Allow all, including new models" }).click();
  await page.getByText("All models are allowed.").waitFor();
  assert.equal((await list())[0].providerSpecificData.enabledModels, undefined);
});

test("a connection is changed, and deleted, and its deletion is undone", async (t) => {
  const { page, list } = await machine(t, three().slice(0, 1));
  await page.getByRole("link", { name: "Models and details of One" }).click();
  await page.getByLabel("Name").fill("Renamed");
  await page.getByLabel("Prefix").fill("uno");
  await page.getByLabel("API key").fill("another-key-0123456789");
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await page.getByText("Renamed is connected.").waitFor();
  await heading(page, "Renamed").waitFor();
  const [c] = await list();
  assert.deepEqual([c.name, c.providerSpecificData.prefix, c.last4], ["Renamed", "uno", "6789"]);
  await page.getByRole("button", { name: "Delete account…" }).click();
  await page.getByText("No combo, alias, key or budget depends on it.").waitFor();
  await looks(page, "connection-delete");
  const remove = async () => {
    await page.getByRole("button", { name: "Delete account", exact: true }).click();
    await heading(page, "Providers").waitFor();
    await page.getByText("No accounts yet").waitFor();
    assert.deepEqual(await list(), []);
  };
  await remove();
  await page.getByRole("button", { name: "Undo" }).click();
  await page.getByText("Restored.").waitFor();
  await heading(page, "Renamed").waitFor();
  const [back] = await list();
  assert.deepEqual([back.id, back.name, back.last4], [c.id, "Renamed", "6789"]);
  await page.getByRole("button", { name: "Delete account…" }).click();
  await remove();
});

test("variables of a provider are set and changed", async (t) => {
  const { page, list, machineId } = await machine(t);
  await page.goto(`${b.url}/#/m/${machineId}/providers/add`);
  await page.getByRole("button", { name: "Add Cloudflare Workers AI" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("API key").fill("cf-test-key-0123456789");
  await dialog.getByRole("button", { name: "Add and test" }).click();
  assert.equal(await dialog.getByLabel("Account ID").evaluate((e) => e.validity.valueMissing), true);
  await dialog.getByLabel("Account ID").fill("acc0123");
  await dialog.getByRole("button", { name: "Add and test" }).click();
  await page.getByRole("dialog", { name: /^Cloudflare Workers AI (is connected|was saved)/ }).waitFor();
  await page.getByRole("link", { name: /^(Choose models|Edit)$/ }).click();
  await heading(page, /Cloudflare/).waitFor();
  await page.getByLabel("Account ID").fill("acc4567");
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await page.getByText("Account saved.").waitFor();
  const [c] = await list();
  assert.deepEqual([c.providerSpecificData.account_id, c.hasKey], ["acc4567", true]);
});

test("AWS access keys and service account keys are added", async (t) => {
  const { page, list, machineId } = await machine(t, [], { failures: ["POST /* 400"] });
  const dialog = page.getByRole("dialog");
  await page.goto(`${b.url}/#/m/${machineId}/providers/add`);
  await page.getByRole("button", { name: "Add Amazon Bedrock" }).click();
  await dialog.getByLabel("Access key ID").fill("AKIAIOSFODNN7EXAMPLE");
  await dialog.getByLabel("Region").fill("eu-central-1");
  await dialog.getByRole("button", { name: "Add and test" }).click();
  await dialog.getByRole("alert").getByText("is required with accessKeyId").waitFor();
  await dialog.getByLabel("Secret access key").fill("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY");
  await dialog.getByRole("button", { name: "Add and test" }).click();
  await page.getByRole("dialog", { name: /^Amazon Bedrock (is connected|was saved)/ }).waitFor();
  assert.deepEqual(
    (await list()).map((c) => [c.authType, c.secrets]),
    [["aws", ["accessKeyId", "secretAccessKey"]]],
  );
  await page.getByRole("button", { name: "Close" }).click();
  await page.getByRole("button", { name: "Add Google Vertex AI" }).click();
  await dialog.getByLabel("Service account key (JSON)").fill("{}");
  await dialog.getByText("Advanced", { exact: true }).click();
  for (const name of ["Project", "Location"]) await dialog.getByLabel(name).fill("one");
  await dialog.getByRole("button", { name: "Add and test" }).click();
  await dialog.getByRole("alert").getByText("must be the JSON key file of a service account").waitFor();
});

test("a cooldown counts down, and the last error is shown as text", async (t) => {
  const { page, made, apiKey, machineId, list } = await machine(t, three().slice(0, 1));
  b.upstream.script = (got) =>
    got.path.endsWith("/chat/completions")
      ? {
          status: 429,
          headers: { "content-type": "application/json", "retry-after": "90" },
          body: JSON.stringify({ error: { message: `limit of ${canary} reached`, type: "rate_limit_error" } }),
        }
      : null;
  t.after(() => {
    b.upstream.script = null;
  });
  const res = await b.gateway.fetch("/v1/chat/completions", {
    method: "POST",
    headers: { authorization: `Bearer ${apiKey}`, "content-type": "application/json" },
    body: JSON.stringify({ model: "one/test-chat", messages: [{ role: "user", content: "hi" }] }),
  });
  assert.equal(res.status, 429);
  await becomes(async () => (await list())[0].status, "cooling");
  await page.goto(`${b.url}/#/m/${machineId}/providers`);
  await page.reload();
  await page.getByText(/^Limited until \d\d:\d\d$/).waitFor();
  const text = () => page.getByText(/^retry in \d+ (s|min)$/).innerText();
  const first = await text();
  await holds(page, (old) => !document.body.innerText.includes(old), first);
  assert.notEqual(await text(), first);
  await looks(page, "providers-cooling");
  await page.goto(`${b.url}/#/m/${machineId}/providers/${made[0].id}`);
  await page.getByText("test-chat").first().waitFor();
  await looks(page, "connection-cooling");
});

test("an account that cannot work is never ready", async (t) => {
  const { page, apiKey, list } = await machine(t, [
    compatible(b.upstream, { prefix: "dead", name: "Dead" }),
    { provider: "anthropic", name: "Empty" },
  ]);
  const badge = (name) => page.locator(".conn").filter({ hasText: name }).locator(".badge").innerText();
  assert.equal(await badge("Dead"), "Untested");
  assert.equal(await badge("Empty"), "Credentials missing");
  let status = 401;
  b.upstream.script = (got) =>
    got.path.endsWith("/chat/completions") && status ? { status, body: `{"error":{"message":"no","code":"x"}}` } : null;
  t.after(() => {
    b.upstream.script = null;
  });
  const call = () =>
    b.gateway
      .fetch("/v1/chat/completions", {
        method: "POST",
        headers: { authorization: `Bearer ${apiKey}`, "content-type": "application/json" },
        body: JSON.stringify({ model: "dead/test-chat", messages: [{ role: "user", content: "hi" }] }),
      })
      .then((r) => r.text());
  await call();
  await becomes(async () => (await list()).find((c) => c.name === "Dead").health, "key_refused");
  await page.reload();
  await settled(page);
  assert.equal(await badge("Dead"), "Key refused");
  // The page's own clock runs past the end of the cooldown: still refused.
  const { cooldownUntil } = (await list()).find((c) => c.name === "Dead");
  await page.clock.install({ time: cooldownUntil + 60_000 });
  await page.reload();
  await settled(page);
  assert.equal(await badge("Dead"), "Key refused");
  for (const [code, text] of [
    [402, "Out of credit"],
    [500, "Last request failed"],
    [0, "Ready"],
  ]) {
    status = code;
    await page.getByRole("button", { name: "Test Dead" }).click();
    await page.locator(".conn").filter({ hasText: "Dead" }).getByText(text, { exact: true }).waitFor();
  }
});

test("a compatible server that refuses the key fails the test", async (t) => {
  const { page, machineId } = await machine(t);
  b.upstream.script = (got) =>
    got.headers.authorization?.includes("wrong") ? { status: 401, body: `{"error":{"message":"no"}}` } : null;
  t.after(() => {
    b.upstream.script = null;
  });
  await page.goto(`${b.url}/#/m/${machineId}/providers/add`);
  await page.getByRole("button", { name: "Add OpenAI-compatible" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Base URL").fill("localhost:9999");
  await dialog.getByText("Saved as http://localhost:9999. Include /v1", { exact: false }).waitFor();
  await dialog.getByLabel("Base URL").fill("localhost:11434/v1");
  await dialog.getByText("http://localhost:11434/v1", { exact: true }).waitFor();
  await dialog.getByLabel("Base URL").fill(`${b.upstream.url}/v1`);
  await dialog.getByLabel("Prefix").fill("own");
  await dialog.getByLabel("API key").fill("wrong");
  await dialog.getByRole("button", { name: "Add and test" }).click();
  await page
    .getByRole("dialog", { name: "OpenAI-compatible was saved, but the test failed" })
    .getByText("The provider refused the API key (status 401).")
    .waitFor();
  await looks(page, "gallery-refused");
  await page.getByRole("link", { name: "All providers" }).click();
  await page.getByText("Key refused", { exact: true }).waitFor();
  // Another wrong key is tested too.
  await page.getByRole("link", { name: "Replace key" }).click();
  const key = page.getByLabel("API key");
  await key.fill("wrong again");
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await page
    .getByRole("alert")
    .getByText("own was saved, but the test failed. The provider refused the API key (status 401).")
    .waitFor();
  assert.equal(await page.getByText("Account saved.").count(), 0);
  await key.fill("right");
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await page.getByText("own is connected.").waitFor();
  await page.getByText("Ready", { exact: true }).waitFor();
});

test("model ids, names and error texts of a provider are never run", async (t) => {
  const { page, machineId, made } = await machine(t, [
    compatible(b.upstream, { prefix: "up", name: `name ${canary}` }),
  ]);
  b.upstream.script = (got) =>
    got.path.endsWith("/models")
      ? {
          body: JSON.stringify({
            object: "list",
            data: [{ id: `m-${canary}` }, { id: "<img/src=x/onerror=canary()>", name: canary }, { id: "plain" }],
          }),
        }
      : { status: 500, body: JSON.stringify({ error: { message: canary } }) };
  t.after(() => {
    b.upstream.script = null;
  });
  await page.getByRole("button", { name: `Test name ${canary}` }).click();
  await page
    .getByText(/failed/)
    .first()
    .waitFor();
  await page.goto(`${b.url}/#/m/${machineId}/providers/${made[0].id}`);
  await page.getByText("plain", { exact: true }).waitFor();
  await page.goto(`${b.url}/#/m/${machineId}/models`);
  await page.getByText("up/plain").waitFor();
  assert.equal(await page.locator("main img, main svg[onload], main script").count(), 0);
});

test("a failed load shows an error and can be repeated", async (t) => {
  const { page, machineId } = await machine(t, three(), { failures: ["GET /* 503"] });
  let broken = true;
  await page.route("**/api/providers", (route) =>
    broken
      ? route.fulfill({
          status: 503,
          contentType: "application/json",
          body: `{"error":{"message":"the store is not reachable","type":"server_error"}}`,
        })
      : route.continue(),
  );
  await page.goto(`${b.url}/#/m/${machineId}/models`);
  await page.getByRole("heading", { name: "Models", level: 1 }).waitFor();
  await page.goto(`${b.url}/#/m/${machineId}/providers`);
  await page.getByText("The store is not reachable.").waitFor();
  await looks(page, "providers-error");
  broken = false;
  await page.getByRole("button", { name: "Try again" }).click();
  await page.getByRole("heading", { name: "One" }).waitFor();
});

test("a connection shows what is left of its limits", async (t) => {
  const { page, machineId, apiKey, made } = await machine(t, three().slice(0, 2));
  await page.getByRole("link", { name: "One", exact: true }).waitFor();
  assert.equal(await page.getByRole("meter").count(), 0, "nothing is known before a call");
  const ends = Math.floor(Date.now() / 1000) + 3 * 3600 + 60;
  b.upstream.script = () => ({
    status: 200,
    headers: {
      "content-type": "application/json",
      "anthropic-ratelimit-unified-5h-utilization": "0.975",
      "anthropic-ratelimit-unified-5h-reset": String(ends),
      "x-ratelimit-limit-requests-day": "1000",
      "x-ratelimit-remaining-requests-day": "250",
      "x-ratelimit-reset-requests-day": "9h",
    },
    body: '{"object":"list","data":[{"object":"embedding","index":0,"embedding":[0]}],"model":"m","usage":{"prompt_tokens":1,"total_tokens":1}}',
  });
  t.after(() => {
    b.upstream.script = null;
  });
  const res = await b.gateway.fetch("/v1/embeddings", {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${apiKey}` },
    body: JSON.stringify({ model: "one/test-embed", input: "a" }),
  });
  assert.equal(res.status, 200, await res.text());
  const known = async () =>
    (await b.operator.call("GET", `/${machineId}/api/quota`)).data.find((q) => q.connectionId === made[0].id).windows;
  await until("the gauge is stored", async () => (await known()).length === 2);
  await page.reload();
  const gauge = page.getByRole("meter", { name: "Usage, 5 h: left" });
  await gauge.waitFor();
  assert.equal(await gauge.getAttribute("value"), "0.025");
  await page.getByText("2.5% left, resets in 3 h").waitFor();
  assert.equal(await page.getByRole("meter").count(), 1, "the list shows the window of which the least is left");
  await looks(page, "providers-gauge");
  await page.getByRole("link", { name: "One", exact: true }).click();
  const limits = page.getByRole("list", { name: "Limits" });
  await limits.getByText("Requests, 24 h").waitFor();
  await limits.getByText("25% left (250 of 1,000), resets in 9 h").waitFor();
  assert.equal(await limits.getByRole("listitem").count(), 2);
  await looks(page, "connection-gauge");
});

test("accounts are grouped by provider and show their state, last hour, spend and last error", async (t) => {
  const { page, made, apiKey, machineId, list } = await machine(t, [
    { provider: "openai", name: "Work", apiKey: "openai-test-key-0123456789" },
    { provider: "openai", name: "Spare", apiKey: "openai-test-key-9876543210", priority: 5, isActive: false },
    compatible(b.upstream, { prefix: "own", name: "Server" }),
  ]);
  const group = (name) => page.getByRole("region", { name, exact: true });
  await group("OpenAI").getByRole("heading", { name: "Spare" }).waitFor();
  assert.deepEqual(await page.locator(".accounts > h2").allInnerTexts(), [
    "OA\nOpenAI\n2 accounts",
    "{}\nOpenAI-compatible",
  ]);
  const row = (name) => page.locator(".conn").filter({ has: page.getByRole("heading", { name }) });
  const badge = (name) => row(name).locator(".badge").innerText();
  assert.deepEqual(
    [await badge("Work"), await badge("Spare"), await badge("Server")],
    ["Untested", "Paused", "Untested"],
  );
  await row("Work").getByText("Last hour: no attempts").waitFor();
  let answer = {
    body: JSON.stringify({
      object: "list",
      model: "m",
      data: [{ object: "embedding", index: 0, embedding: [0.1] }],
      usage: { prompt_tokens: 1_000_000, total_tokens: 1_000_000 },
    }),
  };
  b.upstream.script = (got) => (got.path.endsWith("/embeddings") ? answer : null);
  t.after(() => {
    b.upstream.script = null;
  });
  const call = async () => {
    const res = await b.gateway.fetch("/v1/embeddings", {
      method: "POST",
      headers: { authorization: `Bearer ${apiKey}`, "content-type": "application/json" },
      body: JSON.stringify({ model: "openai/text-embedding-3-small", input: "hi" }),
    });
    await res.text();
  };
  const health = async () => (await list()).find((c) => c.id === made[0].id).health;
  await call();
  await becomes(health, "ready");
  await page.reload();
  await settled(page);
  assert.equal(await badge("Work"), "Ready");
  await row("Work")
    .getByText(/^Last success .+ \d\d:\d\d$/)
    .waitFor();
  await row("Work").getByText("Last hour: 1 attempt").waitFor();
  await row("Work").getByText("$0.02 today, $0.02 this month").waitFor();
  answer = {
    status: 403,
    headers: { "content-type": "application/json", "cf-ray": "8f2c1d0e4b5a6978-HKG" },
    body: JSON.stringify({
      error: { message: `not here ${canary}`, code: "unsupported_country_region_territory" },
    }),
  };
  await call();
  await becomes(health, "blocked");
  await page.reload();
  await settled(page);
  assert.equal(await badge("Work"), "Blocked in HKG");
  await row("Work")
    .getByText(/^Since .+ \d\d:\d\d$/)
    .waitFor();
  await row("Work").getByText("Last hour: 2 attempts, 1 failed").waitFor();
  await row("Work")
    .getByText(/^Last error, .+:/)
    .waitFor();
  await looks(page, "providers-states");
  await page.goto(`${b.url}/#/m/${machineId}/providers/${made[0].id}`);
  await page
    .getByText("The provider doesn’t serve the region that the gateway calls from (data center HKG).")
    .waitFor();
});

test("the gallery says when the gateway calls no local servers", async (t) => {
  const { page } = await machine(t);
  const hint = page.getByText("This gateway does not call servers on this computer or its network.");
  await page.getByRole("link", { name: "Add account" }).first().click();
  await page.getByRole("button", { name: "Add vLLM" }).waitFor();
  assert.equal(await hint.count(), 0, "the gateway of the tests does");
  await page.route("**/api/catalog/providers", async (route) => {
    const list = await (await route.fetch()).json();
    return route.fulfill({ json: { ...list, data: list.data.map((p) => ({ ...p, localOff: p.local })) } });
  });
  await page.reload();
  await hint.waitFor();
});

test("a local server is found by its name, and added without a key", async (t) => {
  const { page, list, models, machineId } = await machine(t);
  await page.goto(`${b.url}/#/m/${machineId}/providers/add`);
  const search = page.getByRole("searchbox", { name: "Search providers" });
  for (const [text, name, url] of [
    ["vllm", "vLLM", "http://localhost:8000/v1"],
    ["lm studio", "LM Studio", "http://localhost:1234/v1"],
    ["llamacpp", "llama.cpp", "http://localhost:8080/v1"],
    ["litellm", "LiteLLM", "http://localhost:4000/v1"],
    ["ollama", "Ollama (local)", ""],
  ]) {
    await search.fill(text);
    await page.getByRole("button", { name: `Add ${name}` }).click();
    const dialog = page.getByRole("dialog", { name: `Add ${name}` });
    assert.equal(await dialog.getByLabel("Base URL").inputValue(), url);
    await page.keyboard.press("Escape");
    await dialog.waitFor({ state: "detached" });
  }
  await search.fill("llama.cpp");
  await page.getByRole("button", { name: "Add llama.cpp" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Base URL").fill(`${b.upstream.url}/v1`);
  await dialog.getByLabel("API key (optional)").waitFor();
  await dialog.getByLabel("Name").fill("Workshop");
  await dialog.getByRole("button", { name: "Add and test" }).click();
  const made = page.getByRole("dialog", { name: "Workshop is connected" });
  await made.getByText("Works", { exact: true }).waitFor();
  const [c] = await list();
  assert.match(c.provider, /^openai-compatible-[0-9a-f]+$/);
  assert.deepEqual([c.name, c.providerSpecificData.prefix, c.hasKey], ["Workshop", "llama", false]);
  assert.ok((await models()).includes("llama/test-chat"));
  await made.getByRole("link", { name: "Open the playground" }).click();
  await heading(page, "Playground").waitFor();
});

// The operator's own providers have names of theirs, which may begin as those of the table do.
test("every provider, family and server has a mark of its own, and so has each of the operator's", async () => {
  const { machineId } = await b.operator.machine({ name: "Test" });
  const { data } = await b.operator.call("GET", `/${machineId}/api/catalog/providers`);
  const known = [...families.map(([id, name, initials]) => ({ id, name, initials })), ...servers, ...data];
  const own = ["Open", "OpenAI", "openai", "OA", "Mistral Frankfurt", "Mi", "X", "1", "Öl", "社内", "社内", "-"];
  const rows = [...known, ...own.map((name, i) => ({ id: `own-${i}`, name, initials: name.slice(0, 2) }))];
  const marks = marksOf(rows);
  for (const p of known) assert.equal(marks.get(p.id), p.initials, `${p.name} keeps its own`);
  const letters = rows.map((r) => marks.get(r.id));
  const twice = letters.filter((m, i) => letters.findIndex((o) => o.toLowerCase() === m.toLowerCase()) !== i);
  assert.deepEqual(twice, [], letters.join(" "));
  const alike = ["Cursor", "Crush", "Cline", "curl"].map((name) => ({ id: name, name }));
  assert.deepEqual([...marksOf(alike).values()], ["Cu", "Cr", "Cl", "c"]);
});

test("the weight of a connection is set when it is added and changed later", async (t) => {
  const { page, list, machineId } = await machine(t);
  await page.goto(`${b.url}/#/m/${machineId}/providers/add`);
  await page.getByRole("button", { name: "Add Groq" }).click();
  const dialog = page.getByRole("dialog", { name: "Add Groq" });
  assert.equal(
    await dialog.getByRole("link", { name: "Get an API key from Groq" }).getAttribute("href"),
    "https://console.groq.com/keys",
  );
  await dialog.getByLabel("API key").fill("gsk-test-key-0123456789");
  assert.equal(await dialog.getByLabel("Prefix").isVisible(), false, "it is folded");
  await dialog.getByText("Advanced", { exact: true }).click();
  await dialog.getByLabel("Weight").fill("9");
  // An invalid input unfolds them.
  await dialog.getByLabel("Prefix").fill("a b");
  await dialog.getByText("Advanced", { exact: true }).click();
  await dialog.getByRole("button", { name: "Add and test" }).click();
  await dialog.getByLabel("Prefix").fill("fast");
  await dialog.getByRole("button", { name: "Add and test" }).click();
  await page.getByRole("dialog", { name: "Groq is connected" }).waitFor();
  assert.deepEqual(
    (await list()).map((c) => [c.weight, c.providerSpecificData.prefix]),
    [[9, "fast"]],
  );
  await page.getByRole("link", { name: "Choose models" }).click();
  await page.getByLabel("Weight").fill("3");
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await page.getByText("Account saved.").waitFor();
  assert.equal((await list())[0].weight, 3);
});

test("the hours and days of an account are bars, with a text for each", async (t) => {
  const { page, made, apiKey, machineId } = await machine(t, [
    compatible(b.upstream, { prefix: "own", name: "Server" }),
    compatible(b.upstream, { prefix: "idle", name: "Idle", suffix: "beef0002" }),
  ]);
  const call = (model) =>
    b.gateway
      .fetch("/v1/chat/completions", {
        method: "POST",
        headers: { authorization: `Bearer ${apiKey}`, "content-type": "application/json" },
        body: JSON.stringify({ model, messages: [{ role: "user", content: "hi" }] }),
      })
      .then((res) => res.text());
  for (const model of ["own/one", "own/one", "own/one!status=500"]) await call(model);
  const timeline = (query) => b.operator.call("GET", `/${machineId}/api/health/timeline?${query}`);
  await becomes(async () => (await timeline(`connection=${made[0].id}`)).data[0]?.total.failed >= 1, true);
  await page.reload();
  await settled(page);
  const { attempts, failed } = (await timeline(`connection=${made[0].id}`)).data[0].total;
  const share = `${attempts - failed} of ${attempts} attempts succeeded`;
  const strip = page.getByRole("img", { name: new RegExp(`^Server, last 24 hours: ${share} \\(.+%\\), 1 hour d`) });
  await strip.waitFor();
  assert.equal(await page.locator(".strip").count(), 1, "an account without calls has no bars");
  await page.getByText("Last 24 hours", { exact: true }).waitFor();
  assert.equal(await strip.locator("g").count(), 24);
  assert.equal(await strip.locator("rect.none").count(), 23, "an hour without calls has no state");
  const now = strip.locator("g").last().locator("title");
  assert.match(
    await now.textContent(),
    new RegExp(`^\\w+ \\d+, \\d\\d:00: D(egraded|own)\\. ${share} .*; latency [≤≈] \\d+ ms, p95 [≤≈] \\d+ ms`),
  );
  await looks(page, "providers-health");

  await page.goto(`${b.url}/#/m/${machineId}/providers/${made[0].id}`);
  const section = page.getByRole("region", { name: "Health", exact: true });
  await section.getByText("As a table").click();
  const row = section.getByRole("table").getByRole("row").nth(1);
  assert.match(
    await row.innerText(),
    new RegExp(`D(egraded|own)\\s+${attempts}\\s+${failed}\\s+${failed} server errors?\\s`),
  );
  await looks(page, "provider-health");
  await section.getByRole("radio", { name: "30 days" }).check();
  await section.getByRole("img", { name: new RegExp(`^Server, last 30 days: ${share}`) }).waitFor();
  assert.equal(await section.locator(".strip g").count(), 30);
  await page.goto(`${b.url}/#/m/${machineId}/providers/${made[1].id}`);
  await section.getByText("No requests.").waitFor();
  assert.equal(await section.getByRole("img").count(), 0, "no bars of nothing");
  // A refusal of the provider is a bad request, and without an answer there is no latency.
  await call("idle/one!status=400");
  await becomes(async () => (await timeline(`connection=${made[1].id}`)).data[0]?.total.failed, 1);
  await page.reload();
  await section.getByText(/^0 of 1 attempt succeeded; 1 bad request$/).waitFor();

  await page.goto(`${b.url}/#/m/${machineId}/models?q=test`);
  await page.getByRole("button", { name: "own/test-chat", exact: true }).first().click();
  await page.getByRole("dialog").getByText("No requests.").waitFor();
});

test("what a provider's status page says is shown beside its accounts, as text, and turned off", async (t) => {
  const said = { indicator: "major", description: `Partial outage ${canary}` };
  b.upstream.script = (got) =>
    got.host === "status.assemblyai.com" && got.path === "/api/v2/summary.json"
      ? { body: JSON.stringify({ status: said, incidents: [{ name: "Elevated errors", status: "identified" }] }) }
      : null;
  t.after(() => {
    b.upstream.script = null;
  });
  const { page, machineId, made } = await machine(t, [
    { provider: "assemblyai", name: "Work", apiKey: "assembly-test-key-0123456789" },
    { provider: "mistral", name: "Le", apiKey: "mistral-test-key-0123456789" },
    { provider: "groq", name: "Fast", apiKey: "gsk_test-key-0123456789" },
  ]);
  const group = page.getByRole("region", { name: "AssemblyAI", exact: true });
  await group.getByText("Major problems", { exact: true }).waitFor();
  await group.getByText("<img src=x").waitFor();
  assert.match(
    await group.locator("> p.muted").innerText(),
    /^AssemblyAI status[^]+ — Elevated errors[^]+checked \d\d:\d\d/,
  );
  const link = page.getByRole("link", { name: "AssemblyAI status" });
  assert.equal(await link.getAttribute("href"), "https://status.assemblyai.com");
  await page.getByRole("region", { name: "Groq" }).getByText("The page could not be read.").waitFor();
  const pages = page.getByRole("link", { name: / status$/ });
  assert.equal(await pages.count(), 2, "Mistral has no page, and that of Groq fails");
  await looks(page, "providers-reported");
  await page.goto(`${b.url}/#/m/${machineId}/providers/${made[0].id}`);
  await page.getByRole("region", { name: "Status" }).getByText("Major problems", { exact: true }).waitFor();

  await page.goto(`${b.url}/#/m/${machineId}/settings/health`);
  await page.getByLabel("Status pages of providers").selectOption({ label: "Don’t show" });
  await page.getByText("Settings saved.").waitFor();
  await page.goto(`${b.url}/#/m/${machineId}/providers`);
  await group.getByRole("heading", { name: "Work" }).waitFor();
  await settled(page);
  assert.equal(await pages.count(), 0);
});
