// The page of requests: the list, its filters, its refresh, and failed
// attempts.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { phasesOf } from "../../worker/dashboard/src/pages/requests/phases.ts";
import { sliceOf } from "../../worker/dashboard/src/slice.ts";
import { compatible } from "../e2e/gateway.mjs";
import { becomes, bench, canary, holds, looks, settled, steady } from "./browser.mjs";
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

// keyName returns the name of a key as the page shows it.
async function keyName(api, id) {
  const key = (await api("/keys")).data.find((k) => k.id === id);
  return key.name || `…${key.last4}`;
}

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

// openFilters opens the popover with the filters.
const openFilters = (p) => p.locator(".pop > summary").filter({ hasText: "Filters" }).click();

test("the page lists requests and filters them", async (t) => {
  const { machineId } = await shared();
  const p = await openPage(t, b, machineId, "Requests");
  const rows = p.getByRole("region", { name: "Requests" }).getByRole("row");
  assert.equal(await rows.count(), 7);
  const fell = rows.filter({ hasText: "fall" });
  await fell.getByText("Second after First 429", { exact: true }).waitFor();
  const tried = fell.getByRole("list", { name: "Failed attempts" }).getByRole("listitem");
  assert.match(await tried.getAttribute("title"), /^First up\/limited!status=429 429 rate limited: .+ after \d+ ms$/);
  await fell.getByText("fall → two/test-chat", { exact: true }).waitFor();
  await rows
    .filter({ hasText: "embed" })
    .getByRole("cell", { name: "up/test-embed /v1/embeddings", exact: true })
    .waitFor();
  await rows.filter({ hasText: "nothing/like-it" }).getByText("Not sent").waitFor();
  await rows.filter({ hasText: "embed" }).getByRole("cell", { name: "Unknown", exact: true }).waitFor();
  assert.equal(await rows.filter({ hasText: "nothing/like-it" }).getByText("Unknown").count(), 0);
  assert.equal(await p.getByText("Scroll the table sideways for more columns.").count(), 0, "no column is cut");
  await looks(p, "requests");

  await p.getByRole("searchbox").fill("embed");
  await holds(p, () => document.querySelectorAll("tbody tr").length === 1);
  await p.getByRole("searchbox").fill("no such thing");
  await p.getByText("No requests found").waitFor();
  await p.getByRole("searchbox").fill("");
  await openFilters(p);
  await p.getByRole("combobox", { name: "Attempts" }).selectOption({ label: "Had failures" });
  await holds(p, () => document.querySelectorAll("tbody tr").length === 3);
  await p.getByRole("combobox", { name: "Attempts" }).selectOption({ label: "All" });
  await p.getByRole("combobox", { name: "Status" }).selectOption({ label: "Failed or refused" });
  await holds(p, () => document.querySelectorAll("tbody tr").length === 2);
  // A reload and the way back show the same.
  await p.reload();
  await holds(p, () => document.querySelectorAll("tbody tr").length === 2);
  await p.getByRole("link", { name: "Usage" }).click();
  await p.getByRole("heading", { level: 1, name: "Usage" }).waitFor();
  await p.goBack();
  await holds(p, () => document.querySelectorAll("tbody tr").length === 2);
  await openFilters(p);
  await p.getByRole("combobox", { name: "Status" }).selectOption({ label: "All" });
  await p.getByRole("combobox", { name: "Account" }).selectOption({ label: "Second" });
  await holds(p, () => document.querySelectorAll("tbody tr").length === 1);
  await p.getByRole("combobox", { name: "Account" }).selectOption({ label: "All" });
  await holds(p, () => document.querySelectorAll("tbody tr").length === 6);
});

