// Google service accounts: the assertion is signed by the platform, and the token
// is stored until it expires.
import assert from "node:assert/strict";
import { generateKeyPairSync, verify } from "node:crypto";
import { after, before, beforeEach, test } from "node:test";
import { start as startUpstream } from "../../upstream/server.mjs";
import { admin, start } from "../gateway.mjs";
import { until } from "../wait.mjs";

const { privateKey, publicKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
const pem = privateKey.export({ type: "pkcs8", format: "pem" });
const keyFile = {
  type: "service_account",
  project_id: "acme",
  private_key_id: "key-1",
  private_key: pem,
  client_email: "weir@acme.iam.gserviceaccount.com",
  token_uri: "https://evil.example.com/token",
};
let gw, up, operator, google;

// answer is Google: its token endpoint checks the assertion, its API the token.
function answer(req) {
  const json = (status, body) => ({
    status,
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  if (req.host === "oauth2.googleapis.com") {
    const form = new URLSearchParams(req.body.toString()),
      jwt = form.get("assertion") ?? "",
      [head, claims, sig] = jwt.split(".");
    google.calls.push({
      path: req.path,
      grant: form.get("grant_type"),
      head: JSON.parse(Buffer.from(head, "base64url")),
      claims: JSON.parse(Buffer.from(claims, "base64url")),
    });
    if (google.fault) return google.fault;
    if (!verify("sha256", Buffer.from(`${head}.${claims}`), publicKey, Buffer.from(sig, "base64url")))
      return json(400, { error: "invalid_grant", error_description: "Invalid JWT Signature." });
    google.token = `ya29.canary-token-${google.calls.length}-0123456789`;
    return json(200, { access_token: google.token, expires_in: 3599, token_type: "Bearer" });
  }
  if (req.host !== "us-east5-aiplatform.googleapis.com")
    return json(500, { error: { message: `no such host: ${req.host}` } });
  if (req.headers.authorization !== `Bearer ${google.token}`)
    return json(401, { error: { code: 401, message: "no", status: "UNAUTHENTICATED" } });
  return json(200, { predictions: [{ embeddings: { values: [0.5, 0.25], statistics: { token_count: 1 } } }] });
}

before(async () => {
  up = await startUpstream();
  gw = await start({ vendors: up });
  operator = admin(gw);
});
after(async () => {
  const logs = gw?.logs.join("\n") ?? "";
  await gw?.close();
  await up?.close();
  assert.ok(!logs.includes("canary") && !logs.includes(pem.split("\n")[3]));
});
beforeEach(() => {
  up.clear();
  google = { calls: [], token: "", fault: null };
  up.script = answer;
});

async function account(file = keyFile) {
  const { machineId, apiKey } = await operator.machine();
  const connection = await operator.connect(machineId, {
    provider: "vertex",
    serviceAccount: file,
    providerSpecificData: { project: "acme", location: "us-east5" },
  });
  const send = () =>
    gw.fetch("/v1/embeddings", {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${apiKey}` },
      body: JSON.stringify({ model: "vertex/gemini-embedding-001", input: "a" }),
    });
  const state = async () => (await operator.call("GET", `/${machineId}/api/providers`)).data[0];
  return { machineId, connection, send, state };
}

test("100 first callers share one signed assertion and one token", async () => {
  const { send, state, connection } = await account();
  assert.deepEqual([connection.authType, connection.secrets], ["service_account", ["serviceAccount"]]);
  const from = Math.floor(Date.now() / 1000),
    all = await Promise.all(Array.from({ length: 100 }, send));
  const texts = await Promise.all(all.map((r) => r.text()));
  assert.deepEqual([...new Set(all.map((r) => r.status))], [200], texts[0]);
  assert.equal(google.calls.length, 1);
  const { path, grant, head, claims } = google.calls[0];
  assert.deepEqual(
    [path, grant, head],
    ["/token", "urn:ietf:params:oauth:grant-type:jwt-bearer", { alg: "RS256", typ: "JWT", kid: "key-1" }],
  );
  assert.deepEqual(
    [claims.iss, claims.scope, claims.aud],
    [keyFile.client_email, "https://www.googleapis.com/auth/cloud-platform", "https://oauth2.googleapis.com/token"],
  );
  assert.ok(claims.exp - claims.iat === 3600 && claims.iat >= from - 70 && claims.iat <= from);
  const now = await state();
  assert.ok(now.expiresAt > Date.now() + 58 * 60_000);
  assert.ok(!JSON.stringify(now).includes("canary") && !JSON.stringify(now).includes("PRIVATE"));
  for (const r of up.seen)
    assert.ok(["oauth2.googleapis.com", "us-east5-aiplatform.googleapis.com"].includes(r.host), r.host);
});

test("a key that Google has revoked needs a new one", async () => {
  const { send, state, machineId, connection } = await account();
  google.fault = {
    status: 400,
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ error: "invalid_grant", error_description: "canary" }),
  };
  assert.ok((await send()).status >= 400);
  assert.deepEqual(
    [(await state()).status, (await state()).lastError],
    ["needs_reauth", "Google no longer accepts the key file (invalid_grant). Replace it."],
  );
  for (let i = 0; i < 5; i++) await send();
  assert.equal(google.calls.length, 1);
  google.fault = null;
  await operator.call("PUT", `/${machineId}/api/providers/${connection.id}`, {
    serviceAccount: JSON.stringify(keyFile),
  });
  await until("the new key", async () => (await send()).status === 200);
});

test("while Google is down the caller gets a retryable error, and no call is sent without a token", async () => {
  const { send, state } = await account();
  google.fault = { status: 503, headers: { "retry-after": "7" }, body: "<h1>canary" };
  for (let i = 0; i < 3; i++) {
    const got = await send();
    assert.equal(got.status, 503);
    assert.equal((await got.json()).error.code, "token_unavailable");
    assert.ok(Number(got.headers.get("retry-after")) >= 1 && Number(got.headers.get("retry-after")) <= 60);
  }
  assert.equal(google.calls.length, 1);
  assert.deepEqual(
    up.seen.map((r) => r.host),
    ["oauth2.googleapis.com"],
  );
  assert.equal((await state()).lastError, "The access token could not be renewed: no usable answer, status 503");
});

test("with a key file that cannot sign no call is sent, and the connection says so", async () => {
  const { send, state } = await account({
    ...keyFile,
    private_key: "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
  });
  const got = await send();
  assert.ok(got.status >= 400);
  assert.ok(!(await got.text()).includes("AAAA"));
  assert.equal(google.calls.length, 0);
  assert.equal(
    (await state()).lastError,
    "The access token could not be renewed: the request for it could not be made",
  );
});
