// POST /v1/embeddings and POST /{machineId}/v1/embeddings, with the official
// client. See docs/reference/spec.md, 2.9, 4.3, 7.
import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import OpenAI from "openai";
import { vector } from "../../upstream/openai.mjs";
import { start as startUpstream } from "../../upstream/server.mjs";
import { admin, compatible, start, tenant } from "../gateway.mjs";

let gw, up, me;
before(async () => {
  up = await startUpstream();
  gw = await start({ vendors: up });
  me = await tenant(gw, up);
});
after(async () => {
  await gw?.close();
  await up?.close();
});
beforeEach(() => up.clear());

const client = (path, more = {}) => new OpenAI({ apiKey: me.apiKey, baseURL: gw.url + path, maxRetries: 0, ...more });
const paths = () => [
  ["/v1", "/v1/embeddings"],
  [`/${me.machineId}/v1`, "/{machineId}/v1/embeddings"],
  ["/v1/v1", "/v1/v1/embeddings"],
];
const numbers = (v) => [...v];

function post(body, { path = "/v1/embeddings", key = me.apiKey, headers = {} } = {}) {
  const auth = key ? { authorization: `Bearer ${key}` } : {};
  return gw.fetch(path, {
    method: "POST",
    headers: { "content-type": "application/json", ...auth, ...headers },
    body: typeof body === "string" || body instanceof Uint8Array ? body : JSON.stringify(body),
  });
}

// refused checks an error's status and that its body is OpenAI's.
async function refused(res, status, want = {}) {
  const text = await res.text();
  assert.equal(res.status, status, text);
  const { error } = JSON.parse(text);
  assert.equal(typeof error.message, "string");
  assert.deepEqual(Object.keys(error).sort(), ["code", ...(error.code ? ["doc_url"] : []), "message", "param", "type"]);
  for (const [name, value] of Object.entries(want)) assert.equal(error[name], value, `${name} in ${text}`);
  assert.equal(res.headers.get("access-control-allow-origin"), "*");
  assert.match(res.headers.get("x-request-id"), /^req_/);
  return error;
}

test("the official client is served on every form of the path", async () => {
  for (const [base, name] of paths()) {
    const got = await client(base).embeddings.create({ model: "up/test-embed", input: "hello " + name });
    assert.equal(got.object, "list");
    assert.equal(got.model, "up/test-embed");
    assert.deepEqual(
      got.data.map((d) => [d.object, d.index]),
      [["embedding", 0]],
    );
    assert.deepEqual(numbers(got.data[0].embedding), numbers(vector("hello " + name)));
    assert.ok(got.usage.prompt_tokens > 0 && got.usage.total_tokens === got.usage.prompt_tokens);
  }
});

test("floats and base64 are returned as requested", async () => {
  const floats = await client("/v1").embeddings.create({
    model: "up/test-embed",
    input: "a",
    encoding_format: "float",
  });
  assert.deepEqual(numbers(floats.data[0].embedding), numbers(vector("a")));
  const plain = await (await post({ model: "up/test-embed", input: "a" })).json();
  assert.deepEqual(plain.data[0].embedding, numbers(vector("a")));
  const base64 = await (await post({ model: "up/test-embed", input: "a", encoding_format: "base64" })).json();
  assert.equal(base64.data[0].embedding, Buffer.from(vector("a").buffer).toString("base64"));
});

test("base64 is returned when the upstream sends floats, and the order is restored", async () => {
  const input = ["one", "two", "three"];
  for (const fault of ["floats", "floats!reverse", "reverse", "no-index", "no-usage", "floats!no-usage!no-index"]) {
    for (const encoding_format of ["base64", "float"]) {
      const res = await post({ model: "up/test-embed!" + fault, input, encoding_format });
      const got = await res.json();
      assert.equal(res.status, 200, `${fault} ${JSON.stringify(got)}`);
      assert.deepEqual(
        got.data.map((d) => d.index),
        [0, 1, 2],
        fault,
      );
      got.data.forEach((d, i) => {
        const v =
          encoding_format === "float"
            ? d.embedding
            : [...new Float32Array(Uint8Array.from(Buffer.from(d.embedding, "base64")).buffer)];
        assert.deepEqual(v, numbers(vector(input[i])), `${fault} ${encoding_format} ${i}`);
      });
      assert.equal(typeof got.usage.total_tokens, "number");
    }
  }
});