test("a request opens in a drawer with its attempts, and by its address", async (t) => {
  const { machineId, api, call } = await used(b);
  const p = await openPage(t, b, machineId, "Requests");
  const { data } = await api("/requests");
  const fell = data.find((r) => r.asked === "fall");
  await openFilters(p);
  await p.getByRole("combobox", { name: "Attempts" }).selectOption({ label: "Had failures" });
  await holds(p, () => document.querySelectorAll("tbody tr").length === 3);
  await p.keyboard.press("Escape");
  await p.getByRole("row").filter({ hasText: "fall" }).click();
  const drawer = p.getByRole("dialog", { name: "Request" });
  await drawer.getByText(fell.id, { exact: true }).waitFor();
  assert.ok(p.url().endsWith(`/requests/${fell.id}?failed=true`), p.url());
  const fact = (name) => drawer.locator("dt", { hasText: name }).locator("xpath=following-sibling::dd[1]").innerText();
  assert.deepEqual(
    [await fact("Endpoint"), await fact("Request size"), await fact("Key")],
    ["/v1/chat/completions", `${fell.requestBytes} B`, await keyName(api, fell.keyId)],
  );
  await drawer.getByText("fall → two/test-chat", { exact: true }).waitFor();
  assert.match(await fact("Answer size"), /^\d.* (B|kB)$/);
  const attempts = drawer.getByRole("list", { name: "Attempts" }).getByRole("listitem");
  const [failed, answered] = await attempts.allInnerTexts();
  assert.match(failed, /First as up\/limited!status=429 429 rate limited\s+Sent after \d+ ms, failed after \d+ ms/);
  assert.match(answered, /Second as two\/test-chat Answered\s+(Sent|Ended) /);
  await drawer.getByRole("button", { name: "Copy ID" }).click();
  await drawer.getByText("Copied").waitFor();
  assert.equal(await p.evaluate(() => navigator.clipboard.readText()), fell.id);
  await looks(p, "request");
  await p.keyboard.press("Escape");
  await drawer.waitFor({ state: "detached" });
  assert.ok(p.url().endsWith("/requests?failed=true"), p.url());
  assert.equal(await p.locator("tbody tr").count(), 3);

  // The address alone opens it, although the list does not have it.
  const other = data.find((r) => r.attempts === 0);
  await p.goto(`${b.url}/#/m/${machineId}/requests/${other.id}?failed=false`);
  await p.reload();
  await drawer.getByText("Not sent to a provider.").waitFor();
  const meaning = drawer.getByRole("link", { name: "What this error means" });
  assert.equal(await meaning.getAttribute("target"), "_blank");
  const path = await meaning.getAttribute("href");
  assert.equal((await b.gateway.fetch(path, { redirect: "manual" })).status, 200, path);

  // A missing account can be connected from here.
  assert.equal(await call("/v1/chat/completions", { model: "groq/llama", messages: [] }), 400);
  await recorded(api, 7);
  const [missing] = (await api("/requests")).data;
  await p.goto(`${b.url}/#/m/${machineId}/requests/${missing.id}`);
  await drawer.getByRole("link", { name: "Connect Groq" }).click();
  await p.getByRole("heading", { level: 1, name: "Add account" }).waitFor();
  assert.equal(await p.getByRole("searchbox").inputValue(), "Groq");
});

test("the list says whether prompts and answers are stored", async (t) => {
  const { machineId } = await b.operator.machine({ name: "Captured" });
  const set = (path, body) => b.operator.call("PATCH", `/${machineId}/api${path}`, body);
  const p = await openPage(t, b, machineId, "Requests");
  const said = p.locator("header.page p");
  await becomes(() => said.innerText(), "Prompts and answers are not stored. Turn on");
  const [{ id }] = (await b.operator.call("GET", `/${machineId}/api/keys`)).data;
  await b.operator.call("PUT", `/${machineId}/api/keys/${id}`, { capturePercent: 100 });
  await p.reload();
  await becomes(() => said.innerText(), "Prompts and answers are stored of some keys. Change");
  await set("/settings", { capturePercent: 10 });
  await p.reload();
  await becomes(() => said.innerText(), "Prompts and answers of 10% of requests are stored. Change");
  await said.getByRole("link").click();
  await p.getByRole("heading", { name: "Stored prompts" }).waitFor();
});

test("a request that is not listed any more is reported as such", async (t) => {
  const { machineId } = await shared();
  const p = await openPage(t, b, machineId, "Requests", { failures: ["GET /* 404"] });
  await p.goto(`${b.url}/#/m/${machineId}/requests/req_0`);
  await p.getByRole("dialog").getByText("This request is no longer stored.").waitFor();
});

