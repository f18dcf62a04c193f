// The page of requests: the list, its filters, its refresh, and failed
// attempts.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { becomes, bench, canary, looks, settled, steady } from "./browser.mjs";
import { openPage, recorded, used } from "./used.mjs";

let b;
before(async () => {
  b = await bench();
});
after(() => b?.close());

// shared returns one such machine for the tests that do not change it.
let one = null;
const shared = () => {
  one ??= used(b);
  return one;
};

test("requests are listed with the errors of their attempts and without their texts", async () => {
  const { api, first, second } = await shared();
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

test("the latency of a stream is the time to its end, and an interrupted stream is recorded", async () => {
  const { call, api } = await used(b);
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

test("the page lists requests and filters them", async (t) => {
  const { machineId } = await shared();
  const p = await openPage(t, b, machineId, "Requests");
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

test("the list refreshes itself and pauses when the page is idle", async (t) => {
  const { machineId, call, api } = await used(b);
  const p = await openPage(t, b, machineId, "Requests");
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
  const before = await steady(() => asked); // calls before the pause
  await p.clock.runFor(120_000);
  assert.equal(await steady(() => asked), before, "an idle page does not extend the session");
  await p.keyboard.press("Shift");
  await p.clock.runFor(6_000);
  await becomes(() => asked, before + 1);
});

test("older requests are loaded page by page, and the search covers all of them", async (t) => {
  const { machineId, call, api } = await used(b);
  await call("/v1/embeddings", { model: "up/test-embed", input: "the one", user: "x" });
  await recorded(api, 7);
  await Promise.all(Array.from({ length: 60 }, () => call("/v1/embeddings", { model: "up/test-embed", input: "x" })));
  await recorded(api, 67);
  const p = await openPage(t, b, machineId, "Requests");
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

test("a request whose client disconnects is listed as such and is not failed", async (t) => {
  const { machineId, api, leave } = await used(b);
  const before = (await api("/usage")).total.failedRequests;
  await leave();
  await becomes(
    async () => (await api("/requests?status=client_left")).data.map((r) => [r.status, r.error]),
    [[200, "client_closed"]],
  );
  assert.equal((await api("/usage")).total.failedRequests, before, "it has not failed");
  const p = await openPage(t, b, machineId, "Requests");
  await p.getByText("Client disconnected", { exact: true }).last().waitFor();
});

test("the page shows an empty state without requests, and the error of a failed refresh", async (t) => {
  const { machineId } = await b.operator.machine({ name: "Empty" });
  const requests = await openPage(t, b, machineId, "Requests", { failures: ["GET /* 500"] });
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

test("error texts of providers are shown as text", async (t) => {
  const { machineId, apiKey, api } = await used(b);
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
  const p = await openPage(t, b, machineId, "Requests");
  await p.getByText(canary.slice(0, 40), { exact: false }).first().waitFor();
});
