// The pictures of the README and of the documentation: a machine as a small team uses
// it. With GOLDEN=update they are written to docs/images; otherwise the test checks that
// each page still shows what its picture does, and that each picture is used.
import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { compatible } from "../e2e/gateway.mjs";
import { animated, chunksOf } from "./apng.mjs";
import { bench, open, settled } from "./browser.mjs";
import { recorded } from "./used.mjs";

const root = fileURLToPath(new URL("../../", import.meta.url));
const images = join(root, "docs/images");
const made = 24; // calls
const update = process.env.GOLDEN === "update";

let b, machineId, real; // real is the usage of the calls of this test
before(async () => {
  b = await bench();
  // Providers take their time, and their status pages report no problem.
  let calls = 0;
  b.upstream.script = (got) => {
    if (got.path.endsWith("/summary.json"))
      return { body: JSON.stringify({ status: { indicator: "none", description: "All systems operational" } }) };
    if (!/completions|messages/.test(got.path) || /!status/.test(got.json?.model)) return null;
    return `delay=${700 + 290 * ((5 * calls++) % 11)}`;
  };
  const machine = await b.operator.machine({ name: "Team" });
  machineId = machine.machineId;
  const at = (path) => `/${machineId}/api${path}`;
  await b.operator.connect(machineId, { provider: "openai", name: "Team billing", apiKey: "sk-0123456789abcdef0123" });
  await b.operator.connect(machineId, { provider: "openai", name: "Personal", apiKey: "sk-0123456789abcdef4567" });
  await b.operator.connect(machineId, { provider: "anthropic", name: "Team", apiKey: "sk-ant-0123456789abcdef" });
  await b.operator.connect(machineId, compatible(b.upstream, { prefix: "vllm", name: "GPU server" }));
  await b.operator.call("POST", at("/combos"), {
    name: "smart",
    models: ["vllm/llama-3.3-70b!status=503", "anthropic/claude-sonnet-4-5"],
  });
  await b.operator.call("POST", at("/budgets"), { name: "Team", unit: "usd", limit: 1000, window: "month" });
  await b.operator.call("POST", at("/budgets"), {
    name: "Requests a day",
    unit: "requests",
    limit: 3000,
    window: "day",
  });
  const send = async (model, words) => {
    const res = await b.gateway.fetch("/v1/chat/completions", {
      method: "POST",
      headers: { authorization: `Bearer ${machine.apiKey}`, "content-type": "application/json" },
      body: JSON.stringify({ model, messages: [{ role: "user", content: "Hello ".repeat(words) }] }),
    });
    await res.text();
    return res.status;
  };
  const models = ["openai/gpt-4.1-mini", "smart", "anthropic/claude-sonnet-4-5", "openai/gpt-4.1"];
  const sent = [];
  for (let i = 0; i < made - 1; i++) {
    sent.push(send(models[i % 4], 200 + 60 * i));
    await new Promise((r) => setTimeout(r, 300));
  }
  const answers = await Promise.all(sent);
  assert.deepEqual([...new Set(answers)], [200]);
  assert.equal(await send("groq/llama-3.3-70b", 1), 400);
  await recorded((path) => b.operator.call("GET", at(path)), made);
  await until(async () => {
    real = (await b.operator.call("GET", at("/usage?period=7d&groupBy=day"))).total;
    return real.requests === made;
  });
});
after(() => b?.close());

// until waits until check returns true.
async function until(check) {
  for (const end = Date.now() + 60_000; !(await check()); await new Promise((r) => setTimeout(r, 100)))
    assert.ok(Date.now() < end);
}

// The past of the machine, which no call can make: what a team of five uses in a week, by
// weekday from Sunday on, and by hour. All figures are sums of these hours, and each request
// has the tokens and the cost of the mean of the real ones.
const ofDay = [310, 1840, 2120, 2260, 2050, 1610, 280];
const ofHour = [0, 0, 0, 0, 0, 0, 1, 3, 7, 10, 11, 9, 6, 9, 11, 10, 9, 7, 4, 2, 1, 0, 0, 0]; // percent
const hourMs = 3_600_000,
  now = Date.now();