test("a request leads to the explanation of a call of the same form", async (t) => {
  const { machineId } = await shared();
  const p = await openPage(t, b, machineId, "Requests");
  await p.getByRole("row").filter({ hasText: "fall" }).click();
  await p.getByRole("link", { name: "Explain this request" }).click();
  const steps = p.getByRole("list", { name: "Attempts" }).getByRole("listitem");
  await steps.getByText("two/test-chat").waitFor();
  await steps.getByText("tried after: rate limit or no credit, not available").waitFor();
  assert.deepEqual(JSON.parse(await p.getByLabel("Body").inputValue()).model, "fall");
  assert.equal(await p.getByLabel("Path").inputValue(), "/v1/chat/completions");
  await p.goBack();
  await p.getByRole("dialog", { name: "Request" }).waitFor();
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
  await holds(p, () => document.querySelectorAll("tbody tr").length === 7);
  await p.clock.runFor(10 * 60_000);
  await p.getByText("Live (paused)").waitFor();
  const before = await steady(() => asked); // calls before the pause
  await p.clock.runFor(120_000);
  assert.equal(await steady(() => asked), before, "an idle page does not extend the session");
  await p.keyboard.press("Shift");
  await p.clock.runFor(6_000);
  await becomes(() => asked, before + 1);
});

test("older requests are loaded page by page, and newer ones are added to them", async (t) => {
  const { machineId, call, api } = await used(b);
  await Promise.all(Array.from({ length: 60 }, () => call("/v1/embeddings", { model: "up/test-embed", input: "x" })));
  await recorded(api, 66);
  const p = await openPage(t, b, machineId, "Requests");
  await p.clock.install();
  await p.reload();
  await settled(p);
  const count = (n) => holds(p, (want) => document.querySelectorAll("tbody tr").length === want, n);
  await count(50);
  await p.getByRole("searchbox").fill("nothing/like-it");
  await p.clock.runFor(300);
  await count(1);
  await p.getByRole("button", { name: "Clear filters" }).click();
  await p.clock.runFor(300);
  await count(50);
  await p.getByRole("button", { name: "Load more" }).click();
  await count(66);
  assert.equal(await p.getByRole("button", { name: "Load more" }).count(), 0);
  await call("/v1/embeddings", { model: "up/newest", input: "x" });
  await recorded(api, 67);
  await p.clock.runFor(5_000);
  await count(67);
  assert.match(await p.locator("tbody tr").first().innerText(), /up\/newest/);
});

test("requests are searched by period, endpoint and error code, which the address keeps", async (t) => {
  const { machineId, api } = await shared();
  const { data } = await api("/requests");
  const p = await openPage(t, b, machineId, "Requests");
  const count = (n) => holds(p, (want) => document.querySelectorAll("tbody tr").length === want, n);
  const pick = (name, label) => p.getByRole("combobox", { name, exact: true }).selectOption({ label });
  await openFilters(p);
  await pick("Endpoint", "/v1/embeddings");
  await count(1);
  await pick("Endpoint", "All");
  await count(6);
  await p.getByRole("textbox", { name: "Error code" }).fill("model_not_found");
  await count(1);
  await p.reload();
  await count(1);
  await p.getByText("nothing/like-it").waitFor();
  await p.getByRole("button", { name: "Clear filters" }).click();
  await count(6);
  assert.ok(p.url().endsWith("/requests"), p.url());
  await openFilters(p);
  await pick("Period", "Last 15 minutes");
  await count(6);
  await pick("Period", "Custom");
  await count(6);
  // The years before the first request.
  await p.getByLabel("From", { exact: true }).fill("2020-01-01T00:00");
  await p.getByLabel("To", { exact: true }).fill("2021-01-01T00:00");
  await p.getByText("No requests found").waitFor();
  await looks(p, "requests-search");
  await p.getByLabel("To", { exact: true }).fill("");
  await count(6);
  // A link to the requests of a time, with the key that made them.
  const [last] = data;
  await p.goto(`${b.url}/#/m/${machineId}/requests?from=${last.at}&to=${last.at}&key=${last.keyId}`);
  await p.reload();
  await p.getByText(last.asked).first().waitFor();
  await openFilters(p);
  assert.equal(await p.getByRole("combobox", { name: "Period" }).inputValue(), "custom");
});

