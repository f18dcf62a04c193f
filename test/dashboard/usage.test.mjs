// The page of usage: its chart, tables and CSV file.
import assert from "node:assert/strict";
import { readFile, readdir } from "node:fs/promises";
import { after, before, test } from "node:test";
import { money, moneyLike, spent } from "../../worker/dashboard/src/amounts.ts";
import { serverNames } from "../../worker/dashboard/src/connections.ts";
import { compact, inSeconds } from "../../worker/dashboard/src/format.ts";
import { answered } from "../../worker/dashboard/src/pages/requests/changed.ts";
import { meaningOf, outcome } from "../../worker/dashboard/src/pages/requests/outcome.ts";
import {
  addRow,
  amount,
  change,
  columns,
  metrics,
  partsOf,
  textOf,
} from "../../worker/dashboard/src/pages/usage/columns.ts";
import {
  filterOf,
  hasHours,
  isGroup,
  nameOf,
  timesOf,
  unnamedOf,
} from "../../worker/dashboard/src/pages/usage/report.ts";
import { inDays, months, spanOf } from "../../worker/dashboard/src/pages/usage/span.ts";
import { becomes, bench, looks, settled } from "./browser.mjs";
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

// legend returns the names of the chart's lines or bars.
const legend = (p) =>
  p.locator(".legend li:has(.swatch)").evaluateAll((list) => list.map((li) => li.firstChild.nextSibling.textContent));

// openExport opens the popover with what can be exported.
const openExport = (p) => p.locator(".pop > summary").filter({ hasText: "Export" }).click();

// interval picks what the report is by, in the popover with the filters.
async function interval(p, name) {
  await p.locator(".pop > summary").filter({ hasText: "Filters" }).click();
  await p.getByLabel("Interval").selectOption(name);
  await p.keyboard.press("Escape");
}

