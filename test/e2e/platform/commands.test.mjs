// The commands of build.sh that a user types first.
import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { vector } from "../../upstream/openai.mjs";
import { only } from "../platforms.mjs";
import { sleep } from "../wait.mjs";

const { test } = only("workerd", "commands"),
  native = only("native", "commands");

const root = fileURLToPath(new URL("../../../", import.meta.url));
const run = promisify(execFile);

test("DRY_RUN=1 ./build.sh deploy stops before uploading", { timeout: 600_000 }, async () => {
  const { stdout } = await run("./build.sh", ["deploy"], { cwd: root, env: { ...process.env, DRY_RUN: "1" } });
  assert.match(stdout, /dry-run: exiting now/);
  assert.match(stdout, /env\.KV\b.*KV Namespace/);
  assert.match(stdout, /env\.MACHINE \(Machine\).*Durable Object/);
  assert.match(stdout, /app\.wasm/);
  assert.match(stdout, /would set ADMIN_TOKEN, API_KEY_SECRET, CREDENTIALS_KEY/);
});

function freePort() {
  return new Promise((resolve) => {
    const s = createServer().listen(0, "127.0.0.1", () => {
      const { port } = s.address();
      s.close(() => resolve(port));
    });
  });
}

// up runs ./build.sh COMMAND until it says that it is up.
async function up(command, state, port) {
  const child = spawn("./build.sh", [command], {
    cwd: root,
    env: { ...process.env, PORT: String(port), STATE_DIR: state },
    stdio: ["ignore", "pipe", "pipe"],
    detached: true,
  });
  let text = "";
  const ended = new Promise((resolve) => child.on("exit", resolve));
  await new Promise((resolve, reject) => {
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding("utf8").on("data", (t) => {
        text += t;
        if (text.includes("Ctrl-C stops it.")) resolve();
      });
    }
    ended.then((code) => reject(new Error(`${command} ended with ${code}:\n${text}`)));
  });
  return {
    text: () => text,
    curls: text.split("\n").filter((l) => l.startsWith("curl ")),
    async stop() {
      process.kill(-child.pid, "SIGINT"); // to the whole group, as a terminal does
      return ended;
    },
  };
}

async function refused(port) {
  for (let i = 0; i < 50; i++) {
    try {
      await (await fetch(`http://127.0.0.1:${port}/health`)).text();
    } catch {
      return true;
    }
    await sleep(100);
  }
  return false;
}

// demo checks what a command prints twice: secrets returns the file with the
// operator's token, perPlatform makes further checks.
async function demo(command, secrets, perPlatform) {
  const state = await mkdtemp(join(tmpdir(), `weir-${command}-`)),
    port = await freePort();
  const note = join(root, ".weir", "dev.json"),
    before = existsSync(note) ? readFileSync(note, "utf8") : null;
  try {
    let first;
    for (const round of [1, 2]) {
      const server = await up(command, state, port);
      try {
        assert.equal(server.curls.length, 2, server.text());
        const printed = server.text(),
          greeting = printed.slice(printed.indexOf("weir is running at "));
        assert.ok(greeting.split("\n").length < 18, greeting);
        assert.doesNotMatch(printed, /⎔|Binding |Your Worker has access/);
        const [, code] = /\/#\/sign-in\/([^\s/]+)/.exec(greeting);
        const session = await fetch(`http://127.0.0.1:${port}/api/session`, {
          method: "POST",
          headers: { "content-type": "application/json", origin: `http://127.0.0.1:${port}` },
          body: JSON.stringify({ token: code }),
        });
        assert.equal(session.status, 200, await session.text());
        const [chat, embeddings] = await Promise.all(
          server.curls.map(async (line) => JSON.parse((await run("bash", ["-c", line])).stdout)),
        );
        assert.equal(chat.choices[0].message.content, "You said: hello");
        assert.deepEqual(embeddings.data[0].embedding, [...vector("hello")]);
        const about = JSON.parse(readFileSync(note, "utf8"));
        assert.deepEqual(Object.keys(about), ["adminToken", "machineId", "apiKey", "baseUrl"]);
        assert.equal(about.baseUrl, `http://127.0.0.1:${port}`);
        assert.equal(statSync(resolve(root, secrets(state))).mode & 0o777, 0o600);
        assert.equal(statSync(note).mode & 0o777, 0o600);
        const list = await fetch(about.baseUrl + "/api/machines", {
          headers: { authorization: `Bearer ${about.adminToken}` },
        });
        assert.equal(list.status, 200);
        assert.ok((await list.text()).includes(about.machineId));
        const post = (path, body) =>
          fetch(about.baseUrl + path, {
            method: "POST",
            headers: { authorization: `Bearer ${about.apiKey}`, "content-type": "application/json" },
            body: JSON.stringify(body),
          });
        const speech = Buffer.from(
          await (
            await post("/v1/audio/speech", { model: "demo/test-tts", voice: "v", input: "hello there" })
          ).arrayBuffer(),
        );
        assert.equal(speech.subarray(0, 4).toString() + speech.length, `RIFF${44 + 2 * 2 * 2240}`);
        const image = await (
          await post("/v1/images/generations", { model: "demo/test-image", prompt: "waves" })
        ).json();
        assert.equal(Buffer.from(image.data[0].b64_json, "base64").subarray(1, 4).toString(), "PNG");
        const search = await (await post("/v1/search", { query: "rivers" })).json();
        assert.equal(search.results[0].title, "What it is: rivers");
        const rank = await (
          await post("/v1/rerank", { model: "demo/test-chat", query: "a weir", documents: ["a lake", "a weir"] })
        ).json();
        assert.equal(rank.results[0].index, 1);
        const page = await fetch(about.baseUrl + "/");
        assert.match(page.headers.get("content-security-policy"), /script-src 'self'/);
        assert.match(await page.text(), /<title>weir<\/title>/);
        assert.equal(statSync(state).mode & 0o777, 0o700);
        for (const host of ["localhost", "127.0.0.1", "127.0.0.2", "[::1]", "a.localhost"]) {
          const own = await post("/v1/web/fetch", { model: "web/fetch", url: `http://${host}:${port}/health` });
          assert.equal(own.status, 400, host);
          assert.equal((await own.json()).error.code, "url_not_allowed");
        }
        await perPlatform(port, post);
        if (round === 1) first = about;
        else assert.deepEqual(about, first);
      } finally {
        await server.stop();
      }
      assert.ok(await refused(port), "something still answers on the port");
    }
  } finally {
    if (before !== null) writeFileSync(note, before, { mode: 0o600 });
    await rm(state, { recursive: true, force: true });
  }
}

const offline = "prints curl lines that work offline, and the next run finds its machine";

test(`./build.sh dev ${offline}`, { timeout: 600_000 }, () =>
  demo(
    "dev",
    () => ".dev.vars",
    async (port, post) => {
      // wrangler's storage explorer on the gateway's own port, and the way to it through a web fetch.
      const explorer = "/cdn-cgi/explorer/api/storage/kv/namespaces/KV/keys";
      assert.equal((await fetch(`http://127.0.0.1:${port}${explorer}`)).status, 404);
      const platform = await post("/v1/web/fetch", {
        model: "web/fetch",
        url: `http://127.0.0.1:${port + 1}${explorer}`,
      });
      assert.equal((await platform.json()).error.code, "url_not_allowed");
    },
  ),
);

native.test(`./build.sh serve ${offline}`, { timeout: 600_000 }, () =>
  demo(
    "serve",
    (state) => join(state, "data", "secrets.json"),
    async () => {},
  ),
);
