// The path of a newcomer: from the sign-in link to the first call of a tool.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import { bench, open, shot } from "./browser.mjs";
import { secrets } from "../e2e/gateway.mjs";

const run = promisify(execFile);
const most = 8; // actions

let b;
before(async () => {
  b = await bench();
});
after(() => b?.close());

// exchanged lets the code of a link stand for the operator token: the edge has no one-time
// codes.
const exchanged = (page) =>
  page.route("**/api/session", (route) =>
    route.request().postDataJSON()?.token === "once-abc"
      ? route.continue({ postData: JSON.stringify({ token: secrets.ADMIN_TOKEN }) })
      : route.fallback(),
  );

test(`the first call of a tool takes at most ${most} actions`, async (t) => {
  await b.operator.machine(); // weir init creates it
  const page = await open(t, b, { as: null });
  await exchanged(page);
  const home = await mkdtemp(join(tmpdir(), "weir-newcomer-"));
  t.after(() => rm(home, { recursive: true, force: true }));

  const actions = [];
  const act = async (what, action) => {
    actions.push(what);
    await action();
  };
  const step = (name) => page.getByRole("listitem").filter({ has: page.getByRole("heading", { name }) });

  await act("open the link", () => page.goto(`${b.url}/#/sign-in/once-abc`));
  await page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
  await step(/^Create an API key ?: done$/).waitFor();
  await act("choose a provider", () => page.getByRole("button", { name: "Connect OpenAI", exact: true }).click());
  const dialog = page.getByRole("dialog");
  await act("paste its key", () => dialog.getByLabel("API key").fill("sk-openai-0123456789abcdef"));
  await act("add it", () => dialog.getByRole("button", { name: "Add and test" }).click());
  await dialog.getByText("Works", { exact: true }).waitFor();
  await shot(page, "newcomer-added");
  await act("choose a tool", () => dialog.getByRole("link", { name: "Codex CLI" }).click());
  await page.getByRole("heading", { level: 1, name: "Connect Codex CLI" }).waitFor();
  await page.getByText("Waiting for the first call…").waitFor();
  await page
    .getByPlaceholder(/^openai\//)
    .first()
    .waitFor();
  await act("copy the command", () => page.getByRole("button", { name: "Copy command" }).click());
  await page.getByText("Copied. Paste it into a terminal.").waitFor();
  const command = await page.evaluate(() => navigator.clipboard.readText());
  await act("run it", () => run("sh", ["-c", command], { env: { PATH: process.env.PATH, HOME: home, no_proxy: "*" } }));
  const config = await readFile(join(home, ".codex/config.toml"), "utf8");
  const [, model] = /^model = "(.+)"$/m.exec(config),
    [, base] = /base_url = "(.+)"/.exec(config),
    [key] = /sk-[\w-]+/.exec(config);
  await act("send a prompt", async () => {
    const res = await fetch(`${base}/responses`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify({ model, input: "hello" }),
    });
    assert.equal(res.status, 200, await res.text());
  });
  await page.getByText("Codex CLI is connected.").waitFor();
  await shot(page, "newcomer-connected");
  t.diagnostic(`${actions.length} actions: ${actions.join(", ")}`);
  assert.ok(actions.length <= most, actions.join(", "));

  await page.getByRole("link", { name: "Overview" }).click();
  await page.getByRole("region", { name: "Accounts" }).waitFor();
  await page.getByText("Get started").waitFor({ state: "detached" });
});

test("a link that is opened while the page asks who is signed in signs in", async (t) => {
  const page = await open(t, b, { as: null });
  await page.getByRole("button", { name: "Sign in" }).waitFor();
  await exchanged(page);
  const order = [];
  let release = () => {};
  const held = new Promise((r) => {
    release = r;
  });
  await page.route("**/api/session", async (route) => {
    if (route.request().method() !== "GET") {
      order.push("sign in");
      return route.fallback();
    }
    await held;
    order.push("who");
    return route.continue();
  });
  const asked = page.waitForRequest((r) => r.url().endsWith("/api/session") && r.method() === "GET");
  await page.reload();
  await asked;
  await page.evaluate(
    () =>
      new Promise((r) => {
        addEventListener("hashchange", () => setTimeout(r));
        location.hash = "#/sign-in/once-abc";
      }),
  );
  release();
  await page.getByRole("button", { name: "Sign out", exact: true }).waitFor();
  assert.deepEqual(order, ["who", "sign in"]);
});
