// Chat completions, messages and responses, with the official clients, each
// against both families of upstreams. See docs/reference/spec.md, 4.14.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { after, before, beforeEach, describe, test } from "node:test";
import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import Anthropic from "@anthropic-ai/sdk";
import { Output, generateText, jsonSchema, stepCountIs, streamText, tool } from "ai";
import OpenAI from "openai";
import { zodResponseFormat, zodTextFormat } from "openai/helpers/zod";
import { z } from "zod";
import * as anthropicShape from "../../upstream/anthropic.mjs";
import * as openaiShape from "../../upstream/openai.mjs";
import { start as startUpstream } from "../../upstream/server.mjs";
import { talk } from "../../upstream/talk.mjs";
import { admin, compatible, start } from "../gateway.mjs";
import { until } from "../wait.mjs";

let gw, up, me, operator;
const families = ["up", "an"]; // prefixes of the two families
const another = (prefix, more = {}) => ({
  ...compatible(up, { prefix, ...more }),
  ...(prefix.startsWith("an") ? { provider: "anthropic-compatible-0123abcd" } : {}),
});

before(async () => {
  up = await startUpstream();
  gw = await start({ vendors: up });
  operator = admin(gw);
  me = await operator.machine();
  for (const prefix of families) await operator.connect(me.machineId, another(prefix));
});
after(async () => {
  await gw?.close();
  await up?.close();
});
beforeEach(() => {
  up.clear();
  up.script = talk();
});

const openai = (more = {}) => new OpenAI({ apiKey: me.apiKey, baseURL: gw.url + "/v1", maxRetries: 0, ...more });
const anthropic = (more = {}) => new Anthropic({ apiKey: me.apiKey, baseURL: gw.url, maxRetries: 0, ...more });
const hello = [{ role: "user", content: "Hello ☃" }];
const weather = {
  type: "object",
  properties: { city: { type: "string" } },
  required: ["city"],
  additionalProperties: false,
};
const City = z.object({ city: z.string(), degrees: z.number() });

// fresh creates a machine, so that a failure in one test cools no account of
// another.
async function fresh() {
  const { machineId, apiKey } = await operator.machine();
  for (const prefix of families) await operator.connect(machineId, another(prefix));
  return { machineId, apiKey, headers: { authorization: `Bearer ${apiKey}` } };
}

