// The documentation as the gateway serves it at /docs.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import MiniSearch from "minisearch";
import { accessible, becomes, bench, looks, open } from "./browser.mjs";
import { excerpt, find, indexOf } from "../../worker/site/assets/search.js";
import { navigation } from "../../worker/site/navigation.mjs";
import { words } from "../../worker/site/words.mjs";

let b;
before(async () => {
  b = await bench();
});
after(() => b?.close());

const get = (path) => b.gateway.fetch(path, { redirect: "manual" });

// crawl fetches every page that links lead to, from the first one on, and returns
// its HTML by path.
async function crawl() {
  const pages = new Map();
  const wanted = ["/docs/"];
  for (let path = wanted.pop(); path; path = wanted.pop()) {
    if (pages.has(path)) continue;
    const res = await get(path);
    assert.equal(res.status, 200, path);
    const html = await res.text();
    pages.set(path, html);
    for (const [, link] of html.matchAll(/ (?:href|src)="([^"]+)"/g)) {
      const to = new URL(link, `http://docs.example${path}`);
      if (to.host !== "docs.example" || to.pathname === "/") continue; // the dashboard
      assert.match(to.pathname, /^\/(docs\/|openapi\.json$)/, `${path} links to ${link}`);
      wanted.push(to.pathname);
    }
  }
  return pages;
}

test("an error leads to the entry of its code in every dialect", async (t) => {
  const page = await open(t, b, { as: null, failures: ["GET /api/session 401"] });
  for (const [path, key, urlOf] of [
    ["/v1/embeddings", "authorization", (body) => body.error.doc_url],
    ["/v1/messages", "x-api-key", (body) => body.error.doc_url],
    [
      "/v1beta/models/x:generateContent",
      "x-goog-api-key",
      (body) => body.error.details.find((d) => d["@type"].endsWith(".Help")).links[0].url,
    ],
    ["/api/machines", "authorization", (body) => body.error.doc_url],
  ]) {
    const res = await b.gateway.fetch(path, {
      method: "POST",
      headers: { "content-type": "application/json", [key]: "Bearer sk-wrong" },
      body: "{}",
    });
    const url = new URL(urlOf(await res.json()));
    assert.deepEqual([url.origin, url.pathname], [b.url, "/docs/reference/errors"], path);
    await page.goto(url.href);
    const entry = page.locator(`[id="${url.hash.slice(1)}"]`);
    await entry.waitFor();
    assert.ok((await entry.innerText()).startsWith(url.hash.slice(1)), path);
  }
});

test("each provider has a page, and its dialog leads there", async (t) => {
  const { machineId } = await b.operator.machine({ name: "Test" });
  const { data } = await b.operator.call("GET", `/${machineId}/api/catalog/providers`);
  for (const id of [...data.map((p) => p.id), "openai-compatible", "anthropic-compatible"])
    assert.equal((await get(`/docs/providers/${id}`)).status, 200, id);
  const page = await open(t, b, { at: `#/m/${machineId}/providers/add` });
  for (const [name, id] of [
    ["Groq", "groq"],
    ["OpenAI-compatible", "openai-compatible"],
    ["LM Studio", "openai-compatible"],
  ]) {
    await page
      .getByRole("button", { name: `Add ${name}` })
      .first()
      .click();
    const link = page.getByRole("dialog").getByRole("link", { name: `About ${name} and its models` });
    assert.equal(await link.getAttribute("href"), `/docs/providers/${id}`);
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
  }
  await page.goto(`${b.url}/docs/providers/groq`);
  await page.getByRole("heading", { level: 1, name: "Groq" }).waitFor();
  await looks(page, "docs-provider");
});

