// Every address of the chat endpoints: the machine in the path, responses that a
// server keeps and those made in the background, the count of tokens by each
// vendor's counter, and long streams. See docs/reference/spec.md, 4.9.
// workerd: soak
import assert from "node:assert/strict";
import { after, before, beforeEach, describe, test } from "node:test";
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import { start as startUpstream } from "../../upstream/server.mjs";
import { talk } from "../../upstream/talk.mjs";
import { admin, families, start } from "../gateway.mjs";

let gw, up, me, operator;
before(async () => {
  up = await startUpstream();
  gw = await start({ vendors: up });
  operator = admin(gw);
  me = await families(operator, up);
});
after(async () => {
  await gw?.close();
  await up?.close();
});
beforeEach(() => {
  up.clear();
  up.script = talk();
});

const messages = [{ role: "user", content: "Hello" }];
const send = (method, path, body, headers = {}) =>
  gw.fetch(path, {
    method,
    headers: { authorization: `Bearer ${me.apiKey}`, "content-type": "application/json", ...headers },
    body: body && JSON.stringify(body),
  });

describe("a machine in the path and a doubled version are accepted:", () => {
  for (const base of ["/v1", "/{machineId}/v1", "/v1/v1"]) {
    test(base, async () => {
      const at = base.replace("{machineId}", me.machineId);
      const openai = new OpenAI({ apiKey: me.apiKey, baseURL: gw.url + at, maxRetries: 0 });
      assert.equal(
        (await openai.chat.completions.create({ model: "an/talk", messages })).choices[0].message.content,
        "You said: Hello",
      );
      const made = await openai.responses.create({ model: "openai/talk", input: "Hello" });
      assert.equal((await openai.responses.retrieve(made.id)).output_text, "You said: Hello");
      assert.deepEqual((await openai.responses.inputItems.list(made.id)).data, []);
      assert.equal((await openai.responses.cancel(made.id)).status, "cancelled");
      await openai.responses.delete(made.id);
      await assert.rejects(openai.responses.retrieve(made.id), { status: 404 });
      const anthropic = new Anthropic({ apiKey: me.apiKey, baseURL: gw.url + at.replace(/\/v1$/, ""), maxRetries: 0 });
      assert.equal(
        (await anthropic.messages.create({ model: "up/talk", max_tokens: 50, messages })).content[0].text,
        "You said: Hello",
      );
      assert.ok((await anthropic.messages.countTokens({ model: "an/talk", messages })).input_tokens > 0);
    });
  }

  test("other methods, other media types and missing bodies are refused", async () => {
    for (const path of ["/v1/chat/completions", "/v1/messages", "/v1/messages/count_tokens", "/v1/responses"]) {
      const wrong = await send("GET", path);
      assert.deepEqual([wrong.status, wrong.headers.get("allow")?.includes("POST")], [405, true], path);
      await wrong.text();
      const none = await send("POST", path);
      assert.equal(none.status, 400, path);
      const body = await none.json();
      assert.equal(
        path.includes("messages") ? body.type : typeof body.error.message,
        path.includes("messages") ? "error" : "string",
      );
      const asked = await gw.fetch(path, {
        method: "OPTIONS",
        headers: { origin: "https://app.example", "access-control-request-method": "POST" },
      });
      assert.equal(asked.headers.get("access-control-allow-origin"), "*", path);
      await asked.text();
    }
  });
});