test("usage is shown in a chart and in tables, by group and metric", async (t) => {
  const { machineId, api } = await shared();
  const p = await openPage(t, b, machineId, "Usage");
  await p.locator(".chart canvas").waitFor();
  assert.deepEqual(await legend(p), ["Succeeded", "Provider failed", "Refused"], "outcomes that occurred");
  await looks(p, "usage");
  const table = p.getByRole("region", { name: "Usage", exact: true });
  const { total } = await api("/usage");
  await table
    .getByRole("row", {
      name: new RegExp(
        `^Total ${total.requests} 80% ${total.succeeded} ${total.providerFailed} ${total.noAccount} ${total.refused} ${total.left} `,
      ),
    })
    .waitFor();
  assert.deepEqual([total.requests, total.failedRequests, total.attempts, total.failedAttempts], [6, 2, 6, 2]);
  assert.deepEqual(
    [total.succeeded, total.providerFailed, total.noAccount, total.refused, total.left],
    [4, 1, 0, 1, 0],
  );
  // All columns are too many for this width: the page says so.
  await p.getByText(/^Columns \(/).click();
  const boxes = p.getByRole("group", { name: "Columns" }).getByRole("checkbox");
  await boxes.first().waitFor();
  for (const box of await boxes.all()) await box.check();
  await table.getByRole("columnheader", { name: "First token p95" }).waitFor();
  await p.getByText("Scroll the table sideways for more columns.").waitFor();
  const more = ["Attempts", "Failed attempts", "Cached", "Cache share", "Reasoning", "Latency p50", "First token p50"];
  for (const name of [...more, "First token p95"])
    await p.getByRole("group", { name: "Columns" }).getByLabel(name, { exact: true }).uncheck();
  assert.ok(!p.url().includes("columns="), "the usual columns are not in the address");
  await p.keyboard.press("Escape");

  await p.getByRole("combobox", { name: /^Group by/ }).selectOption("model");
  await table.getByRole("rowheader", { name: "up/test-embed" }).waitFor();
  await table.getByRole("row", { name: /^Refused before routing 1 – 0 0 0 1 0 / }).waitFor();
  await table.getByRole("rowheader", { name: "up/limited!status=429" }).waitFor();
  assert.ok((await legend(p)).includes("up/test-embed"));
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
  const drawn = (metric) => p.getByRole("img", { name: new RegExp(`^${metric} per day`) }).waitFor();
  for (const metric of ["Spend", "Success rate", "Latency p95"]) {
    await p.getByRole("radio", { name: metric }).check();
    await drawn(metric);
  }
  for (const metric of ["Refused", "Cache share", "Attempts", "Average latency", "First token p95"]) {
    await p.getByLabel("More metrics").click();
    await p.getByRole("button", { name: metric, exact: true }).click();
    await drawn(metric);
    assert.ok(await p.getByRole("radio", { name: metric }).isChecked());
  }
  await p.getByRole("combobox", { name: /^Group by/ }).selectOption("connection");
  await table.getByRole("rowheader", { name: "Second" }).waitFor();
  await p.getByRole("combobox", { name: /^Group by/ }).selectOption("endpoint");
  await table.getByRole("rowheader", { name: "/v1/embeddings" }).waitFor();
  await p.getByRole("combobox", { name: /^Group by/ }).selectOption("key");
  await table.getByRole("rowheader").first().waitFor();
  await p.locator(".chart canvas").waitFor();
});

test("the period is a range of hours or days, is in the address and outlives a reload", async (t) => {
  const { machineId } = await shared();
  const p = await openPage(t, b, machineId, "Usage", { timezoneId: "Asia/Tokyo" });
  const chart = (name) => p.getByRole("img", { name }).waitFor();
  await chart(/^Requests per day, \d{4}-\d\d-\d\d to /);
  await p.getByRole("radio", { name: "90 days" }).check();
  await settled(p);
  await p.getByRole("radio", { name: "Today" }).check();
  await chart(/^Requests per hour, .+, 09:00 to /); // of Tokyo, where the UTC day begins then
  await p.getByRole("radio", { name: "24 hours" }).check();
  await p.getByText("Show as table").click();
  const hours = p.getByRole("region", { name: "Requests per hour, as a table" });
  await hours.getByRole("rowheader").nth(23).waitFor();
  assert.equal(await hours.getByRole("rowheader").count(), 24);
  const [shown, utc] = await hours
    .locator("time")
    .first()
    .evaluate((e) => [e.textContent, e.title]);
  const hour = (text) => Number(/(\d\d):00/.exec(text)[1]);
  assert.equal(hour(shown), (hour(utc) + 9) % 24, `${shown}, ${utc}`);
  await looks(p, "usage-by-hour");

  const day = (ago) => new Date(Date.now() - ago * 86_400_000).toISOString().slice(0, 10);
  await p.getByRole("radio", { name: "Custom" }).check();
  await p.getByLabel("From (UTC)").fill(day(3));
  await chart(new RegExp(`^Requests per day, ${day(3)} to ${day(0)}`));
  await interval(p, "Hours");
  await chart(/^Requests per hour/);
  await p.getByLabel("To (UTC)").fill(day(3));
  await p.getByText("No usage in this period").waitFor();
  await p.getByLabel("To (UTC)").fill(day(0));
  await chart(/^Requests per hour/);
  await looks(p, "usage-custom");
  await p.getByRole("combobox", { name: /^Group by/ }).selectOption("model");
  await p.getByLabel("More metrics").click();
  await p.getByRole("button", { name: "Attempts", exact: true }).click();
  const query = new URLSearchParams(p.url().split("?")[1]);
  assert.deepEqual(Object.fromEntries(query), {
    range: "custom",
    from: day(3),
    to: day(0),
    unit: "hour",
    by: "model",
    show: "attempts",
  });
  await p.reload();
  await settled(p);
  await chart(/^Attempts per hour/);
  assert.equal(await p.getByLabel("From (UTC)").inputValue(), day(3));
});

test("a year is shown by month", async (t) => {
  const { machineId } = await shared();
  const p = await openPage(t, b, machineId, "Usage");
  await p.getByRole("radio", { name: "12 months" }).check();
  await p.getByRole("img", { name: /^Requests per month, \d{4}-\d\d-01 to / }).waitFor();
  await p.getByText("Show as table").click();
  const months = p.getByRole("region", { name: "Requests per month, as a table" });
  await months.getByRole("rowheader").nth(11).waitFor();
  const now = new Date();
  const name = (later) =>
    new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + later)).toLocaleDateString("en", {
      month: "short",
      year: "numeric",
      timeZone: "UTC",
    });
  assert.deepEqual(
    await months.getByRole("rowheader").allInnerTexts(),
    Array.from({ length: 12 }, (_, i) => name(i - 11)),
  );
  const last = months.getByRole("row", { name: name(0) }).getByRole("link");
  const link = new URLSearchParams((await last.getAttribute("href")).split("?")[1]);
  assert.deepEqual(
    [await last.innerText(), Number(link.get("from")), Number(link.get("to"))],
    ["6", Date.UTC(now.getUTCFullYear(), now.getUTCMonth()), Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1) - 1],
  );
  await looks(p, "usage-by-month");
  await openExport(p);
  const csv = new URL(await p.getByRole("link", { name: "This period as CSV" }).getAttribute("href"), b.url);
  assert.equal(csv.searchParams.get("groupBy"), "month");
  await p.keyboard.press("Escape");
  await interval(p, "Days");
  await p.getByRole("img", { name: /^Requests per day/ }).waitFor();
});