// hour returns the usage of an hour up to now.
function hour(at) {
  const date = new Date(at),
    share = Math.min(1, (now - at) / hourMs),
    n = date.getUTCHours() + 3 * date.getUTCDay();
  const requests = Math.round((share * ofDay[date.getUTCDay()] * ofHour[date.getUTCHours()]) / 100),
    providerFailed = Math.round((requests * (3 + ((n * 7) % 11))) / 1000),
    refused = Math.round(requests / 250);
  const each = (name) => Math.round(requests * (0.9 + 0.05 * (n % 5)) * (real[name] / real.requests));
  return {
    requests,
    succeeded: requests - providerFailed - refused,
    failedRequests: providerFailed + refused,
    providerFailed,
    refused,
    attempts: requests + providerFailed,
    inputTokens: each("inputTokens"),
    outputTokens: each("outputTokens"),
    costUsd: requests * (0.9 + 0.05 * (n % 5)) * (real.costUsd / real.requests),
    latencyMs: requests * 1840,
    ...(requests && { latencyP95Ms: 3100 + 90 * (n % 6) }),
  };
}

// used returns the usage of the hours from one to before another.
function used(from, to) {
  const sum = {};
  for (let at = from; at < Math.min(to, now); at += hourMs)
    for (const [name, n] of Object.entries(hour(at)))
      sum[name] = name === "latencyP95Ms" ? Math.max(sum[name] ?? 0, n) : (sum[name] ?? 0) + n;
  return sum;
}

// ratePerHour returns the requests of the last sixty minutes.
function ratePerHour() {
  const start = Math.floor(now / hourMs) * hourMs;
  return Math.round(used(start, now).requests + (1 - (now - start) / hourMs) * hour(start - hourMs).requests);
}

// past lets the pages read that past.
async function past(page) {
  const today = Math.floor(now / (24 * hourMs)) * 24 * hourMs,
    month = new Date(now).setUTCHours(0, 0, 0, 0) - (new Date(now).getUTCDate() - 1) * 24 * hourMs,
    lastHour = Math.max(6, ratePerHour());
  const answers = (path, change) =>
    page.route(path, async (route) => {
      const answer = await route.fetch();
      await route.fulfill({ response: answer, json: change(await answer.json(), route.request().url()) });
    });
  await answers(/\/api\/usage\?/, (report, url) => {
    const byHour = /groupBy=hour/.test(url),
      stepMs = (byHour ? 1 : 24) * hourMs;
    const start = (time) => Date.parse(byHour ? `${time}:00Z` : time);
    const data = [];
    for (let at = start(report.from); at <= start(report.to); at += stepMs) {
      const time = new Date(at).toISOString().slice(0, byHour ? 13 : 10);
      data.push({ [byHour ? "hour" : "day"]: time, ...used(at, at + stepMs) });
    }
    return {
      ...report,
      data,
      groups: undefined,
      unpriced: [],
      total: used(start(report.from), start(report.to) + stepMs),
    };
  });
  // The requests are as many as those of the last hour, and the latest one is the last of them.
  const moved = (r) => ({ ...r, at: r.at - ((made - r.seq) * hourMs) / lastHour });
  await answers(/\/api\/requests(\?|\/)/, (answer) =>
    answer.data ? { ...answer, data: answer.data.map(moved) } : moved(answer),
  );
  // Accounts have their share of that cost.
  const share = (n, from) => n * (used(from, now).costUsd / real.costUsd);
  await answers(/\/api\/providers$/, (answer) => ({
    ...answer,
    data: answer.data.map((c) => ({
      ...c,
      spentTodayUsd: share(c.spentTodayUsd, today),
      spentMonthUsd: share(c.spentMonthUsd, month),
      lastHour: {
        attempts: Math.round(c.lastHour.attempts * (lastHour / real.requests)),
        failedAttempts: Math.round(c.lastHour.failedAttempts * (lastHour / real.requests)),
      },
    })),
  }));
  await answers(/\/api\/health\/timeline\?/, (answer) => ({
    ...answer,
    data: answer.data.map((row) => ({
      ...row,
      steps: Array.from({ length: answer.steps }, (_, i) => answer.from + i * answer.stepMs)
        .filter((at) => hour(at).requests > 0)
        .map((at) => ({ ...row.steps.at(-1), at })),
    })),
  }));
}

const pictures = [
  { file: "overview.png", at: "overview", heading: "Overview" },
  { file: "overview-dark.png", at: "overview", heading: "Overview", dark: true },
  { file: "providers.png", at: "providers", heading: "Providers" },
  { file: "requests.png", at: "requests", heading: "Requests" },
  { file: "usage.png", at: "usage", heading: "Usage" },
  { file: "connect.png", at: "connect", heading: "Connect a tool" },
];

