// Refreshing of stored tokens, against an identity provider that revokes a grant
// whose refresh token comes twice. See docs/reference/reliability.md, T60,
// F33–F35.
import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import { start as startIdp } from "../../upstream/idp.mjs";
import { start as startUpstream } from "../../upstream/server.mjs";
import { admin, start } from "../gateway.mjs";
import { sleep, until } from "../wait.mjs";

const provider = "openai-compatible-0a0a0001",
  every = 250;
let gw, up, idp, operator;
const settings = () => ({
  OAUTH_PROVIDERS: JSON.stringify([
    {
      id: provider,
      name: "Acme",
      tokenUrl: idp.url + "/token",
      clientId: idp.clientId,
      clientSecret: idp.clientSecret,
      refreshEveryMs: every,
    },
    {
      id: "openai",
      tokenUrl: idp.url + "/token",
      clientId: idp.clientId,
      clientSecret: idp.clientSecret,
      refreshEveryMs: every,
    },
  ]),
});
before(async () => {
  up = await startUpstream();
  idp = await startIdp();
  gw = await start({ env: settings() });
  operator = admin(gw);
});
after(async () => {
  const logs = gw?.logs.join("\n") ?? "";
  await gw?.close();
  await up?.close();
  await idp?.close();
  for (const s of idp.secrets) assert.ok(!logs.includes(s), "a secret is in the logs");
});
beforeEach(() => {
  up.clear();
  Object.assign(idp, { calls: [], faults: [], revocations: 0, life: 3600 });
  up.script = (req) => (idp.accepts(req.headers.authorization) ? null : "status=401");
});