test("requests are found by their tags, which the drawer shows", async (t) => {
  const { machineId, apiKey } = await b.operator.machine({ name: "Tagged" });
  await b.operator.connect(machineId, compatible(b.upstream));
  for (const tags of ["project=atlas, nightly", "other"]) {
    const res = await b.gateway.fetch("/v1/embeddings", {
      method: "POST",
      headers: { authorization: `Bearer ${apiKey}`, "content-type": "application/json", "x-weir-tags": tags },
      body: JSON.stringify({ model: "up/test-embed", input: "a" }),
    });
    await res.text();
  }
  const listed = async () => (await b.operator.call("GET", `/${machineId}/api/requests`)).data.length;
  await becomes(listed, 2);
  const p = await openPage(t, b, machineId, "Requests");
  const count = (n) => holds(p, (want) => document.querySelectorAll("tbody tr").length === want, n);
  await count(2);
  await openFilters(p);
  await p.getByRole("textbox", { name: "Tag" }).fill("nightly");
  await count(1);
  await p.keyboard.press("Escape");
  await p.locator("tbody tr").click();
  await p.getByRole("dialog", { name: "Request" }).getByText("project=atlas, nightly").waitFor();
});

// Regression: the list stayed filtered under an address without filters.
test("the entry of the open page in the navigation clears its filters", async (t) => {
  const { machineId } = await shared();
  const p = await openPage(t, b, machineId, "Requests");
  const count = (n) => holds(p, (want) => document.querySelectorAll("tbody tr").length === want, n);
  await openFilters(p);
  await p.getByRole("textbox", { name: "Error code" }).fill("model_not_found");
  await count(1);
  await p.getByRole("navigation", { name: "Pages" }).getByRole("link", { name: "Requests" }).click();
  await count(6);
  await openFilters(p);
  assert.equal(await p.getByRole("textbox", { name: "Error code" }).inputValue(), "");
  assert.ok(p.url().endsWith("/requests"), p.url());
});

test("a failed look for newer requests is reported until one succeeds", async (t) => {
  const { machineId } = await shared();
  const p = await openPage(t, b, machineId, "Requests", { failures: ["GET /* 503"] });
  await p.clock.install();
  await p.reload();
  await settled(p);
  await p.route("**/api/requests?*after=*", (r) => r.fulfill({ status: 503, json: { error: { message: "not now" } } }));
  await p.clock.runFor(5_000);
  await p.getByRole("alert").getByText("Not now.").waitFor();
  assert.equal(await p.locator("tbody tr").count(), 6, "the list stays");
  await p.unroute("**/api/requests?*after=*");
  await p.clock.runFor(5_000);
  await p.getByRole("alert").waitFor({ state: "detached" });
});

test("on a phone the first request is in the upper third, and no keys of a keyboard are shown", async (t) => {
  const { machineId } = await shared();
  const p = await openPage(t, b, machineId, "Requests", { viewport: { width: 390, height: 844 } });
  const { y } = await p.locator("tbody tr").first().boundingBox();
  assert.ok(y <= 281, `the first request is at ${y} px`);
  await p.getByRole("button", { name: "Menu" }).click();
  await p.getByRole("button", { name: "Go to…" }).waitFor();
  assert.equal(await p.locator("kbd").filter({ visible: true }).count(), 0);
});

test("the requests that match are exported as CSV and JSON", async (t) => {
  const { machineId, api } = await shared();
  const p = await openPage(t, b, machineId, "Requests");
  await openFilters(p);
  await p.getByRole("combobox", { name: "Attempts" }).selectOption({ label: "Had failures" });
  await holds(p, () => document.querySelectorAll("tbody tr").length === 3);
  await p.locator("summary", { hasText: "Export" }).click();
  const saved = async (role, name) => {
    const [file] = await Promise.all([p.waitForEvent("download"), p.getByRole(role, { name }).click()]);
    return [file.suggestedFilename(), readFileSync(await file.path(), "utf8")];
  };
  const [jsonName, json] = await saved("button", "JSON");
  assert.match(jsonName, /^requests-.+\.json$/);
  assert.deepEqual(JSON.parse(json), (await api("/requests?failed=true")).data);
  const [csvName, text] = await saved("link", "CSV");
  assert.match(csvName, /^requests\.csv$/);
  const [head, ...rows] = text.trim().split("\r\n");
  assert.match(head, /^\ufeff?time,id,key,endpoint,requested_model,/);
  assert.equal(rows.length, 3);
  assert.match(
    rows.find((r) => r.includes('"fall"')),
    /"First 429"/,
  );
});

