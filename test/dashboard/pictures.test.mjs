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
const update = process.env.GOLDEN === "update";

let b, machineId;
before(async () => {
  b = await bench();
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
  await b.operator.call("POST", at("/budgets"), { name: "Team", unit: "usd", limit: 50, window: "month" });
  await b.operator.call("POST", at("/budgets"), {
    name: "Requests a day",
    unit: "requests",
    limit: 200,
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
  for (let i = 0; i < 23; i++) assert.equal(await send(models[i % 4], 20 * i), 200);
  assert.equal(await send("groq/llama-3.3-70b", 1), 400);
  await recorded((path) => b.operator.call("GET", at(path)), 24);
});
after(() => b?.close());

// The past of the machine, which no call can make: what a team of five uses in a week, by
// weekday from Sunday on, and by hour.
const ofDay = [310, 1840, 2120, 2260, 2050, 1610, 280];
const ofHour = [0, 0, 0, 0, 0, 0, 1, 3, 7, 10, 11, 9, 6, 9, 11, 10, 9, 7, 4, 2, 1, 0, 0, 0]; // percent

// counts returns the usage of a number of requests; n varies it.
function counts(requests, n) {
  const providerFailed = Math.round((requests * (3 + ((n * 7) % 11))) / 1000),
    refused = Math.round(requests / 250);
  return {
    requests,
    succeeded: requests - providerFailed - refused,
    failedRequests: providerFailed + refused,
    providerFailed,
    refused,
    attempts: requests + providerFailed,
    inputTokens: requests * (2900 + 40 * (n % 5)),
    outputTokens: requests * (410 + 15 * (n % 7)),
    costUsd: requests * (0.0062 + 0.0003 * (n % 4)),
    latencyMs: requests * 1840,
    latencyP95Ms: 4200 + 130 * (n % 6),
  };
}

// week lets the overview read that past.
const week = (page) =>
  page.route(/\/api\/usage\?period=(24h&groupBy=hour|7d&groupBy=day)$/, async (route) => {
    const real = await (await route.fetch()).json();
    const byDay = route.request().url().endsWith("day"),
      stepMs = byDay ? 86_400_000 : 3_600_000,
      last = Date.parse(byDay ? real.to : `${real.to}:00Z`);
    const data = Array.from({ length: byDay ? 7 : 24 }, (_, i) => {
      const at = new Date(last - i * stepMs);
      const day = ofDay[at.getUTCDay()];
      const row = counts(byDay ? day : Math.round((day * ofHour[at.getUTCHours()]) / 100), i);
      return byDay ? { day: at.toISOString().slice(0, 10), ...row } : { hour: at.toISOString().slice(0, 13), ...row };
    });
    const total = {};
    for (const { day, hour, ...row } of data)
      for (const [name, n] of Object.entries(row)) total[name] = (total[name] ?? 0) + n;
    total.latencyP95Ms = Math.max(...data.map((row) => row.latencyP95Ms));
    await route.fulfill({ json: { ...real, data, total } });
  });

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
    await week(p);
    await p.goto(`${b.url}/#/m/${machineId}/${at}`);
    await p.getByRole("heading", { level: 1, name: heading }).waitFor();
    await settled(p);
    if (update) {
      mkdirSync(images, { recursive: true });
      await p.screenshot({ path: join(images, file) });
    }
    assert.ok(existsSync(join(images, file)), `${file} is missing: GOLDEN=update`);
  });

const tour = "tour.png";

test(`docs/images/${tour} is a tour of 20 seconds`, async (t) => {
  const page = await open(t, b, { at: `#/m/${machineId}/settings`, viewport: { width: 1120, height: 700 } });
  page.setDefaultTimeout(30_000);
  await week(page);
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