test("every page is reached by links, and every link leads to a page and a place on it", async () => {
  const pages = await crawl();
  const ids = new Map(
    [...pages].map(([path, html]) => [path, new Set([...html.matchAll(/ id="([^"]+)"/g)].map((m) => m[1]))]),
  );
  const broken = [];
  for (const [path, html] of pages)
    for (const [, link] of html.matchAll(/ href="([^"]+)"/g)) {
      const to = new URL(link, `http://docs.example${path}`);
      const id = decodeURIComponent(to.hash.slice(1));
      if (to.host === "docs.example" && id && !ids.get(to.pathname).has(id)) broken.push(`${path}: ${link}`);
    }
  assert.deepEqual(broken, []);
  const files = readdirSync("docs", { recursive: true })
    .filter((f) => f.endsWith(".md"))
    .map((f) => `/docs/${f.replace(/\.md$/, "").replace(/(^|\/)README$/, "$1")}`);
  assert.deepEqual(
    files.filter((f) => !pages.has(f)),
    [],
  );
  for (const group of navigation) for (const path of group.pages) assert.ok(pages.has(`/docs/${path}`), path);
  for (const [path, html] of pages)
    if (html.startsWith("<!doctype")) assert.doesNotMatch(html, /<script(?![^>]* src=)|<style| style=|\son\w+=/, path);
});

test("each error code has an entry of its own", async () => {
  const html = await (await get("/docs/reference/errors")).text();
  const codes = [...readFileSync("docs/reference/errors.md", "utf8").matchAll(/^\| `(\w+)` \|/gm)].map((m) => m[1]);
  assert.ok(codes.length > 60);
  for (const code of codes) assert.ok(html.includes(`<tr id="${code}">`), code);
});

test("/docs leads to /docs/, and a page that does not exist is 404", async () => {
  const res = await get("/docs");
  assert.equal(res.status, 307);
  assert.equal(new URL(res.headers.get("location"), b.url).pathname, "/docs/");
  for (const path of ["/docs/nothing", "/docs/guides/nothing"]) {
    const nothing = await get(path);
    assert.equal(nothing.status, 404, path);
    assert.match(nothing.headers.get("content-type"), /^text\/html/);
    const html = await nothing.text();
    assert.match(html, /Page not found/);
    for (const [, link] of html.matchAll(/ (?:href|src)="([^"]+)"/g))
      assert.equal((await get(new URL(link, b.url).pathname)).status, 200, link);
  }
  for (const [path, status] of [
    ["/docs/keys", 200],
    ["/openapi.json", 200],
    ["/docs/nothing", 404],
  ]) {
    const head = await b.gateway.fetch(path, { method: "HEAD" });
    assert.deepEqual([head.status, await head.text()], [status, ""], path);
  }
  const text = await (await get("/llms.txt")).text();
  assert.match(text, /^# weir\n/);
  for (const [, path] of text.matchAll(/\]\((\/docs\/[^)]*)\)/g)) assert.equal((await get(path)).status, 200, path);
});

test("the search finds a section, and the keyboard opens it", async (t) => {
  const page = await open(t, b, { as: null, at: "docs/" });
  await page.keyboard.press("/");
  const field = page.getByRole("combobox", { name: "Search the documentation" });
  await field.fill("idempotency keys");
  await page.getByRole("option").first().waitFor();
  await accessible(page, "the results of a search");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await page.waitForURL(/\/docs\/creations#idempotency-keys$/);
  await field.fill("zzzzqqqq");
  await page.getByText("No results for “zzzzqqqq”.").waitFor();
  await page.keyboard.press("Escape");
  await becomes(() => page.getByText("No results for").isVisible(), false);
});

// asked are what readers type, and the page that must come first.
const asked = {
  budget: "guides/budgets",
  "spending limit": "guides/budgets",
  slack: "guides/alerts",
  discord: "guides/alerts",
  webhook: "guides/alerts",
  alert: "guides/alerts",
  notifications: "guides/alerts",
  "email notification": "guides/alerts",
  rotate: "keys",
  "leaked key": "guides/leaked-token",
  "stolen key": "guides/leaked-token",
  compromised: "guides/leaked-token",
  "second admin": "guides/team",
  "add a colleague": "guides/team",
  team: "guides/team",
  invite: "guides/team",
  "one-api": "guides/from-other-gateways",
  "rate limit": "keys",
  invoice: "guides/spend",
  "monthly limit": "guides/budgets",
  "daily limit": "guides/budgets",
  "spending cap": "guides/budgets",
  "cost limit per user": "guides/budgets",
  "rate limit per key": "keys",
  csv: "keys",
  "self host": "guides/self-hosting",
  "self-hosted": "guides/self-hosting",
  docker: "guides/self-hosting",
  kubernetes: "guides/several-servers",
  backup: "guides/self-hosting",
  restore: "guides/self-hosting",
  logs: "guides/self-hosting",
  database: "guides/self-hosting",
  proxy: "guides/self-hosting",
  tls: "guides/self-hosting",
  windows: "guides/self-hosting",
  uninstall: "guides/self-hosting",
  "forgot token": "guides/leaked-token",
  "lost operator token": "guides/leaked-token",
  password: "guides/self-hosting",
  "move to a server": "guides/self-hosting",
  https: "guides/self-hosting",
  nginx: "guides/self-hosting",
  429: "troubleshooting",
  "too many requests": "troubleshooting",
  failover: "fallback",
  "fall back": "fallback",
  retry: "fallback",
  timeout: "fallback",
  streaming: "calls",
  sse: "calls",
  "server-sent events": "calls",
  "tool calls": "calls",
  "function calling": "calls",
  reasoning: "calls",
  "extended thinking": "calls",
  reasoning_effort: "calls",
  "chain of thought": "calls",
  "structured outputs": "calls",
  "json mode": "calls",
  vision: "calls",
  embeddings: "calls",
  "batch api": "calls",
  "responses api": "calls",
  "speech to text": "calls",
  swagger: "reference/index",
  healthcheck: "guides/several-servers",
  "master key": "guides/from-other-gateways",
  "sticky session": "routing",
  oauth: "connections",
  vllm: "connections",
  "load balancing": "connections",
  codex: "guides/codex",
  "claude code": "guides/claude-code",
  "cladue code": "guides/claude-code",
  cursor: "guides/cursor",
  openrouter: "providers/openrouter",
  "openrouter key": "providers/openrouter",
  "getting started": "quick-start",
  update: "upgrading",
  upgrade: "upgrading",
  price: "prices",
  cost: "prices",
  "idempotency keys": "creations",
  privacy: "privacy",
  gdpr: "privacy",
  "how fast is it": "benchmark",
  "store prompts": "guides/captured-bodies",
  "prompt logging": "guides/captured-bodies",
  "claude max": "faq",
  "claude pro": "faq",
  "chatgpt plus": "faq",
  subscription: "faq",
  "streaming stops": "troubleshooting",
  crash: "troubleshooting",
  "connection refused": "troubleshooting",
  "base url": "clients",
  "cost per user": "guides/spend",
  "delete key": "keys",
  "export csv": "keys",
  "env variables": "guides/self-hosting",
  "change password": "guides/self-hosting",
  "custom model": "concepts",
  jetbrains: "guides/continue",
  passkey: "guides/sign-in",
  mfa: "guides/sign-in",
  "high availability": "guides/several-servers",
  postgres: "guides/several-servers",
  gitops: "guides/configuration-file",
  "audit log": "security",
  "reset budget": "guides/budgets",
  "delete a person": "guides/team",
  "redact pii": "guides/captured-bodies",
  "delete machine": "guides/command-line",
  ollama: "providers/ollama",
  license: "faq",
  rollback: "upgrading",
  "change port": "guides/self-hosting",
  "invalid api key": "troubleshooting",
  sso: "guides/sign-in",
  "cloudflare cost": "guides/cost",
  domain: "deploying",
  "hide models": "concepts",
  encryption: "security",
  "disable telemetry": "faq",
  "status page": "guides/health",
  "migrate from litellm": "guides/from-other-gateways",
};

// messages are texts of errors, and their codes.
const messages = {
  "unknown model": "model_not_found",
  'Unknown model "gpt-9".': "model_not_found",
  "The model 'gpt-9' does not exist or you do not have access to it.": "model_not_found",
  "No OpenAI account is connected: connect one, or choose another model.": "no_credentials",
  "The account main of this model is paused.": "no_credentials",
  "No account of provider openai has usable credentials.": "no_credentials",
  "This gateway finds no such API key": "machine_required",
  "The provider refuses the credentials of main.": "account_key_refused",
  "The provider's account has no credit left.": "insufficient_quota",
  "No route POST /chat/completions.": "not_found",
  "Provider groq has no endpoint for this request.": "unsupported_endpoint",
  "/v1/assistants is not offered by this gateway.": "not_implemented",
  "This API key may not use the model.": "model_not_allowed",
  "Your role on this machine does not include this.": "role_required",
  "Sign in again: the session has ended.": "session_expired",
  "The stored credentials cannot be decrypted": "key_unavailable",
  "The connection to the provider was lost. Try again.": "upstream_reset",
  "The provider ended the stream before the answer was complete.": "upstream_cut",
  "The gateway serves as many calls as it can at the moment.": "overloaded",
};

test("a result shows the sentence that has most of the words", () => {
  const text = "A key is one thing.\nrpm · requests per minute\nThe key is paused. Resume it.";
  assert.deepEqual(excerpt(text, ["key", "paused"]), ["The ", "key", " is ", "paused", ". Resume it."]);
  assert.deepEqual(excerpt(text, ["minute"]), ["rpm · requests per ", "minute", " The key is paused. Resume it."]);
  assert.deepEqual(excerpt(text, []), [text]);
  const long = excerpt(`${"word ".repeat(100)}key and more`, ["key"]);
  assert.ok(long[0].startsWith("…word") && long[0].length < 60, long.join("|"));
  assert.equal(long[1], "key");
  assert.deepEqual(excerpt("a $x^ b", ["$x^"]), ["a ", "$x^", " b"]);
});

test("the search finds what readers call a thing", async () => {
  const index = indexOf(MiniSearch, await (await get("/docs/search.json")).json());
  const first = (query) => find(index, query)[0]?.url.replace(/\.html$/, "");
  assert.deepEqual(Object.fromEntries(Object.keys(asked).map((query) => [query, first(query)])), asked);
  // Other words than those that are typed are found at their beginning only.
  for (const { terms } of find(index, "slack"))
    assert.ok(
      terms.every((term) => term.startsWith("slack")),
      `${terms}`,
    );
  // An error is found by its code, by what the table says of it, and by the message.
  const placed = (query, n) =>
    find(index, query)
      .slice(0, n)
      .map((s) => `${s.url.replace(".html", "")}#${s.anchor}`);
  const missed = [];
  const rows = readFileSync("docs/reference/errors.md", "utf8")
    .replace(/\]\([^)]*\)/g, "]")
    .matchAll(/^\| `(\w+)` \|[^|]*\|([^|]*)\|/gm);
  for (const [, code, meaning] of rows)
    for (const [query, n] of [
      [code, code.includes("_") ? 1 : 12], // the list has twelve
      [meaning, 5],
    ])
      if (!placed(query, n).includes(`reference/errors#${code}`)) missed.push(`${code}: ${query}`);
  for (const [message, code] of Object.entries(messages))
    if (!placed(message, 3).includes(`reference/errors#${code}`)) missed.push(`${message}: ${placed(message, 3)}`);
  assert.deepEqual(missed, []);
  const places = new Set(
    (await (await get("/docs/search.json")).json()).map(
      (s) => `${s.url.replace(/(^|\/)index\.html$|\.html$/, "$1")}#${s.anchor}`,
    ),
  );
  for (const place of Object.keys(words)) if (place.includes("#")) assert.ok(places.has(place), `there is no ${place}`);
});