test("strings, token arrays, dimensions and user are forwarded", async () => {
  const openai = client("/v1");
  const texts = await openai.embeddings.create({ model: "up/test-embed", input: ["a", "b"] });
  assert.deepEqual(
    texts.data.map((d) => numbers(d.embedding)),
    [numbers(vector("a")), numbers(vector("b"))],
  );
  const tokens = await openai.embeddings.create({ model: "up/test-embed", input: [1, 2, 3] });
  assert.deepEqual(
    tokens.data.map((d) => numbers(d.embedding)),
    [numbers(vector([1, 2, 3]))],
  );
  const lists = await openai.embeddings.create({ model: "up/test-embed", input: [[1, 2], [3]] });
  assert.deepEqual(
    lists.data.map((d) => numbers(d.embedding)),
    [numbers(vector([1, 2])), numbers(vector([3]))],
  );
  const wide = await openai.embeddings.create({ model: "up/test-embed", input: "x", dimensions: 256, user: "u-1" });
  assert.equal(wide.data[0].embedding.length, 256);
  assert.equal(up.seen.at(-1).json.user, "u-1");
  const many = await openai.embeddings.create({
    model: "up/test-embed",
    input: Array.from({ length: 2048 }, (_, i) => "t" + i),
  });
  assert.deepEqual(numbers(many.data[2047].embedding), numbers(vector("t2047")));
});

test("the client's bytes are forwarded with only the model changed", async () => {
  const raw = `{ "input" : "caf\\u00e9 \u{1F600}",\n "model":"up/test-embed", "unheard_of": {"a":[1, 2.50, 1e3]}, "big": 12345678901234567890 }`;
  assert.equal((await post(raw)).status, 200);
  assert.equal(up.seen[0].body.toString(), raw.replace("up/test-embed", "test-embed"));
  assert.equal(up.seen[0].path, "/v1/embeddings");
  assert.equal(up.seen[0].headers.authorization, "Bearer upstream-key");
});

test("only listed headers are forwarded, and never the gateway's key", async () => {
  await post(
    { model: "up/test-embed", input: "a" },
    {
      headers: {
        cookie: "a=b",
        "x-forwarded-for": "1.2.3.4",
        forwarded: "for=1",
        "x-api-key": me.apiKey,
        "x-canary": "1",
        referer: "http://a/",
        origin: "http://a",
      },
    },
  );
  const { rawHeaders } = up.seen[0],
    names = rawHeaders.filter((_, i) => i % 2 === 0).map((n) => n.toLowerCase());
  for (const name of ["cookie", "x-forwarded-for", "forwarded", "x-canary", "referer", "origin", "x-api-key"])
    assert.ok(!names.includes(name), `${name} went up`);
  assert.ok(!rawHeaders.join("\n").includes(me.apiKey));
});

test("model ids with slashes and the provider id as the alias are resolved", async () => {
  const got = await client("/v1").embeddings.create({ model: "up/vendor/nested-model", input: "a" });
  assert.equal(got.model, "up/vendor/nested-model");
  assert.equal(up.seen[0].json.model, "vendor/nested-model");
  assert.equal((await post({ model: "openai-compatible-0123abcd/test-embed", input: "a" })).status, 200);
});

test("vendors with other request shapes are adapted", async () => {
  const operator = admin(gw),
    machine = await operator.machine();
  const key = { key: machine.apiKey };
  for (const provider of ["gemini", "cohere", "voyage", "jina"])
    await operator.connect(machine.machineId, { provider, apiKey: `key-of-${provider}` });
  for (const [model, host, header] of [
    ["gemini/gemini-embedding-001", "generativelanguage.googleapis.com", "x-goog-api-key"],
    ["cohere/embed-v4.0", "api.cohere.com", "authorization"],
    ["voyage/voyage-4", "api.voyageai.com", "authorization"],
    ["jina/jina-embeddings-v4", "api.jina.ai", "authorization"],
  ]) {
    for (const encoding_format of ["float", "base64"]) {
      for (const input of ["one", ["one", "two"]]) {
        up.clear();
        const res = await post({ model, input, encoding_format, dimensions: 16 }, key),
          text = await res.text();
        assert.equal(res.status, 200, `${model}: ${text}`);
        const got = JSON.parse(text);
        assert.equal(got.model, model);
        assert.deepEqual(
          got.data.map((d) => d.index),
          [].concat(input).map((_, i) => i),
        );
        got.data.forEach((d, i) => {
          const v =
            encoding_format === "float"
              ? d.embedding
              : [...new Float32Array(Uint8Array.from(Buffer.from(d.embedding, "base64")).buffer)];
          assert.deepEqual(v, numbers(vector([].concat(input)[i], 16)), `${model} ${encoding_format}`);
        });
        assert.equal(up.seen[0].host, host);
        assert.match(String(up.seen[0].headers[header]), /key-of-/);
      }
    }
  }
});