test("a number leads to its requests, and a group is shown alone", async (t) => {
  const { machineId } = await shared();
  const p = await openPage(t, b, machineId, "Usage");
  const table = p.getByRole("region", { name: "Usage", exact: true }),
    rows = p.getByRole("region", { name: "Requests", exact: true }).locator("tbody tr");
  const opened = async () => {
    await p.getByRole("heading", { level: 1, name: "Requests" }).waitFor();
    await settled(p);
    return Object.fromEntries(new URLSearchParams(p.url().split("?")[1]));
  };
  await p.getByText("More figures").click();
  await p.getByRole("link", { name: "Refused: 1" }).click();
  assert.equal((await opened()).outcome, "refused");
  assert.equal(await rows.count(), 1);
  await rows.getByText("Refused: model").waitFor();
  await p.goBack();
  await p.getByText("More figures").click();
  await p.getByRole("link", { name: "Provider failed: 1" }).click();
  const query = await opened();
  assert.equal(query.outcome, "provider_failed");
  assert.ok(Number(query.from) < Date.now() && Number(query.to) > Date.now(), JSON.stringify(query));
  assert.equal(await rows.count(), 1);
  await p.goBack();

  await p.getByRole("combobox", { name: /^Group by/ }).selectOption("model");
  await table
    .getByRole("row", { name: /^up\/test-embed/ })
    .getByRole("link")
    .first()
    .click();
  assert.equal((await opened()).model, "up/test-embed");
  assert.equal(await rows.count(), 1);
  await p.goBack();
  await table.getByRole("rowheader", { name: "up/test-embed" }).getByRole("button").click();
  await table.getByRole("row", { name: /^Total 1 100% 1 0 0 0 0 / }).waitFor();
  await p.getByRole("button", { name: "Remove Model: up/test-embed" }).waitFor();
  await p.getByText("Filters (1)").click();
  assert.equal(await p.getByLabel("Model", { exact: true }).inputValue(), "up/test-embed");
  await looks(p, "usage-filtered");
  await p.getByLabel("Model", { exact: true }).fill("");
  await p.getByRole("textbox", { name: "Endpoint" }).fill("/v1/never");
  await p.getByRole("textbox", { name: "Endpoint" }).blur();
  await p.getByText("No usage matches the filters").waitFor();
  assert.deepEqual(Object.fromEntries(new URLSearchParams(p.url().split("?")[1])), { endpoint: "/v1/never" });
});

test("a period is compared with the one before", async (t) => {
  const { machineId } = await shared();
  const p = await openPage(t, b, machineId, "Usage");
  const day = (ago) => new Date(Date.now() - ago * 86_400_000).toISOString().slice(0, 10);
  // Usage of the days before, which no call of a test can make.
  await p.route(`**/${machineId}/api/usage?from=${day(13)}&to=${day(7)}*`, (route) => {
    const figures = { requests: 4, succeeded: 4, attempts: 4, failedAttempts: 0, inputTokens: 8, outputTokens: 0 };
    const row = { day: day(9), ...figures };
    return route.fulfill({
      json: { object: "list", from: day(13), to: day(7), data: [row], groups: [row], total: row },
    });
  });
  await p.getByText("Filters", { exact: true }).click();
  await p.getByLabel("Compare with the previous period").check();
  await p.keyboard.press("Escape");
  const tile = (name) =>
    p
      .locator(".stat")
      .filter({ has: p.getByText(name, { exact: true }) })
      .innerText();
  await p.getByText("+50% from 4").first().waitFor();
  assert.match(await tile("Requests"), /6\s+\+50% from 4/);
  assert.match(await tile("Success rate"), /80%\s+−20 points from 100%/);
  await p.getByText("More figures").click();
  assert.match(await tile("Provider failed"), /1\s+from 0/);
  assert.ok((await legend(p)).includes("Previous period"));
  await looks(p, "usage-compared");
  await p.reload();
  await settled(p);
  await p.getByText("+50% from 4").first().waitFor();
  await p.getByRole("radio", { name: "12 months" }).check();
  await p.getByText("No usage is stored for the previous period.").waitFor();
});