function post(path, body, headers = {}) {
  return gw.fetch(path, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${me.apiKey}`, ...headers },
    body: JSON.stringify(body),
  });
}

for (const family of families) {
  const model = `${family}/talk-1`;

  describe(`openai over ${family}`, () => {
    test("chat", async () => {
      const { data, response } = await openai().chat.completions.create({ model, messages: hello }).withResponse();
      assert.equal(data.choices[0].message.content, "You said: Hello ☃");
      assert.equal(data.choices[0].finish_reason, "stop");
      assert.deepEqual(
        [data.usage.prompt_tokens, data.usage.completion_tokens, data.usage.prompt_tokens_details.cached_tokens],
        [11, 7, 3],
      );
      assert.equal(response.headers.get("x-weir-model"), model);
      assert.equal(up.seen[0].json.model, "talk-1");
    });

    test("stream", async () => {
      const stream = await openai().chat.completions.create({
        model,
        messages: hello,
        stream: true,
        stream_options: { include_usage: true },
      });
      let text = "",
        usage,
        finish;
      for await (const chunk of stream) {
        text += chunk.choices[0]?.delta?.content ?? "";
        finish = chunk.choices[0]?.finish_reason ?? finish;
        usage = chunk.usage ?? usage;
      }
      assert.deepEqual(
        [text, finish, usage.prompt_tokens, usage.completion_tokens],
        ["You said: Hello ☃", "stop", 11, 7],
      );
    });

    test("stream without usage", async () => {
      const stream = await openai().chat.completions.create({ model, messages: hello, stream: true });
      for await (const chunk of stream) {
        assert.equal(chunk.choices.length, 1);
        assert.ok(!chunk.usage);
      }
    });

    test("tools run", async () => {
      const asked = [];
      const runner = openai().chat.completions.runTools({
        model,
        messages: hello,
        stream: true,
        tools: [
          {
            type: "function",
            function: {
              name: "weather",
              parameters: weather,
              parse: JSON.parse,
              function: (a) => {
                asked.push(a);
                return "sunny";
              },
            },
          },
        ],
      });
      assert.equal(await runner.finalContent(), "It is sunny");
      assert.deepEqual(asked, [{ city: "Paris" }]);
    });

    test("structured output", async () => {
      const got = await openai().chat.completions.parse({
        model,
        messages: hello,
        response_format: zodResponseFormat(City, "city"),
      });
      assert.deepEqual(got.choices[0].message.parsed, { city: "Paris", degrees: 21 });
    });

    test("responses", async () => {
      const got = await openai().responses.create({ model, input: "Hello" });
      assert.equal(got.output_text, "You said: Hello");
      assert.deepEqual([got.status, got.usage.input_tokens, got.usage.output_tokens], ["completed", 11, 7]);
      const parsed = await openai().responses.parse({
        model,
        input: "Hello",
        text: { format: zodTextFormat(City, "city") },
      });
      assert.deepEqual(parsed.output_parsed, { city: "Paris", degrees: 21 });
    });

    test("responses stream", async () => {
      const stream = openai().responses.stream({
        model,
        input: "Hello",
        tools: [{ type: "function", name: "weather", parameters: weather, strict: true }],
      });
      const kinds = [];
      for await (const event of stream) kinds.push(event.type);
      const got = await stream.finalResponse();
      const call = got.output.find((x) => x.type === "function_call");
      assert.deepEqual([call.name, call.arguments, call.call_id.length > 0], ["weather", '{"city":"Paris"}', true]);
      assert.equal(kinds[0], "response.created");
      assert.equal(kinds.at(-1), "response.completed");
      const next = await openai().responses.create({
        model,
        input: [
          { role: "user", content: "Hello" },
          call,
          { type: "function_call_output", call_id: call.call_id, output: "sunny" },
        ],
        tools: [{ type: "function", name: "weather", parameters: weather, strict: true }],
      });
      assert.equal(next.output_text, "It is sunny");
    });
  });

  describe(`anthropic over ${family}`, () => {
    test("message", async () => {
      const { data, response } = await anthropic()
        .messages.create({ model, max_tokens: 100, messages: hello })
        .withResponse();
      assert.deepEqual(
        data.content.map((b) => [b.type, b.text]),
        [["text", "You said: Hello ☃"]],
      );
      assert.deepEqual(
        [data.stop_reason, data.usage.input_tokens, data.usage.cache_read_input_tokens, data.usage.output_tokens],
        ["end_turn", 8, 3, 7],
      );
      assert.equal(response.headers.get("x-weir-model"), model);
      assert.match(response.headers.get("request-id"), /^req_/);
    });

    test("stream with tools and thinking", async () => {
      const tools = [{ name: "weather", input_schema: weather }];
      const ask = { model, max_tokens: 4000, tools, thinking: { type: "enabled", budget_tokens: 2000 } };
      const stream = anthropic().messages.stream({ ...ask, messages: hello });
      const got = await stream.finalMessage();
      assert.deepEqual(
        got.content.map((b) => b.type),
        ["thinking", "tool_use"],
      );
      assert.equal(got.content[0].thinking, "Let me see.");
      assert.deepEqual(got.content[1].input, { city: "Paris" });
      assert.equal(got.stop_reason, "tool_use");
      assert.equal(got.usage.output_tokens, 7);
      const next = await anthropic()
        .messages.stream({
          ...ask,
          messages: [
            ...hello,
            { role: "assistant", content: got.content },
            { role: "user", content: [{ type: "tool_result", tool_use_id: got.content[1].id, content: "sunny" }] },
          ],
        })
        .finalMessage();
      assert.equal(next.content.at(-1).text, "It is sunny");
      if (family === "an")
        assert.equal(
          up.seen.at(-1).json.messages[1].content[0].signature,
          "c2lnbmF0dXJl",
          "the signature goes back to its issuer",
        );
    });

    test("count tokens", async () => {
      const { data, response } = await anthropic().messages.countTokens({ model, messages: hello }).withResponse();
      assert.ok(data.input_tokens > 0);
      assert.equal(response.headers.get("x-weir-token-count"), family === "an" ? "exact" : "estimate");
    });
  });

  for (const [name, make] of [
    ["openai (responses)", () => createOpenAI({ apiKey: me.apiKey, baseURL: gw.url + "/v1" })(model)],
    ["openai (chat)", () => createOpenAI({ apiKey: me.apiKey, baseURL: gw.url + "/v1" }).chat(model)],
    [
      "openai-compatible",
      () =>
        createOpenAICompatible({
          name: "weir",
          supportsStructuredOutputs: true,
          apiKey: me.apiKey,
          baseURL: gw.url + "/v1",
        })(model),
    ],
    ["anthropic", () => createAnthropic({ apiKey: me.apiKey, baseURL: gw.url + "/v1" })(model)],
  ]) {
    describe(`ai with ${name} over ${family}`, () => {
      test("text", async () => {
        const got = await generateText({ model: make(), prompt: "Hello ☃", maxRetries: 0 });
        assert.equal(got.text, "You said: Hello ☃");
        assert.deepEqual([got.usage.inputTokens, got.usage.outputTokens], [11, 7]);
      });
      test("stream", async () => {
        const got = streamText({
          model: make(),
          prompt: "Hello ☃",
          maxRetries: 0,
          onError({ error }) {
            throw error;
          },
        });
        let text = "";
        for await (const piece of got.textStream) text += piece;
        assert.equal(text, "You said: Hello ☃");
        assert.equal(await got.finishReason, "stop");
      });
      test("objects", async () => {
        const schema = jsonSchema({
          type: "object",
          properties: { city: { type: "string" }, degrees: { type: "number" } },
          required: ["city", "degrees"],
          additionalProperties: false,
        });
        const ask = { model: make(), prompt: "Hello", maxRetries: 0, output: Output.object({ schema }) };
        assert.deepEqual((await generateText(ask)).output, { city: "Paris", degrees: 21 });
        assert.deepEqual(
          await streamText({
            ...ask,
            onError({ error }) {
              throw error;
            },
          }).output,
          { city: "Paris", degrees: 21 },
        );
      });
      test("pictures and documents", async () => {
        const files = [
          ["image/png", "iVBORw0KGgo="],
          ["application/pdf", "JVBERi0xLjQ="],
        ].map(([mediaType, data]) => ({ type: "file", mediaType, data, filename: "a" }));
        await generateText({
          model: make(),
          maxRetries: 0,
          messages: [{ role: "user", content: [{ type: "text", text: "Look" }, ...files] }],
        });
        assert.match(JSON.stringify(up.seen.at(-1).json), /iVBORw0KGgo=.*JVBERi0xLjQ=/);
      });
      test("tools in steps", async () => {
        const asked = [];
        const got = streamText({
          model: make(),
          prompt: "Hello",
          maxRetries: 0,
          stopWhen: stepCountIs(3),
          tools: {
            weather: tool({
              inputSchema: jsonSchema(weather),
              execute: (a) => {
                asked.push(a);
                return "sunny";
              },
            }),
          },
          onError({ error }) {
            throw error;
          },
        });
        assert.match(await got.text, /It is "?sunny"?/);
        assert.deepEqual(asked, [{ city: "Paris" }]);
      });
    });
  }
}

test("a response is read, deleted and continued at the account that created it", async () => {
  const { machineId, apiKey } = await operator.machine();
  const ids = [];
  for (const i of [0, 1])
    ids.push((await operator.connect(machineId, compatible(up, { apiKey: `upstream-key-${i}`, priority: i + 1 }))).id);
  const own = openai({ apiKey });
  const pin = (id) => ({ headers: { "x-connection-id": id } });
  const made = await own.responses.create({ model: "up/talk-1", input: "Hello" }, pin(ids[1]));
  assert.equal(up.seen.at(-1).headers.authorization, "Bearer upstream-key-1");
  assert.equal((await own.responses.retrieve(made.id)).id, made.id);
  const next = await own.responses.create({ model: "up/talk-1", input: "And now?", previous_response_id: made.id });
  assert.equal(next.previous_response_id, made.id);
  assert.equal((await own.responses.cancel(made.id)).status, "cancelled");
  const streamed = await own.responses.stream({ model: "up/talk-1", input: "Hello" }).finalResponse();
  assert.equal((await own.responses.retrieve(streamed.id)).id, streamed.id);
  await own.responses.delete(made.id);
  assert.deepEqual(
    up.seen.slice(0, 5).map((r) => r.headers.authorization.slice(-1)),
    ["1", "1", "1", "1", "0"],
  );
  await assert.rejects(own.responses.retrieve(made.id), { status: 404 });
  up.clear();
  up.script = talk();
  await assert.rejects(openai().responses.retrieve(next.id), { status: 404 }, "another machine's");
  await assert.rejects(own.responses.retrieve("resp_unknown"), { status: 404 });
  await assert.rejects(own.responses.create({ model: "up/talk-1", input: "x", previous_response_id: "resp_unknown" }), {
    status: 400,
    code: "previous_response_not_found",
  });
  assert.equal(up.seen.length, 0, "no upstream is asked");
});

test("a server without a Responses endpoint is called through chat completions", async () => {
  up.script = talk({ responsesEndpoint: false });
  const { machineId, apiKey } = await operator.machine();
  await operator.connect(machineId, compatible(up));
  const got = await openai({ apiKey }).responses.stream({ model: "up/talk-1", input: "Hello" }).finalResponse();
  assert.equal(got.output_text, "You said: Hello");
  await assert.rejects(
    openai({ apiKey }).responses.create({ model: "up/talk-1", input: "x", previous_response_id: "resp_1" }),
    { status: 400 },
  );
});

describe("combos", () => {
  test("the next member answers in another dialect", async () => {
    await operator.call("POST", `/${me.machineId}/api/combos`, {
      name: "team",
      models: ["up/talk-1!status=429", "an/talk-1"],
    });
    for (let i = 0; i < 2; i++) {
      const { data, response } = await openai()
        .chat.completions.create({ model: "team", messages: hello })
        .withResponse();
      assert.equal(data.choices[0].message.content, "You said: Hello ☃");
      assert.equal(response.headers.get("x-weir-model"), "an/talk-1");
    }
    assert.deepEqual(
      up.seen.map((r) => r.path),
      ["/v1/chat/completions", "/v1/messages", "/v1/messages"],
      "the limited member is left alone",
    );
    const got = await anthropic().messages.stream({ model: "team", max_tokens: 50, messages: hello }).finalMessage();
    assert.equal(got.content[0].text, "You said: Hello ☃");
  });

  test("with all members rate-limited the answer is 429 in the client's dialect", async () => {
    await operator.call("POST", `/${me.machineId}/api/combos`, {
      name: "tired",
      models: ["up/x!status=429!header=retry-after:40", "an/x!status=429!header=retry-after:20"],
    });
    for (const stream of [false, true]) {
      const res = await post("/v1/messages", { model: "tired", max_tokens: 5, messages: hello, stream });
      const body = await res.json();
      assert.equal(res.status, 429);
      assert.equal(body.type, "error");
      assert.equal(body.error.type, "rate_limit_error");
      assert.ok(Number(res.headers.get("retry-after")) <= 20, res.headers.get("retry-after"));
    }
  });
});

describe("a stream that fails", () => {
  const ends = {
    "/v1/chat/completions": [{ messages: hello }, /data: \{"error":\{.*\}\}\n\ndata: \[DONE\]\n\n$/],
    "/v1/responses": [{ input: "Hello" }, /event: response\.failed\ndata: .*\n\n$/],
    "/v1/messages": [{ messages: hello, max_tokens: 50 }, /event: error\ndata: \{"type":"error",.*\}\n\n$/],
  };
  for (const family of families) {
    for (const [path, [body, end]] of Object.entries(ends)) {
      if (family === "up" && path === "/v1/responses") continue; // the test upstream's own streams are chat and messages
      for (const fault of ["cut=finish", "reset-after=3", "chunks=40!slow=20!cut=finish"]) {
        test(`${path} over ${family}: ${fault}`, async () => {
          const { headers } = await fresh();
          const res = await post(path, { ...body, model: `${family}/test-chat!${fault}`, stream: true }, headers);
          assert.equal(res.status, 200);
          const text = await res.text();
          assert.match(text, end);
          assert.equal(
            text.match(/\[DONE\]|event: error\ndata: \{"type":"error","error"|event: response\.failed/g).length,
            1,
            text.slice(-600),
          );
          assert.doesNotMatch(text, /message_stop|response\.completed/);
        });
      }
      test(`${path} over ${family}: only its terminator is missing`, async () => {
        const { headers } = await fresh();
        const res = await post(path, { ...body, model: `${family}/test-chat!cut`, stream: true }, headers),
          text = await res.text();
        assert.match(
          text,
          {
            "/v1/chat/completions": /data: \[DONE\]\n\n$/,
            "/v1/responses": /event: response\.completed\ndata: .*\n\n$/,
            "/v1/messages": /event: message_stop\ndata: .*\n\n$/,
          }[path],
        );
        assert.doesNotMatch(text, /"error":\{|event: error|response\.failed/);
      });
      test(`${path} over ${family}: fails before it begins`, async () => {
        const { headers } = await fresh();
        const res = await post(path, { ...body, model: `${family}/test-chat!status=400`, stream: true }, headers);
        assert.equal(res.status, 400);
        assert.match(res.headers.get("content-type"), /^application\/json/);
        assert.ok((await res.json()).error.message);
      });
    }
  }

  test("an upstream that stalls ends the stream with an error", async () => {
    const ask = async (settings, fault, family) => {
      const { machineId, headers } = await fresh();
      await operator.call("PATCH", `/${machineId}/api/settings`, settings);
      return post(
        "/v1/chat/completions",
        { messages: hello, model: `${family}/test-chat!${fault}`, stream: true },
        headers,
      );
    };
    await Promise.all(
      families.flatMap((family) => [
        ask({ idleSeconds: 1 }, "stall-after=3", family).then(async (res) =>
          assert.match(await res.text(), /data: \{"error":\{.*\}\}\n\ndata: \[DONE\]\n\n$/),
        ),
        ask({ firstByteSeconds: 1 }, "stall", family).then(async (res) => {
          assert.equal(res.status, 504);
          await res.text();
        }),
      ]),
    );
  });
});

// The upstream sends a piece when the client has the one before it: a stream
// that is held back anywhere never ends.
test("pieces of a stream arrive one by one", { timeout: 180_000 }, async () => {
  let next;
  const server = createServer(async (req, res) => {
    for await (const _ of req);
    if (!req.url.endsWith("/chat/completions") && !req.url.endsWith("/messages")) return void res.writeHead(404).end();
    const { events, terminator } = (req.url.endsWith("/messages") ? anthropicShape.messages : openaiShape.chat)(
      { stream: true, messages: hello },
      "m",
      { chunks: 8 },
    );
    res.writeHead(200, { "content-type": "text/event-stream" });
    for (const e of [...events, terminator]) {
      const taken = new Promise((r) => {
        next = r;
      });
      res.write(e);
      if (/"w\d/.test(e)) await taken;
    }
    res.end();
  });
  await new Promise((r) => server.listen(0, "127.0.0.1", r));
  const at = { url: `http://127.0.0.1:${server.address().port}` };
  try {
    const { machineId, apiKey } = await operator.machine();
    await operator.connect(machineId, compatible(at));
    await operator.connect(machineId, {
      ...compatible(at, { prefix: "an" }),
      provider: "anthropic-compatible-0123abcd",
    });
    for (const family of families) {
      for (const path of ["/v1/chat/completions", "/v1/messages"]) {
        const res = await post(
          path,
          { messages: hello, max_tokens: 50, model: `${family}/m`, stream: true },
          { authorization: `Bearer ${apiKey}` },
        );
        let text = "",
          seen = 0;
        for await (const piece of res.body) {
          text += Buffer.from(piece).toString();
          const now = text.match(/"w\d/g)?.length ?? 0;
          assert.ok(now <= seen + 1, `${path} over ${family}: ${now} after ${seen}`);
          if (now > seen) next();
          seen = now;
        }
        assert.equal(seen, 8, `${path} over ${family}`);
      }
    }
  } finally {
    server.closeAllConnections();
    server.close();
  }
});

test("a client that disconnects ends the upstream's stream", async () => {
  for (const family of families) {
    const ctl = new AbortController();
    const res = await gw.fetch("/v1/chat/completions", {
      method: "POST",
      signal: ctl.signal,
      headers: { "content-type": "application/json", authorization: `Bearer ${me.apiKey}` },
      body: JSON.stringify({ messages: hello, model: `${family}/test-chat!chunks=9000!slow=20`, stream: true }),
    });
    await res.body.getReader().read();
    ctl.abort();
    await until(`${family}: the end of the upstream's stream`, () => up.seen.at(-1).ended);
    assert.ok(up.seen.at(-1).aborted, family);
  }
});

test("the usage of a call is reported", async () => {
  const { machineId, apiKey } = await fresh();
  const own = openai({ apiKey });
  await own.chat.completions.create({ model: "up/talk-1", messages: hello });
  await (await own.chat.completions.create({ model: "an/talk-1", messages: hello, stream: true }))
    .toReadableStream()
    .pipeTo(new WritableStream());
  await (
    await own.chat.completions.create({
      model: "up/talk-1",
      messages: hello,
      stream: true,
      stream_options: { include_usage: true },
    })
  )
    .toReadableStream()
    .pipeTo(new WritableStream());
  const rows = await until("3 attempts in the usage", async () => {
    const rows = (await operator.call("GET", `/${machineId}/api/usage?groupBy=model`)).data;
    return rows.reduce((n, r) => n + r.attempts, 0) === 3 && rows;
  });
  const row = Object.fromEntries(rows.map((r) => [r.model, r]));
  assert.deepEqual(
    [
      row["up/talk-1"].attempts,
      row["up/talk-1"].inputTokens,
      row["up/talk-1"].outputTokens,
      row["up/talk-1"].cacheReadTokens,
      row["up/talk-1"].unpricedAttempts,
    ],
    [2, 22, 14, 6, 2],
  );
  assert.deepEqual(
    [row["an/talk-1"].attempts, row["an/talk-1"].inputTokens, row["an/talk-1"].outputTokens],
    [1, 11, 7],
  );
});

test("usage has a row for each attempt, and the cost by the catalogue's prices", async () => {
  const { machineId, apiKey } = await operator.machine();
  const first = await operator.connect(machineId, { provider: "openai", apiKey: "sk-first-0123456789", priority: 1 });
  const second = await operator.connect(machineId, { provider: "openai", apiKey: "sk-second-0123456789", priority: 2 });
  const answer = talk();
  up.script = (req) => (req.headers.authorization.includes("first") ? { status: 503, body: "{}" } : answer(req));
  const own = openai({ apiKey }),
    model = "openai/gpt-5-mini";
  await own.chat.completions.create({ model, messages: hello });
  await (
    await own.chat.completions.create({ model, messages: hello, stream: true, stream_options: { include_usage: true } })
  )
    .toReadableStream()
    .pipeTo(new WritableStream());
  const { pricing } = await (
    await gw.fetch(`/v1/models/info?id=${model}`, { headers: { authorization: `Bearer ${apiKey}` } })
  ).json();
  const rows = await until("4 attempts in the usage", async () => {
    const rows = (await operator.call("GET", `/${machineId}/api/usage?period=day&group=connection`)).data;
    return rows.reduce((n, r) => n + r.attempts, 0) >= 4 && rows;
  });
  const of = (c) => rows.find((r) => r.connectionId === c.id);
  assert.deepEqual(
    [of(first).attempts, of(first).failedAttempts, of(first).outputTokens ?? 0, of(first).costUsd ?? 0],
    [2, 2, 0, 0],
  );
  const u = of(second);
  assert.deepEqual(
    [
      u.attempts,
      u.failedAttempts,
      u.inputTokens,
      u.outputTokens,
      u.cacheReadTokens,
      u.reasoningTokens,
      u.unpricedAttempts ?? 0,
    ],
    [2, 0, 22, 14, 6, 4, 0],
  );
  const cost = (16 * pricing.input + 6 * pricing.cache_read + 14 * pricing.output) / 1e6;
  assert.ok(Math.abs(u.costUsd - cost) < 1e-12, `${u.costUsd}, want ${cost}`);
});

test("errors are in the client's dialect, also with a stream", async () => {
  for (const stream of [false, true]) {
    const chat = await post("/v1/chat/completions", { messages: hello, stream });
    assert.deepEqual([chat.status, (await chat.json()).error.param], [400, "model"]);
    const unknown = await post("/v1/messages", { model: "no/such", max_tokens: 5, messages: hello, stream });
    const body = await unknown.json();
    assert.deepEqual([unknown.status, body.type, body.error.type], [404, "error", "not_found_error"]);
    assert.match(body.request_id, /^req_/);
    assert.equal(unknown.headers.get("access-control-allow-origin"), "*");
  }
  const count = await post("/v1/messages/count_tokens", {});
  assert.deepEqual([count.status, await count.json()], [200, { input_tokens: 0 }]);
  const bad = await gw.fetch("/v1/messages/count_tokens", {
    method: "POST",
    headers: { authorization: `Bearer ${me.apiKey}` },
    body: "{",
  });
  assert.deepEqual([bad.status, (await bad.json()).type], [400, "error"]);
});

test("the path form with a machine and the connection test use the same route", async () => {
  const res = await post(`/${me.machineId}/v1/chat/completions`, { model: "up/talk-1", messages: hello });
  assert.equal(res.status, 200);
  await res.text();
  const [conn] = (await operator.call("GET", `/${me.machineId}/api/providers`)).data;
  const tested = await operator.call("POST", `/${me.machineId}/api/providers/${conn.id}/test`, { model: "talk-1" });
  assert.equal(tested.ok, true, JSON.stringify(tested));
  const plan = await operator.call("POST", `/${me.machineId}/api/explain`, {
    path: "/v1/messages",
    body: { model: "up/talk-1", max_tokens: 5, top_k: 3, messages: hello },
  });
  assert.deepEqual(plan.plan[0].dropped, ["top_k"]);
  assert.match(plan.plan[0].upstream, /^POST .*\/chat\/completions$/);
});
