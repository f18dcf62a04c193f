// The process is killed around a refresh. Tokens that the gateway has released
// are not lost, and one attempt finds out about tokens that were. See
// docs/reference/reliability.md, T60, N3.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { start as startIdp } from "../../upstream/idp.mjs";
import { start as startUpstream } from "../../upstream/server.mjs";
import { admin, start } from "../gateway.mjs";
import { sleep, until } from "../wait.mjs";

const provider = "openai-compatible-0a0a0001",
  every = 200;
const persist = mkdtempSync(join(tmpdir(), "weir-kill-"));
let gw, up, idp;
const boot = async () => {
  gw = await start({
    persist,
    env: {
      OAUTH_PROVIDERS: JSON.stringify([
        {
          id: provider,
          tokenUrl: idp.url + "/token",
          clientId: idp.clientId,
          clientSecret: idp.clientSecret,
          refreshEveryMs: every,
        },
      ]),
    },
  });
};
before(async () => {
  up = await startUpstream();
  idp = await startIdp();
  up.script = (req) => (idp.accepts(req.headers.authorization) ? null : "status=401");
  await boot();
});
after(async () => {
  await gw?.close();
  await up?.close();
  await idp?.close();
  rmSync(persist, { recursive: true, force: true });
});

async function account(fields = {}, ...faults) {
  Object.assign(idp, { calls: [], revocations: 0, faults });
  const { machineId, apiKey } = await admin(gw).machine();
  const { access_token: accessToken, refresh_token: refreshToken } = idp.issue();
  await admin(gw).connect(machineId, {
    provider,
    accessToken,
    refreshToken,
    providerSpecificData: { baseUrl: up.url + "/v1", prefix: "acme" },
    ...fields,
  });
  const send = () =>
    gw
      .fetch("/v1/embeddings", {
        method: "POST",
        headers: { "content-type": "application/json", authorization: `Bearer ${apiKey}` },
        body: JSON.stringify({ model: "acme/test-embed", input: "a" }),
      })
      .then(
        (r) => r.status,
        () => 0,
      );
  const state = async () => (await admin(gw).call("GET", `/${machineId}/api/providers`)).data[0];
  return { send, state };
}

test("a kill right after the first answer with new tokens does not lose them", async () => {
  const { send, state } = await account();
  for (let round = 1; round <= 3; round++) {
    idp.expire();
    assert.equal(await send(), 200);
    await gw.close(); // SIGKILL
    await boot();
    assert.equal(await send(), 200, "the token of before is used");
    assert.equal(idp.calls.length, round);
    await sleep(every + 50); // a timer may be early
  }
  assert.equal(idp.revocations, 0);
  assert.equal((await state()).status, "active");
});

test("a kill during a token call costs one attempt, then needs_reauth and no further calls", async () => {
  const { send, state } = await account();
  idp.expire();
  let answer;
  idp.faults.push({
    until: new Promise((resolve) => {
      answer = resolve;
    }),
  });
  const lost = send();
  await until("the token call", () => idp.calls.length > 0, 60_000, 10);
  assert.equal(idp.calls.length, 1);
  await gw.close();
  const before = idp.secrets.size;
  answer();
  await lost;
  await until("the rotation", () => idp.secrets.size > before); // and neither side has stored the tokens
  await boot();
  for (let i = 0; i < 10; i++) {
    assert.notEqual(await send(), 200);
    await sleep(50);
  }
  assert.equal((await state()).status, "needs_reauth");
  assert.equal(idp.calls.length, 2);
});

test("after a kill during the alarm's token call the valid token is used, without another token call", async () => {
  const { send, state } = await account({ expiresAt: Date.now() + 4 * 60_000 }, "stall"); // due at once
  await until("the token call", () => idp.calls.length > 0, 60_000, 10);
  assert.equal(idp.calls.length, 1);
  await gw.close();
  await boot();
  for (let i = 0; i < 5; i++) {
    assert.equal(await send(), 200);
    await sleep(every / 2);
  }
  assert.equal((await state()).status, "active");
  assert.equal(idp.calls.length, 1);
});