test("an access token is used when there is no API key", async () => {
  const operator = admin(gw),
    machine = await operator.machine();
  const { apiKey, ...connection } = compatible(up);
  assert.ok(apiKey);
  await operator.connect(machine.machineId, { ...connection, authType: "oauth", accessToken: "the-access-token" });
  assert.equal((await post({ model: "up/test-embed", input: "a" }, { key: machine.apiKey })).status, 200);
  assert.equal(up.seen[0].headers.authorization, "Bearer the-access-token");
});

test("CORS headers are set on preflights, answers and errors", async () => {
  for (const [base] of paths()) {
    const res = await gw.fetch(base + "/embeddings", {
      method: "OPTIONS",
      headers: {
        origin: "https://app.example",
        "access-control-request-method": "POST",
        "access-control-request-headers": "authorization,content-type",
      },
    });
    assert.ok([200, 204].includes(res.status), String(res.status));
    assert.equal(res.headers.get("access-control-allow-origin"), "*");
    assert.match(res.headers.get("access-control-allow-methods"), /POST/);
    assert.match(res.headers.get("access-control-allow-headers"), /\*, ?Authorization/i);
    assert.equal(await res.text(), "");
  }
  const res = await post({ model: "up/test-embed", input: "a" }, { headers: { origin: "https://app.example" } });
  assert.equal(res.headers.get("access-control-allow-origin"), "*");
  assert.match(res.headers.get("access-control-expose-headers"), /x-request-id/);
  assert.equal(res.headers.get("access-control-allow-credentials"), null);
  await refused(await post("{"), 400);
});

const badBodies = [
  ["not JSON", "{", undefined],
  ["nothing", "", undefined],
  ["no object", "[1]", undefined],
  ["no model", { input: "a" }, "model"],
  ["a model that is no string", { model: 1, input: "a" }, "model"],
  ["a model that is null", { model: null, input: "a" }, "model"],
  ["an empty model", { model: "", input: "a" }, "model"],
  ["no input", { model: "up/test-embed" }, "input"],
  ["an input that is null", { model: "up/test-embed", input: null }, "input"],
  ["an empty input", { model: "up/test-embed", input: "" }, "input"],
  ["an empty list", { model: "up/test-embed", input: [] }, "input"],
  ["an empty item", { model: "up/test-embed", input: ["a", ""] }, "input"],
  ["an input that is a number", { model: "up/test-embed", input: 7 }, "input"],
  ["an input that is an object", { model: "up/test-embed", input: { a: 1 } }, "input"],
  ["a mixed list", { model: "up/test-embed", input: ["a", 1] }, "input"],
  ["tokens that are no integers", { model: "up/test-embed", input: [1.5] }, "input"],
  ["2,049 items", { model: "up/test-embed", input: Array.from({ length: 2049 }, () => "a") }, "input"],
  ["an unknown encoding_format", { model: "up/test-embed", input: "a", encoding_format: "hex" }, "encoding_format"],
  [
    "an encoding_format that is no string",
    { model: "up/test-embed", input: "a", encoding_format: 1 },
    "encoding_format",
  ],
  ["an unknown provider", { model: "unknown/test-embed", input: "a" }, "model"],
  ["a bare unknown model", { model: "no-such-model", input: "a" }, "model"],
  ["a provider without a connection", { model: "openai/text-embedding-3-small", input: "a" }, "model"],
  ["a model given twice", '{"model":"up/test-embed","model":"up/other","input":"a"}', "model"],
  ["deep JSON", '{"model":"up/test-embed","input":"a","x":' + "[".repeat(20000) + "]".repeat(20000) + "}", undefined],
  [
    "invalid UTF-8",
    Buffer.concat([Buffer.from('{"model":"up/test-embed","input":"'), Buffer.from([0xff, 0xfe]), Buffer.from('"}')]),
    undefined,
  ],
];

for (const [name, body, param] of badBodies) {
  test(`400 for ${name}, without an upstream call`, async () => {
    const error = await refused(await post(body), 400, { type: "invalid_request_error" });
    if (param !== undefined) assert.equal(error.param, param);
    assert.equal(up.seen.length, 0);
  });
}

test("a provider without embeddings is 400", async () => {
  const operator = admin(gw),
    machine = await operator.machine();
  await operator.connect(machine.machineId, { provider: "anthropic", apiKey: "k-0123456789" });
  await refused(await post({ model: "anthropic/claude-opus-4-1", input: "a" }, { key: machine.apiKey }), 400, {
    param: "model",
  });
});

test("the official client sees the error's class", async () => {
  await assert.rejects(
    client("/v1").embeddings.create({ model: "unknown/x", input: "a" }),
    (e) => e instanceof OpenAI.BadRequestError && e.param === "model",
  );
  await assert.rejects(
    client("/v1", { apiKey: "sk-wrong" }).embeddings.create({ model: "up/test-embed", input: "a" }),
    (e) => e instanceof OpenAI.APIError && [400, 401].includes(e.status),
  );
});

