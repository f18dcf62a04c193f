// A real browser on the real worker, for the tests of the dashboard.
//
// Every page is watched: the test fails if the page logs an error, violates its
// content security policy, calls another origin or runs a provider's text (canary).
import assert from "node:assert/strict";
import { mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { isDeepStrictEqual } from "node:util";
import { chromium } from "playwright-core";
import { start as startUpstream } from "../upstream/server.mjs";
import { admin, secrets, start } from "../e2e/gateway.mjs";

const out = fileURLToPath(new URL("../out/dashboard/", import.meta.url));
const axeSource = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
mkdirSync(out, { recursive: true });

// canary is a text that calls window.canary if it is parsed as HTML.
export const canary = `<img src=x onerror="canary()"><svg onload="canary()"></svg>"'><script>canary()</script>`;

// bench starts what the tests of a file share: the test upstream, which answers for
// every provider's host, the gateway with its dashboard, and a browser.
export async function bench(options = {}) {
  const launched = chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: ["--no-sandbox", "--disable-gpu"],
  });
  const upstream = await startUpstream();
  const gateway = await start({ dashboard: true, vendors: upstream, ...options });
  const browser = await launched;
  return {
    upstream,
    gateway,
    browser,
    url: gateway.url,
    operator: admin(gateway),
    async close() {
      await Promise.all([browser.close(), gateway.close()]);
      await upstream.close();
    },
  };
}

// open returns a watched page, which is closed and checked when the test ends.
//
//	as        is signed in with this token; absent, with the operator's; null, not at all
//	at        address within the dashboard, "#/machines"
//	failures  "METHOD path status" of answers that the test provokes; a path may end in *, and
//	          status 0 is no answer at all
//	elsewhere an origin that the page may open, besides the gateway's
//	phone, dark, more options of a browser context
export async function open(
  t,
  b,
  { as = secrets.ADMIN_TOKEN, at = "", failures = [], elsewhere = "", phone = false, dark = false, ...options } = {},
) {
  const context = await b.browser.newContext({
    viewport: phone ? { width: 360, height: 740 } : { width: 1280, height: 860 },
    colorScheme: dark ? "dark" : "light",
    reducedMotion: "reduce",
    permissions: ["clipboard-read", "clipboard-write"],
    ...options,
  });
  const page = await context.newPage();
  page.setDefaultTimeout(120_000);
  const wrong = [];
  const expected = (method, url, status) =>
    failures.some((f) => {
      const [m, path, s] = f.split(" ");
      const { pathname } = new URL(url);
      return (
        m === method &&
        Number(s) === status &&
        (path.endsWith("*") ? pathname.startsWith(path.slice(0, -1)) : pathname === path)
      );
    });
  await page.exposeFunction("canary", () => {
    wrong.push("a text of a provider was run");
  });
  await page.exposeFunction("reportViolation", (v) => {
    wrong.push(`content security policy: ${v}`);
  });
  await page.addInitScript(() =>
    addEventListener("securitypolicyviolation", (e) => {
      window.reportViolation(`${e.violatedDirective} ${e.blockedURI} ${e.sourceFile}:${e.lineNumber} ${e.sample}`);
    }),
  );
  page.on("pageerror", (e) => wrong.push(`uncaught: ${e.stack ?? e}`));
  page.on("console", (m) => {
    // The browser logs every answer of 400 and above, and every call without one; those are judged below.
    if ((m.type() === "error" || m.type() === "warning") && !m.text().startsWith("Failed to load resource:"))
      wrong.push(`console ${m.type()}: ${m.text()}`);
  });
  page.on("request", (r) => {
    if (!/^(data|blob):/.test(r.url()) && ![b.url, elsewhere].includes(new URL(r.url()).origin))
      wrong.push(`asked ${r.url()}`);
  });
  page.on("response", (r) => {
    if (r.status() >= 400 && !expected(r.request().method(), r.url(), r.status()))
      wrong.push(`${r.request().method()} ${r.url()} answered ${r.status()}`);
  });
  page.on("requestfailed", (r) => {
    const why = r.failure().errorText; // a page that is left cancels its calls
    if (why !== "net::ERR_ABORTED" && !expected(r.method(), r.url(), 0)) wrong.push(`${r.method()} ${r.url()}: ${why}`);
  });
  t.after(async () => {
    await page.unrouteAll({ behavior: "ignoreErrors" }); // of calls that a route still answers
    await context.close();
    assert.deepEqual(wrong, []);
  });
  if (as !== null) await context.addCookies([await session(b, as)]);
  await page.goto(`${b.url}/${at}`);
  if (as !== null) await page.locator(".who").waitFor({ state: "attached" });
  return page;
}

