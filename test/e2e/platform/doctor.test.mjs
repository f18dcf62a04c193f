// ./build.sh doctor against a gateway that is well, and broken in each way in turn:
// by its settings, and by a proxy in front.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { once } from "node:events";
import { createServer, request } from "node:http";
import { after, before, beforeEach, test } from "node:test";
import { fileURLToPath } from "node:url";
import { examine } from "../../dev/doctor.mjs";
import { start as startUpstream } from "../../upstream/server.mjs";
import { admin, compatible, secrets, start } from "../gateway.mjs";
import { only, platform } from "../platforms.mjs";

const root = fileURLToPath(new URL("../../../", import.meta.url));
const token = secrets.ADMIN_TOKEN;

let gw, front, up;
before(async () => {
  up = await startUpstream();
  gw = await start({ dashboard: true });
  front = await proxy(gw.url);
});
after(async () => {
  front?.close();
  await gw?.close();
  await up?.close();
});
beforeEach(() => {
  front.change = () => {};
});

// proxy passes calls on to a gateway. change(req, answer) may replace status, headers
// and body of an answer.
async function proxy(target) {
  const self = { change: () => {} };
  const server = createServer((req, res) => {
    const call = request(target + req.url, { method: req.method, headers: req.headers }, async (from) => {
      const pieces = [];
      for await (const piece of from) pieces.push(piece);
      const answer = { status: from.statusCode, headers: { ...from.headers }, body: Buffer.concat(pieces).toString() };
      self.change(req, answer);
      if (answer.cut) return res.destroy();
      delete answer.headers["transfer-encoding"];
      delete answer.headers["content-length"];
      delete answer.headers["content-encoding"];
      res.writeHead(answer.status, answer.headers);
      res.end(answer.status === 204 ? undefined : answer.body);
    });
    call.on("error", () => res.destroy());
    delete req.headers["accept-encoding"];
    req.pipe(call);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  self.url = `http://127.0.0.1:${server.address().port}`;
  self.close = () => {
    server.close();
    server.closeAllConnections();
  };
  return self;
}

// doctor returns the lines of an examination, after which no machine is left.
async function doctor(url, options = {}) {
  const lines = [];
  const failures = await examine(url, { token, ...options }, { print: (line) => lines.push(line) });
  assert.equal(failures, lines.filter((l) => l.startsWith("FAIL")).length, lines.join("\n"));
  for (const line of lines) assert.ok(!line.includes("\n") && line.length < 500, line);
  return lines;
}

const machines = async (gateway) => (await admin(gateway).call("GET", "/api/machines")).total;

// fails asserts that an examination finds one failure.
async function fails(lines, name, wrong, todo = /; ./) {
  assert.equal(lines.length, 1, lines.join("\n"));
  assert.ok(lines[0].startsWith(`FAIL  ${name}: `), lines[0]);
  assert.match(lines[0], wrong);
  assert.match(lines[0], todo);
  assert.equal(await machines(gw), 0, "the doctor left a machine");
}

test("a gateway that is well is one line, and nothing stays", async () => {
  const lines = await doctor(gw.url);
  assert.equal(lines.length, 1, lines.join("\n"));
  assert.match(lines[0], /^ok {4}weir \S.* at http:\/\/127\.0\.0\.1:\d+;.* embeddings call through a stub$/);
  assert.equal(await machines(gw), 0);
});

test("./build.sh doctor ends with 0 for a gateway that is well, 1 for a broken one and 2 for a wrong address", async () => {
  const run = (url, env = {}) =>
    new Promise((resolve) => {
      const child = execFile("./build.sh", ["doctor", url], {
        cwd: root,
        env: { ...process.env, ADMIN_TOKEN: token, ...env },
      });
      let text = "";
      for (const stream of [child.stdout, child.stderr]) stream.on("data", (t) => (text += t));
      child.on("close", (code) => resolve({ code, text }));
    });
  const [well, wrong, path, none] = await Promise.all([
    run(gw.url + "/"),
    run(gw.url, { ADMIN_TOKEN: "wrong-token-0123456789abcdef0123456789" }),
    run(gw.url + "/v1"),
    run("weir.example.com"),
  ]);
  assert.equal(well.code, 0, well.text);
  assert.match(well.text, /^ok {4}weir /);
  assert.equal(wrong.code, 1, wrong.text);
  assert.match(wrong.text, /^FAIL {2}operator token: ADMIN_TOKEN is not this gateway's; pass that of/);
  for (const { code, text } of [path, none]) {
    assert.equal(code, 2, text);
    assert.match(text, /^usage: /);
  }
});

test("without a token the public parts are examined, and the line says what was not", async () => {
  assert.match(
    (await doctor(gw.url, { token: "" })).join("\n"),
    /^ok .*storage and calls were not examined: pass ADMIN_TOKEN$/,
  );
});

test("with WEIR_API_KEY one call is sent with an account of that key's machine", async () => {
  const operator = admin(gw),
    { machineId, apiKey } = await operator.machine();
  try {
    await operator.connect(machineId, compatible(up));
    up.clear();
    const lines = await doctor(gw.url, { apiKey, model: "up/text-embedding-3-small" });
    assert.match(lines.join("\n"), /^ok .*; embeddings call of up\/text-embedding-3-small$/);
    assert.equal(up.seen.length, 1);
    assert.match(
      (await doctor(gw.url, { apiKey, model: "none/such" })).join("\n"),
      /^FAIL {2}embeddings: an embeddings call of none\/such answered 400: Unknown model/,
    );
    assert.match(
      (await doctor(gw.url, { apiKey: "sk-wrong", model: "" })).join("\n"),
      /^FAIL {2}embeddings: WEIR_API_KEY is not a key/,
    );
  } finally {
    await operator.call("DELETE", `/api/machines/${machineId}`);
  }
});

test("an address without a weir is named", async () => {
  const other = createServer((_, res) =>
    res.writeHead(404, { "content-type": "text/html" }).end("<h1>nginx</h1>"),
  ).listen(0, "127.0.0.1");
  await once(other, "listening");
  const at = `http://127.0.0.1:${other.address().port}`;
  assert.match((await doctor(at)).join("\n"), /^FAIL {2}health: GET \/health answered 404, not weir's/);
  other.close();
  other.closeAllConnections();
  assert.match(
    (await doctor(at)).join("\n"),
    /^FAIL {2}health: nothing listens at 127\.0\.0\.1:\d+; start the gateway/,
  );
});

const broken = [
  [
    "a redirect",
    "health",
    /redirects to https:\/\/weir/,
    (req, a) =>
      req.url === "/health" && Object.assign(a, { status: 301, headers: { location: "https://weir.example.com" } }),
  ],
  ["answers that are cut off", "health", /no answer \(/, (_, a) => (a.cut = true)],
  [
    "a clock that is ahead",
    "clock",
    /the clock of the gateway is 3[56]\d\d s ahead of/,
    (req, a) => req.url === "/health" && (a.headers.date = new Date(Date.now() + 3_600_000).toUTCString()),
  ],
  [
    "a clock that is behind",
    "clock",
    /the clock of the gateway is 1\d\d s behind/,
    (req, a) => req.url === "/health" && (a.headers.date = new Date(Date.now() - 120_000).toUTCString()),
  ],
  [
    "a clock of the object",
    "storage",
    /machine's object is \d+ s behind/,
    (req, a) =>
      req.url.startsWith("/api/machines?q") &&
      (a.body = a.body.replace(/"createdAt":\d+/, `"createdAt":${Date.now() - 600_000}`)),
  ],
  [
    "no OPTIONS",
    "cross-origin calls",
    /OPTIONS answered 405/,
    (req, a) => req.method === "OPTIONS" && Object.assign(a, { status: 405, headers: {} }),
  ],
  [
    "OPTIONS without fields",
    "cross-origin calls",
    /OPTIONS answered 204/,
    (req, a) => req.method === "OPTIONS" && delete a.headers["access-control-allow-origin"],
  ],
  [
    "answers without cross-origin fields",
    "cross-origin calls",
    /lacks access-control-allow-origin/,
    (req, a) => req.method === "POST" && delete a.headers["access-control-allow-origin"],
  ],
  [
    "management that is open to other sites",
    "cross-origin calls",
    /sites of others may call the management/,
    (_, a) => (a.headers["access-control-allow-origin"] = "*"),
  ],
  [
    "no dashboard",
    "dashboard",
    /GET \/ answered 404/,
    (req, a) => req.url === "/" && Object.assign(a, { status: 404, body: "{}" }),
  ],
  [
    "credentials that a proxy adds",
    "settings",
    /without a token answered 200/,
    (req, a) => req.url === "/api/machines?limit=1" && (a.status = 200),
  ],
  [
    "an earlier version",
    "operator token",
    /it runs version old/,
    (req, a) => req.url === "/api/version" && (a.body = '{"version":"old"}'),
    { version: "new" },
  ],
  [
    "no GET /api/version",
    "operator token",
    /GET \/api\/version answered 404/,
    (req, a) => req.url === "/api/version" && Object.assign(a, { status: 404, body: "no" }),
  ],
  [
    "a storage that fails",
    "storage",
    /a machine could not be created \(503: no storage\)/,
    (req, a) =>
      req.method === "POST" &&
      req.url === "/api/machines" &&
      Object.assign(a, { status: 503, body: '{"error":{"message":"no storage"}}' }),
    {},
    true,
  ],
  [
    "calls without a key",
    "keys",
    /without a key answered 200 instead of 401; remove REQUIRE_API_KEY=false/,
    (req, a) =>
      req.method === "POST" && req.url.endsWith("/v1/embeddings") && !req.headers.authorization && (a.status = 200),
  ],
  [
    "answers that are changed",
    "embeddings",
    /another vector/,
    (req, a) => req.url === "/v1/embeddings" && (a.body = a.body.replace("0.25", "0.5")),
  ],
  [
    "calls that fail",
    "embeddings",
    /answered 502: upstream down/,
    (req, a) =>
      req.url === "/v1/embeddings" &&
      req.headers.authorization &&
      Object.assign(a, { status: 502, body: '{"error":{"message":"upstream down"}}' }),
  ],
];
for (const [what, name, wrong, change, options = {}, leaves = false] of broken)
  test(`${what}: one line names it`, async () => {
    front.change = change;
    const lines = await doctor(front.url, options);
    if (leaves)
      for (const m of (await admin(gw).call("GET", "/api/machines")).data)
        await admin(gw).call("DELETE", `/api/machines/${m.machineId}`);
    await fails(lines, name, wrong);
  });

test("a machine that cannot be deleted is named", async () => {
  front.change = (req, a) => req.method === "DELETE" && (a.status = 500);
  await fails(
    await doctor(front.url),
    "clean-up",
    /the temporary machine \S+ could not be deleted \(500\); delete it in the dashboard/,
  );
});

test("REQUIRE_API_KEY=false is a failure unless it is intended", async () => {
  const open = await start({ dashboard: true, env: { REQUIRE_API_KEY: "false" } });
  try {
    assert.match(
      (await doctor(open.url)).join("\n"),
      /^FAIL {2}keys: POST \/\{machineId\}\/v1\/embeddings without a key answered \d+ instead of 401; remove REQUIRE_API_KEY=false/,
    );
    assert.match((await doctor(open.url, { openKeys: true })).join("\n"), /^ok /);
  } finally {
    await open.close();
  }
});

test("where the gateway cannot reach the stub, a call is planned and the line says so", async () => {
  const strict = await start({ dashboard: true, env: { ALLOW_PRIVATE_UPSTREAMS: "false" } });
  try {
    assert.match(
      (await doctor(strict.url)).join("\n"),
      /^ok .*; the embeddings call was planned, not sent: pass WEIR_API_KEY/,
    );
    assert.equal(await machines(strict), 0);
  } finally {
    await strict.close();
  }
});

const { test: onEdge } = only("workerd", "settings");
for (const name of Object.keys(secrets))
  onEdge(`a missing ${name} is named`, async () => {
    const bare = await start({ dashboard: true, env: { [name]: undefined } });
    try {
      const lines = await doctor(bare.url);
      assert.ok(
        lines.some((l) => l.startsWith("FAIL  settings: ") && l.includes(name) && l.includes("wrangler secret put")),
        lines.join("\n"),
      );
    } finally {
      await bare.close();
    }
  });

onEdge("a file that the dashboard loads and that is missing is named", async () => {
  assert.equal(platform, "workerd");
  front.change = (req, a) => req.url.endsWith(".js") && (a.status = 404);
  await fails(await doctor(front.url), "dashboard", /GET \/assets\/\S+, which the dashboard loads, answered 404/);
});