test("models without a known price are named", async (t) => {
  const { machineId, call, api } = await used(b);
  const p = await openPage(t, b, machineId, "Usage");
  const { unpriced } = await api("/usage");
  assert.ok(unpriced.length > 0, "the models of the test upstream have no prices");
  const note = p.getByText(/had no known price when made and .+ not in the cost/);
  await note.waitFor();
  const prices = await note.getByRole("link", { name: "Set prices" }).getAttribute("href");
  assert.match(prices, /\/models\?view=prices$/);
  await note.getByRole("link", { name: unpriced[0].model }).click();
  await p.getByRole("heading", { level: 1, name: "Requests" }).waitFor();
  assert.match(p.url(), new RegExp(`model=${encodeURIComponent(unpriced[0].model)}`));
  assert.ok(call);
});

test("large, estimated and unpriced figures are shown as what they are", async (t) => {
  const { machineId } = await b.operator.machine({ name: "Large" });
  const p = await openPage(t, b, machineId, "Usage", { viewport: { width: 1024, height: 900 } });
  const day = new Date().toISOString().slice(0, 10);
  const row = {
    ...{ day, requests: 2001, succeeded: 1500, providerFailed: 120, noAccount: 36, refused: 281 },
    ...{ left: 64, attempts: 1720 },
    ...{ inputTokens: 1_256_811, outputTokens: 261_446, costUsd: 3.27708, latencyP95Ms: 108 },
    ...{ unpricedAttempts: 76, estimatedAttempts: 223 },
  };
  await p.route(`**/${machineId}/api/usage?*`, (route) =>
    route.fulfill({
      json: {
        ...{ object: "list", from: day, to: day, total: row, data: [row] },
        unpriced: [
          { model: "up/slow", provider: "openai-compatible", attempts: 73 },
          { model: "up/search", provider: "openai-compatible", attempts: 3, priced: true },
        ],
      },
    }),
  );
  await p.getByRole("button", { name: "Refresh" }).click();
  const tokens = p.getByRole("link", { name: "Tokens: 1.52M (1,518,257)" });
  assert.equal(await tokens.innerText(), "≈ 1.52M");
  assert.equal(await tokens.getAttribute("title"), "1,518,257, partly estimated");
  assert.equal(await p.getByRole("link", { name: "Spend: ≥ $3.27" }).innerText(), "≥ $3.27");
  assert.equal(await p.getByRole("link", { name: "Success rate: 90.6%" }).innerText(), "90.6%");
  assert.equal(await p.locator(".stat:visible").count(), 5);
  const heights = await p.locator(".stat:visible").evaluateAll((all) => all.map((e) => e.offsetHeight));
  assert.equal(new Set(heights).size, 1, `a figure has two lines: ${heights}`);
  const warning = p.getByText(/^73 attempts had no known price when made and are not in the cost/);
  assert.doesNotMatch(await warning.innerText(), /search/);
  await p.getByText(/^3 attempts are not in the cost, because the price was set later or .+up\/search/).waitFor();
  await p.getByText(/of 223 attempts \(≈\) they are estimated\. 64 answers were cut off by the client\./).waitFor();
  await looks(p, "usage-large");
});

