// Everything that leaves the gateway: calls of upstreams and of identity
// providers, answers, lines of the log, rows of the objects, values of KV. Each
// secret is only where it belongs. See docs/reference/reliability.md, T1, T2,
// T9, T11, N6.
import assert from "node:assert/strict";
import { createHash, hkdfSync, randomBytes } from "node:crypto";
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { start as startIdp } from "../../upstream/idp.mjs";
import { start as startUpstream } from "../../upstream/server.mjs";
import { accounts, answer, calls } from "../endpoints.mjs";
import { replicas, start } from "../gateway.mjs";
import { rows } from "../storage.mjs";

// Secrets with characters that encodings change.
const made = (name) => `${name}-${randomBytes(18).toString("base64url")}+/=&<~`;
const own = { ADMIN_TOKEN: made("admin"), API_KEY_SECRET: made("keys"), CREDENTIALS_KEY: made("credentials") };
const signIn = "openai-compatible-0a0a0001";
const files = new Map(); // name → secret, as they come up
let gw, up, idp;

before(async () => {
  up = await startUpstream();
  idp = await startIdp();
  gw = await start({
    vendors: up,
    env: {
      ...own,
      OAUTH_PROVIDERS: JSON.stringify([
        {
          id: signIn,
          name: "Acme",
          authorizeUrl: idp.url + "/authorize",
          tokenUrl: idp.url + "/token",
          clientId: idp.clientId,
          clientSecret: idp.clientSecret,
          baseUrl: up.url + "/v1",
          prefix: "acme",
        },
      ]),
    },
  });
});
after(async () => {
  await gw?.close();
  await up?.close();
  await idp?.close();
});

// spellings are the forms in which bytes may lie in a text: as they are, for a
// URL, for HTML, in JSON, in base64 at its three places, in hexadecimal digits,
// in UTF-16.
function spellings(secret) {
  const b = Buffer.from(secret),
    out = [
      secret,
      encodeURIComponent(secret),
      new URLSearchParams({ a: secret }).toString().slice(2),
      JSON.stringify(secret).slice(1, -1),
      JSON.stringify(JSON.stringify(secret)).slice(3, -3),
    ];
  out.push(
    secret.replace(/&/g, "&amp;").replace(/</g, "&lt;"),
    secret.replace(/&/g, "\\u0026").replace(/</g, "\\u003c"),
    b.toString("hex"),
    b.toString("hex").toUpperCase(),
    Buffer.from(secret, "utf16le").toString("latin1"),
  );
  for (const kind of ["base64", "base64url"])
    for (const lead of ["", "x", "xy"]) {
      const text = Buffer.concat([Buffer.from(lead), b])
        .toString(kind)
        .replace(/=+$/, "");
      out.push(text.slice(lead ? 4 : 0, -4));
    }
  return [...new Set(out)];
}

// found returns the secrets in a text that are not in `allowed`.
const forms = new Map();
function found(text, allowed = []) {
  const out = [];
  for (const [name, secret] of files) {
    if (allowed.includes(name)) continue;
    if (!forms.has(secret)) forms.set(secret, spellings(secret));
    if (forms.get(secret).some((s) => text.includes(s))) out.push(name);
  }
  return out;
}

const leaks = [];
const note = (where, text, allowed) => {
  for (const name of found(text, allowed)) leaks.push(`${name} in ${where}`);
};

async function call(method, path, token, body, { headers = {}, shows = [] } = {}) {
  const raw = typeof body === "string" || body === undefined;
  const res = await gw.fetch(path, {
    method,
    redirect: "manual",
    headers: {
      ...(token ? { authorization: `Bearer ${token}` } : {}),
      ...(body === undefined ? {} : { "content-type": "application/json" }),
      ...headers,
    },
    body: raw ? body : JSON.stringify(body),
  });
  const text = Buffer.from(await res.arrayBuffer()).toString("latin1");
  let json = null;
  try {
    json = JSON.parse(text);
  } catch {
    /* stays text */
  }
  const whole = text + "\n" + [...res.headers].map((h) => h.join(": ")).join("\n");
  if (shows.length) for (const [name, pick] of shows) files.set(name, pick(json)); // shown once, here
  note(
    `the answer to ${method} ${path.replace(/[a-z0-9]{16,}/g, "…")}`,
    whole,
    shows.map(([name]) => name),
  );
  return { status: res.status, json, text, headers: res.headers };
}

