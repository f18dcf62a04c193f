// The sign-in of a device: it waits for an approval in the registry, and the key is of the
// machine that was chosen. See docs/guides/command-line.md.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { admin, start } from "../gateway.mjs";

let gw, operator, machineId;
before(async () => {
  gw = await start();
  operator = admin(gw);
  ({ machineId } = await operator.machine());
});
after(() => gw?.close());

const post = async (path, body) => {
  const res = await gw.fetch(path, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  return { status: res.status, body: await res.json() };
};

test("an approved device gets a key of the machine, once", async () => {
  const started = await post("/api/device", { name: "laptop" });
  assert.equal(started.status, 200);
  const { device_code, user_code, interval, expires_in, verification_uri_complete } = started.body;
  assert.match(user_code, /^[BCDFGHJKLMNPQRSTVWXZ]{4}-[BCDFGHJKLMNPQRSTVWXZ]{4}$/);
  assert.deepEqual([interval, expires_in], [5, 600]);
  assert.ok(verification_uri_complete.endsWith(`/#/device?code=${user_code}`));
  const poll = () => post("/api/device/token", { device_code });
  assert.equal((await poll()).body.error.code, "authorization_pending");
  assert.equal((await poll()).body.error.code, "slow_down");
  const shown = await operator.call("GET", `/${machineId}/api/device/${user_code.toLowerCase()}`);
  assert.equal(shown.name, "laptop");
  assert.equal(shown.digest, undefined);
  await operator.call("POST", `/${machineId}/api/device/${user_code}`, { approve: true });
  const key = await poll();
  assert.equal(key.status, 200);
  assert.equal(key.body.machineId, machineId);
  assert.equal((await poll()).body.error.code, "expired_token");
  const res = await gw.fetch("/api/keys", { headers: { authorization: `Bearer ${key.body.apiKey}` } });
  assert.equal(res.status, 200);
  const row = (await res.json()).data.find((k) => k.name === "weir on laptop");
  assert.deepEqual(row.scopes, ["manage"]);
  assert.ok(row.expiresAt > Date.now() && row.expiresAt <= Date.now() + 30 * 86_400_000);
});

test("no one approves without a credential, and forged codes are refused", async () => {
  const { user_code } = (await post("/api/device", { name: "laptop" })).body;
  assert.equal((await post(`/${machineId}/api/device/${user_code}`, { approve: true })).status, 401);
  const forged = `device-${"a".repeat(32)}-${"0".repeat(8)}`;
  assert.equal((await post("/api/device/token", { device_code: forged })).body.error.code, "expired_token");
});