test("a release states its version, and leads from each page to its source", (t) => {
  const folder = mkdtempSync(join(tmpdir(), "weir-docs-"));
  t.after(() => rmSync(folder, { recursive: true }));
  // footers builds the pages and returns the end of each.
  const footers = (name, env) => {
    const out = join(folder, name, "docs");
    const eleventy = ["node_modules/@11ty/eleventy/cmd.cjs", "--config", "worker/site/eleventy.config.mjs"];
    execFileSync(process.execPath, [...eleventy, "--output", out], { env: { ...process.env, REPOSITORY: "", ...env } });
    const pages = readdirSync(out, { recursive: true }).filter((f) => f.endsWith(".html"));
    return pages.map((f) => [f, readFileSync(join(out, f), "utf8").split("<footer>")[1]]);
  };
  const repository = "https://git.example/owner/weir";
  for (const [page, footer] of footers("release", { WEIR_VERSION: "v1.2.3", REPOSITORY: repository })) {
    assert.ok(footer.includes("<li>weir v1.2.3</li>"), page);
    assert.ok(footer.includes(`<a href="${repository}/releases">Other versions</a>`), page);
    const source = /href="([^"]*)">Edit this page/.exec(footer)?.[1];
    if (page === "404.html" || page === "reference/api.html") assert.equal(source, undefined, page);
    else assert.ok(existsSync(source.replace(`${repository}/edit/main/`, "")), `${page}: ${source}`);
  }
  const start = readFileSync(join(folder, "release/docs/quick-start.html"), "utf8");
  assert.ok(start.includes(`${repository}/releases/latest/download/install.sh`));
  for (const [page, footer] of footers("clone", { WEIR_VERSION: "1234567" })) {
    assert.ok(footer.includes("<li>weir 1234567</li>"), page);
    assert.doesNotMatch(footer, /Other versions|Edit this page/, page);
  }
});