test("amounts and outcomes as text", () => {
  assert.deepEqual([spent(0), spent(0, 2), spent(1, 2)], ["$0.00", "–", "≥ $1.00"]);
  // A lower bound is not above what is known.
  assert.deepEqual(
    [0.07988, 0.29, 0.7 + 0.1, 1.239, 0.00001699].map((usd) => spent(usd, 1)),
    ["≥ $0.0798", "≥ $0.29", "≥ $0.80", "≥ $1.23", "≥ $0.000016"],
  );
  assert.deepEqual(
    [0.079, 0.006, 12.5].map((usd) => spent(usd, 1, moneyLike([12.5]))),
    ["≥ $0.07", "≥ $0.006", "≥ $12.50"],
  );
  assert.deepEqual(
    [0, 0.000016, 0.00004321, 0.0001, 0.00015, 0.00025, 0.8007, 0.002, 1.33, 1.005].map((usd) => money(usd)),
    ["$0.00", "$0.000016", "$0.000043", "$0.0001", "$0.0002", "$0.0003", "$0.8007", "$0.002", "$1.33", "$1.01"],
  );
  const alike = (amounts, usd) => usd.map((n) => moneyLike(amounts)(n));
  assert.deepEqual(alike([0.953], [0, 0.000095, 0.00015, 0.953, 0.002]), [
    "$0.00",
    "$0.000095",
    "$0.0002",
    "$0.9530",
    "$0.0020",
  ]);
  assert.deepEqual(alike([0.1, 1.33], [0, 0.002, 0.953, 1234.5]), ["$0.00", "$0.002", "$0.95", "$1,234.50"]);
  assert.deepEqual([9999, 10_000, 1_518_257].map(compact), ["9,999", "10K", "1.52M"]);
  assert.deepEqual([0, 999, 1000, 3550].map(inSeconds), ["0 ms", "999 ms", "1 s", "3.6 s"]);
  const [gone, limited] = [{ status: 499 }, { status: 429 }];
  assert.equal(answered({ status: 499, outcome: "left", attempts: 1, failed: [gone] }), false, "left before an answer");
  assert.equal(answered({ status: 200, outcome: "left", error: "client_closed", attempts: 1 }), true, "left within it");
  assert.equal(answered({ status: 200, outcome: "succeeded", attempts: 2, failed: [limited] }), true);
  assert.equal(answered({ status: 429, outcome: "provider_failed", attempts: 1, failed: [limited] }), false);
  const text = (r) => outcome(r).text;
  assert.equal(
    text({ status: 429, outcome: "refused", reason: "budget", error: "budget_exceeded" }),
    "Refused: budget",
  );
  assert.equal(text({ status: 502, outcome: "provider_failed", error: "upstream_unreachable" }), "Unreachable");
  assert.equal(text({ status: 502, outcome: "provider_failed", error: "server_error" }), "502 bad gateway");
  assert.equal(text({ status: 429, outcome: "no_account", error: "rate_limit_exceeded" }), "No account");
  assert.equal(text({ status: 429, outcome: "provider_failed", error: "rate_limit_exceeded" }), "429 rate limited");
  assert.equal(text({ status: 429, error: "rate_limit_exceeded" }), "429 rate limited"); // of an earlier version
});

// A regression: a provider's own code led to an entry of weir's, or to none.
test("the entry of an error is that of a code of weir", () => {
  const of = (error, attempts) => meaningOf({ error, attempts })?.replace("/docs/reference/errors#", "");
  assert.equal(of("not_found", 0), "not_found");
  assert.equal(of("upstream_overloaded", 2), "upstream_overloaded");
  assert.equal(of("account_key_refused", 1), "account_key_refused");
  assert.equal(of("voice_not_found", 1), undefined);
  assert.equal(of("model_not_found", 1), undefined);
  assert.equal(of("", 0), undefined);
});

// 2026-11-22T19:40Z
const now = Date.UTC(2026, 10, 22, 19, 40);
const asked = (range, more = {}) => spanOf({ range, from: "", to: "", unit: "", ...more }, now);

test("the time of a report and of the one before it", () => {
  assert.deepEqual(asked("24h"), {
    unit: "hour",
    units: ["hour"],
    from: "2026-11-21T20",
    to: "2026-11-22T19",
    before: { unit: "hour", from: "2026-11-20T20", to: "2026-11-21T19" },
  });
  assert.deepEqual(asked("today"), {
    unit: "hour",
    units: ["hour"],
    from: "2026-11-22T00",
    to: "2026-11-22T19",
    before: { unit: "hour", from: "2026-11-21T00", to: "2026-11-21T19" },
  });
  assert.deepEqual(asked("7d"), {
    unit: "day",
    units: ["hour", "day"],
    from: "2026-11-16",
    to: "2026-11-22",
    before: { unit: "day", from: "2026-11-09", to: "2026-11-15" },
  });
  // Hours that are not stored are compared as days.
  assert.deepEqual(asked("7d", { unit: "hour" }), {
    unit: "hour",
    units: ["hour", "day"],
    from: "2026-11-16T00",
    to: "2026-11-22T19",
    before: { unit: "day", from: "2026-11-09", to: "2026-11-15" },
  });
  assert.deepEqual(asked("30d", { unit: "hour" }).unit, "day");
  assert.deepEqual(asked("30d", { unit: "month" }).unit, "day");
  assert.equal(asked("365d").before, null);
  // Months are whole but for the present one, unless days were asked for.
  const units = ["day", "month"];
  assert.deepEqual(asked("365d"), { unit: "month", units, from: "2025-12-01", to: "2026-11-22", before: null });
  assert.deepEqual(asked("365d", { unit: "day" }).from, "2025-11-23");
  assert.deepEqual(asked("90d", { unit: "month" }), {
    unit: "month",
    units,
    from: "2026-09-01",
    to: "2026-11-22",
    before: { unit: "day", from: "2026-06-10", to: "2026-08-31" },
  });
  assert.deepEqual(asked("custom", { from: "2026-03-15", to: "2026-10-04" }).from, "2026-03-15");
  assert.deepEqual(timesOf({ unit: "month", from: "2025-12-31", to: "2026-03-01" }), [
    "2025-12",
    "2026-01",
    "2026-02",
    "2026-03",
  ]);
  const custom = (from, to, unit = "") => asked("custom", { from, to, unit });
  assert.deepEqual(custom("2026-11-20", "2026-11-20"), {
    unit: "hour",
    units: ["hour", "day"],
    from: "2026-11-20T00",
    to: "2026-11-20T23",
    before: { unit: "hour", from: "2026-11-19T00", to: "2026-11-19T23" },
  });
  assert.deepEqual(
    [custom("2026-11-30", "2026-12-30").from, custom("2026-11-30", "2026-12-30").to],
    ["2026-11-22T00", "2026-11-22T19"],
  );
  assert.deepEqual(
    [custom("2026-11-10", "2026-11-01").from, custom("2026-11-10", "2026-11-01").to],
    ["2026-11-01", "2026-11-01"],
  );
  assert.equal(custom("1970-01-01", "2026-11-01").from, "2025-10-22");
  assert.deepEqual(custom("nonsense", "2026-13-77"), asked("7d"));
});

