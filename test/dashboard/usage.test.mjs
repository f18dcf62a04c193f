// Usage and the last requests, as the calls of clients leave them.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { after, before, test } from "node:test";
import { csv } from "../../worker/dashboard/src/pages/usage/csv.ts";
import { compatible } from "../e2e/gateway.mjs";
import { becomes, bench, canary, looks, open, settled } from "./browser.mjs";

let b;
before(async () => {
  b = await bench();
});
after(() => b?.close());

// used makes a machine whose calls have been counted: chat, embeddings, one
// that needed two attempts, one that was refused.
async function used() {
  const { machineId, apiKey } = await b.operator.machine({ name: "Test" });
  const first = await b.operator.connect(machineId, compatible(b.upstream, { prefix: "up", name: "First" }));
  const second = await b.operator.connect(
    machineId,
    compatible(b.upstream, { prefix: "two", suffix: "beef0001", name: "Second" }),
  );
  await b.operator.call("POST", `/${machineId}/api/combos`, {
    name: "fall",
    models: ["up/limited!status=429", "two/test-chat"],
  });
  const call = async (path, body) => {
    const res = await b.gateway.fetch(path, {
      method: "POST",
      headers: { authorization: `Bearer ${apiKey}`, "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    await res.text();
    return res.status;
  };
  const messages = [{ role: "user", content: "a very secret prompt" }];
  assert.equal(await call("/v1/chat/completions", { model: "up/test-chat", messages }), 200);
  assert.equal(await call("/v1/chat/completions", { model: "up/test-chat", messages, stream: true }), 200);
  assert.equal(await call("/v1/embeddings", { model: "up/test-embed", input: "a very secret text" }), 200);
  assert.equal(await call("/v1/chat/completions", { model: "fall", messages }), 200);
  assert.equal(await call("/v1/chat/completions", { model: "up/wrong!status=400", messages }), 400);
  assert.equal(await call("/v1/chat/completions", { model: "nothing/like-it", messages }), 400);
  const api = (path) => b.operator.call("GET", `/${machineId}/api${path}`);
  await recorded(api, 6);
  // leave begins a stream and closes the connection after its first bytes.
  const leave = async () => {
    const ctl = new AbortController();
    const res = await b.gateway.fetch("/v1/chat/completions", {
      method: "POST",
      signal: ctl.signal,
      headers: { authorization: `Bearer ${apiKey}`, "content-type": "application/json" },
      body: JSON.stringify({ model: "up/long!slow=200!chunks=200", messages, stream: true }),
    });
    await res.body.getReader().read();
    ctl.abort();
  };
  return { machineId, apiKey, call, api, leave, first, second };
}

// read gives one such machine for the tests that only read.
let one = null;
const read = () => (one ??= used());

// recorded waits until so many requests are listed: it is done after the answer.
async function recorded(api, n) {
  await becomes(async () => (await api("/requests?limit=200")).data.length, n);
}

const page = async (t, machineId, name, options = {}) => {
  const p = await open(t, b, { at: `#/m/${machineId}/${name.toLowerCase()}`, ...options });
  await p.getByRole("heading", { level: 1, name }).waitFor();
  await settled(p);
  return p;
};

test("requests are listed with why their attempts failed, and nothing of their text", async () => {
  const { api, first, second } = await read();
  const { data } = await api("/requests");
  assert.equal(data.length, 6);
  const [unknown, wrong, fell, embed, stream, chat] = data;
  assert.deepEqual([unknown.asked, unknown.status, unknown.attempts], ["nothing/like-it", 400, 0]);
  assert.deepEqual([wrong.status, wrong.attempts, wrong.failed.length, wrong.failed[0].text], [400, 1, 1, undefined]);
  assert.deepEqual(
    [fell.asked, fell.model, fell.status, fell.attempts, fell.connectionId],
    ["fall", "two/test-chat", 200, 2, second.id],
  );
  assert.deepEqual(
    [fell.failed[0].connectionId, fell.failed[0].status, fell.failed[0].model],
    [first.id, 429, "up/limited!status=429"],
  );
  assert.deepEqual([embed.endpoint, embed.model, embed.status], ["/v1/embeddings", "up/test-embed", 200]);
  assert.ok(embed.inputTokens > 0 && chat.inputTokens > 0 && chat.outputTokens > 0 && stream.outputTokens > 0);
  assert.equal(JSON.stringify(data).includes("secret"), false);
  const usage = (await api("/usage?groupBy=endpoint,model")).data;
  const of = (endpoint, model) => usage.find((u) => u.endpoint === endpoint && u.model === model);
  assert.deepEqual(
    [
      of("/v1/embeddings", "up/test-embed").attempts,
      of("/v1/embeddings", "up/test-embed").requests,
      of("/v1/embeddings", "up/test-embed").unpricedAttempts,
    ],
    [1, 1, 1],
  );
  assert.equal(of("/v1/embeddings", "up/test-embed").inputTokens, embed.inputTokens);
  assert.deepEqual(
    [of("/v1/chat/completions", "up/test-chat").attempts, of("/v1/chat/completions", "up/test-chat").requests],
    [2, 2],
  );
  assert.deepEqual(
    [
      of("/v1/chat/completions", "up/limited!status=429").failedAttempts,
      of("/v1/chat/completions", "up/limited!status=429").requests,
    ],
    [1, 0],
  );
});

test("the latency of a stream is the time to its end, and a stream that breaks off is told", async () => {
  const { call, api } = await used();
  const messages = [{ role: "user", content: "x" }];
  await call("/v1/chat/completions", { model: "up/long!slow=30!chunks=10", messages, stream: true });
  await call("/v1/chat/completions", { model: "up/broken!chunks=5!reset-after=3", messages, stream: true });
  const find = async (model) => {
    for (let i = 0; i < 300; i++) {
      const found = (await api(`/requests?model=${encodeURIComponent(model)}`)).data[0];
      if (found) return found;
      await new Promise((r) => setTimeout(r, 100));
    }
  };
  const long = await find("up/long!slow=30!chunks=10"),
    broken = await find("up/broken!chunks=5!reset-after=3");
  assert.ok(long.latencyMs >= 200 && long.status === 200 && !long.error && long.outputTokens > 0, JSON.stringify(long));
  assert.deepEqual([broken.status, broken.error], [200, "upstream_reset"]);
});

test("the page of requests shows and filters", async (t) => {
  const { machineId } = await read();
  const p = await page(t, machineId, "Requests");
  const rows = p.getByRole("region", { name: "Requests" }).getByRole("row");
  assert.equal(await rows.count(), 7);
  const fell = rows.filter({ hasText: "fall" });
  await fell
    .getByRole("list", { name: "Failed attempts" })
    .getByText(/^First up\/limited!status=429 429 rate limited: .+ after \d+ ms$/)
    .waitFor();
  await fell.getByText("Second").waitFor();
  await rows.filter({ hasText: "nothing/like-it" }).getByText("Not sent").waitFor();
  await looks(p, "requests");

  await p.getByRole("searchbox").fill("embed");
  await p.waitForFunction(() => document.querySelectorAll("tbody tr").length === 1);
  await p.getByRole("searchbox").fill("no such thing");
  await p.getByText("No requests found").waitFor();
  await p.getByRole("searchbox").fill("");
  await p.getByRole("combobox", { name: "Attempts" }).selectOption({ label: "Had failures" });
  await p.waitForFunction(() => document.querySelectorAll("tbody tr").length === 3);
  await p.getByRole("combobox", { name: "Attempts" }).selectOption({ label: "All" });
  await p.getByRole("combobox", { name: "Status" }).selectOption({ label: "Failed" });
  await p.waitForFunction(() => document.querySelectorAll("tbody tr").length === 2);
  // A reload and the way back show the same.
  await p.reload();
  await p.waitForFunction(() => document.querySelectorAll("tbody tr").length === 2);
  await p.getByRole("link", { name: "Usage" }).click();
  await p.getByRole("heading", { level: 1, name: "Usage" }).waitFor();
  await p.goBack();
  await p.waitForFunction(() => document.querySelectorAll("tbody tr").length === 2);
  await p.getByRole("combobox", { name: "Status" }).selectOption({ label: "All" });
  await p.getByLabel("Connection").selectOption({ label: "Second" });
  await p.waitForFunction(() => document.querySelectorAll("tbody tr").length === 1);
  await p.getByLabel("Connection").selectOption({ label: "All" });
  await p.waitForFunction(() => document.querySelectorAll("tbody tr").length === 6);
});

test("the list refreshes by itself, and stands still once nobody touches the page", async (t) => {
  const { machineId, call, api } = await used();
  const p = await page(t, machineId, "Requests");
  await p.clock.install();
  await p.reload();
  await settled(p);
  let asked = 0;
  p.on("request", (r) => {
    if (r.url().includes("/api/requests")) asked++;
  });
  await p.clock.runFor(30_000);
  assert.ok(asked >= 3 && asked <= 6, `${asked} in 30 s`);
  assert.equal(await p.locator("tbody tr").count(), 6);
  await call("/v1/embeddings", { model: "up/test-embed", input: "one more" });
  await recorded(api, 7);
  await p.clock.runFor(5_000);
  await p.waitForFunction(() => document.querySelectorAll("tbody tr").length === 7);
  await p.clock.runFor(10 * 60_000);
  await p.getByText("Auto-refresh (paused)").waitFor();
  const before = asked;
  await p.clock.runFor(120_000);
  assert.equal(asked, before, "a session that nobody uses is not kept alive");
  await p.keyboard.press("Shift");
  await p.clock.runFor(6_000);
  assert.equal(asked, before + 1);
});

test("older requests are shown page by page, and found among all that are stored", async (t) => {
  const { machineId, call, api } = await used();
  await call("/v1/embeddings", { model: "up/test-embed", input: "the one", user: "x" });
  await recorded(api, 7);
  await Promise.all(Array.from({ length: 60 }, () => call("/v1/embeddings", { model: "up/test-embed", input: "x" })));
  await recorded(api, 67);
  const p = await page(t, machineId, "Requests");
  assert.equal(await p.locator("tbody tr").count(), 50);
  await p.getByRole("searchbox").fill("nothing/like-it");
  await p.waitForFunction(() => document.querySelectorAll("tbody tr").length === 1);
  await p.getByRole("rowheader").first().waitFor();
  await p.getByRole("searchbox").fill("");
  await p.waitForFunction(() => document.querySelectorAll("tbody tr").length === 50);
  await p.getByRole("button", { name: "Load more" }).click();
  await p.waitForFunction(() => document.querySelectorAll("tbody tr").length === 67);
  assert.equal(await p.getByRole("button", { name: "Load more" }).count(), 0);
});

test("a client that leaves is listed as that", async (t) => {
  const { machineId, api, leave } = await used();
  const before = (await api("/usage")).total.failedRequests;
  await leave();
  await becomes(
    async () => (await api("/requests?status=client_left")).data.map((r) => [r.status, r.error]),
    [[200, "client_closed"]],
  );
  assert.equal((await api("/usage")).total.failedRequests, before, "it has not failed");
  const p = await page(t, machineId, "Requests");
  await p.getByText("Client disconnected", { exact: true }).last().waitFor();
});

test("usage is drawn and told in tables, by what one asks for", async (t) => {
  const { machineId, api } = await read();
  const p = await page(t, machineId, "Usage");
  await p.locator(".chart canvas").waitFor();
  await looks(p, "usage");
  const table = p.getByRole("region", { name: "Usage", exact: true });
  const { total } = await api("/usage");
  await table
    .getByRole("row", {
      name: new RegExp(`^Total ${total.requests} ${total.failedRequests} ${total.attempts} ${total.failedAttempts} `),
    })
    .waitFor();
  assert.deepEqual([total.requests, total.failedRequests, total.attempts, total.failedAttempts], [6, 2, 6, 2]);

  await p.getByRole("combobox", { name: /^Group by/ }).selectOption("model");
  await table.getByRole("rowheader", { name: "up/test-embed" }).waitFor();
  await table.getByRole("rowheader", { name: "up/limited!status=429" }).waitFor();
  await p.getByRole("radio", { name: "Tokens" }).check();
  await p.getByRole("img", { name: /^Tokens per day, .+ to / }).waitFor();
  await p.getByText("Show as table").focus();
  await p.keyboard.press("Enter");
  const today = new Date().toISOString().slice(0, 10);
  const cell = p
    .getByRole("region", { name: "Tokens per day, as a table" })
    .getByRole("row", { name: new RegExp(`^${today}`) });
  await cell.waitFor();
  await looks(p, "usage-by-model");
  for (const metric of ["Cost", "Failed requests", "Attempts", "Average latency"]) {
    await p.getByRole("radio", { name: metric }).check();
    await p.getByRole("img", { name: new RegExp(`^${metric} per day`) }).waitFor();
  }
  await p.getByRole("combobox", { name: /^Group by/ }).selectOption("connection");
  await table.getByRole("rowheader", { name: "Second" }).waitFor();
  await p.getByRole("combobox", { name: /^Group by/ }).selectOption("key");
  await table.getByRole("rowheader").first().waitFor();
  await p.getByRole("radio", { name: "90 days" }).check();
  await settled(p);
  await p.getByRole("radio", { name: "Today" }).check();
  await settled(p);
  await p.locator(".chart canvas").waitFor();
});

test("usage goes into a spreadsheet without becoming a formula", async (t) => {
  const { machineId, api } = await read();
  const p = await page(t, machineId, "Usage");
  await p.getByRole("combobox", { name: /^Group by/ }).selectOption("model");
  await p.getByRole("rowheader", { name: "up/test-embed" }).waitFor();
  const [file] = await Promise.all([p.waitForEvent("download"), p.getByRole("button", { name: "Export CSV" }).click()]);
  assert.match(file.suggestedFilename(), /^usage-\d{4}-\d\d-\d\d-\d{4}-\d\d-\d\d-model\.csv$/);
  const lines = (await readFile(await file.path(), "utf8")).trimEnd().split("\r\n");
  assert.match(lines[0], /^\ufeff"day","model","requests","failed_requests","attempts","failed_attempts",/);
  const rows = (await api("/usage?groupBy=day,model")).data;
  assert.equal(lines.length - 1, rows.length);
  assert.ok(
    lines.some((l) => l.includes(`"up/test-embed",1,0,1,0,`)),
    lines.join("\n"),
  );
});

test("cells that a spreadsheet would run are texts", () => {
  for (const bad of ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "  =1", "\uff1d1"]) {
    assert.equal(
      csv(["a"], [[bad]])
        .split("\r\n")[1]
        .startsWith(`"'`) || csv(["a"], [[bad]]).includes(`"'`),
      true,
      JSON.stringify(bad),
    );
  }
  assert.equal(
    csv(
      ["a", "b"],
      [
        ['plain "quoted", text', 1.5],
        ["up/model", -2],
      ],
    ),
    `\ufeff"a","b"\r\n"plain ""quoted"", text",1.5\r\n"up/model",-2\r\n`,
  );
});

test("without calls the pages say so; without an answer they say that", async (t) => {
  const { machineId } = await b.operator.machine({ name: "Empty" });
  const usage = await page(t, machineId, "Usage");
  await usage.getByText("No usage in this period").waitFor();
  await looks(usage, "usage-empty");
  const requests = await page(t, machineId, "Requests", { failures: ["GET /* 500"] });
  await requests.getByText("No requests yet").waitFor();
  await looks(requests, "requests-empty");
  await requests.route("**/api/requests*", (r) =>
    r.fulfill({ status: 500, contentType: "application/json", body: JSON.stringify({ error: { message: canary } }) }),
  );
  await requests.getByRole("button", { name: "Refresh" }).click();
  await requests.getByRole("alert").getByText(canary).waitFor();
  await requests.unroute("**/api/requests*");
  await requests.getByRole("button", { name: "Try again" }).click();
  await requests.getByRole("alert").waitFor({ state: "detached" });
});

test("texts of upstreams in the list are texts", async (t) => {
  const { machineId, apiKey, api } = await used();
  b.upstream.script = () => ({ status: 503, body: JSON.stringify({ error: { message: canary, code: canary } }) });
  t.after(() => {
    b.upstream.script = null;
  });
  const res = await b.gateway.fetch("/v1/embeddings", {
    method: "POST",
    headers: { authorization: `Bearer ${apiKey}`, "content-type": "application/json" },
    body: JSON.stringify({ model: `up/${canary.slice(0, 40)}`, input: "x" }),
  });
  assert.ok(res.status >= 400);
  await recorded(api, 7);
  const p = await page(t, machineId, "Requests");
  await p.getByText(canary.slice(0, 40), { exact: false }).first().waitFor();
});
