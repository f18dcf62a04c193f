// ./build.sh deploy with a recorder in wrangler's place: what it asks wrangler to do
// in each order of events, and what it says.
import assert from "node:assert/strict";
import { execFile, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer, request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, afterEach, before, beforeEach } from "node:test";
import { fileURLToPath } from "node:url";
import { secrets as fixed, start } from "../gateway.mjs";
import { only } from "../platforms.mjs";
import { until } from "../wait.mjs";

const { test } = only("workerd", "commands");

const root = fileURLToPath(new URL("../../../", import.meta.url));
const names = Object.keys(fixed);

// recorder is the script in wrangler's place. FAKE names a folder: state.json says how
// it behaves, each call is added to calls.ndjson.
//
//	secrets  those that the worker has; null, it does not exist
//	login    false: no call of the platform succeeds
//	deploy   "fails", "fails late" after the secrets are set, or ""
//	startup  false: the command check startup does not exist
//	targets  where the worker answers
//	kv       the namespaces of the account
const recorder = `
import { appendFileSync, readFileSync, writeFileSync } from "node:fs";
const file = process.env.FAKE + "/state.json";
const state = JSON.parse(readFileSync(file, "utf8"));
const args = process.argv.slice(2);
const value = (flag) => (args.includes(flag) ? args[args.indexOf(flag) + 1] : null);
const call = { args };
if (value("--config")) call.config = readFileSync(value("--config"), "utf8");
if (value("--secrets-file")) call.secrets = JSON.parse(readFileSync(value("--secrets-file"), "utf8"));
appendFileSync(process.env.FAKE + "/calls.ndjson", JSON.stringify(call) + "\\n");
const end = (code, text) => {
  (code ? console.error : console.log)(text);
  process.exit(code);
};
if (!state.login && args[0] !== "check") end(1, "ERROR In a non-interactive environment, it's necessary to set a CLOUDFLARE_API_TOKEN");
if (args[0] === "secret") {
  if (!state.secrets) end(1, "ERROR This Worker does not exist on your account. [code: 10007]");
  end(0, "a banner\\n" + JSON.stringify(state.secrets.map((name) => ({ name, type: "secret_text" }))));
}
if (args[0] === "kv") end(0, JSON.stringify(state.kv));
if (args[0] === "check") state.startup ? end(0, "│   Active: 123.4 ms (including 1 ms garbage collection)") : end(1, "✘ [ERROR] Unknown command: check startup");
if (args[0] === "deploy") {
  if (!state.secrets && !/^id = /m.test(call.config)) {
    if (state.kv.length) end(1, "ERROR A namespace with this account ID and title already exists. [code: 10014]");
    state.kv = [{ id: "0123456789abcdef", title: "weir-kv" }];
    writeFileSync(file, JSON.stringify(state));
  }
  if (state.deploy === "fails") end(1, "ERROR Your Worker failed validation. [code: 10021]");
  state.secrets = [...new Set([...(state.secrets ?? []), ...Object.keys(call.secrets ?? {})])];
  writeFileSync(file, JSON.stringify(state));
  if (state.deploy === "fails late") end(1, "ERROR The domain is not in this account");
  writeFileSync(process.env.WRANGLER_OUTPUT_FILE_PATH, [{ type: "wrangler-session" }, { type: "deploy", targets: state.targets }].map((e) => JSON.stringify(e)).join("\\n"));
  end(0, "Uploaded weir");
}
end(2, "unexpected");
`;

