// 200 secrets are planted, every error path is taken with an upstream that
// echoes the request, and none of them appears. See
// docs/reference/reliability.md, 3.7, N6.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { after, before, test } from "node:test";
import { start as startUpstream } from "../../upstream/server.mjs";
import { admin, compatible, start } from "../gateway.mjs";
import { sleep } from "../wait.mjs";

const planted = 200;

// encodings are the ways in which a vendor's error may carry a secret.
const encodings = {
  raw: (s) => s,
  json: (s) =>
    [...s].map((c) => (/[a-z]/.test(c) ? c : "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0"))).join(""),
  url: (s) => [...s].map((c) => (/[a-z]/.test(c) ? c : "%" + c.charCodeAt(0).toString(16).padStart(2, "0"))).join(""),
  base64: (s) => Buffer.from(s).toString("base64"),
  base64shifted: (s) => Buffer.from("x" + s).toString("base64"),
  base64url: (s) => Buffer.from("Bearer " + s).toString("base64url"),
  hex: (s) => Buffer.from(s).toString("hex"),
  html: (s) => [...s].map((c) => `&#x${c.charCodeAt(0).toString(16)};`).join(""),
};
// core is the part of an encoded secret that no neighbour changes.
const traces = (s) => [
  s,
  encodings.url(s),
  Buffer.from(s).toString("base64").slice(0, -4),
  Buffer.from("x" + s)
    .toString("base64")
    .slice(4, -4),
  Buffer.from("xy" + s)
    .toString("base64")
    .slice(4, -4),
  encodings.hex(s),
  encodings.html(s),
];

let gw, up;
before(async () => {
  up = await startUpstream();
  gw = await start({});
});
after(async () => {
  await gw?.close();
  await up?.close();
});

test(`none of ${planted} secrets appears in answers, logs, stored errors or audit on any error path`, {
  timeout: 120_000,
}, async () => {
  const operator = admin(gw),
    found = [],
    names = Object.keys(encodings),
    all = [];
  up.script = (req) => {
    const secret = req.headers.authorization.slice(7),
      status = Number(req.headers["x-canary-status"] ?? req.json?.user ?? 500);
    const text = `refused ${encodings[names[all.indexOf(secret) % names.length]](secret)} as given`;
    const bodies = [
      { error: { message: text, type: "x", code: secret } },
      { message: text },
      { detail: [{ msg: text }] },
      { detail: text },
      [{ error: { message: text } }],
      text,
    ];
    const body = bodies[all.indexOf(secret) % bodies.length];
    return {
      status,
      headers: { "content-type": "application/json", "x-request-id": "r", "x-echo": secret, "retry-after": "1" },
      body: typeof body === "string" ? body : JSON.stringify(body),
    };
  };
  const search = (where, text) => {
    for (const s of all) for (const t of traces(s)) if (text.includes(t)) found.push(`${where}: ${t}`);
  };
  const statuses = [400, 401, 403, 404, 408, 413, 422, 429, 500, 503, 529, 302, 204];
  for (let machine = 0; machine < 10; machine++) {
    const { machineId, apiKey } = await operator.machine();
    for (let i = 0; i < planted / 10; i++) {
      const secret = `sk-${i % 2 ? "ant-" : ""}${randomBytes(18).toString("base64url")}+/${i}`;
      all.push(secret);
      await operator.connect(
        machineId,
        compatible(up, { apiKey: secret, prefix: `p${i}`, suffix: (0x1000000 + i).toString(16).padStart(8, "0") }),
      );
    }
    for (let i = 0; i < planted / 10; i++) {
      const status = statuses[(i + machine) % statuses.length];
      for (const path of [`/v1/embeddings`, `/${machineId}/v1/embeddings`]) {
        const res = await gw.fetch(path, {
          method: "POST",
          headers: { authorization: `Bearer ${apiKey}`, "content-type": "application/json" },
          body: JSON.stringify({ model: `p${i}/m`, input: "a", user: String(status) }),
        });
        assert.ok(res.status >= 400, `${status}: ${res.status}`);
        search(`answer to ${status}`, (await res.text()) + JSON.stringify([...res.headers]));
      }
    }
    for (const path of ["providers", "models/availability", "audit", "export", "keys", "usage", "settings"]) {
      search(`/api/${path}`, JSON.stringify(await operator.call("GET", `/${machineId}/api/${path}`)));
    }
    const list = await gw.fetch("/v1/models", { headers: { authorization: `Bearer ${apiKey}` } });
    search("/v1/models", await list.text());
  }
  await sleep(300); // the last lines of the log
  search("log", gw.logs.join("\n"));
  assert.deepEqual(found.slice(0, 5), []);
  assert.ok(up.seen.length >= planted, `${up.seen.length} calls reached the upstream`);
});
