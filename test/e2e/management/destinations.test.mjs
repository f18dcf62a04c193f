// Notifications: what their targets receive, and that a kill loses none. See
// docs/guides/alerts.md.
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:http";
import { createServer as createTCP } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { start as startUpstream } from "../../upstream/server.mjs";
import { admin, compatible, start } from "../gateway.mjs";
import { until } from "../wait.mjs";

let gw, up, hook, mail, operator, storage;
const told = []; // what the targets have received: {path, headers, body}
let answer = () => 200;
before(async () => {
  storage = await mkdtemp(join(tmpdir(), "weir-destinations-"));
  up = await startUpstream();
  hook = createServer((req, res) => {
    let body = "";
    req.on("data", (d) => (body += d));
    req.on("end", () => {
      told.push({ path: req.url, headers: req.headers, body });
      res.writeHead(answer(req)).end();
    });
  });
  await new Promise((done) => hook.listen(0, "127.0.0.1", done));
  mail = mailServer();
  await new Promise((done) => mail.listen(0, "127.0.0.1", done));
  gw = await start({ persist: storage });
  operator = admin(gw);
});
after(async () => {
  await gw?.close();
  await up?.close();
  hook?.close();
  mail?.close();
  await rm(storage, { recursive: true, force: true });
});

// mailServer returns a mail server that takes each message, as a call of /mail.
function mailServer() {
  return createTCP((socket) => {
    let text = "";
    let data = false;
    socket.on("error", () => {});
    socket.write("220 mx.example.com\r\n");
    socket.on("data", (d) => {
      text += d;
      for (;;) {
        const end = data ? "\r\n.\r\n" : "\r\n";
        const at = text.indexOf(end);
        if (at < 0) return;
        const line = text.slice(0, at);
        text = text.slice(at + end.length);
        if (data) told.push({ path: "/mail", headers: {}, body: line });
        data = line === "DATA";
        if (line === "QUIT") return void socket.end("221 bye\r\n");
        socket.write(data ? "354 go on\r\n" : "250 ok\r\n");
      }
    });
  });
}

const address = (path) => `http://127.0.0.1:${hook.address().port}/${path}`;
const of = (path) => told.filter((c) => c.path.startsWith(`/${path}`));

// The text that each kind shows, by what its target receives.
const kinds = {
  slack: (b) => b.blocks[0].text.text,
  discord: (b) => b.embeds[0].title,
  teams: (b) => b.attachments[0].content.body[0].inlines[0].text,
  "google-chat": (b) => b.cardsV2[0].card.header.title,
  webhook: (b) => b.text,
};

async function machine() {
  const { machineId, apiKey } = await operator.machine();
  const api = (method, path, body) => operator.call(method, `/${machineId}/api${path}`, body);
  const connection = await operator.connect(machineId, compatible(up, { apiKey: "sk-canary-notified-1" }));
  const send = () =>
    gw.fetch(`/${machineId}/v1/embeddings`, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${apiKey}` },
      body: JSON.stringify({ model: "up/test-embed", input: "a" }),
    });
  return { machineId, api, connection, send };
}

test("every kind takes a test, the fault of an account and its end", async () => {
  const { api, connection, send } = await machine();
  const targets = {};
  for (const kind of Object.keys(kinds))
    targets[kind] = await api("POST", "/destinations", {
      kind,
      settings: { url: address(`${kind}/canary-path?sig=1`) },
    });
  targets.ntfy = await api("POST", "/destinations", {
    kind: "ntfy",
    settings: { url: address("ntfy/topic-1"), token: "tk_canary_token_12345" },
  });
  const { port } = mail.address();
  const settings = { host: "127.0.0.1", port, tls: "none", from: "Weir <weir@example.com>", to: "me@example.com" };
  targets.smtp = await api("POST", "/destinations", { kind: "smtp", settings });
  for (const t of Object.values(targets)) {
    assert.ok(!JSON.stringify(t).includes("canary"), `the address is shown: ${JSON.stringify(t)}`);
    const result = await api("POST", `/destinations/${t.id}/test`, {});
    assert.deepEqual(result, { delivered: true }, t.kind);
  }
  for (const [kind, shown] of Object.entries(kinds)) {
    const [call] = of(kind);
    assert.match(shown(JSON.parse(call.body)), /test of the destination|Test of weir/, kind);
  }
  const [published] = of("ntfy");
  assert.deepEqual(
    [published.path, published.headers.authorization, JSON.parse(published.body).topic],
    ["/ntfy/", "Bearer tk_canary_token_12345", "topic-1"],
  );
  assert.match(of("mail")[0].body, /^From: .*<weir@example\.com>\r\nTo: me@example\.com\r\nSubject: =\?UTF-8\?B\?/);

  told.length = 0;
  up.script = () => "status=401";
  await send();
  await until("the fault", () => Object.keys(kinds).every((k) => of(k).length > 0) && of("mail").length > 0);
  for (const [kind, shown] of Object.entries(kinds)) assert.match(shown(JSON.parse(of(kind)[0].body)), /refuse/, kind);
  const { type, data } = JSON.parse(of("webhook")[0].body);
  assert.deepEqual([type, data.connectionId], ["account.refused", connection.id]);

  up.script = null;
  await api("POST", `/providers/${connection.id}/test`, { model: "test-chat" });
  await until("the end", () => of("webhook").some((c) => JSON.parse(c.body).type === "recovered"));
  const ids = of("webhook").map((c) => c.headers["webhook-id"]);
  assert.equal(new Set(ids).size, ids.length, "a message was delivered twice");
  const { headers, body } = of("webhook")[0];
  const { signingSecret } = await api("GET", `/destinations/${targets.webhook.id}`);
  const key = Buffer.from(signingSecret.replace("whsec_", ""), "base64");
  const text = `${headers["webhook-id"]}.${headers["webhook-timestamp"]}.${body}`;
  assert.equal(headers["webhook-signature"], `v1,${createHmac("sha256", key).update(text).digest("base64")}`);
  for (const c of told) assert.ok(!c.body.includes("canary"), `a secret in ${c.body}`);
});

test("a message that was not taken survives a kill, with its id", async () => {
  const { machineId, api, send } = await machine();
  const target = await api("POST", "/destinations", {
    kind: "webhook",
    events: ["account.refused"],
    settings: { url: address("killed") },
  });
  answer = () => 503;
  up.script = () => "status=401";
  await send();
  await until("a try", () => of("killed").length > 0);
  await gw.kill();
  gw = await start({ persist: storage });
  operator = admin(gw);
  answer = () => 200;
  up.script = null;
  const shown = () => operator.call("GET", `/${machineId}/api/destinations/${target.id}`);
  // On the edge the alarm of a killed run follows after 30 s.
  await until("the delivery", async () => (await shown()).waiting === 0 && of("killed").length > 1, 120_000);
  const ids = of("killed").map((c) => c.headers["webhook-id"]);
  assert.equal(new Set(ids).size, 1, `another id: ${ids}`);
});