// platform is the address at which the deployed worker answers: a gateway that is
// started at the first call with the secrets that were uploaded last, or shared by
// the tests that upload fixed ones. missing are the paths that it lacks, failing those
// whose next answer is a 500.
let folder, platform, gateway, shared, missing, failing;
before(async () => {
  const server = createServer(async (req, res) => {
    if (missing.includes(req.url)) return res.writeHead(404).end();
    if (failing.delete(req.url)) return res.writeHead(500).end("an error page of the platform");
    const uploaded = calls().findLast((c) => c.secrets)?.secrets ?? fixed,
      launch = () => start({ dashboard: true, env: uploaded });
    const { url } = await (uploaded.ADMIN_TOKEN === fixed.ADMIN_TOKEN ? (shared ??= launch()) : (gateway ??= launch()));
    const call = request(url + req.url, { method: req.method, headers: req.headers }, (from) => {
      res.writeHead(from.statusCode, from.headers);
      from.pipe(res);
    });
    call.on("error", () => res.destroy());
    req.pipe(call);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  platform = { url: `http://127.0.0.1:${server.address().port}`, server };
});
after(async () => {
  await (await shared)?.close();
  platform?.server.close();
  platform?.server.closeAllConnections();
});
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "weir-deploy-"));
  missing = [];
  failing = new Set();
  writeFileSync(join(folder, "wrangler.mjs"), recorder);
  state({});
});
afterEach(async () => {
  await (await gateway)?.close();
  gateway = undefined;
  await rm(folder, { recursive: true, force: true });
});

const state = (more) =>
  writeFileSync(
    join(folder, "state.json"),
    JSON.stringify({ secrets: null, login: true, deploy: "", startup: true, kv: [], targets: [platform.url], ...more }),
  );

function calls() {
  const file = join(folder, "calls.ndjson");
  return existsSync(file)
    ? readFileSync(file, "utf8")
        .trim()
        .split("\n")
        .map((l) => JSON.parse(l))
    : [];
}
const commands = () =>
  calls().map((c) =>
    c.args
      .filter((a) => !a.startsWith("-"))
      .slice(0, c.args[0] === "deploy" ? 1 : 2)
      .join(" "),
  );
const deployed = () => calls().findLast((c) => c.args[0] === "deploy");

// deploy runs the command and returns its exit code and output. answers are
// [question, answer] pairs of a terminal, without which it has no terminal.
function deploy(env = {}, answers = null) {
  const [command, ...args] =
    answers === null ? ["./build.sh", "deploy"] : ["script", "-qec", "./build.sh deploy", "/dev/null"];
  return new Promise((resolve, reject) => {
    const child = execFile(command, args, {
      cwd: root,
      env: {
        PATH: process.env.PATH,
        HOME: folder,
        BUILT: "1",
        WRANGLER: join(folder, "wrangler.mjs"),
        FAKE: folder,
        STATE_DIR: join(folder, "state"),
        ...env,
      },
    });
    child.on("error", reject);
    if (!answers) child.stdin.end();
    let text = "";
    for (const stream of [child.stdout, child.stderr])
      stream.on("data", (t) => {
        text += t;
        while (answers?.length && text.includes(answers[0][0])) child.stdin.write(answers.shift()[1] + "\n");
      });
    child.on("close", (code) => {
      const state = join(folder, "state");
      // Another test may deploy from the same folder: its files go when it ends.
      until("no temporary files", () => {
        const left = [...readdirSync(root), ...(existsSync(state) ? readdirSync(state) : [])];
        return !left.some((n) => /^(wrangler-deploy|secrets|deployed|startup)-\d/.test(n));
      }).then(() => resolve({ code, text }), reject);
    });
  });
}

const tokens = (text) => text.match(/\b[0-9a-f]{64}\b/g) ?? [];

