// The fields that the program reads of a client's request: by the path alone,
// from the list that Go and JavaScript share.
import assert from "node:assert/strict";
import { ROUTES } from "../../../worker/js/contract.mjs";
import { errorResponse, headOf, routeOf } from "../../../worker/js/request.mjs";
import { only } from "../platforms.mjs";

const { test } = only("workerd", "bridge");

const machine = "/0123456789abcdef";
const origin = "https://weir.example";

test("the class of a route depends on the path only", () => {
  for (const [name, paths] of Object.entries({
    calls: [
      "/v1/embeddings",
      "/v1/chat/completions",
      "/v1/v1/embeddings",
      machine + "/v1/embeddings",
      machine + "/v1/v1/chat/completions?a=b",
      "/v1/chat/completions?x=/v1/messages",
    ],
    messages: ["/v1/messages", "/v1/messages/count_tokens?beta=true", machine + "/v1/messages?x=/v1/embeddings"],
    responses: ["/v1/responses", "/v1/responses/resp_1/input_items", machine + "/v1/responses?x=/api/"],
    gemini: [
      "/v1beta/models",
      "/v1beta/models/openai/gpt-4o:generateContent?key=x",
      "/v1alpha/models/a:countTokens",
      machine + "/v1beta/models/a%2Fb:embedContent",
      machine + "/v1alpha/models?x=/v1/embeddings",
    ],
    data: ["/v1/models?x=/v1/embeddings", "/v1/", "/v1/chat", "/v1/embeddings2", machine + "/v1/messagesx"],
    management: [
      "/",
      "/health",
      "/oauth/callback?state=/v1/embeddings",
      machine + "/api/keys?x=/v1/",
      "/api/v1/embeddings",
      "/x/v1/embeddings",
      "/v1x/embeddings",
      "/v1betax/models",
      "/0123456789ABCDEF/v1/embeddings",
      "/0123456789abcde/v1/models",
      machine + machine + "/v1/models",
    ],
  }))
    for (const path of paths) assert.equal(routeOf(origin + path).name, name, path);
  assert.deepEqual(
    ROUTES.filter((r) => r.cors).map((r) => r.name),
    ["calls", "messages", "responses", "gemini", "data"],
  );
});

const read = (path, headers) => {
  const lines = headOf({ method: "POST", url: origin + path, headers: new Headers(headers) }).head.split("\n");
  assert.deepEqual(lines.slice(0, 2), ["POST", origin + path]);
  return lines.slice(2);
};

test("each field is read once, and the second key only without the first", () => {
  const both = { authorization: "Bearer k1", "x-api-key": "k2", "x-custom": "c" };
  for (const path of ["/v1/embeddings", "/v1/models", "/api/keys"]) {
    assert.deepEqual(read(path, both), ["authorization", "Bearer k1"], path);
    assert.deepEqual(read(path, { "x-api-key": "k2" }), ["x-api-key", "k2"], path);
    assert.deepEqual(read(path, { authorization: "Bearer", "x-api-key": "k2" }).slice(2), ["x-api-key", "k2"], path);
  }
  const message = {
    "x-api-key": "k2",
    "anthropic-version": "v",
    "anthropic-beta": "b",
    "openai-beta": "o",
    "x-app": "a",
  };
  assert.equal(read("/v1/messages", message).length, 8);
  assert.deepEqual(read("/v1/responses", { "openai-beta": "o", "x-app": "a" }), ["openai-beta", "o"]);
  assert.deepEqual(read("/v1/models", { "openai-beta": "o", cookie: "c" }), ["openai-beta", "o"]);
  assert.deepEqual(read("/api/keys", { "openai-beta": "o", cookie: "c" }), ["cookie", "c"]);
});

test("a Gemini client's key and time limit are read, and its errors are those of its API", async () => {
  const fields = { "x-goog-api-key": "k", "x-server-timeout": "20", "x-goog-api-client": "c" };
  assert.deepEqual(read("/v1beta/models/a:generateContent", fields), ["x-goog-api-key", "k", "x-server-timeout", "20"]);
  assert.deepEqual(read("/v1/models", fields), ["x-goog-api-key", "k"]);
  assert.deepEqual(read("/v1/embeddings", fields), []);
  const answer = errorResponse({ url: origin + "/v1beta/models" }, 503, "restarted", "server_error", "restarted");
  assert.deepEqual(await answer.json(), { error: { code: 503, message: "restarted", status: "UNAVAILABLE" } });
  assert.equal(answer.headers.get("access-control-allow-origin"), "*");
});

test("the length and the encoding of a body are those that the head declares", () => {
  const of = (headers) => {
    const { length, encoded } = headOf({ method: "POST", url: origin + "/v1/messages", headers: new Headers(headers) });
    return [length, encoded];
  };
  assert.deepEqual(of({}), [-1, false]);
  assert.deepEqual(of({ "content-length": "12" }), [12, false]);
  assert.deepEqual(of({ "content-length": "12", "content-encoding": "gzip" }), [12, true]);
});