test("a long list renders only the rows near the screen", async (t) => {
  const { machineId } = await shared();
  const p = await openPage(t, b, machineId, "Requests");
  const all = Array.from({ length: 850 }, (_, i) => ({
    seq: 850 - i,
    id: `req_${850 - i}`,
    at: Date.now() - i * 1000,
    endpoint: "/v1/embeddings",
    asked: `up/m${850 - i}`,
    model: "up/m",
    status: 200,
    latencyMs: 5,
    attempts: 1,
    // Rows have different heights.
    ...(i % 7 === 0 && { dropped: ["seed"], firstMs: 3 }),
  }));
  await p.route("**/api/requests?*", (r) => {
    const query = new URL(r.request().url()).searchParams;
    const before = Number(query.get("cursor") || 1e9),
      after = Number(query.get("after") ?? 0),
      limit = Number(query.get("limit"));
    const rows = all.filter((x) => x.seq < before && x.seq > after);
    const [data, has_more] = [rows.slice(0, limit), rows.length > limit];
    const cursor = has_more ? String(data.at(-1).seq) : undefined;
    return r.fulfill({ json: { object: "list", data, has_more, cursor, kept: 850, total: 1500 } });
  });
  await p.getByRole("button", { name: "Refresh" }).click();
  await p.getByText("up/m850", { exact: true }).waitFor();
  await p
    .getByText(
      "850 of 1,500 requests are stored: the latest, all failures, the slowest, the most expensive, and a sample of the rest.",
    )
    .waitFor();
  const table = p.getByRole("table");
  for (const n of [250, 450, 650, 850]) {
    await p.getByRole("button", { name: "Load more" }).click();
    await holds(p, (want) => document.querySelector("table").ariaRowCount === String(want), n + 1);
  }
  for (const [share, min, max] of [
    [0, 840, 850],
    [0.5, 380, 470],
    [1, 1, 20],
  ]) {
    await p.evaluate((s) => scrollTo(0, s * (document.documentElement.scrollHeight - innerHeight)), share);
    // A row in the middle of the screen, and not the gap that stands for others.
    await holds(
      p,
      ([from, to]) => {
        const row = document.elementFromPoint(innerWidth / 2, innerHeight / 2)?.closest("tbody tr");
        const n = Number(/up\/m(\d+)/.exec(row?.textContent ?? "")?.[1]);
        return n >= from && n <= to;
      },
      [min, max],
    );
    const rendered = await p.locator("tbody tr").count();
    assert.ok(rendered < 120, `${rendered} rows at ${share}`);
  }
  await p.getByText("up/m1", { exact: true }).waitFor();
  assert.equal(await table.getByRole("row").last().getAttribute("aria-rowindex"), "851");
  await looks(p, "requests-long");
});

test("a row and its drawer tell fields that weir set from those that were not sent", async (t) => {
  const { machineId } = await shared();
  const p = await openPage(t, b, machineId, "Requests");
  await list(p, { dropped: ["seed", "max_tokens=59494", "top_k"] });
  const row = p.getByRole("row").filter({ hasText: "up/one" });
  assert.equal(await row.locator(".why").getAttribute("title"), "Not sent: seed, top_k\nSet by weir: max_tokens=59494");
  await row.click();
  const facts = await p.getByRole("dialog", { name: "Request" }).locator("dl.facts").innerText();
  assert.match(facts, /Fields not sent\s+seed, top_k\s+Set by weir\s+max_tokens=59494/);
});