for (const { file, at, heading, dark } of pictures)
  test(`docs/images/${file} shows ${heading}`, async (t) => {
    const p = await open(t, b, { at: `#/m/${machineId}/settings`, dark, viewport: { width: 1280, height: 800 } });
    await past(p);
    await p.goto(`${b.url}/#/m/${machineId}/${at}`);
    await p.getByRole("heading", { level: 1, name: heading }).waitFor();
    await settled(p);
    if (update) {
      mkdirSync(images, { recursive: true });
      await p.screenshot({ path: join(images, file) });
    }
    assert.ok(existsSync(join(images, file)), `${file} is missing: GOLDEN=update`);
  });

test("the figures of the pictures agree", async (t) => {
  const p = await open(t, b, { at: `#/m/${machineId}/settings` });
  await past(p);
  const dollars = (text) => Number(/\$([\d,.]+)/.exec(text)?.[1].replaceAll(",", "") ?? 0);
  await p.goto(`${b.url}/#/m/${machineId}/overview`);
  const spend = p.getByRole("table", { name: "Last 7 days" }).getByRole("row").filter({ hasText: "Spend" });
  await spend.waitFor();
  const days = (await spend.getByRole("cell").allInnerTexts()).map(dollars);
  await p.goto(`${b.url}/#/m/${machineId}/usage`);
  await p.getByText(/^\$\d/).first().waitFor();
  const week = dollars(await p.locator(".tilerow").first().innerText());
  await p.goto(`${b.url}/#/m/${machineId}/providers`);
  await settled(p);
  const accounts = (await p.getByText(/^\$.* today/).allInnerTexts()).map(dollars);
  const sum = (all) => all.reduce((a, c) => a + c, 0);
  const near = (a, c) => assert.ok(Math.abs(a - c) < 0.05, `${a} and ${c}`);
  near(sum(days), week);
  near(sum(accounts), days.at(-1));
});

const tour = "tour.png";

test(`docs/images/${tour} is a tour of 20 seconds`, async (t) => {
  const page = await open(t, b, { at: `#/m/${machineId}/settings`, viewport: { width: 1120, height: 700 } });
  page.setDefaultTimeout(30_000);
  await past(page);
  const frames = [];
  const frame = async (ms) => {
    await settled(page);
    frames.push([await page.screenshot(), ms]);
  };
  const find = async (text, heading) => {
    await page.keyboard.press("Control+k");
    await page.getByRole("combobox", { name: /^Search pages/ }).fill(text);
    await page.getByRole("option", { name: `${heading} Page`, selected: true }).waitFor();
    await frame(2000);
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { level: 1, name: heading }).waitFor();
  };
  await page.goto(`${b.url}/#/m/${machineId}/overview`);
  await page.getByRole("table", { name: "Last 7 days" }).waitFor();
  await frame(4000);
  await find("prov", "Providers");
  await frame(2500);
  await page.goto(`${b.url}/#/m/${machineId}/connect/codex`);
  await page.getByRole("heading", { level: 1, name: "Connect Codex CLI" }).waitFor();
  await frame(2500);
  await find("keys", "Keys");
  await frame(2000);
  await page.goto(`${b.url}/#/m/${machineId}/requests`);
  await page.getByRole("heading", { level: 1, name: "Requests" }).waitFor();
  await frame(2500);
  await page.getByRole("row").filter({ hasText: "smart" }).first().getByRole("link").first().click();
  await page.getByRole("dialog", { name: "Request" }).waitFor();
  await frame(2500);
  if (update) writeFileSync(join(images, tour), animated(frames));
  const made = readFileSync(join(images, tour));
  const delays = chunksOf(made)
    .filter(([type]) => type === "fcTL")
    .map(([, data]) => data.readUInt16BE(20));
  assert.equal(
    delays.reduce((sum, ms) => sum + ms),
    20_000,
  );
  assert.ok(made.length <= 1_500_000, `${made.length} bytes`);
});

test("each picture is used, and no other is there", () => {
  const pages = readdirSync(join(root, "docs"))
    .filter((f) => f.endsWith(".md"))
    .map((f) => `docs/${f}`);
  const texts = ["README.md", ...pages].map((f) => readFileSync(join(root, f), "utf8")).join("\n");
  const files = [...new Set(pictures.map(({ file }) => file)), tour];
  assert.deepEqual(readdirSync(images).sort(), files.sort());
  const unused = files.filter((file) => !texts.includes(`images/${file}`));
  assert.deepEqual(unused, []);
});
