// Amazon Bedrock: every call is signed, and the upstream checks it from the raw
// request. The official clients drive it.
import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import { bedrock } from "../../upstream/bedrock.mjs";
import { start as startCloud } from "../../upstream/cloud.mjs";
import { vector } from "../../upstream/openai.mjs";
import { check } from "../../upstream/sigv4.mjs";
import { clients } from "../clients.mjs";
import { admin, start } from "../gateway.mjs";
import { only } from "../platforms.mjs";

const long = { id: "AKIAIOSFODNN7EXAMPLE", secret: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY" };
const brief = {
  id: "ASIAIOSFODNN7EXAMPLE",
  secret: "temporary/secret+of==forty0characters0000",
  token: "IQoJb3JpZ2luX2VjEPT//////////wEaCXVzLWVhc3QtMSJHMEUCIQ+/canary==",
};
const region = "eu-central-1";
const claude = "eu.anthropic.claude-sonnet-4-5-20250929-v1:0",
  nova = "amazon.nova-lite-v1:0";
const arn = "arn:aws:bedrock:eu-central-1:123456789012:application-inference-profile/a1b2c3d4e5f6";

let gw, cloud, operator, me;
before(async () => {
  cloud = await startCloud(bedrock({ keys: { [long.id]: long, [brief.id]: brief } }));
  gw = await start({ vendors: cloud });
  operator = admin(gw);
  me = await machine(aws(long));
});
after(async () => {
  const logs = gw?.logs.join("\n") ?? "";
  await gw?.close();
  await cloud?.close();
  for (const s of [long.secret, brief.secret, brief.token]) assert.ok(!logs.includes(s), "a secret is in the logs");
});
beforeEach(() => cloud.clear());

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

test("chat by Converse, whole and streamed out of the frames", async () => {
  const { openai } = me,
    model = arn,
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
  assert.deepEqual([text, finish, usage.prompt_tokens, usage.completion_tokens], ["You said: Hello ☃", "stop", 11, 7]);
  const [one, two] = cloud.seen;
  assert.deepEqual(paths(), [
    `/model/${encodeURIComponent(model)}/converse`,
    `/model/${encodeURIComponent(model)}/converse-stream`,
  ]);
  assert.equal(one.host, `bedrock-runtime.${region}.amazonaws.com`);
  assert.equal(two.headers.accept, "application/vnd.amazon.eventstream");
  assert.ok(!("model" in one.json) && !("stream" in two.json));
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

for (const [name, fault] of Object.entries({ "cut between frames": { cut: 2 }, reset: { reset: 2 } })) {
  test(`${name}: an error in the client's dialect, never a whole answer`, async () => {
    const m = await machine(aws(long));
    for (const [path, body, error, end] of [
      ["/v1/chat/completions", { model: `bedrock/${nova}` }, /^data: \{"error":/m, '"finish_reason":"stop"'],
      ["/v1/messages", { model: `bedrock/${claude}`, max_tokens: 100 }, /^event: error$/m, "message_stop"],
    ]) {
      cloud.fault = () => fault;
      const res = await m.post(path, { ...body, messages: hello, stream: true }),
        text = await res.text();
      assert.equal(res.status, 200, text);
      assert.match(text, error, text);
      assert.ok(!text.includes(end), text);
    }
  });
}

test("the model list is the account's own, signed with its query", async () => {
  const m = await machine(aws(long));
  const list = await (await gw.fetch("/v1/models", { headers: { authorization: `Bearer ${m.apiKey}` } })).json();
  for (const id of ["us.anthropic.claude-sonnet-4-5-20250929-v1:0", nova])
    assert.ok(
      list.data.some((x) => x.id === `bedrock/${id}`),
      `${id} in ${JSON.stringify(list)}`,
    );
  assert.deepEqual(cloud.seen.map((s) => [s.host, s.path]).sort(), [
    [`bedrock.${region}.amazonaws.com`, "/foundation-models"],
    [`bedrock.${region}.amazonaws.com`, "/inference-profiles?maxResults=1000"],
  ]);
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