test("usage is shown by tool and by tag, and a month of it is copied", async (t) => {
  const { machineId, apiKey, api, call } = await used(b);
  const ask = async (tags, agent) => {
    const res = await b.gateway.fetch("/v1/chat/completions", {
      method: "POST",
      headers: {
        authorization: `Bearer ${apiKey}`,
        "content-type": "application/json",
        "x-weir-tags": tags,
        "user-agent": agent,
      },
      body: JSON.stringify({ model: "up/test-chat", messages: [{ role: "user", content: "hello" }] }),
    });
    assert.equal(res.status, 200, await res.text());
  };
  await ask("project=atlas,team=core", "claude-cli/2.1.236 (external, cli)");
  await ask("project=atlas", "codex_exec/0.162");
  await ask("project==bad", "curl/8.7.1");
  await call("/v1/chat/completions", { model: "up/test-chat", messages: [{ role: "user", content: "hello" }] });
  await recorded(api, 10);
  const p = await openPage(t, b, machineId, "Usage");
  const table = p.getByRole("region", { name: "Usage", exact: true });
  const by = p.getByRole("combobox", { name: /^Group by/ });
  await by.selectOption("tool");
  await table.getByRole("row", { name: /^claude-code 1 100% / }).waitFor();
  await table.getByRole("row", { name: /^curl 1 / }).waitFor();
  await p.getByText("Usage by tool and tag is stored by day").waitFor();
  await by.selectOption("By tag: project");
  await table.getByRole("row", { name: /^atlas 2 100% / }).waitFor();
  await table.getByRole("row", { name: /^No project 7 / }).waitFor();
  // Hours are not stored of it: the page shows their days.
  await p.getByRole("radio", { name: "24 hours" }).check();
  await table.getByRole("row", { name: /^atlas 2 100% / }).waitFor();
  await p.getByRole("radio", { name: "7 days" }).check();

  const now = new Date().toISOString().slice(0, 7);
  await p.getByRole("combobox", { name: /^Month/ }).selectOption(now);
  const total = p.getByRole("region", { name: "Total of the month" });
  await total.getByRole("row", { name: new RegExp(`^${now} atlas 2 `) }).waitFor();
  await looks(p, "usage-by-tag");
  await p.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  await p.getByRole("button", { name: "Copy table" }).click();
  await p.getByText("Copied").waitFor();
  const copied = (await p.evaluate(() => navigator.clipboard.readText())).split("\n").map((line) => line.split("\t"));
  assert.deepEqual(copied[0], ["Month", "project", "Requests", "Tokens", "Cost (USD)"]);
  assert.deepEqual(
    copied
      .slice(1)
      .map(([month, name, requests]) => [month, name, requests])
      .sort(),
    [
      [now, "'=bad", "1"],
      [now, "No project", "7"],
      [now, "Total", "10"],
      [now, "atlas", "2"],
    ],
  );
  assert.equal(await p.getByText(/^Export/).count(), 1, "one button exports");
  await openExport(p);
  const [file] = await Promise.all([
    p.waitForEvent("download"),
    p.getByRole("link", { name: /^[A-Z]\w+ \d{4} as CSV$/ }).click(),
  ]);
  const csv = await readFile(await file.path(), "utf8");
  assert.match(csv, new RegExp(`^"${now}",,.*"project=atlas",,\r$`, "m"));

  // The address has all of it.
  await p.reload();
  await settled(p);
  await total.getByRole("row", { name: new RegExp(`^${now} atlas 2 `) }).waitFor();
  await table.getByRole("rowheader", { name: "atlas" }).getByRole("button").click();
  await p.getByText("Filters (1)").waitFor();
  await table
    .getByRole("row", { name: /^Total 2 100% / })
    .getByRole("link")
    .first()
    .click();
  await p.getByRole("heading", { level: 1, name: "Requests" }).waitFor();
  await settled(p);
  assert.equal(new URLSearchParams(p.url().split("?")[1]).get("tag"), "project=atlas");
  const rows = p.getByRole("region", { name: "Requests", exact: true }).locator("tbody tr");
  assert.equal(await rows.count(), 2);
  await p.locator(".pop > summary").filter({ hasText: "Filters" }).click();
  await p.getByRole("textbox", { name: "Tool" }).fill("codex");
  await becomes(() => rows.count(), 1);
});