test("a response created in the background is read as a stream", async () => {
  const openai = new OpenAI({ apiKey: me.apiKey, baseURL: gw.url + "/v1", maxRetries: 0 });
  const whole = {
    id: "resp_bg",
    object: "response",
    created_at: 1,
    status: "queued",
    background: true,
    error: null,
    incomplete_details: null,
    model: "talk",
    output: [],
    usage: null,
  };
  up.script = (req) => {
    if (req.method === "POST") return { headers: { "content-type": "application/json" }, body: JSON.stringify(whole) };
    const list = [
      { type: "response.in_progress", sequence_number: 3, response: { ...whole, status: "in_progress" } },
      {
        type: "response.completed",
        sequence_number: 4,
        response: { ...whole, status: "completed", usage: { input_tokens: 1, output_tokens: 1, total_tokens: 2 } },
      },
    ];
    return {
      headers: { "content-type": "text/event-stream" },
      body: list.map((e) => `event: ${e.type}\ndata: ${JSON.stringify(e)}\n\n`).join(""),
    };
  };
  assert.equal(
    (await openai.responses.create({ model: "openai/talk", input: "Hello", background: true })).status,
    "queued",
  );
  const kinds = [];
  for await (const e of await openai.responses.retrieve("resp_bg", { stream: true, starting_after: 2 }))
    kinds.push(e.type);
  assert.deepEqual(kinds, ["response.in_progress", "response.completed"]);
  assert.match(
    up.seen.at(-1).path,
    /\/responses\/resp_bg\?stream=true&starting_after=2$|\/responses\/resp_bg\?starting_after=2&stream=true$/,
  );
});

test("a response with store: false is bound to no account", async () => {
  const openai = new OpenAI({ apiKey: me.apiKey, baseURL: gw.url + "/v1", maxRetries: 0 });
  const made = await openai.responses.create({ model: "openai/talk", input: "Hello", store: false });
  await assert.rejects(openai.responses.retrieve(made.id), { status: 404 });
  const translated = await openai.responses.create({ model: "an/talk", input: "Hello" });
  assert.equal(translated.store, false);
  await assert.rejects(openai.responses.retrieve(translated.id), { status: 404 });
  assert.equal(up.seen.length, 2, "no upstream is asked");
});

describe("a long stream", () => {
  const n = 3000;
  const words = Array.from({ length: n }, (_, i) => `w${i} `).join("");
  for (const family of ["up", "an"]) {
    test(`of ${n} pieces over ${family} arrives whole`, async () => {
      up.script = null;
      const openai = new OpenAI({ apiKey: me.apiKey, baseURL: gw.url + "/v1", maxRetries: 0 });
      let text = "";
      for await (const c of await openai.chat.completions.create({
        model: `${family}/m!chunks=${n}`,
        messages,
        stream: true,
      }))
        text += c.choices[0]?.delta.content ?? "";
      assert.equal(text, words);
      const anthropic = new Anthropic({ apiKey: me.apiKey, baseURL: gw.url, maxRetries: 0 });
      assert.equal(
        (
          await anthropic.messages
            .stream({ model: `${family}/m!chunks=${n}`, max_tokens: 9000, messages })
            .finalMessage()
        ).content[0].text,
        words,
      );
    });
  }

  test("is kept alive by comments and pings of upstream and gateway", async () => {
    const alive = {
      "/v1/messages":
        ': wait\n\n: wait\n\ndata: {"id":"c","choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":"stop"}]}\n\n: wait\n\ndata: [DONE]\n\n',
      "/v1/chat/completions":
        'event: message_start\ndata: {"type":"message_start","message":{"id":"m","role":"assistant","content":[],"usage":{"input_tokens":1,"output_tokens":1}}}\n\nevent: ping\ndata: {"type":"ping"}\n\nevent: content_block_start\ndata: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":"Hi"}}\n\nevent: ping\ndata: {"type":"ping"}\n\nevent: content_block_stop\ndata: {"type":"content_block_stop","index":0}\n\nevent: message_delta\ndata: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":1}}\n\nevent: message_stop\ndata: {"type":"message_stop"}\n\n',
    };
    up.script = (req) => ({
      headers: { "content-type": "text/event-stream" },
      body: alive[req.path.endsWith("/messages") ? "/v1/chat/completions" : "/v1/messages"],
    });
    for (const [path, model] of [
      ["/v1/messages", "up/m"],
      ["/v1/chat/completions", "an/m"],
      ["/v1/messages", "an/m"],
      ["/v1/chat/completions", "up/m"],
    ]) {
      const text = await (await send("POST", path, { model, max_tokens: 9, messages, stream: true })).text();
      assert.match(text, /Hi/);
      assert.match(text, /message_stop"\}\n\n$|\[DONE\]\n\n$/, path);
      assert.doesNotMatch(text, /"error"/);
    }
  });
});
