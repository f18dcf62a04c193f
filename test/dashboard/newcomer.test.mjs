// The path of a newcomer: from the sign-in link, and from the line that installs weir, to the first
// call of a tool.
import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { copyFile, mkdir, mkdtemp, readFile, rm } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { bench, open, shot } from "./browser.mjs";
import { secrets } from "../e2e/gateway.mjs";
import { platform } from "../e2e/platforms.mjs";

const run = promisify(execFile);
const root = fileURLToPath(new URL("../../", import.meta.url));

let b;
before(async () => {
  b = await bench();
  const data = ["another", "gpt-6-luna"].map((id) => ({ id, object: "model" }));
  b.upstream.script = (got) =>
    got.path.endsWith("/models") ? { status: 200, body: JSON.stringify({ object: "list", data }) } : null;
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

// counted returns a function that does an action of the newcomer and counts it.
function counted(t, most) {
  const actions = [];
  t.after(() => t.diagnostic(`${actions.length} actions: ${actions.join(", ")}`));
  return async (what, action) => {
    actions.push(what);
    assert.ok(actions.length <= most, actions.join(", "));
    return action();
  };
}

async function folder(t) {
  const home = await mkdtemp(join(tmpdir(), "weir-newcomer-"));
  t.after(() => rm(home, { recursive: true, force: true }));
  return home;
}

// prompt calls the gateway as Codex does with its settings.
async function prompt(home) {
  const config = await readFile(join(home, ".codex/config.toml"), "utf8");
  const [, model] = /^model = "(.+)"$/m.exec(config),
    [, base] = /base_url = "(.+)"/.exec(config),
    [key] = /sk-[\w-]+/.exec(config);
  const res = await fetch(`${base}/responses`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({ model, input: "hello" }),
  });
  assert.equal(res.status, 200, await res.text());
}

// connect goes on from the page Overview of an empty machine to the first answer of a tool.
async function connect(page, home, act) {
  await page.locator(":focus").and(page.getByLabel("Paste a provider’s key")).waitFor();
  await page.evaluate(() => navigator.clipboard.writeText('OPENAI_API_KEY="sk-proj-0123456789abcdef"\n'));
  await act("paste a provider's key", () => page.keyboard.press("ControlOrMeta+V"));
  await page.getByText("OpenAI is connected.").waitFor();
  await shot(page, "newcomer-added");
  await act("copy the command of a tool", () => page.getByRole("button", { name: "Codex CLI" }).click());
  await page.getByText("Copied. Paste it into a terminal.").waitFor();
  await page.getByText("Waiting for the first request…").waitFor();
  await page.getByText("Model: openai/gpt-6-luna.").waitFor(); // which has answered the test
  await shot(page, "newcomer-copied");
  const command = await page.evaluate(() => navigator.clipboard.readText());
  await act("run it", () => run("sh", ["-c", command], { env: { PATH: process.env.PATH, HOME: home, no_proxy: "*" } }));
  await act("send a prompt", () => prompt(home));
  await page.getByText("Codex CLI is connected.").waitFor();
}

test("the first call of a tool takes at most 5 actions", async (t) => {
  await b.operator.machine(); // weir serve creates it
  const page = await open(t, b, { as: null });
  await exchanged(page);
  const act = counted(t, 5);
  await act("open the link", () => page.goto(`${b.url}/#/sign-in/once-abc`));
  await page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
  await connect(page, await folder(t), act);
  await shot(page, "newcomer-connected");

  await page.getByRole("region", { name: "Accounts" }).waitFor();
  await page.getByText("Get started").waitFor({ state: "detached" });
});

// published serves a release of the program under test, with install.sh, and returns its address.
async function published(t) {
  const system = `${process.platform}-${process.arch === "x64" ? "amd64" : process.arch}`;
  const release = await folder(t),
    name = `weir-v9.9.9-${system}`;
  await mkdir(join(release, name));
  await copyFile(join(root, "test/out/weir-test"), join(release, name, "weir"));
  await run("tar", ["-czf", `${name}.tar.gz`, name], { cwd: release });
  const archive = await readFile(join(release, `${name}.tar.gz`));
  const sum = createHash("sha256").update(archive).digest("hex");
  const files = {
    "/install.sh": await readFile(join(root, "deploy/install.sh")),
    "/SHA256SUMS": `${sum}  ${name}.tar.gz\n`,
    [`/${name}.tar.gz`]: archive,
  };
  const server = createServer((req, res) => {
    if (!files[req.url]) res.statusCode = 404;
    res.end(files[req.url]);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => server.close());
  return `http://127.0.0.1:${server.address().port}`;
}

// installed runs the line that installs weir and starts it, in an empty home folder. The result has
// the link that it prints, and the environment.
async function installed(t, home) {
  const from = await published(t);
  const env = {
    PATH: process.env.PATH,
    HOME: home,
    LISTEN: "127.0.0.1:0",
    VENDORS_URL: b.upstream.url,
    PRICES_URL: "off",
    no_proxy: "*",
  };
  const line = `curl -fsSL ${from}/install.sh | sh -s -- --from ${from} --dir ~/.local/bin --serve`;
  const child = spawn("sh", ["-c", line], { env, detached: true, stdio: ["ignore", "pipe", "pipe"] });
  const ended = once(child, "close");
  t.after(async () => {
    process.kill(-child.pid, "SIGTERM");
    await ended;
  });
  let printed = "";
  const link = await new Promise((resolve, reject) => {
    for (const stream of [child.stdout, child.stderr])
      stream.on("data", (text) => {
        printed += text;
        const found = /^http\S+sign-in\/\S+$/m.exec(printed);
        if (found) resolve(found[0]);
      });
    ended.then(() => reject(new Error(`it ended and printed:\n${printed}`)));
  });
  return { link, env };
}

const fresh = { skip: platform !== "native" && "native only: install.sh installs the native server" };

test("from the line of the README to the first answer of a tool, in the dashboard", fresh, async (t) => {
  const home = await folder(t),
    act = counted(t, 6),
    start = performance.now();
  const { link } = await act("run the line that installs", () => installed(t, home));
  const { origin } = new URL(link);
  const page = await open(t, { ...b, url: origin }, { as: null });
  await act("open the link", () => page.goto(link));
  await connect(page, home, act);
  t.diagnostic(`${Math.round(performance.now() - start)} ms without the person`);
});

test("from the line of the README to the first answer of a tool, in terminals", fresh, async (t) => {
  const home = await folder(t),
    act = counted(t, 5);
  const { env } = await act("run the line that installs", () => installed(t, home));
  const weir = join(home, ".local/bin/weir");
  await act("weir accounts add openai", () => {}); // asks for the key
  await act("paste the key", () =>
    run("sh", ["-c", 'printf sk-openai-0123456789abcdef | "$0" accounts add openai', weir], { env }),
  );
  await act("weir setup codex --model openai/gpt-5 | sh", () =>
    run("sh", ["-c", '"$0" setup codex --model openai/gpt-5 | sh', weir], { env }),
  );
  await act("send a prompt", () => prompt(home));
});

test("a link may name the machine that it opens", async (t) => {
  const { machineId } = await b.operator.machine();
  await b.operator.machine();
  const page = await open(t, b, { as: null });
  await exchanged(page);
  await page.goto(`${b.url}/#/sign-in/once-abc/${machineId}`);
  await page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
  assert.match(new URL(page.url()).hash, new RegExp(`^#/m/${machineId}`));
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
