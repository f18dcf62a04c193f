// The needs of coding tools besides chat itself: context overflows in their own
// words, compaction, token counts and compressed bodies. See
// docs/reference/clients.md, 12 and 13.
// workerd: soak
import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import { brotliCompressSync, gzipSync } from "node:zlib";
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import { start as startUpstream } from "../../upstream/server.mjs";
import { talk } from "../../upstream/talk.mjs";
import { admin, compatible, start } from "../gateway.mjs";

let gw, up, me;
const prefixes = ["up", "an"]; // of the two compatible families

// Bodies far over the limit once decoded. They are created before the first
// connection, which would be closed meanwhile.
const blanks = Buffer.alloc(80 << 20, " ");
const bombs = { gzip: gzipSync(blanks), br: brotliCompressSync(blanks) };

before(async () => {
  up = await startUpstream();
  gw = await start({ vendors: up });
  const operator = admin(gw);
  me = await operator.machine();
  for (const prefix of prefixes)
    await operator.connect(me.machineId, {
      ...compatible(up, { prefix }),
      ...(prefix === "an" ? { provider: "anthropic-compatible-0123abcd" } : {}),
    });
});
after(async () => {
  await gw?.close();
  await up?.close();
});
beforeEach(() => {
  up.clear();
  up.script = talk();
});

const openai = () => new OpenAI({ apiKey: me.apiKey, baseURL: gw.url + "/v1", maxRetries: 0 });
const anthropic = () => new Anthropic({ apiKey: me.apiKey, baseURL: gw.url, maxRetries: 0 });
const post = (path, body, headers = {}) =>
  fetch(gw.url + path, {
    method: "POST",
    headers: { authorization: `Bearer ${me.apiKey}`, "content-type": "application/json", ...headers },
    body: typeof body === "string" || body instanceof Uint8Array ? body : JSON.stringify(body),
  });
const hello = [{ role: "user", content: "Hello" }];

test("a context overflow is told in the words of each client", async () => {
  const message = "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens.";
  up.script = () => ({
    status: 400,
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ error: { message, type: "BadRequestError", code: 400 } }),
  });
  for (const prefix of prefixes) {
    const model = prefix + "/m";
    await assert.rejects(
      openai().chat.completions.create({ model, messages: hello }),
      (e) => e.status === 400 && e.code === "context_length_exceeded" && e.message.includes("maximum context length"),
    );
    await assert.rejects(
      anthropic().messages.create({ model, max_tokens: 9, messages: hello }),
      (e) => e.status === 400 && e.error.error.message.startsWith("prompt is too long"),
    );
    const r = await post("/v1/responses", { model, input: "Hello", stream: true, store: false });
    const text = await r.text();
    assert.equal(r.status, 200, text);
    const last = JSON.parse(text.trim().split("data: ").at(-1));
    assert.equal(last.type, "response.failed");
    assert.equal(last.response.error.code, "context_length_exceeded");
  }
});

test("a conversation is compacted by an upstream that only chats", async () => {
  const input = [...hello, { role: "assistant", content: "Hi." }, { role: "user", content: "Go on." }];
  for (const prefix of prefixes) {
    const model = prefix + "/m";
    // Codex's newer form: a trigger at the end, answered by exactly one item.
    const stream = await openai().responses.create({
      model,
      input: [...input, { type: "compaction_trigger" }],
      store: false,
      stream: true,
    });
    const done = [];
    let completed;
    for await (const e of stream) {
      if (e.type === "response.output_item.done") done.push(e.item);
      if (e.type === "response.completed") completed = e.response;
    }
    assert.equal(done.length, 1);
    assert.equal(done[0].type, "compaction");
    assert.deepEqual(completed.output, done);
    // Its older form: a conversation that stands for the longer one.
    const r = await post("/v1/responses/compact", { model, input, instructions: "Be brief." });
    assert.equal(r.status, 200);
    const compacted = await r.json();
    assert.deepEqual(
      compacted.output.map((x) => x.type),
      ["message", "message", "compaction"],
    );
    // The summary goes on to the other upstream.
    const other = prefixes.find((p) => p !== prefix) + "/m";
    await openai().responses.create({ model: other, input: [...compacted.output, ...hello], store: false });
    assert.match(String(up.seen.at(-1).body), /The conversation so far was compacted.*Summarize this conversation/);
  }
});