test("usage is exported as CSV", async (t) => {
  const { machineId, api } = await shared();
  const p = await openPage(t, b, machineId, "Usage");
  await p.getByRole("combobox", { name: /^Group by/ }).selectOption("model");
  await p.getByRole("rowheader", { name: "up/test-embed" }).waitFor();
  await openExport(p);
  const [file] = await Promise.all([
    p.waitForEvent("download"),
    p.getByRole("link", { name: "This period as CSV" }).click(),
  ]);
  assert.match(file.suggestedFilename(), /^usage\.csv$/);
  const lines = (await readFile(await file.path(), "utf8")).trimEnd().split("\r\n");
  assert.match(lines[0], /^\ufeffmonth,day,hour,key,connection,provider,model,endpoint,requests,failed_requests,/);
  const rows = (await api("/usage?groupBy=day,model")).data;
  assert.equal(lines.length - 1, rows.length);
  assert.ok(
    lines.some((l) => l.includes(`"up/test-embed",,1,0,1,`)),
    lines.join("\n"),
  );
});

test("without usage the page shows an empty state", async (t) => {
  const { machineId } = await b.operator.machine({ name: "Empty" });
  const usage = await openPage(t, b, machineId, "Usage");
  await usage.getByText("No requests yet").waitFor();
  await usage.getByRole("main").getByRole("link", { name: "Connect a tool" }).waitFor();
  await looks(usage, "usage-empty");
});