test("a long model id shows its alias and its end on a narrow screen", async (t) => {
  const { machineId } = await shared();
  const p = await openPage(t, b, machineId, "Requests", { viewport: { width: 1024, height: 768 } });
  for (const more of [{}, { asked: "fast" }]) {
    const model = "vllm/meta-llama/Llama-4-Maverick-17B-128E-Instruct-FP8";
    await list(p, { asked: model, model, ...more });
    const cell = p.getByRole("cell", { name: model });
    await cell.waitFor();
    const parts = cell.locator("code").last().locator(".middle > [aria-hidden]");
    const cut = (at) => parts.nth(at).evaluate((e) => e.scrollWidth > e.clientWidth);
    assert.deepEqual([await parts.count(), await cut(0), await cut(1)], [3, false, true]);
    const [end, column] = [await parts.last().boundingBox(), await cell.boundingBox()];
    assert.ok(end.x + end.width <= column.x + column.width, "the end of the id is in its column");
    await p.unrouteAll();
  }
  // Neither a gap nor a part twice where there is little between the alias and the end.
  for (const model of ["openai/gpt-5.2-pro", "openai/chat-latest", "servers-of-the-team/gpt-5"]) {
    await list(p, { asked: model, model });
    const parts = p.getByRole("cell", { name: model }).locator(".middle > [aria-hidden]");
    await becomes(async () => (await parts.allInnerTexts()).join(""), model);
    const boxes = await parts.evaluateAll((all) => all.map((e) => e.getBoundingClientRect()));
    assert.deepEqual([boxes[1].width, boxes[1].right], [0, boxes[2].left], model);
    await p.unrouteAll();
  }
});

// list has the page show one request.
async function list(p, request) {
  const one = {
    ...{ seq: 1, id: "req_1", at: Date.now(), endpoint: "/v1/chat/completions", asked: "up/one", model: "up/one" },
    ...{ status: 200, latencyMs: 5, attempts: 1, ...request },
  };
  await p.route("**/api/requests?*", (r) =>
    r.fulfill({ json: { object: "list", data: [one], has_more: false, kept: 1, total: 1 } }),
  );
  await p.getByRole("button", { name: "Refresh" }).click();
}

test("the slice of a long list has the rows near the screen", () => {
  const heights = Array.from({ length: 1000 }, (_, i) => 20 + (i % 3) * 10); // 30 on average
  const sum = (from, to) => heights.slice(from, to).reduce((a, b) => a + b, 0);
  for (const [top, screen] of [
    [0, 900],
    [300, 900],
    [-900, 900],
    [-15_000, 700],
    [-29_000, 900],
    [-40_000, 900],
    [5_000, 900],
  ]) {
    const s = sliceOf(heights, top, screen);
    assert.equal(s.before, sum(0, s.first), "before");
    assert.equal(s.after, sum(s.end, 1000), "after");
    // Every row on the screen is in the slice.
    for (let i = 0; i < heights.length; i++) {
      const y = top + sum(0, i);
      if (y + heights[i] > 0 && y < screen) assert.ok(i >= s.first && i < s.end, `row ${i} at ${y}`);
    }
    assert.ok(s.end - s.first <= 130, `${s.end - s.first} rows`);
  }
});

test("the slice of a list whose rows change their height with it settles", () => {
  // As a wide row widens its column, the others get higher once it is rendered.
  const heightsOf = ({ end }) => Array.from({ length: 500 }, () => (end > 24 ? 140 : 125));
  for (const top of [370, 0, -2000]) {
    let now = { first: 0, end: 200, before: 0, after: 0 };
    const next = () => sliceOf(heightsOf(now), top, 860, now);
    for (let i = 0; i < 10; i++) now = next();
    assert.deepEqual(next(), now, `at ${top}`);
  }
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
  const main = requests.getByRole("main");
  assert.match(await main.getByRole("link", { name: "Connect a tool" }).getAttribute("href"), /\/connect$/);
  assert.match(await main.getByRole("link", { name: "Open the playground" }).getAttribute("href"), /\/playground$/);
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
  await p
    .getByRole("row")
    .filter({ hasText: canary.slice(0, 40) })
    .click();
  const drawer = p.getByRole("dialog", { name: "Request" });
  await drawer.getByText(canary.slice(0, 40), { exact: false }).first().waitFor();
  await drawer.locator(".notice").getByText("The provider answered with status 503.").waitFor(); // of the last attempt
  assert.ok((await drawer.getByRole("list", { name: "Attempts" }).innerText()).includes(canary.slice(0, 40)));
  await p.getByRole("link", { name: "Explain this request" }).click();
  await p.getByRole("heading", { level: 1, name: "Explain" }).waitFor();
  await p.getByRole("list", { name: "Attempts" }).waitFor();
});