test("a page has its contents, its neighbours and buttons that copy its code", async (t) => {
  const page = await open(t, b, { as: null, at: "docs/keys" });
  await page.setViewportSize({ width: 1400, height: 900 });
  const here = page.getByRole("navigation", { name: "On this page" });
  await here.getByRole("link", { name: "Rotating a key" }).click();
  await page.waitForURL(/#rotating-a-key$/);
  await page.getByRole("navigation", { name: "Previous and next page" }).getByRole("link", { name: "Next" }).click();
  await page.waitForURL(/\/docs\/clients$/);
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  const block = page.locator("main .code").first();
  await block.hover();
  await block.getByRole("button", { name: "Copy" }).click();
  await block.getByRole("button", { name: "Copied" }).waitFor();
  const copied = await page.evaluate(() => navigator.clipboard.readText());
  assert.equal(copied, (await block.locator("pre").innerText()).trimEnd());
});

test("the theme is the system's until one is chosen, which stays", async (t) => {
  const page = await open(t, b, { as: null, at: "docs/quick-start", dark: true });
  const background = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const dark = await background();
  await page.getByRole("button", { name: "Light" }).click();
  await becomes(async () => (await background()) === dark, false);
  await page.getByRole("link", { name: "Concepts" }).first().click();
  await page.getByRole("heading", { name: "Concepts", level: 1 }).waitFor();
  assert.notEqual(await background(), dark);
});

// The files are the same on both platforms.
test("pages are readable on a desktop and on a phone", { skip: process.env.PLATFORM !== "native" }, async (t) => {
  const page = await open(t, b, { as: null, at: "docs/" });
  await looks(page, "docs");
  await page.goto(`${b.url}/docs/guides/codex`);
  await looks(page, "docs-guide");
  await page.goto(`${b.url}/docs/reference/api`);
  await accessible(page, "the API page");
});

test("on a phone a button opens the list of pages", async (t) => {
  const page = await open(t, b, { as: null, at: "docs/", phone: true });
  const link = page.getByRole("navigation", { name: "Pages" }).getByRole("link", { name: "Quick start" });
  await becomes(() => link.isVisible(), false);
  await page.getByRole("button", { name: "Menu" }).click();
  await link.click();
  await page.getByRole("heading", { name: "Quick start", level: 1 }).waitFor();
});

test("the diagram of the first page follows the theme", async (t) => {
  for (const dark of [true, false]) {
    const page = await open(t, b, { as: null, at: "docs/", dark });
    const picture = await page.getByRole("img", { name: /^Clients call weir/ }).screenshot();
    const brightness = await page.evaluate(async (png) => {
      const image = new Image();
      image.src = `data:image/png;base64,${png}`;
      await image.decode();
      const canvas = new OffscreenCanvas(image.width, image.height).getContext("2d", { willReadFrequently: true });
      canvas.drawImage(image, 0, 0);
      return [0.01, 0.05].map((x) => canvas.getImageData(x * image.width, 0.15 * image.height, 1, 1).data[0]);
    }, picture.toString("base64"));
    assert.ok(
      brightness.every((of) => (dark ? of < 64 : of > 192)),
      `page and box: ${brightness}`,
    );
  }
});
