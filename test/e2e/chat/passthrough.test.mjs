// Bytes that are forwarded between a client and an upstream of its own dialect: a
// chat request's bytes, older forms of fields that a server refuses by name, and
// the bodies of errors for which no other account is tried.
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, beforeEach, test } from "node:test";
import { start as startUpstream } from "../../upstream/server.mjs";
import { admin, compatible, start } from "../gateway.mjs";
import { rows } from "../storage.mjs";
import { until } from "../wait.mjs";

let gw, up, operator, me, dir;
before(async () => {
  dir = await mkdtemp(join(tmpdir(), "weir-test-"));
  up = await startUpstream();
  gw = await start({ persist: dir });
  operator = admin(gw);
});
after(async () => {
  await gw?.close();
  await up?.close();
  await rm(dir, { recursive: true, force: true });
});
beforeEach(async () => {
  up.clear();
  me = await operator.machine();
  await operator.connect(me.machineId, compatible(up));
  await operator.connect(me.machineId, {
    ...compatible(up, { prefix: "an" }),
    provider: "anthropic-compatible-0123abcd",
  });
});

const post = (path, body, headers = {}) =>
  gw.fetch(path, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${me.apiKey}`, ...headers },
    body: typeof body === "string" ? body : JSON.stringify(body),
  });
const json = (status, body) => ({
  status,
  headers: { "content-type": "application/json" },
  body: typeof body === "string" ? body : JSON.stringify(body),
});
const sent = () => up.seen.map((r) => r.body.toString());

test("a compatible server gets a chat client's bytes except for the model", async () => {
  const body = (
    model,
  ) => `{ "model": "${model}", "max_completion_tokens":22, "reasoning_effort" : "xhigh", "x_unknown":[1, 2],
    "messages":[{"role":"developer","content":"x"},{"role":"assistant","content":"","reasoning_content":"I think","tool_calls":null},{"role":"user","content":"Hello"}]}`;
  const res = await post("/v1/chat/completions", body("up/m"));
  assert.equal(res.status, 200, await res.text());
  assert.deepEqual(sent(), [body("m")]);
  assert.equal(res.headers.get("x-weir-dropped"), null);
});

test("a field that a server refuses by name is sent in its older form, also by other isolates", async () => {
  up.script = ({ json: q }) => {
    if (q.max_completion_tokens)
      return json(400, {
        error: {
          message: "Unsupported parameter: 'max_completion_tokens' is not supported with this model.",
          type: "invalid_request_error",
          param: "max_completion_tokens",
          code: "unsupported_parameter",
        },
      });
    if (q.messages[0].role === "developer")
      return json(400, {
        error: {
          message:
            "Failed to deserialize the JSON body into the target type: messages[0].role: unknown variant `developer`, expected one of `system`, `user`",
        },
      });
    return null;
  };
  const body = {
    model: "up/m",
    max_completion_tokens: 22,
    messages: [
      { role: "developer", content: "x" },
      { role: "user", content: "Hello" },
    ],
  };
  const first = await post("/v1/chat/completions", body);
  assert.equal(first.status, 200, await first.text());
  assert.equal(first.headers.get("x-weir-dropped"), "max_completion_tokens,developer");
  assert.deepEqual(
    up.seen.map(({ json: q }) => [q.max_completion_tokens, q.max_tokens, q.messages[0].role]),
    [
      [22, undefined, "developer"],
      [undefined, 22, "developer"],
      [undefined, 22, "system"],
    ],
  );

  up.seen.length = 0;
  const streamed = await post("/v1/chat/completions", { ...body, stream: true });
  assert.match(await streamed.text(), /\[DONE\]/);
  assert.equal(up.seen.length, 1, "the connection remembers it");

  // A new isolate learns it from the object, once the report is there.
  await until("the report", async () =>
    (await rows(gw.dir)).some(
      (r) => (r.key === "activity" || r.key.startsWith("refusal:")) && r.value.includes("developer"),
    ),
  );
  await gw.close();
  gw = await start({ persist: dir });
  operator = admin(gw);
  up.seen.length = 0;
  const res = await post("/v1/chat/completions", body);
  assert.equal(res.status, 200, await res.text());
  assert.deepEqual(
    up.seen.map(({ json: q }) => [q.max_tokens, q.messages[0].role]),
    [[22, "system"]],
  );
});

test("an error for which no other account is tried is forwarded unchanged", async () => {
  const chat = { model: "up/m", messages: [{ role: "user", content: "Hello" }] };
  const messages = { ...chat, model: "an/m", max_tokens: 9 };
  const thread =
    '{"type":"error","error":{"type":"invalid_request_error","message":"no","details":{"error_code":"thread_unsupported_request","unsupported":["thread"]}},"request_id":"req_1"}';
  const azure =
    '{ "error" : {"message":"filtered","type":null,"param":"prompt","code":"content_filter","status":400,"innererror":{"code":"ResponsibleAIPolicyViolation"}} }';
  for (const [name, path, body, status, told, want] of [
    ["chat", "/v1/chat/completions", chat, 400, azure, azure],
    ["a stream", "/v1/chat/completions", { ...chat, stream: true }, 422, azure, azure],
    ["messages", "/v1/messages", messages, 400, thread, thread],
    ["responses", "/v1/responses", { model: "up/m", input: "a" }, 400, azure, azure],
    ["embeddings", "/v1/embeddings", { model: "up/e", input: "a" }, 400, azure, azure],
    ["images", "/v1/images/generations", { model: "up/i", prompt: "a" }, 400, azure, azure],
    ["speech", "/v1/audio/speech", { model: "up/s", input: "a", voice: "b" }, 404, azure, azure],
    [
      "a key in it",
      "/v1/chat/completions",
      chat,
      400,
      '{"error":{"message":"key upstream-key-long is bad","type":"t"}}',
      '{"error":{"message":"key *** is bad","type":"t"}}',
    ],
  ]) {
    up.clear();
    if (name === "a key in it") {
      me = await operator.machine();
      await operator.connect(me.machineId, compatible(up, { apiKey: "upstream-key-long" }));
    }
    up.script = () => json(status, told);
    const res = await post(path, body);
    assert.equal(res.status, status, name);
    assert.equal(await res.text(), want, name);
    assert.equal(res.headers.get("content-type"), "application/json", name);
    assert.equal(up.seen.length, 1, name);
  }
});

test("Claude Code's headers and ?beta=true go to an Anthropic upstream, Codex's to a Responses one", async () => {
  const headers = {
    "anthropic-version": "2023-06-01",
    "anthropic-beta": "context-management-2025-06-27,x",
    "anthropic-workspace-id": "wrk",
    "x-claude-code-session-id": "s1",
    "x-claude-code-agent-id": "a1",
    "x-app": "cli",
    "x-codex-turn-state": "t1",
    session_id: "c1",
    "x-private": "no",
  };
  const body = { model: "an/m", max_tokens: 9, messages: [{ role: "user", content: "Hello" }] };
  const res = await post("/v1/messages?beta=true", body, headers);
  assert.equal(res.status, 200, await res.text());
  const got = up.seen[0];
  assert.equal(got.path, "/v1/messages?beta=true");
  for (const name of [
    "anthropic-version",
    "anthropic-beta",
    "anthropic-workspace-id",
    "x-claude-code-session-id",
    "x-claude-code-agent-id",
    "x-app",
  ])
    assert.equal(got.headers[name], headers[name], name);
  for (const name of ["x-codex-turn-state", "session_id", "x-private"])
    assert.equal(got.headers[name], undefined, name);

  up.clear();
  up.script = (r) =>
    r.path.endsWith("/responses")
      ? json(200, {
          id: "resp_1",
          object: "response",
          status: "completed",
          output: [],
          usage: { input_tokens: 1, output_tokens: 1, total_tokens: 2 },
        })
      : null;
  const codex = await post("/v1/responses", { model: "up/m", input: "a" }, headers);
  assert.equal(codex.status, 200, await codex.text());
  assert.deepEqual(
    ["x-codex-turn-state", "session_id", "x-app", "anthropic-beta", "x-private"].map((n) => up.seen[0].headers[n]),
    ["t1", "c1", undefined, undefined, undefined],
  );

  // Translated, they mean nothing to the other vendor.
  up.clear();
  await (await post("/v1/messages?beta=true", { ...body, model: "up/m" }, headers)).text();
  assert.equal(up.seen[0].path, "/v1/chat/completions");
  for (const name of Object.keys(headers)) assert.equal(up.seen[0].headers[name], undefined, name);
});

test("a model look-up fails in the caller's dialect", async () => {
  for (const [headers, want] of [
    [{}, (b) => b.error.message && b.type === undefined],
    [
      { "anthropic-version": "2023-06-01" },
      (b) => b.type === "error" && b.error.type === "not_found_error" && b.request_id,
    ],
  ]) {
    const res = await gw.fetch("/v1/models/up/none-such", {
      headers: { authorization: `Bearer ${me.apiKey}`, ...headers },
    });
    const body = await res.json();
    assert.equal(res.status, 404);
    assert.ok(want(body), JSON.stringify(body));
  }
});

test("an upgrade is refused with 426 where no route serves it", async () => {
  const { hostname, port } = new URL(gw.url);
  for (const [method, path] of [
    ["POST", "/v1/responses"],
    ["GET", "/v1/responses/resp_1"],
    ["GET", "/v1/audio/voices"],
    ["POST", "/v1/chat/completions"],
    ["POST", "/v1/messages"],
    ["GET", "/api/machines"],
    ["GET", "/health"],
  ]) {
    const [status, type, text] = await new Promise((resolve, reject) => {
      const req = request(
        {
          hostname,
          port,
          method,
          path,
          headers: {
            connection: "Upgrade",
            upgrade: "websocket",
            "sec-websocket-version": "13",
            "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
          },
        },
        (res) => {
          const parts = [];
          res
            .on("data", (b) => parts.push(b))
            .on("end", () => resolve([res.statusCode, res.headers["content-type"], Buffer.concat(parts).toString()]));
        },
      );
      req
        .on("upgrade", (_, socket) => {
          socket.destroy();
          reject(new Error(`${path} was upgraded`));
        })
        .on("error", reject)
        .end();
    });
    assert.deepEqual([status, type], [426, "application/json"], `${method} ${path}: ${text}`);
    assert.equal(JSON.parse(text).error.message.includes("WebSocket"), true, text);
  }
  const plain = await gw.fetch("/health", { headers: {} });
  assert.equal(plain.status, 200);
});
