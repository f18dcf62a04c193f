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
  const fields = ["code", ...(error.code ? ["doc_url"] : []), "message", "param", "type"];
  if (status >= 502) fields.push("provider"); // of whom it is
  assert.deepEqual(Object.keys(error).sort(), fields.sort());
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

for (const fault of ["reset", "raw=garbage", "raw=short-length", "raw=truncated-chunk", "gzip=bad"]) {
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
