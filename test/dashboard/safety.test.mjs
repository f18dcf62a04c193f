// Texts of providers and tenants are shown as text on every page. The pages work with
// the keyboard only, and show slow and failed loads.
// See docs/reference/reliability.md, T28.
import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { after, before, test } from "node:test";
import { compatible, secrets } from "../e2e/gateway.mjs";
import { accessible, bench, canary, holds, open, settled, signIn } from "./browser.mjs";

const sources = new URL("../../worker/dashboard/", import.meta.url);

let b;
before(async () => {
  b = await bench();
});
after(() => b?.close());

// payloads are texts that run canary() if they are parsed as HTML, as an attribute or
// as a URL.
const payloads = [];
for (const open of ["", '">', "'>", "</title>", "</textarea>", "</script>", "-->", "]]>", "`>", "</option></select>"]) {
  for (const body of [
    "<img src=x onerror=canary()>",
    "<img/src=x/onerror=canary()>",
    "<svg onload=canary()>",
    "<svg><script>canary()</script></svg>",
    "<script>canary()</script>",
    "<iframe srcdoc='<script>parent.canary()</script>'></iframe>",
    "<details open ontoggle=canary()>",
    "<input autofocus onfocus=canary()>",
    "<video><source onerror=canary()></video>",
    "<body onload=canary()>",
    "<a href=javascript:canary()>x</a>",
    "javascript:canary()",
    "<math><mi xlink:href='javascript:canary()'>x</mi></math>",
    "<object data='javascript:canary()'>",
    "<embed src='javascript:canary()'>",
    "<form><button formaction=javascript:canary()>x</button></form>",
    "<style>@import 'javascript:canary()'</style>",
    "<base href='//evil.example/'>",
    "<link rel=stylesheet href=//evil.example/x.css>",
    "<meta http-equiv=refresh content='0;url=javascript:canary()'>",
    "' onmouseover='canary()",
    '" onfocus="canary()" autofocus="',
    "&lt;img src=x onerror=canary()&gt;",
    "&#60;script&#62;canary()&#60;/script&#62;",
    "${canary()}",
    "{{constructor.constructor('canary()')()}}",
    "<template><script>canary()</script></template>",
    "<marquee onstart=canary()>",
    "<img src=x onerror=\u0000canary()>",
    "\u202e<script>canary()</script>",
  ])
    payloads.push(open + body);
}