// A figure that the gateway counts but the dashboard does not show was forgotten
// in columns.ts.
test("every figure of usage that the gateway counts is a column", async () => {
  const folder = new URL("../../pkg/usage/", import.meta.url);
  const files = (await readdir(folder)).filter((name) => name.endsWith(".go"));
  const sources = await Promise.all(files.map((name) => readFile(new URL(name, folder), "utf8")));
  const structs = sources.flatMap((s) => s.match(/^type \w+ struct \{\n.*?^\}/gms) ?? []);
  const row = structs.find((s) => s.includes('json:"failedAttempts')) ?? ""; // the rows of GET /api/usage
  const counted = [...row.matchAll(/^\t\w+\s+(?:int64|float64)\s+`json:"(\w+)/gm)].map((m) => m[1]);
  assert.ok(counted.length > 5, counted.join());
  assert.deepEqual(
    counted.filter((name) => !columns.some((c) => c.field === name)),
    [],
  );
});

test("a column is summed, named once in each place, and shown as unknown without its base", () => {
  const row = Object.fromEntries(columns.filter((c) => c.field).map((c, i) => [c.field, i + 1]));
  const sum = {};
  addRow(sum, row);
  addRow(sum, row);
  for (const { field, highest } of columns) if (field) assert.equal(sum[field], (highest ? 1 : 2) * row[field], field);
  for (const names of [columns.map((c) => c.head), metrics.map((m) => m.metric.id)]) {
    const given = names.filter(Boolean);
    assert.equal(new Set(given).size, given.length, given.join());
  }
  const column = (field) => columns.find((c) => c.field === field);
  assert.equal(textOf(column("latencyMs"), {}), "–");
  assert.equal(textOf(column("latencyMs"), { requests: 2, latencyMs: 301 }), "151 ms");
  assert.equal(textOf(column("latencyP95Ms"), {}), "–");
  assert.equal(textOf(column("latencyP95Ms"), { latencyP95Ms: 1500 }), "≈ 1.5 s", "the middle of a range");
  assert.deepEqual(
    [17, 347, 3456, 12_345].map((latencyP95Ms) => textOf(column("latencyP95Ms"), { latencyP95Ms })),
    ["≈ 17 ms", "≈ 350 ms", "≈ 3.5 s", "≈ 12 s"],
    "accurate to a fifth",
  );
  assert.equal(textOf(column("latencyP95Ms"), { latencyP95Ms: 16 }), "≤ 16 ms", "the shortest that is told");
  assert.equal(textOf(column("cacheShare"), {}), "–");
  assert.equal(textOf(column("cacheShare"), { inputTokens: 8, cacheReadTokens: 1 }), "12.5%");
  assert.equal(textOf(column("costUsd"), { unpricedAttempts: 1 }), "–");
  assert.equal(textOf(column("costUsd"), { unpricedAttempts: 1, costUsd: 0.5 }), "≥ $0.50");
  assert.equal(textOf(column("latencyMs"), { requests: 3, refused: 1, latencyMs: 301 }), "151 ms");
  const requests = column("requests"),
    rate = columns.find((c) => c.head === "Success rate");
  assert.equal(change(requests, { requests: 3 }, { requests: 2 }), "+50%");
  assert.equal(change(requests, { requests: 1 }, { requests: 2 }), "−50%");
  assert.equal(change(requests, { requests: 2 }, { requests: 2 }), "±0%");
  assert.equal(change(requests, { requests: 2 }, {}), "");
  assert.equal(change(rate, { succeeded: 3, providerFailed: 1 }, { succeeded: 1, providerFailed: 1 }), "+25 points");
  assert.equal(change(rate, { succeeded: 4 }, {}), "");
});

test("the outcomes of the usual columns, and of the chart, add up to the requests", () => {
  const row = { requests: 31, succeeded: 1, providerFailed: 2, noAccount: 4, refused: 8, left: 16 };
  const outcomes = columns.filter((c) => c.head && !c.more && c.of?.outcome);
  for (const [what, parts] of [
    ["columns", outcomes.map((c) => amount(c, row))],
    ["chart", partsOf(columns.find((c) => c.field === "requests")).map((p) => p.value(row))],
  ])
    assert.equal(
      parts.reduce((sum, n) => sum + n),
      row.requests,
      what,
    );
});

test("groups of tags and tools as text", () => {
  for (const [group, want] of [
    ["", true],
    ["tool", true],
    ["tag:project", true],
    ["tag:", false],
    ["hour", false],
  ])
    assert.equal(isGroup(group), want, group);
  assert.equal(filterOf("tag:project"), "tag");
  assert.equal(filterOf("tool"), "tool");
  assert.equal(nameOf("project=atlas=2", "tag:project", null), "atlas=2");
  assert.equal(nameOf("", "tag:project", null), "No project");
  assert.equal(nameOf("codex", "tool", null), "codex");
  const server = "openai-compatible-0123abcd";
  const servers = serverNames([
    { provider: server, name: "" },
    { provider: server, name: "GPU server" },
    { provider: server, name: "Spare" },
    { provider: "openai", name: "Team" },
  ]);
  assert.equal(nameOf(server, "provider", { servers }), "GPU server and 2 more");
  assert.equal(nameOf(server, "provider", null), "OpenAI-compatible");
  assert.equal(nameOf("openai", "provider", { servers }), "openai");
  const unnamed = (by, total) => unnamedOf({ by, data: [], total });
  assert.equal(unnamed("key", { attempts: 2, requests: 0 }), "No key", "as the month's total says");
  assert.equal(unnamed("key", { attempts: 2, requests: 1 }), "No key");
  assert.equal(unnamed("model", { requests: 2, refused: 2 }), "Refused before routing");
  assert.equal(unnamed("model", { requests: 3, refused: 2 }), "Unknown model");
  assert.ok(hasHours("key", { key: "k" }) && !hasHours("tool", {}) && !hasHours("", { tag: "a=b" }));
  assert.deepEqual(inDays({ unit: "hour", from: "2026-11-27T19", to: "2026-11-28T18" }), {
    unit: "day",
    from: "2026-11-27",
    to: "2026-11-28",
  });
  assert.deepEqual(months(Date.UTC(2026, 0, 31), 3), ["2026-01", "2025-12", "2025-11"]);
});