// account creates a machine with one connection whose tokens were entered by
// hand.
async function account(fields = {}) {
  const { machineId, apiKey } = await operator.machine();
  const { access_token: accessToken, refresh_token: refreshToken } = idp.issue();
  const connection = await operator.connect(machineId, {
    provider,
    accessToken,
    refreshToken,
    providerSpecificData: { baseUrl: up.url + "/v1", prefix: "acme" },
    ...fields,
  });
  const send = async () => {
    const res = await gw.fetch("/v1/embeddings", {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${apiKey}` },
      body: JSON.stringify({ model: "acme/test-embed", input: "a" }),
    });
    return { status: res.status, headers: res.headers, text: await res.text() };
  };
  const state = async () =>
    (await operator.call("GET", `/${machineId}/api/providers`)).data.find((c) => c.id === connection.id);
  return { machineId, apiKey, accessToken, connection, send, state };
}

test("200 callers with an expired token and 20 rotations cause 20 token calls, no revocation and no failed caller", async () => {
  const { send, state } = await account();
  assert.equal((await send()).status, 200);
  let refused = 0; // some learn of it late, when others have a newer token already
  up.script = (req) => (idp.accepts(req.headers.authorization) ? null : `status=401!delay=${(refused++ % 4) * 30}`);
  for (let round = 1; round <= 20; round++) {
    idp.expire();
    const all = await Promise.all(Array.from({ length: 200 }, send));
    const failed = all.filter((a) => a.status !== 200);
    assert.equal(failed.length, 0, `round ${round}: ${failed.length} failed, ${failed[0]?.status} ${failed[0]?.text}`);
    assert.equal(idp.calls.length, round);
    await sleep(every + 50); // a timer may be early
  }
  assert.equal(idp.revocations, 0);
  assert.equal((await state()).status, "active");
});

for (const slow of [0, 1500]) {
  test(`a lost answer${slow ? " of a slow server" : ""}: one needs_reauth, and no calls from then on`, async () => {
    idp.faults.push(slow ? { slow, then: "lost" } : "lost");
    const { send, state, connection, machineId } = await account({ expiresAt: Date.now() + 500 });
    idp.expire();
    const first = await Promise.all(Array.from({ length: 50 }, send));
    assert.ok(
      first.every((a) => a.status >= 400),
      "no caller can have been served",
    );
    // The first caller, or the alarm after the expiry, finds out.
    await until("needs_reauth", async () => (await state()).status === "needs_reauth");
    // These are the lost call and the one attempt that finds out.
    assert.equal(idp.calls.length, 2);
    const end = Date.now() + 4 * every;
    while (Date.now() < end) assert.ok((await send()).status >= 400);
    assert.equal(idp.calls.length, 2);
    const now = await state();
    assert.match(
      now.lastError,
      /^The provider has revoked the sign-in \(invalid_grant\).+Connect the account again\.$/,
    );
    const told = await send();
    assert.deepEqual(
      [told.status, JSON.parse(told.text).error.code, told.headers.get("x-should-retry")],
      [401, "account_key_refused", "false"],
    );
    // With newly entered tokens it works.
    const { access_token: accessToken, refresh_token: refreshToken } = idp.issue();
    await operator.call("PUT", `/${machineId}/api/providers/${connection.id}`, { accessToken, refreshToken });
    await until("the new token is used", async () => (await send()).status === 200);
  });
}

test("an access token that is still valid is used while the outcome of a refresh is unknown", async () => {
  const { send, state } = await account({ expiresAt: Date.now() + 3_600_000 });
  idp.faults.push("reset");
  assert.equal((await send()).status, 200);
  assert.equal(idp.calls.length, 0);
  assert.equal((await state()).status, "active");
});

for (const fault of [
  500,
  503,
  { status: 429, json: { error: "slow_down" } },
  { status: 400, json: { error: "temporarily_unavailable" } },
  { status: 401, json: { error: "invalid_client" } },
]) {
  test(`a token endpoint that answers ${JSON.stringify(fault)} is called again later`, async () => {
    idp.faults.push(fault);
    const { state, send, connection } = await account({ expiresAt: Date.now() + 4 * 60_000 }); // due at once
    const failed = await until("the failure is shown", async () => {
      const s = await state();
      return s.lastError || s.tokenGeneration > connection.tokenGeneration ? s : null;
    });
    assert.match(
      failed.lastError ?? "The access token could not be renewed: x",
      /^The access token could not be renewed: [a-z, _0-9]+$/,
    );
    await until("the token", async () => (await state()).tokenGeneration > connection.tokenGeneration);
    assert.equal(idp.calls.length, 2);
    assert.equal(idp.revocations, 0);
    const now = await state();
    assert.deepEqual([now.status, now.lastError], ["active", undefined]);
    assert.equal((await send()).status, 200);
  });
}

test("after a page instead of tokens the outcome is unknown, and the current token is used until it expires", async () => {
  idp.faults.push("html");
  const { state, send } = await account({ expiresAt: Date.now() + 4 * 60_000 });
  await until(
    "the failure is shown",
    async () => (await state()).lastError === "The access token could not be renewed: the answer was lost, status 200",
  );
  await sleep(4 * every);
  assert.equal((await send()).status, 200);
  assert.equal(idp.calls.length, 1);
});

test("with a slow token endpoint every caller waits for the same call", async () => {
  const { send } = await account();
  idp.expire();
  idp.faults.push({ slow: 1200 });
  const all = await Promise.all(Array.from({ length: 100 }, send));
  assert.deepEqual([...new Set(all.map((a) => a.status))], [200]);
  assert.equal(idp.calls.length, 1);
});

// gate is a token endpoint that answers on command.
function gate() {
  let open;
  const until = new Promise((resolve) => {
    open = resolve;
  });
  return { until, open };
}

test("a slow token endpoint is called once: callers get 503 or another account", async () => {
  const { send, state, connection, machineId } = await account();
  idp.expire();
  const { until: told, open } = gate();
  idp.faults.push({ until: told });
  const all = await Promise.all(Array.from({ length: 50 }, send));
  for (const a of all) {
    assert.deepEqual([a.status, JSON.parse(a.text).error.code], [503, "token_unavailable"], a.text);
    assert.ok(Number(a.headers.get("retry-after")) >= 1 && a.headers.get("x-should-retry") !== "false");
  }
  assert.equal(idp.calls.length, 1, "no second attempt starts while the first may still rotate");
  assert.deepEqual((await operator.call("GET", `/${machineId}/api/models/availability`)).data, [], "nothing cools");
  // Another account serves at once, while the refresh goes on.
  const second = await operator.connect(machineId, {
    provider,
    priority: 9,
    apiKey: "a-key-of-its-own",
    providerSpecificData: { baseUrl: up.url + "/v1", prefix: "acme" },
  });
  up.script = (req) =>
    idp.accepts(req.headers.authorization) || req.headers.authorization === "Bearer a-key-of-its-own"
      ? null
      : "status=401";
  const served = await until("the second account is known", async () => {
    const got = await send();
    return got.status === 200 ? got : null;
  });
  assert.equal(served.headers.get("x-weir-connection-id"), second.id);
  assert.equal(idp.calls.length, 1);
  open();
  await until("the new token", async () => (await state()).tokenGeneration > connection.tokenGeneration);
  const after = await until("the first account serves again", async () => {
    const got = await send();
    assert.equal(got.status, 200, got.text);
    return got.headers.get("x-weir-connection-id") === connection.id;
  });
  assert.ok(after);
  assert.deepEqual([idp.calls.length, idp.revocations, (await state()).status], [1, 0, "active"]);
});

for (const fault of [503, 500, "reset"]) {
  test(`one ${fault} of the token endpoint costs seconds, not minutes`, async () => {
    const { send, state, machineId } = await account();
    idp.expire();
    idp.faults.push(fault);
    const first = await Promise.all(Array.from({ length: 20 }, send));
    for (const a of first)
      assert.ok(
        (a.status === 503 && JSON.parse(a.text).error.code === "token_unavailable") || a.status === 200,
        a.text,
      );
    assert.ok(first.some((a) => a.status === 503 && a.headers.get("retry-after") === "1"));
    assert.deepEqual((await operator.call("GET", `/${machineId}/api/models/availability`)).data, []);
    await until("the next attempt", async () => (await send()).status === 200);
    assert.deepEqual([idp.calls.length, idp.revocations], [2, 0]);
    const now = await state();
    assert.deepEqual([now.status, now.lastError], ["active", undefined]);
  });
}

test("a stored expiry is honoured: no call is sent with an expired token", async () => {
  // The object's alarm may have a new token before the call, or together with it.
  const { send, accessToken } = await account({ expiresAt: Date.now() - 1000 });
  up.script = (req) => (req.headers.authorization === `Bearer ${accessToken}` ? "status=401" : null);
  assert.equal((await send()).status, 200);
  assert.equal(up.seen.length, 1);
  assert.equal(idp.calls.length, 1);
});

test("the alarm refreshes before the expiry, and no caller meets an expired token", async () => {
  const { send, state, connection } = await account({ expiresAt: Date.now() + 4 * 60_000 });
  await until("the refresh", async () => (await state()).tokenGeneration > connection.tokenGeneration);
  assert.equal(idp.calls.length, 1);
  const now = await state();
  assert.ok(
    now.expiresAt > Date.now() + 58 * 60_000 && now.expiresAt <= Date.now() + 59 * 60_000,
    "60 s of clock skew are taken off",
  );
  up.clear();
  up.script = (req) => (idp.accepts(req.headers.authorization) ? null : "status=401");
  assert.equal((await send()).status, 200);
  assert.ok(up.seen.length <= 2);
});

for (const status of [401, 403]) {
  test(`a permanent ${status} causes one refresh and one more attempt with the same account, then a cooldown`, async () => {
    const shared = [gw, operator];
    gw = await start({ env: settings() });
    operator = admin(gw);
    try {
      const { send, state } = await account();
      up.script = () => `status=${status}`;
      const got = await send();
      assert.deepEqual([got.status, JSON.parse(got.text).error.code], [401, "account_key_refused"]);
      assert.equal(up.seen.length, 2);
      assert.notEqual(up.seen[0].headers.authorization, up.seen[1].headers.authorization);
      assert.equal(idp.calls.length, 1);
      for (let i = 0; i < 20; i++) await send();
      assert.equal(up.seen.length, 2);
      assert.equal(idp.calls.length, 1);
      await until("the cooldown is known", async () => (await state()).status === "cooling");
    } finally {
      await gw.close();
      [gw, operator] = shared;
    }
  });

  test(`after a single ${status} the token is refreshed and the same account serves the caller`, async () => {
    const { send, connection } = await account();
    let first = "";
    up.script = (req) => {
      first ||= req.headers.authorization;
      return req.headers.authorization === first ? `status=${status}` : null;
    };
    const got = await send();
    assert.equal(got.status, 200, got.text);
    assert.equal(got.headers.get("x-weir-connection-id"), connection.id);
    assert.equal(got.headers.get("x-weir-attempts"), "2");
    assert.equal(idp.calls.length, 1);
  });
}

test("a stream, a list of models and a connection test have their token refreshed too", async () => {
  const { apiKey, machineId, connection } = await account({
    provider: "openai",
    providerSpecificData: { baseUrl: up.url + "/v1" },
  });
  idp.expire();
  const chat = await gw.fetch("/v1/chat/completions", {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${apiKey}` },
    body: JSON.stringify({
      model: "openai/test-chat",
      stream: true,
      messages: [{ role: "user", content: "hello there" }],
    }),
  });
  assert.equal(chat.status, 200);
  assert.match(await chat.text(), /data: \[DONE\]\s*$/);
  assert.equal(idp.calls.length, 1);
  await sleep(every + 50); // a timer may be early
  idp.expire();
  const models = await operator.call("GET", `/${machineId}/api/providers/${connection.id}/models`);
  assert.equal(models.source, "upstream", JSON.stringify(models));
  assert.ok(models.data.some((m) => m.id === "test-embed"));
  assert.equal(idp.calls.length, 2);
  await sleep(every + 50); // a timer may be early
  idp.expire();
  const tested = await operator.call("POST", `/${machineId}/api/providers/${connection.id}/test`, {});
  assert.equal(tested.ok, true, JSON.stringify(tested));
  assert.equal(idp.calls.length, 3);
  assert.equal(idp.revocations, 0);
});

test("a tenant cannot name a token endpoint", async () => {
  const { machineId, connection } = await account();
  const at = `/${machineId}/api/providers/${connection.id}`;
  for (const body of [
    { tokenUrl: "https://evil.example.com" },
    { providerSpecificData: { tokenUrl: "https://evil.example.com" } },
    { providerSpecificData: { token_uri: "https://evil.example.com" } },
    { providerSpecificData: { tokenEndpoint: "https://evil.example.com" } },
  ]) {
    await assert.rejects(operator.call("PUT", at, body), (e) => e.status === 400, JSON.stringify(body));
  }
});