test("the sources never turn text into HTML", () => {
  const bad =
    /innerHTML|outerHTML|insertAdjacentHTML|dangerouslySetInnerHTML|document\.write|createContextualFragment|srcdoc|\beval\(|new Function|javascript:/;
  let files = 0;
  for (const name of readdirSync(new URL("src/", sources), { recursive: true })) {
    if (!/\.tsx?$/.test(name)) continue;
    files++;
    const found = bad.exec(readFileSync(new URL(`src/${name}`, sources), "utf8"));
    assert.equal(found?.[0], undefined, name);
  }
  assert.ok(files > 15);
});

test("300 payloads in stored and received texts are harmless on every page", async (t) => {
  assert.ok(payloads.length >= 300);
  const { machineId } = await b.operator.machine({ name: canary });
  const call = (method, path, body) => b.operator.call(method, `/${machineId}/api${path}`, body);
  b.upstream.script = (got) =>
    got.path.endsWith("/models")
      ? { body: JSON.stringify({ data: payloads.map((id) => ({ id, name: id, owned_by: id })) }) }
      : { status: 500, body: JSON.stringify({ error: { message: canary, type: canary, code: canary } }) };
  t.after(() => {
    b.upstream.script = null;
  });
  const plain = payloads.filter((p) => !/[\u0000-\u001f\u202e]/.test(p));
  for (let i = 0; i < 12; i++) {
    await b.operator.connect(
      machineId,
      compatible(b.upstream, {
        prefix: `p${i}`,
        suffix: `bbbb00${10 + i}`,
        name: plain
          .slice(i * 5, i * 5 + 2)
          .join(" ")
          .slice(0, 190),
        priority: i,
      }),
    );
  }
  const [first] = (await call("GET", "/providers")).data;
  await call("POST", "/keys", { name: canary.slice(0, 100), scopes: ["manage"] });
  // Where such a text is refused, nothing of it is stored.
  for (const p of plain.slice(0, 40)) {
    for (const [method, path, body] of [
      ["PUT", "/models/alias", { alias: p, model: `p0/${p}` }],
      ["POST", "/models/custom", { id: p, providerAlias: "p0", name: p }],
      ["POST", "/models/disabled", { providerAlias: "p0", ids: [p] }],
      ["POST", "/combos", { name: p, models: [`p0/${p}`] }],
    ])
      await call(method, path, body).catch((e) => {
        if (e.status !== 400) throw e;
      });
  }
  const page = await open(t, b, {
    at: `#/m/${machineId}/providers`,
    failures: ["POST /* 500", "POST /* 502", "POST /* 503"],
  });
  await settled(page);
  await page
    .getByRole("button", { name: /^Test / })
    .first()
    .click();
  const addresses = await page.locator("nav a").evaluateAll((all) => all.map((a) => a.getAttribute("href")));
  assert.ok(addresses.length >= 3);
  for (const address of [
    `#/m/${machineId}/providers/${first.id}`,
    `#/m/${machineId}/${encodeURIComponent(canary)}`,
    `#/m/${encodeURIComponent(canary)}/providers`,
    ...addresses,
  ]) {
    await page.evaluate((a) => {
      location.hash = a;
    }, address);
    await holds(page, () => document.querySelector("main").innerText.trim() && !document.querySelector(".skeleton"));
    const made = await page.evaluate(() =>
      [...document.querySelectorAll("*")]
        .filter(
          (e) =>
            /^(iframe|object|embed|base|template|marquee|form\[action\]|math|body\[onload\])$/i.test(e.localName) ||
            [...e.attributes].some((a) => /^on/i.test(a.name) || /^\s*javascript:/i.test(a.value)) ||
            ((e.localName === "script" || e.localName === "img") &&
              !new URL(e.src || "x:").pathname.startsWith("/assets/")),
        )
        .map((e) => e.outerHTML.slice(0, 200)),
    );
    assert.deepEqual(made, [], address);
  }
  await page.evaluate((a) => {
    location.hash = a;
  }, `#/m/${machineId}/models`);
  const listed = `p1/${plain.slice(40).find((p) => p.includes("<svg onload"))}`;
  await page.getByRole("searchbox", { name: "Search models" }).fill(listed);
  await page.getByRole("button", { name: listed, exact: true }).click();
  await page.getByRole("dialog", { name: listed }).getByText("/v1/chat/completions").waitFor();
});

test("signing in, creating a machine and adding a provider work with the keyboard only", async (t) => {
  for (const name of ["One", "Two"]) await b.operator.machine({ name });
  const page = await open(t, b, { as: null });
  const active = () =>
    page.evaluate(() => {
      const e = document.activeElement;
      if (e === document.body) return "";
      const seen = e.cloneNode(true);
      seen.querySelectorAll("[aria-hidden]").forEach((x) => x.remove());
      return e.getAttribute("aria-label") || e.labels?.[0]?.querySelector("span")?.textContent || seen.textContent;
    });
  // tabTo presses Tab until something of that name has a visible focus.
  const tabTo = async (name) => {
    for (let i = 0; i < 80; i++) {
      await page.keyboard.press("Tab");
      if ((await active()).trim().startsWith(name)) {
        const ring = await page.evaluate(() => {
          const s = getComputedStyle(document.activeElement);
          return s.outlineStyle !== "none" && parseFloat(s.outlineWidth) >= 2;
        });
        assert.ok(ring, `${name} shows that it has the focus`);
        return;
      }
    }
    assert.fail(`Tab does not reach ${name}; it is at ${await active()}`);
  };
  await page.getByRole("heading", { name: "Sign in to weir" }).waitFor();
  await tabTo("Token or key");
  await page.keyboard.type(secrets.ADMIN_TOKEN);
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { level: 1, name: "Machines" }).waitFor();
  await settled(page);
  await tabTo("Create machine");
  await page.keyboard.press("Enter");
  await page.getByRole("dialog", { name: "Create machine" }).waitFor();
  await page.keyboard.type("By hand"); // the name has the focus
  await page.keyboard.press("Enter");
  await page.getByRole("dialog", { name: "Machine created" }).waitFor();
  await tabTo("Open machine");
  await page.keyboard.press("Enter");
  // A machine without accounts begins with the field for a key.
  await page.locator("input:focus").and(page.getByLabel("Paste a provider’s key")).waitFor();
  await tabTo("All providers");
  await page.keyboard.press("Enter");
  await settled(page);
  await tabTo("Search providers");
  await page.keyboard.type("deepseek");
  await page.getByText(/^1 of/).waitFor();
  await tabTo("Add DeepSeek");
  await page.keyboard.press("Enter");
  await page.getByRole("dialog", { name: "Add DeepSeek" }).waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  assert.match(await active(), /^Add DeepSeek/, "the focus is back where the dialog was opened");
  await page.keyboard.press("Enter");
  await page.getByRole("dialog", { name: "Add DeepSeek" }).waitFor();
  await tabTo("API key");
  await page.keyboard.type("sk-deepseek-0123456789");
  await page.keyboard.press("Enter");
  await page.getByRole("dialog", { name: "DeepSeek is connected" }).getByText("Works", { exact: true }).waitFor();
  await tabTo("All providers");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { level: 1, name: "Providers" }).waitFor();
  await page.getByRole("link", { name: "DeepSeek", exact: true }).waitFor();
  await page.keyboard.press("Shift+Tab");
  await page.evaluate(() => {
    document.activeElement.blur();
    scrollTo(0, 0);
  });
  await tabTo("Skip to content");
  await page.keyboard.press("Enter");
  assert.equal(await page.evaluate(() => document.activeElement.id), "main");
});

