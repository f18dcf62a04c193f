// A provider that refuses the location or egress address of a call: the account is
// not at fault, and another isolate may not be affected.
// workerd: soak
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, beforeEach, test } from "node:test";
import { start as startIdp } from "../../upstream/idp.mjs";
import { start as startUpstream } from "../../upstream/server.mjs";
import { admin, compatible, start } from "../gateway.mjs";

let gw, up, other, idp, operator, persist;
const provider = "openai-compatible-0a0a0001";
const boot = async () => {
  gw = await start({
    persist,
    env: {
      OAUTH_PROVIDERS: JSON.stringify([
        { id: provider, tokenUrl: idp.url + "/token", clientId: idp.clientId, clientSecret: idp.clientSecret },
      ]),
    },
  });
  operator = admin(gw);
};
before(async () => {
  persist = await mkdtemp(join(tmpdir(), "weir-blocked-"));
  [up, other, idp] = await Promise.all([startUpstream(), startUpstream(), startIdp()]);
  await boot();
});
after(async () => {
  await gw?.close();
  await Promise.all([up, other, idp].map((s) => s?.close()));
  await rm(persist, { recursive: true, force: true });
});
beforeEach(() => {
  up.clear();
  other.clear();
  idp.calls = [];
});

const json = { "content-type": "application/json" };
const place = {
  status: 403,
  headers: json,
  body: JSON.stringify({
    error: {
      code: "unsupported_country_region_territory",
      message: "Country, region, or territory not supported",
      param: null,
      type: "request_forbidden",
    },
  }),
};
const page = {
  status: 403,
  headers: { "content-type": "text/html; charset=UTF-8", "cf-mitigated": "challenge" },
  body: "<!DOCTYPE html><title>Just a moment...</title>",
};
const gemini = {
  status: 400,
  headers: json,
  body: JSON.stringify({
    error: { code: 400, message: "User location is not supported for the API use.", status: "FAILED_PRECONDITION" },
  }),
};

const bodies = {
  embeddings: ["/v1/embeddings", { model: "up/test-embed", input: "a" }],
  chat: ["/v1/chat/completions", { model: "up/test-chat", messages: [{ role: "user", content: "a" }] }],
  "translated stream": [
    "/v1/messages",
    { model: "up/test-chat", messages: [{ role: "user", content: "a" }], max_tokens: 50, stream: true },
  ],
};
async function send(apiKey, [path, body], more = {}) {
  const res = await gw.fetch(path, {
    method: "POST",
    headers: { ...json, authorization: `Bearer ${apiKey}` },
    body: JSON.stringify({ ...body, ...more }),
  });
  const text = await res.text();
  return {
    status: res.status,
    headers: res.headers,
    text,
    code: text.startsWith("{") ? JSON.parse(text).error?.code : undefined,
  };
}
// untouched checks that no account of a machine cools down or needs a new
// sign-in.
async function untouched(machineId) {
  assert.deepEqual((await operator.call("GET", `/${machineId}/api/models/availability`)).data, []);
  for (const c of (await operator.call("GET", `/${machineId}/api/providers`)).data)
    assert.deepEqual([c.status, c.cooldownUntil], ["active", undefined]);
}

for (const [name, answer] of Object.entries({ "OpenAI's code": place, "a challenge": page, "Gemini's text": gemini })) {
  for (const [kind, call] of Object.entries(bodies)) {
    test(`${kind}: ${name}: no cooldown, no refresh, and this machine skips the location`, async () => {
      const me = await operator.machine(),
        else_ = await operator.machine();
      const { access_token: accessToken, refresh_token: refreshToken } = idp.issue();
      await operator.connect(me.machineId, {
        provider,
        accessToken,
        refreshToken,
        providerSpecificData: { baseUrl: up.url + "/v1", prefix: "up" },
      });
      await operator.connect(me.machineId, {
        provider,
        apiKey: "a-second-key",
        priority: 2,
        providerSpecificData: { baseUrl: up.url + "/v1", prefix: "up" },
      });
      await operator.connect(else_.machineId, compatible(up, { apiKey: "key-of-another-machine" }));
      up.script = (req) => (req.headers.authorization === "Bearer key-of-another-machine" ? null : answer);
      for (const calls of [1, 1]) {
        // the second account is not tried: the location is the same
        const got = await send(me.apiKey, call);
        assert.equal(got.status, answer.status, got.text);
        assert.match(got.text, /does not serve the location that this gateway calls from/);
        if (call[0] !== "/v1/messages") assert.equal(got.code, "upstream_blocked_here");
        assert.ok(!got.text.includes("<"), "no page is shown");
        assert.equal(got.headers.get("x-should-retry"), "false");
        assert.equal(up.seen.length, calls);
      }
      assert.equal(idp.calls.length, 0, "nothing is refreshed");
      await untouched(me.machineId);
      assert.equal((await send(else_.apiKey, call)).status, 200, "another machine's calls go on");
      // A combo continues with another provider, without calling the first one
      // again.
      await operator.connect(
        me.machineId,
        compatible(other, { prefix: "other", suffix: "bbbbbbbb", apiKey: "other-key" }),
      );
      await operator.call("POST", `/${me.machineId}/api/combos`, {
        name: "both",
        kind: kind === "embeddings" ? "embedding" : "llm",
        models: [call[1].model, call[1].model.replace("up/", "other/")],
      });
      const combined = await send(me.apiKey, call, { model: "both" });
      assert.equal(combined.status, 200, combined.text);
      assert.equal(combined.headers.get("x-weir-model"), call[1].model.replace("up/", "other/"));
      assert.deepEqual([up.seen.length, other.seen.length], [2, 1]);
      const { plan } = await operator.call("POST", `/${me.machineId}/api/explain`, {
        path: call[0],
        body: { ...call[1], model: "both" },
      });
      assert.deepEqual(
        plan.map((s) => s.skipped),
        ["blocked_here", "blocked_here", ""],
      );
    });
  }
}

test("another isolate makes its own attempt at once", async () => {
  const me = await operator.machine();
  await operator.connect(me.machineId, compatible(up));
  up.script = () => place;
  assert.equal((await send(me.apiKey, bodies.chat)).status, 403);
  up.script = () => null;
  assert.equal((await send(me.apiKey, bodies.chat)).status, 403, "this one passes it over");
  await gw.close();
  await boot();
  const got = await send(me.apiKey, bodies.chat);
  assert.equal(got.status, 200, got.text);
  await untouched(me.machineId);
});

test("any other 403 causes a refresh", async () => {
  const me = await operator.machine();
  const { access_token: accessToken, refresh_token: refreshToken } = idp.issue();
  await operator.connect(me.machineId, {
    provider,
    accessToken,
    refreshToken,
    providerSpecificData: { baseUrl: up.url + "/v1", prefix: "up" },
  });
  up.script = (req) =>
    req.headers.authorization === `Bearer ${accessToken}`
      ? { status: 403, headers: json, body: '{"error":{"message":"insufficient permissions"}}' }
      : null;
  assert.equal((await send(me.apiKey, bodies.chat)).status, 200);
  assert.equal(idp.calls.length, 1);
});
