// The content security policy of the dashboard in a browser: what code of an attacker in a
// page could try is refused. Every other test of the dashboard fails if a page of ours
// violates the policy.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { after, before, test } from "node:test";
import { bench } from "./browser.mjs";

let b, evil, context, page;
const asked = []; // of the attacker's server
before(async () => {
  b = await bench();
  evil = createServer((req, res) => {
    asked.push(req.url);
    if (req.url === "/frame")
      return res.setHeader("content-type", "text/html").end(`<iframe src="${b.url}/" name="victim"></iframe>`);
    res.setHeader("access-control-allow-origin", "*").end("window.ran = 'script of another origin'");
  });
  await new Promise((r) => evil.listen(0, "127.0.0.1", r));
  evil.origin = `http://127.0.0.1:${evil.address().port}`;
  context = await b.browser.newContext();
  page = await context.newPage();
  await page.goto(`${b.url}/`);
  await page.getByLabel("Token or key").waitFor();
});
after(async () => {
  await context?.close();
  evil?.close();
  evil?.closeAllConnections();
  await b?.close();
});

// attempt runs code in the page, which the debugger compiles whatever the policy says, and
// returns the directives that it has violated, what it threw, and whether anything ran.
const attempt = (code, origin) =>
  page.evaluate(
    async ([text, evil]) => {
      const violated = new Set();
      const note = (e) => violated.add(e.effectiveDirective);
      addEventListener("securitypolicyviolation", note);
      window.ran = "";
      let threw = "";
      const code = new (Object.getPrototypeOf(async () => {}).constructor)("evil", text);
      await new Promise((r) => setTimeout(r)); // from here on the policy binds
      try {
        await code(evil);
      } catch (e) {
        threw = e.name;
      }
      // A violation is reported in a task of its own.
      for (let i = 0; i < 100 && !violated.size && !window.ran; i++) await new Promise((r) => setTimeout(r, 20));
      removeEventListener("securitypolicyviolation", note);
      return { violated: [...violated], threw, ran: window.ran };
    },
    [code, origin],
  );

const element = (tag, fields, more = "") =>
  `const e = document.createElement("${tag}"); Object.assign(e, ${fields}); ${more} document.body.append(e);`;

test("the policy refuses what an attacker's code in a page would do", async () => {
  for (const [name, code, directive] of [
    [
      "markup",
      `document.body.innerHTML = "<img src=x onerror=\\"window.ran='markup'\\">"`,
      "require-trusted-types-for",
    ],
    ["a template", `document.createRange().createContextualFragment("<b>x</b>")`, "require-trusted-types-for"],
    ["a policy of its own", `trustedTypes.createPolicy("evil", { createHTML: (s) => s })`, "trusted-types"],
    ["eval", `window.eval("window.ran = 'eval'")`, "require-trusted-types-for"],
    ["a handler", `document.body.setAttribute("onclick", "window.ran = 'handler'"); document.body.click()`, ""],
    ["a script's text", element("script", `{}`, `e.append("window.ran = 'inline'");`), ""],
    ["a script of another origin", element("script", `{ src: evil + "/script" }`), "require-trusted-types-for"],
    ["a style", element("style", `{}`, `e.append("body { color: red }");`), "style-src-elem"],
    ["a picture of another origin", element("img", `{ src: evil + "/picture" }`), "img-src"],
    ["a call to another origin", `await fetch(evil + "/fetch", { mode: "no-cors" })`, "connect-src"],
    ["a beacon", `navigator.sendBeacon(evil + "/beacon", "x")`, "connect-src"],
    ["a WebSocket", `new WebSocket(evil.replace("http", "ws") + "/socket")`, "connect-src"],
    ["a frame", element("iframe", `{ src: evil + "/frame" }`), "frame-src"],
    ["an object", element("object", `{ data: evil + "/object" }`), "require-trusted-types-for"],
    [
      "a form",
      element("form", `{ action: evil + "/form", method: "post" }`, "document.body.append(e); e.submit();"),
      "form-action",
    ],
    ["another base", `const e = document.createElement("base"); e.href = evil; document.head.append(e);`, "base-uri"],
    ["a worker", `new Worker(URL.createObjectURL(new Blob(["postMessage(1)"])))`, ""],
  ]) {
    const got = await attempt(code, evil.origin);
    assert.equal(got.ran, "", `${name} ran: ${JSON.stringify(got)}`);
    assert.ok(got.violated.length || got.threw, `${name} is allowed: ${JSON.stringify(got)}`);
    if (directive) assert.ok(got.violated.includes(directive), `${name}: ${JSON.stringify(got)}`);
  }
  assert.deepEqual(asked, [], "nothing reached another origin");
  assert.equal(new URL(page.url()).origin, b.url);
});

test("no page of another origin frames the dashboard or keeps a hold of its window", async () => {
  const other = await context.newPage();
  const refused = other.waitForEvent("console", (m) => /frame-ancestors|X-Frame-Options/i.test(m.text()));
  await other.goto(`${evil.origin}/frame`);
  await refused;
  const inside = other.frame("victim");
  assert.ok(!inside || (await inside.locator("body *").count()) === 0 || !inside.url().startsWith(b.url));
  const opened = context.waitForEvent("page");
  await other.evaluate((url) => {
    window.hold = window.open(url);
  }, `${b.url}/`);
  await (await opened).getByLabel("Token or key").waitFor();
  assert.equal(await other.evaluate(() => window.hold.closed), true, "its window is cut off");
});