// session signs in as the page does, and returns the cookie.
async function session(b, token) {
  const res = await b.gateway.fetch("/api/session", {
    method: "POST",
    headers: { "content-type": "application/json", origin: b.url },
    body: JSON.stringify({ token }),
  });
  assert.equal(res.status, 200, await res.text());
  const [, name, value] = /^([^=]+)=([^;]+);/.exec(res.headers.get("set-cookie"));
  // Chromium takes a secure cookie for loopback from this address alone.
  return { name, value, url: "https://127.0.0.1", secure: true, httpOnly: true, sameSite: "Strict" };
}

// signIn uses the sign-in page.
export async function signIn(page, token) {
  await page.getByLabel("Token or key").fill(token);
  await page.getByRole("button", { name: "Sign in", exact: true }).click();
  await page
    .getByRole("button", { name: "Sign out", exact: true })
    .or(page.getByRole("button", { name: "Menu" }))
    .first()
    .waitFor();
}

// shot saves a screenshot in test/out: the page, up to three screens, or the visible
// screen while a dialog is open.
export async function shot(page, name) {
  const dialog = (await page.locator("dialog[open]").count()) > 0,
    { width, height } = page.viewportSize();
  const whole = {
    fullPage: true,
    clip: {
      x: 0,
      y: 0,
      width,
      height: Math.min(3 * height, await page.evaluate(() => document.documentElement.scrollHeight)),
    },
  };
  await page.screenshot({ path: join(out, name + ".jpg"), type: "jpeg", quality: 80, ...(dialog ? {} : whole) });
}

// accessible runs axe on the page, with all its rules or those named.
export async function accessible(page, what, rules = null) {
  if (!(await page.evaluate(() => "axe" in window))) await page.evaluate(axeSource);
  const found = await page.evaluate(
    async (values) =>
      (
        await window.axe.run(document, {
          resultTypes: ["violations"],
          ...(values ? { runOnly: { type: "rule", values } } : {}),
        })
      ).violations.map(
        (v) =>
          `${v.id}: ${v.help}: ${v.nodes
            .slice(0, 3)
            .map((n) => n.html.slice(0, 200) + " " + (n.any[0]?.message ?? ""))
            .join(" | ")}`,
      ),
    rules,
  );
  assert.deepEqual(found, [], `axe on ${what}`);
}

// becomes waits until get returns want, for what the gateway does after its answer or
// the page after an event.
export async function becomes(get, want) {
  for (let i = 0; i < 1200 && !isDeepStrictEqual(await get(), want); i++) await new Promise((r) => setTimeout(r, 100));
  assert.deepEqual(await get(), want);
}

// answered runs an action of the page and waits for the successful answer to the call
// of that method that it makes.
export async function answered(page, method, action) {
  await Promise.all([page.waitForResponse((r) => r.request().method() === method && r.ok()), action()]);
}

// steady returns the value of get once it has not changed for a second.
export async function steady(get) {
  for (let last = await get(); ; ) {
    await new Promise((r) => setTimeout(r, 1000));
    const now = await get();
    if (now === last) return now;
    last = now;
  }
}

// settled waits until a page has its heading and nothing is loading.
export async function settled(page) {
  await page.locator("h1").first().waitFor();
  await holds(page, () => !document.querySelector(".skeleton"));
}

// holds waits until a function of the page returns true. It is asked by time: a page
// that the machine has no time to draw has no animation frames, which are the default.
export const holds = (page, check, arg) => page.waitForFunction(check, arg, { polling: 100 });

// looks checks a page in both themes, on a desktop and on a phone: axe finds nothing,
// and nothing is wider than the screen. It saves screenshots. Two of axe's rules
// depend on the colors, which are the same on both screens.
export async function looks(page, name) {
  await settled(page);
  const before = page.viewportSize();
  for (const [size, width, height] of [
    ["desk", 1280, 860],
    ["phone", 360, 740],
  ]) {
    await page.setViewportSize({ width, height });
    for (const colorScheme of ["light", "dark"]) {
      await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
      if (colorScheme === "light") await accessible(page, `${name}, ${size}`);
      else if (size === "desk") await accessible(page, `${name}, dark`, ["color-contrast", "link-in-text-block"]);
      const wider = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      assert.ok(wider <= 0, `${name} is ${wider} px wider than a screen of ${width} px`);
      await shot(page, `${name}-${size}-${colorScheme}`);
    }
  }
  await page.emulateMedia({ colorScheme: "light", reducedMotion: "reduce" });
  await page.setViewportSize(before);
}