test("legacy completions are answered by every family", async () => {
  for (const prefix of prefixes) {
    const model = prefix + "/m";
    const whole = await openai().completions.create({ model, prompt: "Hello", max_tokens: 99 });
    assert.equal(whole.object, "text_completion");
    assert.equal(whole.choices[0].text, "You said: Hello");
    assert.equal(whole.choices[0].finish_reason, "stop");
    assert.ok(whole.usage.total_tokens > 0);
    const stream = await openai().completions.create({
      model,
      prompt: ["Hello"],
      stream: true,
      stream_options: { include_usage: true },
    });
    let text = "";
    let usage;
    for await (const chunk of stream) {
      text += chunk.choices[0]?.text ?? "";
      usage = chunk.usage ?? usage;
    }
    assert.equal(text, "You said: Hello");
    assert.ok(usage.total_tokens > 0);
  }
  await assert.rejects(openai().completions.create({ model: "up/m", prompt: ["a", "b"] }), { status: 400 });
});

test("a Responses request at the chat endpoint is answered as chat", async () => {
  const tools = [
    { type: "function", name: "weather", description: "", parameters: { type: "object", properties: {} } },
  ];
  for (const prefix of prefixes) {
    const input = [{ role: "user", content: "What is the weather?" }];
    const body = { model: prefix + "/m", input, tools, stream: true, store: false, truncation: "auto" };
    const r = await post("/v1/chat/completions", body);
    assert.equal(r.status, 200);
    assert.equal(r.headers.get("x-weir-dropped"), "truncation");
    const text = await r.text();
    const chunks = text
      .trim()
      .split("\n\n")
      .filter((x) => x.startsWith("data: {"))
      .map((x) => JSON.parse(x.slice(6)));
    assert.ok(chunks.every((c) => c.object === "chat.completion.chunk"));
    const calls = chunks.flatMap((c) => c.choices[0]?.delta.tool_calls ?? []);
    assert.equal(calls[0].function.name, "weather");
    assert.ok(chunks.some((c) => c.usage));
    assert.ok(text.endsWith("data: [DONE]\n\n"));
  }
});

test("input tokens of a Responses request are counted", async () => {
  for (const prefix of prefixes) {
    const r = await post("/v1/responses/input_tokens", { model: prefix + "/m", input: "What is 6×7?" });
    assert.equal(r.status, 200);
    const { object, input_tokens } = await r.json();
    assert.equal(object, "response.input_tokens");
    assert.ok(input_tokens > 0);
    assert.match(r.headers.get("x-weir-token-count"), /^(exact|estimate)$/);
  }
});

// A frame of zstd with raw blocks (RFC 8878, 3.1.1), which Node 20 cannot write.
function zstd(body) {
  const head = Buffer.from([0x28, 0xb5, 0x2f, 0xfd, 0xa0, 0, 0, 0, 0]);
  head.writeUInt32LE(body.length, 5);
  const parts = [head];
  for (let at = 0; at < body.length; at += 128 << 10) {
    const block = body.subarray(at, at + (128 << 10));
    const size = Buffer.alloc(4);
    size.writeUInt32LE((block.length << 3) | (at + block.length === body.length ? 1 : 0));
    parts.push(size.subarray(0, 3), block);
  }
  return Buffer.concat(parts);
}

test("compressed bodies are decoded, within the limits of any body [T40]", async () => {
  const codings = { gzip: gzipSync, br: brotliCompressSync, zstd };
  const long = "x".repeat(300 << 10);
  for (const [coding, encode] of Object.entries(codings)) {
    for (const content of ["Hello", long]) {
      const body = Buffer.from(JSON.stringify({ model: "up/m", messages: [{ role: "user", content }] }));
      const r = await post("/v1/chat/completions", encode(body), { "content-encoding": coding });
      const answer = await r.json();
      assert.equal(r.status, 200, `${coding}: ${JSON.stringify(answer)}`);
      assert.equal(answer.choices[0].message.content, "You said: " + content);
      assert.equal(up.seen.at(-1).headers["content-encoding"], undefined);
    }
    const bad = await post("/v1/messages", "not compressed", { "content-encoding": coding });
    assert.equal(bad.status, 400, coding);
    assert.equal((await bad.json()).type, "error");
  }
  for (const [coding, bomb] of Object.entries(bombs)) {
    const r = await post("/v1/chat/completions", bomb, { "content-encoding": coding });
    assert.equal(r.status, 413, coding);
  }
  const other = await post("/v1/chat/completions", "x", { "content-encoding": "deflate" });
  assert.equal(other.status, 415);
});