test("slow pages say that they load, and an unknown address links back", async (t) => {
  const { machineId } = await b.operator.machine({ name: "Slow" });
  const page = await open(t, b, { at: "#/machines" });
  await settled(page);
  let go;
  const held = new Promise((r) => {
    go = r;
  });
  await page.route("**/api/providers", async (route) => {
    await held;
    await route.continue();
  });
  await page.goto(`${b.url}/#/m/${machineId}/providers`);
  await page.getByRole("status", { name: "Loading accounts" }).waitFor();
  await accessible(page, "loading");
  go();
  await page.getByText("No accounts yet").waitFor();
  await page.goto(`${b.url}/#/m/${machineId}/nowhere`);
  await page.getByText("Page not found").waitFor();
  await page.getByRole("link", { name: "Go to the overview" }).click();
  await page.getByText("Connect an account").waitFor();
});

test("an unavailable gateway shows an error and can be tried again", async (t) => {
  const page = await open(t, b, { failures: ["GET /api/session 503"] });
  await settled(page);
  await page.route("**/api/session", (route) =>
    route.fulfill({
      status: 503,
      contentType: "application/json",
      body: `{"error":{"message":"the gateway is not configured","type":"server_error"}}`,
    }),
  );
  await page.reload();
  await page.getByText("The gateway is not configured.").waitFor();
  await accessible(page, "a failed start");
  await page.unroute("**/api/session");
  await page.getByRole("button", { name: "Try again" }).click();
  await page.getByRole("heading", { level: 1, name: "Machines" }).waitFor();
});

test("a page that a deployment has replaced offers to reload the dashboard", async (t) => {
  const { machineId } = await b.operator.machine({ name: "Old" });
  const page = await open(t, b, { at: `#/m/${machineId}/providers`, failures: ["GET /assets/* 404"] });
  await settled(page);
  await page.route("**/assets/models-*.js", (route) => route.fulfill({ status: 404 }));
  await page.getByRole("link", { name: "Models", exact: true }).click();
  await page.getByText("Couldn’t load this page").waitFor();
  await page.unroute("**/assets/models-*.js");
  await page.getByRole("button", { name: "Reload" }).click();
  await page.getByRole("heading", { level: 1, name: "Models" }).waitFor();
});

test("an invalid answer shows an error", async (t) => {
  const { machineId } = await b.operator.machine({ name: "Odd" });
  const page = await open(t, b, { failures: [`GET /${machineId}/api/providers 0`] });
  await settled(page);
  await page.route("**/api/providers", (route) =>
    route.fulfill({ status: 200, contentType: "text/html", body: "<h1>Bad gateway</h1>" }),
  );
  await page.goto(`${b.url}/#/m/${machineId}/providers`);
  await page.getByText("The gateway returned an invalid answer.").waitFor();
  await page.unroute("**/api/providers");
  await page.route("**/api/providers", (route) => route.abort("connectionrefused"));
  await page.getByRole("button", { name: "Try again" }).click();
  await page.getByText("The gateway cannot be reached.").waitFor();
});

test("the theme follows the system or the user's choice", async (t) => {
  const page = await open(t, b, { dark: true });
  await settled(page);
  const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const dark = await ground();
  await page.getByRole("button", { name: "Theme: system. Switch to light" }).click();
  const light = await ground();
  assert.notEqual(light, dark);
  await page.reload();
  await settled(page);
  assert.equal(await ground(), light, "the choice is kept");
  await page.getByRole("button", { name: "Theme: light. Switch to dark" }).click();
  assert.equal(await ground(), dark);
  await page.emulateMedia({ colorScheme: "light", reducedMotion: "reduce" });
  assert.equal(await ground(), dark);
  await page.getByRole("button", { name: "Theme: dark. Switch to system" }).click();
  assert.equal(await ground(), light);
});

test("a new sign-in in another tab does not break this one", async (t) => {
  const page = await open(t, b, { failures: ["POST /api/machines 403"] });
  await settled(page);
  const tab = await page.context().newPage();
  await tab.goto(b.url);
  await tab.getByRole("button", { name: "Sign out", exact: true }).click();
  await signIn(tab, secrets.ADMIN_TOKEN);
  await page.getByRole("button", { name: "Create machine" }).click();
  await page.getByLabel("Name", { exact: true }).fill("From the first tab");
  await page.getByRole("button", { name: "Create", exact: true }).click();
  await page.getByRole("dialog", { name: "Machine created" }).waitFor();
});