test("a first deployment says what it uploads, creates the secrets, shows the token once, and the doctor passes", async () => {
  const { code, text } = await deploy({ REGION: "aws:us-east-1" });
  assert.equal(code, 0, text);
  assert.deepEqual(commands(), ["secret list", "kv namespace", "check startup", "deploy"]);
  const { config, secrets } = deployed();
  assert.deepEqual(Object.keys(secrets), names);
  assert.equal(new Set(Object.values(secrets)).size, 3);
  assert.match(config, /^\[placement\]\nregion = "aws:us-east-1"$/m);
  assert.match(config, /^\[observability\.logs\]\nenabled = true\nhead_sampling_rate = 1\n/m);
  assert.deepEqual(tokens(text), [secrets.ADMIN_TOKEN]);
  assert.match(text, /^size {6}\d+\.\d MiB of 64 MiB, \d\.\d MiB gzipped$/m);
  assert.match(text, /^start-up {2}123 ms of CPU here; the platform allows 1000 ms/m);
  assert.match(text, /^plan {6}free: for trying, .*10 ms of CPU[^]*Workers Paid/m);
  assert.match(text, /^place {5}aws:us-east-1;/m);
  assert.match(text, new RegExp(`^ok {4}weir \\S+ at ${platform.url}; embeddings call through a stub$`, "m"));
});

test("a second deployment leaves the secrets, and runs where the first did", async () => {
  await deploy({ REGION: "smart", ...fixed });
  const { code, text } = await deploy({ CREDENTIALS_KEY: "another-credentials-key-0123456789abcdef" });
  assert.equal(code, 0, text);
  const { args, config, secrets } = deployed();
  assert.equal(calls().filter((c) => c.args[0] === "deploy").length, 2);
  assert.equal(secrets, undefined);
  assert.ok(!args.includes("--secrets-file"));
  assert.match(config, /^\[placement\]\nmode = "smart"$/m);
  assert.match(text, /^CREDENTIALS_KEY exists and stays as it is$/m);
  assert.deepEqual(tokens(text), []);
  assert.match(text, /storage and calls were not examined: pass ADMIN_TOKEN$/m);
  const third = await deploy({ REGION: "off", ADMIN_TOKEN: fixed.ADMIN_TOKEN });
  assert.equal(third.code, 0, third.text);
  assert.doesNotMatch(deployed().config, /^\[placement\]/m);
  assert.match(third.text, /embeddings call through a stub$/m);
});

test("secrets of the environment are used where they are missing, and are not shown", async () => {
  state({ secrets: ["CREDENTIALS_KEY", "API_KEY_SECRET"], deploy: "fails" });
  const { text } = await deploy({ ...fixed, OAUTH_PROVIDERS_2: "[]", PROXY_URL: "http://proxy.example.com:3128" });
  assert.deepEqual(deployed().secrets, {
    ADMIN_TOKEN: fixed.ADMIN_TOKEN,
    OAUTH_PROVIDERS_2: "[]",
    PROXY_URL: "http://proxy.example.com:3128",
  });
  for (const value of Object.values(fixed)) assert.ok(!text.includes(value));
});

test("without a login nothing is built or uploaded, and the line says how to sign in", async () => {
  state({ login: false });
  const { code, text } = await deploy();
  assert.equal(code, 1);
  assert.match(
    text,
    /^deploy: the worker's secrets could not be listed; sign in with npx wrangler login, or set CLOUDFLARE_API_TOKEN$/m,
  );
  assert.deepEqual(commands(), ["secret list"]);
});

test("an upload that fails shows no token, and the next deployment creates the secrets", async () => {
  state({ deploy: "fails" });
  const { code, text } = await deploy({ DOMAIN: "weir.example.com" });
  assert.equal(code, 1);
  assert.match(text, /code: 10021/);
  assert.match(text, /^deploy: wrangler failed, its error is above;/m);
  assert.deepEqual(tokens(text), []);
  const { args } = deployed();
  assert.deepEqual(args.slice(args.indexOf("--domain")).slice(0, 2), ["--domain", "weir.example.com"]);
  assert.doesNotMatch(deployed().config, /^id = /m);
  const { kv } = JSON.parse(readFileSync(join(folder, "state.json"), "utf8"));
  state({ kv });
  const again = await deploy({ DOMAIN: "" });
  assert.equal(again.code, 0, again.text);
  assert.deepEqual(tokens(again.text), [deployed().secrets.ADMIN_TOKEN]);
  assert.match(
    deployed().config,
    /^binding = "KV"\nid = "0123456789abcdef"$/m,
    "the namespace of the failed upload is used",
  );
});