test("404 and 405 have bodies in the endpoint's dialect", async () => {
  await refused(
    await gw.fetch("/v1/no-such-thing", { method: "POST", headers: { authorization: `Bearer ${me.apiKey}` } }),
    404,
  );
  const res = await gw.fetch("/v1/embeddings", { headers: { authorization: `Bearer ${me.apiKey}` } });
  assert.match(res.headers.get("allow"), /POST/);
  await refused(res, 405);
});

test("a body over the limit is 413 before it is read", async () => {
  const { status } = await new Promise((resolve, reject) => {
    import("node:http").then(({ request }) => {
      const req = request(
        gw.url + "/v1/embeddings",
        {
          method: "POST",
          headers: {
            authorization: `Bearer ${me.apiKey}`,
            "content-type": "application/json",
            "content-length": 500_000_000,
          },
        },
        (res) => {
          resolve({ status: res.statusCode });
          req.destroy();
        },
      );
      req.on("error", reject).write("{");
    });
  });
  assert.equal(status, 413);
});

test("a body over the limit without a declared length is 413", async () => {
  const block = new TextEncoder().encode("a".repeat(1 << 20));
  let left = 64;
  const body = new ReadableStream({
    start(c) {
      c.enqueue(new TextEncoder().encode('{"model":"up/test-embed","input":"'));
    },
    pull(c) {
      if (left-- > 0) c.enqueue(block);
      else c.close();
    },
  });
  const res = await gw.fetch("/v1/embeddings", {
    method: "POST",
    headers: { authorization: `Bearer ${me.apiKey}`, "content-type": "application/json" },
    body,
    duplex: "half",
  });
  await refused(res, 413);
});

for (const status of [400, 404, 413, 422]) {
  test(`an upstream ${status} is returned unchanged`, async () => {
    const res = await post({ model: `up/test-embed!status=${status}`, input: "a" });
    const body = await res.json();
    assert.equal(res.status, status);
    assert.match(body.error.message, new RegExp(String(status)));
    assert.equal(up.seen.length, 1);
  });
}

test("an upstream error never shows the credential", async () => {
  for (const status of [400, 401, 500]) {
    const secret = `canary-upstream-${status}-0123456789`,
      operator = admin(gw),
      machine = await operator.machine();
    await operator.connect(machine.machineId, compatible(up, { apiKey: secret }));
    const res = await post(
      { model: `up/test-embed!status=${status}!body=secret`, input: "a" },
      { key: machine.apiKey },
    );
    assert.ok(res.status >= 400);
    const all = (await res.text()) + JSON.stringify([...res.headers]) + gw.logs.join("\n");
    assert.ok(up.seen.at(-1).headers.authorization.includes(secret));
    assert.ok(!all.includes(secret), `${status} shows it`);
    assert.ok(!all.includes(Buffer.from(secret).toString("base64")));
  }
});

for (const fault of [
  "reset",
  "raw=garbage",
  "raw=short-length",
  "raw=truncated-chunk",
  "body=html",
  "body=empty",
  "body=broken",
  "body=null",
  "body=array",
  "status=204",
  "gzip=bad",
]) {
  test(`${fault} from the upstream is 502`, async () => {
    const operator = admin(gw),
      machine = await operator.machine(); // failures cool an account down
    await operator.connect(machine.machineId, compatible(up));
    const res = await post({ model: `up/test-embed!${fault}`, input: "a" }, { key: machine.apiKey });
    const error = await refused(res, 502);
    assert.ok(!error.message.includes("127.0.0.1"), error.message);
  });
}

test("a redirect of the upstream is not followed: 502", async () => {
  const operator = admin(gw),
    machine = await operator.machine();
  await operator.connect(machine.machineId, compatible(up));
  up.script = () => `redirect=${encodeURIComponent(up.url + "/v1/embeddings")}`;
  await refused(await post({ model: "up/test-embed", input: "a" }, { key: machine.apiKey }), 502);
  assert.equal(up.seen.length, 1);
});

test("an upstream that does not answer in time is 504", async () => {
  const operator = admin(gw),
    machine = await operator.machine();
  await operator.connect(machine.machineId, compatible(up));
  const res = await post(
    { model: "up/test-embed!stall", input: "a" },
    { key: machine.apiKey, headers: { "x-stainless-timeout": "2" } },
  );
  await refused(res, 504);
});

test("a hop counter that is too high is 508", async () => {
  await refused(await post({ model: "up/test-embed", input: "a" }, { headers: { "x-weir-hop": "9" } }), 508);
  assert.equal(up.seen.length, 0);
});
