// Amazon Bedrock: every call is signed, and the upstream checks it from the raw
// request. The official clients drive it.
import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import OpenAI from "openai";
import { bedrock, models } from "../../upstream/bedrock.mjs";
import { start as startCloud } from "../../upstream/cloud.mjs";
import { exception } from "../../upstream/eventstream.mjs";
import { vector } from "../../upstream/openai.mjs";
import { start as startUpstream } from "../../upstream/server.mjs";
import { check } from "../../upstream/sigv4.mjs";
import { clients } from "../clients.mjs";
import { admin, compatible, start } from "../gateway.mjs";
import { only } from "../platforms.mjs";

const long = { id: "AKIAIOSFODNN7EXAMPLE", secret: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY" };
const brief = {
  id: "ASIAIOSFODNN7EXAMPLE",
  secret: "temporary/secret+of==forty0characters0000",
  token: "IQoJb3JpZ2luX2VjEPT//////////wEaCXVzLWVhc3QtMSJHMEUCIQ+/canary==",
};
const apiKey = "ABSKQmVkcm9ja0FQSUtleS1hYmNkLWF0LTEyMzQ1Njc4OTAxMjpjYW5hcnk=";
const region = "eu-central-1";
const claude = "eu.anthropic.claude-sonnet-4-5-20250929-v1:0",
  nova = "amazon.nova-lite-v1:0";
const arn = "arn:aws:bedrock:eu-central-1:123456789012:application-inference-profile/a1b2c3d4e5f6";

let gw, cloud, up, operator, me;
before(async () => {
  cloud = await startCloud(bedrock({ keys: { [long.id]: long, [brief.id]: brief }, apiKeys: [apiKey] }));
  up = await startUpstream();
  gw = await start({ vendors: cloud });
  operator = admin(gw);
  me = await machine(aws(long));
});
after(async () => {
  const logs = gw?.logs.join("\n") ?? "";
  await gw?.close();
  await cloud?.close();
  await up?.close();
  for (const s of [long.secret, brief.secret, brief.token, apiKey])
    assert.ok(!logs.includes(s), "a secret is in the logs");
});
beforeEach(() => {
  cloud.clear();
  up.clear();
});

const aws = (keys, more = {}) => ({
  provider: "bedrock",
  name: "amazon",
  accessKeyId: keys.id,
  secretAccessKey: keys.secret,
  ...(keys.token ? { sessionToken: keys.token } : {}),
  providerSpecificData: { region },
  ...more,
});

const machine = (...connections) => clients(gw, operator, connections);

const hello = [{ role: "user", content: "Hello ☃" }];
const weather = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
const png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const paths = () => cloud.seen.map((s) => s.path);

test("the test upstream accepts AWS's published signature example, and no variation of it", () => {
  const req = {
    method: "POST",
    path: "/",
    host: "example.amazonaws.com",
    body: Buffer.from("Param1=value1"),
    headers: {
      "content-type": "application/x-www-form-urlencoded",
      "x-amz-date": "20150830T123600Z",
      authorization:
        "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, SignedHeaders=content-type;host;x-amz-date, Signature=ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a",
    },
  };
  const given = {
    keys: { AKIDEXAMPLE: { secret: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY" } },
    region: "us-east-1",
    service: "service",
    now: Date.UTC(2015, 7, 30, 12, 38),
  };
  assert.equal(check(req, given), null);
  for (const [name, changed, more] of [
    ["body", { ...req, body: Buffer.from("Param1=value2") }],
    ["path", { ...req, path: "/x" }],
    ["query", { ...req, path: "/?a=b" }],
    ["host", { ...req, host: "example.com" }],
    ["method", { ...req, method: "PUT" }],
    ["content-type", { ...req, headers: { ...req.headers, "content-type": "text/plain" } }],
    ["token", { ...req, headers: { ...req.headers, "x-amz-security-token": "t" } }],
    ["secret", req, { keys: { AKIDEXAMPLE: { secret: "other" } } }],
    ["key", req, { keys: {} }],
    ["region", req, { region: "us-west-1" }],
    ["time", req, { now: Date.UTC(2015, 7, 30, 12, 42) }],
  ])
    assert.ok(check(changed, { ...given, ...more }), name);
});

for (const model of [nova, claude, arn]) {
  test(`chat with ${model}`, async () => {
    const { openai } = me,
      name = `bedrock/${model}`;
    const whole = await openai.chat.completions.create({ model: name, messages: hello, user: "someone" });
    assert.deepEqual(
      [whole.choices[0].message.content, whole.choices[0].finish_reason, whole.model],
      ["You said: Hello ☃", "stop", model],
    );
    assert.deepEqual(
      [whole.usage.prompt_tokens, whole.usage.completion_tokens, whole.usage.prompt_tokens_details.cached_tokens],
      [11, 7, 3],
    );
    let text = "",
      usage,
      finish;
    for await (const chunk of await openai.chat.completions.create({
      model: name,
      messages: hello,
      stream: true,
      stream_options: { include_usage: true },
    })) {
      text += chunk.choices[0]?.delta?.content ?? "";
      finish = chunk.choices[0]?.finish_reason ?? finish;
      usage = chunk.usage ?? usage;
    }
    assert.deepEqual(
      [text, finish, usage.prompt_tokens, usage.completion_tokens],
      ["You said: Hello ☃", "stop", 11, 7],
    );
    const [one, two] = cloud.seen;
    assert.deepEqual(paths(), [
      `/model/${encodeURIComponent(model)}/converse`,
      `/model/${encodeURIComponent(model)}/converse-stream`,
    ]);
    assert.equal(one.host, `bedrock-runtime.${region}.amazonaws.com`);
    assert.equal(two.headers.accept, "application/vnd.amazon.eventstream");
    assert.ok(!("model" in one.json) && !("stream" in two.json));
  });
}

test("chat: tool calls and results, streamed and whole, and an image", async () => {
  const { openai } = me,
    asked = [];
  for (const stream of [true, false]) {
    const runner = openai.chat.completions.runTools({
      model: `bedrock/${claude}`,
      messages: hello,
      stream,
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
  }
  assert.deepEqual(asked, [{ city: "Paris" }, { city: "Paris" }]);
  const seen = await openai.chat.completions.create({
    model: `bedrock/${nova}`,
    messages: [
      {
        role: "user",
        content: [
          { type: "text", text: "what?" },
          { type: "image_url", image_url: { url: `data:image/png;base64,${png}` } },
        ],
      },
    ],
  });
  assert.equal(seen.choices[0].message.content, `I see ${Buffer.from(png, "base64").length} bytes of png`);
});

test("responses: whole, and a stream with a tool call", async () => {
  const { openai } = me,
    model = `bedrock/${claude}`;
  const got = await openai.responses.create({ model, input: "Hello", reasoning: { effort: "low" } });
  assert.deepEqual([got.output_text, got.status, got.usage.input_tokens], ["You said: Hello", "completed", 11]);
  const stream = openai.responses.stream({
    model,
    input: "Hello",
    tools: [{ type: "function", name: "weather", parameters: weather, strict: false }],
  });
  const call = (await stream.finalResponse()).output.find((x) => x.type === "function_call");
  assert.deepEqual([call.name, call.arguments], ["weather", '{"city":"Paris"}']);
  const next = await openai.responses.create({
    model,
    input: [
      { role: "user", content: "Hello" },
      call,
      { type: "function_call_output", call_id: call.call_id, output: "sunny" },
    ],
    tools: [{ type: "function", name: "weather", parameters: weather, strict: false }],
  });
  assert.equal(next.output_text, "It is sunny");
  assert.ok(paths().every((p) => /\/converse(-stream)?$/.test(p)));
});

test("messages: Claude by InvokeModel, its stream out of the frames unchanged", async () => {
  const { anthropic } = me,
    ask = {
      model: `bedrock/${claude}`,
      max_tokens: 4000,
      tools: [{ name: "weather", input_schema: weather }],
      thinking: { type: "enabled", budget_tokens: 2000 },
    };
  const whole = await anthropic.messages.create({ ...ask, messages: hello, tools: undefined, thinking: undefined });
  assert.deepEqual(
    [whole.content[0].text, whole.stop_reason, whole.usage.cache_read_input_tokens],
    ["You said: Hello ☃", "end_turn", 3],
  );
  const got = await anthropic.messages.stream({ ...ask, messages: hello }).finalMessage();
  assert.deepEqual(
    got.content.map((b) => b.type),
    ["thinking", "tool_use"],
  );
  assert.deepEqual(
    [got.content[0].thinking, got.content[0].signature, got.content[1].input],
    ["Let me see.", "c2lnbmF0dXJl", { city: "Paris" }],
  );
  const next = await anthropic.messages
    .stream({
      ...ask,
      messages: [
        ...hello,
        { role: "assistant", content: got.content },
        { role: "user", content: [{ type: "tool_result", tool_use_id: got.content[1].id, content: "sunny" }] },
      ],
    })
    .finalMessage();
  assert.equal(next.content.at(-1).text, "It is sunny");
  assert.equal(
    cloud.seen.at(-1).json.messages[1].content[0].signature,
    "c2lnbmF0dXJl",
    "the thought goes back as it came",
  );
  const model = encodeURIComponent(claude);
  assert.deepEqual(paths(), [
    `/model/${model}/invoke`,
    `/model/${model}/invoke-with-response-stream`,
    `/model/${model}/invoke-with-response-stream`,
  ]);
});

test("messages: beta features that Bedrock has are sent in the body, others are reported as dropped", async () => {
  const betas = ["claude-code-20250219", "interleaved-thinking-2025-05-14", "context-1m-2025-08-07"];
  const { data, response } = await me.anthropic.beta.messages
    .create({ model: `bedrock/${claude}`, max_tokens: 100, messages: hello, betas })
    .withResponse();
  assert.equal(data.content[0].text, "You said: Hello ☃");
  assert.deepEqual(cloud.seen[0].json.anthropic_beta, betas.slice(1));
  assert.equal(cloud.seen[0].headers["anthropic-beta"], undefined);
  assert.equal(response.headers.get("x-weir-dropped"), "anthropic-beta");
});

test("messages: another vendor's model by Converse, with visible thinking and a tool call", async () => {
  const { anthropic } = me;
  const got = await anthropic.messages
    .stream({
      model: `bedrock/${nova}`,
      max_tokens: 100,
      messages: hello,
      tools: [{ name: "weather", input_schema: weather }],
    })
    .finalMessage();
  assert.deepEqual(
    [got.content.at(-1).type, got.content.at(-1).input, got.stop_reason, got.usage.output_tokens],
    ["tool_use", { city: "Paris" }, "tool_use", 7],
  );
  const thought = await me.openai.chat.completions.create({
    model: `bedrock/${claude}`,
    messages: hello,
    reasoning_effort: "low",
  });
  assert.equal(thought.choices[0].message.reasoning_content, "Let me see.");
  assert.ok(paths()[0].endsWith("/converse-stream"));
});

test("embeddings: Titan one by one, Cohere many at once", async () => {
  const { openai } = me,
    input = ["one", "two", "three ☃"];
  const titan = await openai.embeddings.create({
    model: "bedrock/amazon.titan-embed-text-v2:0",
    input,
    dimensions: 16,
  });
  assert.deepEqual(
    titan.data.map((d) => [...d.embedding]),
    input.map((t) => [...vector(t, 16)]),
  );
  assert.ok(titan.usage.prompt_tokens > 0);
  assert.equal(cloud.seen.length, 3);
  cloud.clear();
  const cohere = await openai.embeddings.create({ model: "bedrock/cohere.embed-v4:0", input });
  assert.deepEqual(
    cohere.data.map((d) => [...d.embedding]),
    input.map((t) => [...vector(t)]),
  );
  assert.deepEqual(paths(), ["/model/cohere.embed-v4%3A0/invoke"]);
});

test("embeddings of Nova, and reranking at a host of its own", async () => {
  const got = await me.openai.embeddings.create({
    model: "bedrock/amazon.nova-2-multimodal-embeddings-v1:0",
    input: ["one", "two"],
    dimensions: 16,
  });
  assert.deepEqual(
    got.data.map((d) => [...d.embedding]),
    ["one", "two"].map((t) => [...vector(t, 16)]),
  );
  const res = await me.post("/v1/rerank", {
    model: "bedrock/amazon.rerank-v1:0",
    query: "q",
    documents: ["a", "ccc", "bb"],
    top_n: 2,
  });
  assert.deepEqual(
    (await res.json()).results.map((r) => r.index),
    [1, 2],
  );
  assert.equal(cloud.seen.at(-1).host, `bedrock-agent-runtime.${region}.amazonaws.com`);
});

test("a hundred signed calls at once, each with its own signature and answer", async () => {
  const model = "bedrock/amazon.titan-embed-text-v2:0";
  const all = await Promise.all(
    Array.from({ length: 100 }, (_, i) =>
      me.openai.embeddings.create({ model, input: `text ${i} ${"x".repeat(i * 37)}` }),
    ),
  );
  all.forEach((got, i) => assert.deepEqual([...got.data[0].embedding], [...vector(`text ${i} ${"x".repeat(i * 37)}`)]));
  assert.equal(new Set(cloud.seen.map((s) => s.headers.authorization)).size, 100);
});

only("workerd", "kv").test("keys out of a document put into KV are signed with", async () => {
  await gw.kv.put(
    "machine:seededbedrock001",
    JSON.stringify({ connections: [{ ...aws(brief), isActive: true }], apiKeys: ["sk-bedrockoldkey"] }),
  );
  const res = await gw.fetch("/seededbedrock001/v1/chat/completions", {
    method: "POST",
    headers: { "content-type": "application/json", authorization: "Bearer sk-bedrockoldkey" },
    body: JSON.stringify({ model: `bedrock/${nova}`, messages: hello }),
  });
  assert.equal((await res.json()).choices?.[0].message.content, "You said: Hello ☃");
  assert.equal(cloud.seen[0].headers["x-amz-security-token"], brief.token);
});

test("temporary keys: the session token is sent and signed", async () => {
  const m = await machine(aws(brief));
  assert.equal(
    (await m.openai.chat.completions.create({ model: `bedrock/${nova}`, messages: hello })).choices[0].finish_reason,
    "stop",
  );
  const [got] = cloud.seen;
  assert.equal(got.headers["x-amz-security-token"], brief.token);
  assert.match(got.headers.authorization, /SignedHeaders=content-type;host;x-amz-date;x-amz-security-token,/);
});

test("a Bedrock API key goes as a bearer token; an apiKey beside a secret is the key id", async () => {
  const m = await machine({ provider: "bedrock", apiKey, providerSpecificData: { region } });
  const model = `bedrock/${nova}`;
  assert.equal((await m.openai.chat.completions.create({ model, messages: hello })).choices[0].finish_reason, "stop");
  assert.equal(cloud.seen[0].headers.authorization, `Bearer ${apiKey}`);
  const old = await machine({
    provider: "bedrock",
    apiKey: long.id,
    secretAccessKey: long.secret,
    providerSpecificData: { region },
  });
  assert.equal((await old.openai.chat.completions.create({ model, messages: hello })).choices[0].finish_reason, "stop");
  assert.match(cloud.seen[1].headers.authorization, /^AWS4-HMAC-SHA256 /);
});

test("after a wrong secret, a stale token or an unknown key the next account answers", async () => {
  for (const bad of [
    aws({ ...long, secret: "not-the-secret-0123456789" }),
    aws({ ...brief, token: "a-stale-token-0123456789" }),
    aws({ ...long, id: "AKIAUNKNOWN0EXAMPLE0" }),
    { provider: "bedrock", apiKey: "not-an-api-key-0123", providerSpecificData: { region } },
  ]) {
    cloud.clear();
    const m = await machine(
      { ...bad, priority: 1 },
      aws(long, { priority: 2, providerSpecificData: { region: "us-west-2" } }),
    );
    const { data, response } = await m.openai.chat.completions
      .create({ model: `bedrock/${nova}`, messages: hello })
      .withResponse();
    assert.equal(data.choices[0].finish_reason, "stop");
    assert.equal(response.headers.get("x-weir-connection-id"), m.ids[1]);
    // It is signed again, for the other region.
    assert.deepEqual(
      cloud.seen.map((s) => s.host),
      [`bedrock-runtime.${region}.amazonaws.com`, "bedrock-runtime.us-west-2.amazonaws.com"],
    );
    const list = await operator.call("GET", `/${m.machineId}/api/models/availability`);
    assert.match(JSON.stringify(list), /key_refused/);
  }
  const m = await machine(aws({ ...long, secret: "not-the-secret-0123456789" }));
  await assert.rejects(
    m.openai.chat.completions.create({ model: `bedrock/${nova}`, messages: hello }),
    (e) =>
      e.status === 401 &&
      e.code === "account_key_refused" &&
      /signature/.test(e.message) &&
      !e.message.includes(long.id),
  );
});

test("a wrong clock counts as a refusal", async () => {
  const m = await machine(aws(long, { priority: 1 }), aws(brief, { priority: 2 }));
  cloud.fault = (got) =>
    got.headers["x-amz-security-token"]
      ? null
      : {
          status: 403,
          headers: { "content-type": "application/json", "x-amzn-errortype": "InvalidSignatureException" },
          body: '{"message":"Signature expired: 20200101T000000Z is now earlier than 20260101T000000Z"}',
        };
  for (const calls of [2, 3]) {
    // the first account rests for two minutes
    const got = await m.openai.embeddings.create({ model: "bedrock/amazon.titan-embed-text-v2:0", input: "a" });
    assert.deepEqual([...got.data[0].embedding], [...vector("a")]);
    assert.equal(cloud.seen.length, calls);
  }
});

test("a combo falls back from Bedrock to another provider with the same body", async () => {
  const m = await machine(aws(long), compatible(up));
  await operator.call("POST", `/${m.machineId}/api/combos`, {
    name: "best",
    models: [`bedrock/${nova}`, "up/test-chat"],
  });
  cloud.fault = () => ({
    status: 429,
    headers: { "content-type": "application/json", "x-amzn-errortype": "ThrottlingException:" },
    body: '{"message":"Too many requests"}',
  });
  for (const stream of [false, true]) {
    const { data, response } = await m.openai.chat.completions
      .create({ model: "best", messages: hello, stream })
      .withResponse();
    if (stream) for await (const chunk of data) assert.equal(chunk.object, "chat.completion.chunk");
    assert.equal(response.headers.get("x-weir-model"), "up/test-chat");
  }
  assert.equal(cloud.seen.length, 1); // then it cools down
});

const begun = (name, fault) => ({ name, fault });
for (const { name, fault } of [
  begun("cut between frames", { cut: 2 }),
  begun("reset", { reset: 2 }),
  begun("a frame with a wrong checksum", { corrupt: 2 }),
  begun("an exception in the stream", { instead: [2, exception("modelStreamErrorException", "the model broke")] }),
  begun("half a frame", { instead: [2, exception("x", "y").subarray(0, 30)] }),
  begun("HTML in the stream", { instead: [2, Buffer.from("<html>no</html>")] }),
]) {
  test(`${name}: an error in the client's dialect, never a whole answer`, async () => {
    for (const [path, body] of [
      ["/v1/chat/completions", { model: `bedrock/${nova}`, messages: hello, stream: true }],
      ["/v1/messages", { model: `bedrock/${nova}`, max_tokens: 100, messages: hello, stream: true }],
      ["/v1/messages", { model: `bedrock/${claude}`, max_tokens: 100, messages: hello, stream: true }],
      ["/v1/responses", { model: `bedrock/${nova}`, input: "Hello", stream: true }],
    ]) {
      const m = await machine(aws(long));
      cloud.fault = () => fault;
      const res = await m.post(path, body),
        text = await res.text();
      assert.equal(res.status, 200, text);
      if (path.endsWith("messages")) {
        assert.match(text, /^event: error$/m, text);
        assert.ok(!text.includes("message_stop"), text);
      } else if (path.endsWith("responses")) {
        assert.match(text, /^event: (error|response\.failed)$/m, text);
        assert.ok(!text.includes("response.completed"), text);
      } else {
        assert.match(text, /^data: \{"error":/m, text);
        assert.ok(!text.includes('"finish_reason":"stop"'), text);
      }
      if (fault.instead?.[1].includes("the model broke")) assert.match(text, /the model broke/);
    }
  });
}

test("an exception as the first frame counts as its status: the next account answers", async () => {
  const m = await machine(aws(long, { priority: 1 }), aws(brief, { priority: 2 }));
  cloud.fault = (got) =>
    got.headers["x-amz-security-token"]
      ? null
      : { instead: [0, exception("throttlingException", "Too many requests")] };
  let text = "";
  for await (const chunk of await m.openai.chat.completions.create({
    model: `bedrock/${nova}`,
    messages: hello,
    stream: true,
  }))
    text += chunk.choices[0]?.delta?.content ?? "";
  assert.equal(text, "You said: Hello ☃");
  assert.equal(cloud.seen.length, 2);
  const list = await operator.call("GET", `/${m.machineId}/api/models/availability`);
  assert.match(JSON.stringify(list), /rate_limited/);
});

test("an upstream refusal is shown with its code and message", async () => {
  cloud.fault = () => ({
    status: 400,
    headers: {
      "content-type": "application/json",
      "x-amzn-errortype": "ValidationException:http://internal.amazon.com/",
    },
    body: '{"message":"The provided model identifier is invalid."}',
  });
  await assert.rejects(
    me.openai.chat.completions.create({ model: `bedrock/${nova}`, messages: hello }),
    (e) =>
      e instanceof OpenAI.BadRequestError &&
      e.code === "ValidationException" &&
      /model identifier is invalid/.test(e.message),
  );
  assert.equal(cloud.seen.length, 1);
});

test("the model list is the account's own, signed, and cached for an hour", async () => {
  const m = await machine(aws(long));
  const ids = async (path = "/v1/models") =>
    (await (await gw.fetch(path, { headers: { authorization: `Bearer ${m.apiKey}` } })).json()).data.map((x) => x.id);
  const got = await ids();
  for (const id of ["us.anthropic.claude-sonnet-4-5-20250929-v1:0", "us.amazon.nova-lite-v1:0", nova])
    assert.ok(got.includes(`bedrock/${id}`), `${id} in ${got}`);
  assert.ok(!got.includes(`bedrock/${models[0].modelId}`), "a model that only a profile can call");
  const embeddings = await ids("/v1/models/embedding");
  for (const id of ["amazon.titan-embed-text-v2:0", "cohere.embed-v4:0"])
    assert.ok(embeddings.includes(`bedrock/${id}`), `${id} in ${embeddings}`);
  assert.deepEqual(cloud.seen.map((s) => [s.host, s.path]).sort(), [
    [`bedrock.${region}.amazonaws.com`, "/foundation-models"],
    [`bedrock.${region}.amazonaws.com`, "/inference-profiles?maxResults=1000"],
  ]);
  await ids();
  assert.equal(cloud.seen.length, 2);
  const own = await operator.call("GET", `/${m.machineId}/api/providers/${m.ids[0]}/models`);
  assert.ok(own.data.length >= 5);
});

test("the connection shows no secret; its test and its plan say that it is usable", async () => {
  const m = await machine(aws(brief, { providerSpecificData: { region, enabledModels: [nova] } }));
  const shown = await operator.call("GET", `/${m.machineId}/api/providers`),
    text = JSON.stringify(shown);
  for (const s of [brief.id, brief.secret, brief.token]) assert.ok(!text.includes(s), text);
  const [c] = shown.data;
  assert.deepEqual(
    [c.authType, c.hasKey, c.last4, c.secrets],
    ["aws", true, "MPLE", ["accessKeyId", "secretAccessKey", "sessionToken"]],
  );
  const plan = await operator.call("POST", `/${m.machineId}/api/explain`, {
    path: "/v1/chat/completions",
    body: { model: `bedrock/${nova}`, messages: hello },
  });
  assert.deepEqual(
    plan.plan.map((s) => [s.try, s.skipped, s.upstream]),
    [[1, "", `POST https://bedrock-runtime.${region}.amazonaws.com/model/amazon.nova-lite-v1%3A0/converse`]],
  );
  assert.equal(cloud.seen.length, 0);
  const tested = await operator.call("POST", `/${m.machineId}/api/providers/${m.ids[0]}/test`, {});
  assert.deepEqual([tested.ok, tested.status], [true, 200], JSON.stringify(tested));
  // A new secret replaces the old one, the token of the old pair goes.
  await operator.call("PUT", `/${m.machineId}/api/providers/${m.ids[0]}`, {
    accessKeyId: long.id,
    secretAccessKey: long.secret,
    sessionToken: null,
  });
  assert.equal((await operator.call("POST", `/${m.machineId}/api/providers/${m.ids[0]}/test`, {})).ok, true);
  for (const body of [{ secretAccessKey: null }, { accessKeyId: null }, { accessKeyId: "a/b/c/d/e/f/g" }]) {
    await assert.rejects(
      operator.call("PUT", `/${m.machineId}/api/providers/${m.ids[0]}`, body),
      (e) => e.status === 400,
    );
  }
});

test("with a base address in the connection its host and port are signed", async () => {
  const m = await machine(aws(brief, { providerSpecificData: { region, baseUrl: cloud.url, prefix: "mine" } }));
  assert.equal(
    (await m.openai.chat.completions.create({ model: `mine/${claude}`, messages: hello })).choices[0].message.content,
    "You said: Hello ☃",
  );
  const list = await (await gw.fetch("/v1/models", { headers: { authorization: `Bearer ${m.apiKey}` } })).json();
  assert.ok(
    list.data.some((x) => x.id === `mine/${nova}`),
    JSON.stringify(list),
  );
  assert.deepEqual(new Set(cloud.seen.map((s) => s.host)), new Set([cloud.url.slice(7)]));
});

test("a connection without a region is an error that says so", async () => {
  const m = await machine({ ...aws(long), providerSpecificData: {} });
  await assert.rejects(
    m.openai.chat.completions.create({ model: `bedrock/${nova}`, messages: hello }),
    (e) => e.status === 400 && /region is missing/.test(e.message),
  );
  assert.equal(cloud.seen.length, 0);
});