test("a deployment that fails after the secrets were set shows the token, and the next one keeps them", async () => {
  state({ deploy: "fails late" });
  const { code, text } = await deploy();
  assert.equal(code, 1);
  assert.deepEqual(tokens(text), [deployed().secrets.ADMIN_TOKEN]);
  const { secrets } = JSON.parse(readFileSync(join(folder, "state.json"), "utf8"));
  state({ secrets });
  const again = await deploy();
  assert.equal(again.code, 0, again.text);
  assert.equal(deployed().secrets, undefined);
});

test("what the doctor finds ends a deployment with 1", async () => {
  missing = ["/"];
  const { code, text } = await deploy(fixed);
  assert.equal(code, 1);
  assert.match(text, /^FAIL {2}dashboard: GET \/ answered 404/m);
  assert.match(text, /^deploy: it is deployed, and the doctor found the above; .*\.\/build\.sh doctor http:/m);
});

test("a page that the platform fails to serve once is asked for again", async () => {
  failing.add("/");
  const { code, text } = await deploy(fixed);
  assert.equal(code, 0, text);
  assert.equal(failing.size, 0);
});

test("a start-up that cannot be measured is said, and stops nothing", async () => {
  state({ startup: false });
  const { code, text } = await deploy(fixed);
  assert.equal(code, 0, text);
  assert.match(text, /^start-up {2}not measured: Unknown command: check startup$/m);
});

const noTerminal = !spawnSync("script", ["--version"]).stdout?.includes("util-linux");
test("on a terminal, REGION and DOMAIN are asked for once", {
  skip: noTerminal && "script of util-linux is missing",
}, async () => {
  const first = await deploy(fixed, [
    ["Where weir runs", "aws:eu-west-1"],
    ["A domain of your", ""],
  ]);
  assert.equal(first.code, 0, first.text);
  assert.match(deployed().config, /^region = "aws:eu-west-1"$/m);
  assert.ok(!deployed().args.includes("--domain"));
  const second = await deploy({}, []);
  assert.equal(second.code, 0, second.text);
  assert.doesNotMatch(second.text, /Where weir runs/);
  assert.match(deployed().config, /^region = "aws:eu-west-1"$/m);
});

test("settings that cannot be used are refused before wrangler is called", async () => {
  const rows = JSON.stringify([{ clientId: "canary".repeat(1000) }]);
  for (const [env, wrong] of [
    [{ REGION: "mars" }, /REGION is "mars"; it is smart, off, a region/],
    [{ REGION: 'x"\nmode = "smart' }, /REGION is /],
    [{ DOMAIN: "https://weir.example.com" }, /DOMAIN is "https:.*; it is a name/],
    [
      { OAUTH_PROVIDERS: rows },
      new RegExp(
        `OAUTH_PROVIDERS has ${rows.length} bytes, and the platform's limit is 5 KB \\(5000 bytes\\).*OAUTH_PROVIDERS_2`,
      ),
    ],
    [{ CREDENTIALS_KEY: "canary".repeat(1000) }, /CREDENTIALS_KEY has 6000 bytes, .*; shorten it/],
    [{ ADMIN_TOKEN: "canary" }, /ADMIN_TOKEN has 6 bytes, and at least 32 are needed; openssl rand/],
    [{ OAUTH_PROVIDERS_3: "{canary" }, /OAUTH_PROVIDERS_3 is not a JSON array/],
    [
      { OAUTH_PROVIDERS_17: "[]" },
      /OAUTH_PROVIDERS_17 would not be read; weir reads OAUTH_PROVIDERS and OAUTH_PROVIDERS_2 to _16/,
    ],
  ]) {
    const { code, text } = await deploy(env);
    assert.equal(code, 1, text);
    assert.match(text, /^deploy: .+; .+$/m);
    assert.match(text, wrong);
    assert.ok(!text.includes("canary"), "a secret is shown");
    assert.deepEqual(calls(), []);
  }
});
