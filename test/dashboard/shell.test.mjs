// How the dashboard is served, and the frame of its pages.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { gzipSync } from "node:zlib";
import { Validator } from "@seriousme/openapi-schema-validator";
import { becomes, bench, looks, open, settled, signIn } from "./browser.mjs";
import { secrets } from "../e2e/gateway.mjs";
import { used } from "./used.mjs";

// Bytes of all answers, with styles and the data of the page.
const maxSignIn = 32 << 10,
  maxFirstView = 60 << 10;

let b;
before(async () => {
  b = await bench();
});
after(() => b?.close());

test("every file has the security headers", async () => {
  const want = {
    "content-security-policy":
      "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; media-src blob:; connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'; require-trusted-types-for 'script'; trusted-types 'none'",
    "x-frame-options": "DENY",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "strict-transport-security": "max-age=31536000",
    "cross-origin-opener-policy": "same-origin",
    "access-control-allow-origin": null,
  };
  const html = await (await b.gateway.fetch("/")).text();
  const files = [...html.matchAll(/(?:src|href)="(\/assets\/[^"]+)"/g)].map((m) => m[1]);
  assert.ok(files.length >= 3);
  for (const path of ["/", ...files]) {
    const res = await b.gateway.fetch(path);
    await res.arrayBuffer();
    assert.equal(res.status, 200, path);
    for (const [name, value] of Object.entries(want)) assert.equal(res.headers.get(name), value, `${path} ${name}`);
    if (/-[\w-]{8}\.(js|css)$/.test(path)) assert.match(res.headers.get("cache-control"), /immutable/);
  }
  assert.doesNotMatch(html, /<script(?![^>]* src=)|<style|\son\w+=|https?:/);
});

test("the description of the API is served, and is OpenAPI 3.1", async () => {
  const res = await b.gateway.fetch("/openapi.json");
  assert.equal(res.status, 200);
  assert.equal(res.headers.get("content-type"), "application/json");
  assert.equal(res.headers.get("access-control-allow-origin"), "*");
  assert.equal(res.headers.get("cross-origin-resource-policy"), "cross-origin");
  const document = await res.json();
  const { valid, errors } = await new Validator().validate(document);
  assert.ok(valid, JSON.stringify(errors));
  assert.ok(document.paths["/v1/chat/completions"].post && document.paths["/api/keys"].get);
});

test("the dashboard is served at / only", async () => {
  for (const [path, status] of [
    ["/health", 200],
    ["/v1/models", 401],
    ["/v1", 404],
    ["/api/session", 200],
    ["/abcdefgh01234567/v1/models", 401],
    ["/abcdefgh01234567/api/providers", 401],
    ["/oauth/callback", 0],
    ["/index.html", 404],
    ["/providers", 404],
    ["/favicon.ico", 404],
  ]) {
    const res = await b.gateway.fetch(path, {
      headers: { accept: "text/html", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document" },
    });
    const text = await res.text();
    if (status) assert.equal(res.status, status, path);
    assert.doesNotMatch(text, /<div id="app">/, path);
  }
  const post = await b.gateway.fetch("/", { method: "POST", body: "{}" });
  assert.equal(post.status, 405);
});

test("the first view is small", async (t) => {
  const { machineId } = await used(b);
  const page = await open(t, b, { as: null, at: `#/m/${machineId}/overview` });
  await settled(page);
  await page.waitForLoadState("networkidle"); // what is under way has no body after the reload
  // Files are compressed by both platforms, answers of the API by the edge alone.
  const sizes = new Map(),
    requested = new Set();
  page.on("response", async (r) => {
    const { pathname } = new URL(r.url());
    requested.add(r.url());
    const body = await r.body();
    sizes.set(r.url(), /^\/(assets\/|$)/.test(pathname) ? gzipSync(body).length : body.length);
  });
  const sum = async (what) => {
    await page.waitForLoadState("networkidle");
    await becomes(() => sizes.size === requested.size, true);
    const all = [...sizes.values()].reduce((all, n) => all + n, 0);
    console.log(`${what}: ${(all / 1024).toFixed(1)} kB in ${sizes.size} answers`);
    return all;
  };
  await page.reload();
  await settled(page);
  const first = await sum("to sign in");
  await signIn(page, secrets.ADMIN_TOKEN);
  await page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
  await settled(page);
  const withPage = await sum("with the overview");
  assert.ok(first > 0 && first <= maxSignIn, `${first} bytes to sign in`);
  assert.ok(withPage > first && withPage <= maxFirstView, `${withPage} bytes with the overview`);
});

test("signing in and out", async (t) => {
  for (const name of ["One", "Two"]) await b.operator.machine({ name });
  const page = await open(t, b, { as: null, failures: ["POST /api/session 401"] });
  await looks(page, "signin");
  await page.getByLabel("Token or key").fill("not-the-token");
  await page.keyboard.press("Enter");
  await page.getByRole("alert").getByText("This token or key isn’t valid here, or was replaced.").waitFor();
  await signIn(page, secrets.ADMIN_TOKEN);
  await page.getByRole("heading", { name: "Machines" }).waitFor();
  const [cookie] = await page.context().cookies();
  assert.deepEqual(
    [cookie.name, cookie.secure, cookie.httpOnly, cookie.sameSite, cookie.path],
    ["__Host-weir", true, true, "Strict", "/"],
  );
  await page.reload();
  await page.getByRole("heading", { name: "Machines" }).waitFor();
  await page.getByRole("button", { name: "Sign out", exact: true }).click();
  await page.getByText("You have been signed out.").waitFor();
  assert.deepEqual(await page.context().cookies(), []);
});

test("a sign-in link signs in once and leaves nothing in the address", async (t) => {
  const page = await open(t, b, { as: null, failures: ["POST /api/session 401"] });
  // The edge has no one-time codes: the first use is exchanged here.
  const codes = [];
  await page.route("**/api/session", (route) => {
    const { token } = route.request().postDataJSON() ?? {};
    if (token) codes.push(token);
    return codes.length === 1 && token
      ? route.continue({ postData: JSON.stringify({ token: secrets.ADMIN_TOKEN }) })
      : route.continue();
  });
  await page.goto(`${b.url}/#/sign-in/once-abc`);
  await page.getByRole("heading", { name: "Machines" }).waitFor();
  assert.deepEqual(codes, ["once-abc"]);
  assert.doesNotMatch(page.url(), /once-abc/);
  await page.getByRole("button", { name: "Sign out", exact: true }).click();
  await page.getByText("You have been signed out.").waitFor();
  await page.goto(`${b.url}/#/sign-in/once-abc`);
  await page.getByText("This sign-in link has expired or was used before.").waitFor();
  assert.doesNotMatch(page.url(), /once-abc/);
  // The field takes a link too.
  codes.length = 0;
  await signIn(page, `${b.url}/#/sign-in/once-def`);
  await page.getByRole("heading", { name: "Machines" }).waitFor();
  assert.deepEqual(codes, ["once-def"]);
});