test("the parts of a request's time follow on one another and add up to its latency", () => {
  const failed = (sentMs, ms) => ({ connectionId: "c", provider: "p", status: 500, sentMs: sentMs || undefined, ms });
  const cases = {
    refused: [{ latencyMs: 7, attempts: 0 }, "weir 0-7"],
    "refused at once": [{ latencyMs: 0, attempts: 0 }, ""],
    answered: [{ latencyMs: 900, attempts: 1, sentMs: 12 }, "weir 0-12, answer1 12-900"],
    "sent at once": [{ latencyMs: 900, attempts: 1 }, "answer1 0-900"],
    stream: [{ latencyMs: 900, attempts: 1, sentMs: 3, firstMs: 250 }, "weir 0-3, first1 3-250, answer1 250-900"],
    "one that failed": [{ latencyMs: 40, attempts: 1, failed: [failed(2, 30)] }, "weir 0-2, failed1 2-32, weir 32-40"],
    five: [
      {
        latencyMs: 1000,
        attempts: 5,
        sentMs: 700,
        firstMs: 800,
        failed: [failed(1, 99), failed(100, 100), failed(300, 100), failed(401, 199)],
      },
      "weir 0-1, failed1 1-100, failed2 100-200, wait 200-300, failed3 300-400, wait 400-401, failed4 401-600, " +
        "wait 600-700, first5 700-800, answer5 800-1000",
    ],
    "of an earlier version": [{ latencyMs: 100, attempts: 2, failed: [failed(0, 60)] }, "failed1 0-60, answer2 60-100"],
    "clocks that differ": [
      { latencyMs: 100, attempts: 2, sentMs: 20, firstMs: 400, failed: [failed(10, 50)] },
      "weir 0-10, failed1 10-60, first2 60-100, answer2 100-100",
    ],
    "a negative time": [{ latencyMs: -5, attempts: 1, sentMs: -9 }, "answer1 0-0"],
  };
  for (const [name, [r, want]] of Object.entries(cases)) {
    const phases = phasesOf(r);
    assert.equal(phases.map((p) => `${p.kind}${p.attempt ?? ""} ${p.from}-${p.to}`).join(", "), want, name);
    assert.equal(
      phases.reduce((sum, p) => sum + p.to - p.from, 0),
      Math.max(0, r.latencyMs),
      name,
    );
  }
});

test("the drawer of a request shows where its time went", async (t) => {
  const { machineId, api } = await shared();
  const p = await openPage(t, b, machineId, "Requests");
  const { data } = await api("/requests");
  const timing = async (r) => {
    await p.goto(`${b.url}/#/m/${machineId}/requests/${r.id}`);
    await p.reload();
    const table = p.getByRole("dialog").getByRole("region", { name: "Timing" }).getByRole("table");
    await table.waitFor();
    const rows = await table.getByRole("row").allTextContents();
    assert.equal(await table.locator("rect").count(), rows.length - 2, "a bar for each part");
    return rows.slice(1).map((row) => row.replace(/[\d,]+ ms/g, "|"));
  };
  const [unknown, , fell, , stream, chat] = data;
  const rows = await timing(fell);
  assert.deepEqual(
    rows.filter((r) => !/^(weir|Wait)/.test(r)),
    ["First: 429 rate limited||", "Second: answer||", "Total|"],
  );
  await looks(p, "requests-timing");
  const streamed = await timing(stream);
  assert.ok(
    streamed.includes("First: first token||") && streamed.includes("First: rest of the stream||"),
    `${streamed}`,
  );
  assert.ok((await timing(chat)).includes("First: answer||"));
  if (unknown.latencyMs > 0) assert.deepEqual(await timing(unknown), ["weir||", "Total|"]);
});