test("every secret stays in the places that may hold it", { timeout: 120_000 }, async () => {
  for (const [name, secret] of Object.entries(own)) files.set(name, secret);
  // A value derived from a worker secret is secret too.
  const master = Buffer.from(hkdfSync("sha256", own.CREDENTIALS_KEY, "", "weir credentials v1", 32));
  for (const [name, bytes] of [
    ["the key made of CREDENTIALS_KEY", master],
    ["a digest of ADMIN_TOKEN", createHash("sha256").update(own.ADMIN_TOKEN).digest()],
  ])
    files.set(name, bytes.toString("latin1"));
  files.set("the client's secret", idp.clientSecret);
  const operator = own.ADMIN_TOKEN;

  const machines = [];
  for (const which of ["one", "two"]) {
    const { json: m } = await call(
      "POST",
      "/api/machines",
      operator,
      { name: which },
      { shows: [[`the key of ${which}`, (j) => j.apiKey]] },
    );
    const { json: manager } = await call(
      "POST",
      `/${m.machineId}/api/keys`,
      operator,
      { name: "manager", scopes: ["manage", "export"] },
      { shows: [[`the manage key of ${which}`, (j) => j.apiKey]], headers: { "idempotency-key": "manager" } },
    );
    const credential = `the upstream credential of ${which}`,
      secret = made("upstream").replace(/[<&]/g, "");
    files.set(credential, secret);
    const ids = [];
    for (const c of accounts(up, secret))
      ids.push((await call("POST", `/${m.machineId}/api/providers`, manager.apiKey, c)).json.id);
    machines.push({ which, id: m.machineId, key: m.apiKey, manage: manager.apiKey, secret, credential, ids });
  }
  // Calls of a provider carry the account's credential, and no other secret.
  for (const m of machines) {
    for (const mode of ["ok", 400, 401, 429, 500]) {
      up.seen.length = 0;
      up.script = (req) =>
        mode === "ok"
          ? answer(req)
          : {
              status: mode,
              headers: { "content-type": "application/json", "retry-after": "1" },
              body: JSON.stringify({
                error: { message: `no ${m.secret} ${JSON.stringify(req.headers)}`, code: m.secret },
              }),
            };
      for (const [path, body] of calls) {
        await call("POST", path, m.key, body, { headers: { cookie: `a=${m.manage}` } });
        await call("POST", `/${machines[0].id}${path}`, m.key, { ...body, user: "u" });
      }
      for (const path of ["/v1/models", "/v1/models/info?id=up/m", `/v1/models?key=${encodeURIComponent(m.key)}`])
        await call("GET", path, m.key);
      for (const id of m.ids) await call("POST", `/${m.id}/api/providers/${id}/test`, m.manage, { model: "m" });
      assert.ok(mode !== "ok" || up.seen.length >= calls.length, `${up.seen.length} calls`);
      for (const r of up.seen) {
        const head = r.rawHeaders.join("\n"),
          what = `a call of ${r.path}`;
        note(what, `${r.method} ${r.path}\n${head}\n${r.body?.toString("latin1")}`, [m.credential]);
        assert.ok(
          !r.path.includes(m.secret) && !String(r.body).includes(m.secret),
          `${what}: the credential is not in a header`,
        );
        assert.ok(!`${r.path}${head}${r.body}`.includes(m.id), `${what} names the machine`);
        assert.ok(
          [r.headers.authorization, r.headers["x-api-key"]].some((v) => v?.endsWith(m.secret)),
          what,
        );
      }
    }
  }
  // Sign-in, refresh and the calls to the identity provider.
  const [one] = machines;
  up.script = (req) =>
    idp.accepts(req.headers.authorization)
      ? answer(req)
      : { status: 401, headers: { "content-type": "application/json" }, body: '{"error":{"message":"expired"}}' };
  const began = await call("POST", `/${one.id}/api/oauth/${signIn}/authorize`, one.manage, {});
  assert.equal(began.status, 200, began.text);
  const cookie = began.headers.get("set-cookie").split(";")[0];
  const query = idp.approve(began.json.url);
  const back = await call("GET", `/oauth/callback?${query}`, "", undefined, { headers: { cookie } });
  assert.equal(back.status, 200, back.text);
  idp.expire();
  up.seen.length = 0;
  const refreshed = await call("POST", "/v1/embeddings", one.key, { model: "acme/m", input: "a" });
  assert.equal(refreshed.status, 200, refreshed.text);
  for (const [i, secret] of [...idp.secrets].entries())
    if (secret !== idp.clientSecret) files.set(`token ${i}`, secret);
  const tokens = [...files.keys()].filter((n) => n.startsWith("token "));
  for (const r of up.seen) note("a call with a token", `${r.path}\n${r.rawHeaders.join("\n")}\n${r.body}`, tokens);
  assert.ok(idp.calls.length >= 2);
  for (const form of idp.calls)
    note("a call of the token endpoint", JSON.stringify(form), [...tokens, "the client's secret"]);
  note("the address that a sign-in begins at", began.json.url);

  // Everything that can be read back, by every caller who may read it.
  for (const m of machines) {
    for (const path of [
      "providers",
      ...m.ids.map((id) => `providers/${id}`),
      "keys",
      "combos",
      "models/alias",
      "models/custom",
      "models/disabled",
      "models/availability",
      "quota",
      "models/list/llm",
      "settings",
      "audit?limit=500&verify=true",
      "usage?period=30d",
      "requests",
      "export",
      "catalog/providers",
    ]) {
      for (const token of [operator, m.manage, m.key]) await call("GET", `/${m.id}/api/${path}`, token);
    }
    const sealed = await call("POST", `/${m.id}/api/export`, m.manage, { passphrase: "a long enough passphrase" });
    assert.equal(sealed.status, 200);
    await call("POST", `/${m.id}/api/import`, m.manage, {
      document: sealed.json,
      passphrase: "not the one it was, and long",
    });
    for (const bad of [
      { provider: "openai", apiKey: m.secret + "\n" },
      { provider: "unknown", apiKey: m.secret },
      { provider: "openai", apiKey: m.secret, more: m.secret },
      { provider: "openai", providerSpecificData: { password: m.secret } },
    ])
      await call("POST", `/${m.id}/api/providers`, m.manage, bad);
    await call("POST", `/${m.id}/api/providers`, m.manage, `{"apiKey":"${m.secret}`);
    await call("POST", "/v1/embeddings", m.key, `{"model":"${m.secret.replace(/"/g, "")}`);
    await call("GET", `/v1/nothing/${encodeURIComponent(m.key)}`, m.key);
  }
  await call("GET", "/api/machines", operator);
  for (const wrong of [own.API_KEY_SECRET, own.CREDENTIALS_KEY, own.ADMIN_TOKEN + "x"])
    await call("GET", "/api/machines", wrong);
  await call("GET", "/health", operator);

  // At rest, and in the log.
  for (const { name, text } of await replicas(gw, machines.length)) note("KV", name + text);
  const stored = await rows(gw.dir);
  assert.ok(stored.length > 20, `${stored.length} rows`);
  for (const r of stored) note(`the row ${r.key.split(":")[0]}`, r.key + "\n" + r.value);
  for (const f of readdirSync(gw.dir, { recursive: true, withFileTypes: true })) {
    if (!f.isFile()) continue;
    let content;
    try {
      content = readFileSync(join(f.parentPath, f.name)).toString("latin1");
    } catch (e) {
      if (e.code !== "ENOENT") throw e;
      continue; // a replica was published again: its new file was listed, or is read from KV above
    }
    note("a file of the storage", content);
  }
  assert.ok(gw.logs.length > 50, `${gw.logs.length} lines`);
  note("the log", gw.logs.join("\n"));
  assert.ok(files.size >= 12, `${files.size} secrets`);
  assert.deepEqual([...new Set(leaks)], []);
});

// The scan must find what it looks for.
test("the scan finds a secret in any encoding", () => {
  files.set("probe", "canary+/=&<~secret-0123456789");
  for (const text of spellings(files.get("probe"))) assert.deepEqual(found(`x${text}y`), ["probe"], text);
  assert.deepEqual(found(Buffer.from(`user:${files.get("probe")}`).toString("base64")), ["probe"]);
  assert.deepEqual(found("nothing"), []);
});
