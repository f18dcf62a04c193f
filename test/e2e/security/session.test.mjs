// Attacks of a foreign page, a guesser and the holder of a stolen cookie on
// sessions. See docs/reference/reliability.md, T7, T26, T27, T31–T33.
// workerd: soak
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { admin, secrets, start } from "../gateway.mjs";
import { request } from "../raw.mjs";
import { edit, machines } from "../storage.mjs";

let gw, persist, operator, me;
const up = async (env = {}) => {
  gw = await start({ persist, env, proxy: true });
  operator = admin(gw);
};
before(async () => {
  persist = await mkdtemp(join(tmpdir(), "weir-session-"));
  await up();
  me = await operator.machine();
});
after(async () => {
  await gw?.close();
  await rm(persist, { recursive: true, force: true });
});

const json = ["content-type", "application/json"];
const call = (method, path, fields = [], body) =>
  request(
    gw.url,
    method,
    path,
    fields,
    body === undefined ? "" : typeof body === "string" ? body : JSON.stringify(body),
  );
const cookieOf = (a) =>
  a.headers
    .filter(([n]) => n === "set-cookie")
    .map(([, v]) => v.split(";")[0])
    .find((v) => v.includes("=") && !v.endsWith("="));
const signIn = (token, fields = []) => call("POST", "/api/session", [json, ["origin", gw.url], ...fields], { token });

// session returns the headers that a page of the gateway sends.
async function session(token = secrets.ADMIN_TOKEN) {
  const a = await signIn(token);
  assert.equal(a.status, 200, a.text);
  const cookie = ["cookie", cookieOf(a)],
    csrf = ["x-csrf-token", JSON.parse(a.text).csrfToken];
  return {
    set: a.headers.find(([n]) => n === "set-cookie")[1],
    cookie,
    csrf,
    get page() {
      return [cookie, csrf, json, ["origin", gw.url]];
    },
  };
}
const alias = (n) => ["PUT", `/${me.machineId}/api/models/alias`, { alias: `a${n}`, model: "openai/m" }];
const aliases = async () =>
  Object.keys(
    (await operator.call("GET", `/${me.machineId}/api/models/alias`)).aliases ??
      (await operator.call("GET", `/${me.machineId}/api/models/alias`)),
  );

test("the cookie is bound to the gateway's host, and its own pages can make changes", async () => {
  const s = await session(),
    [method, path, body] = alias(0);
  for (const part of ["__Host-", "Secure", "HttpOnly", "SameSite=Strict", "Path=/"])
    assert.ok(s.set.includes(part), `${part}: ${s.set}`);
  assert.ok(!/domain=/i.test(s.set), s.set);
  assert.equal((await call(method, path, s.page, body)).status, 200);
  assert.equal((await call("GET", `/${me.machineId}/api/providers`, [s.cookie])).status, 200);
});

test("requests that a foreign page can send change nothing and read nothing [T27]", async () => {
  const s = await session(),
    [method, path, body] = alias("-foreign"),
    text = JSON.stringify(body),
    before = JSON.stringify(await aliases());
  const origins = [
    "https://evil.example",
    "null",
    "https://sub.evil.example",
    gw.url.replace("127.0.0.1", "127.0.0.1.evil.example"),
    gw.url + ".evil.example",
    gw.url.replace("http:", "https:"),
    gw.url.slice(0, -1),
    gw.url + "/",
    gw.url.toUpperCase().replace("HTTP", "http") + "x",
    "",
  ];
  const tries = [
    ["no origin", [s.cookie, s.csrf, json]],
    ["no csrf token", [s.cookie, json, ["origin", gw.url]]],
    ["another csrf token", [s.cookie, json, ["origin", gw.url], ["x-csrf-token", "0".repeat(64)]]],
    ["an empty csrf token", [s.cookie, json, ["origin", gw.url], ["x-csrf-token", ""]]],
    ...origins.map((o) => [`origin ${o}`, [s.cookie, s.csrf, json, ["origin", o]]]),
    ...[
      "text/plain",
      "application/x-www-form-urlencoded",
      "multipart/form-data; boundary=x",
      "text/plain; application/json",
      "application/jsonx",
      "",
    ].map((t) => [`content type ${t}`, [s.cookie, s.csrf, ["content-type", t], ["origin", gw.url]]]),
    ...["cross-site", "same-site", "none"].map((x) => [`sec-fetch-site ${x}`, [...s.page, ["sec-fetch-site", x]]]),
    ["the token of another session", [s.cookie, (await session()).csrf, json, ["origin", gw.url]]],
  ];
  for (const [name, fields] of tries) {
    const a = await call(method, path, fields, text);
    assert.equal(a.status, 403, `${name}: ${a.status} ${a.text}`);
    assert.ok(!a.headers.some(([n]) => n.startsWith("access-control-")), name);
  }
  for (const override of [
    ["x-http-method-override", "PUT"],
    ["x-method-override", "PUT"],
    ["x-http-method", "PUT"],
  ]) {
    const a = await call("POST", path + "?_method=PUT", [...s.page, override], text);
    assert.ok(a.status >= 400, `${override[0]}: ${a.status}`);
  }
  for (const q of ["?_method=PUT", `?alias=x&model=up/m`]) await call("GET", path + q, [s.cookie]); // no change by GET
  assert.equal(
    (
      await call("GET", `/${me.machineId}/api/providers`, [
        s.cookie,
        ["sec-fetch-site", "cross-site"],
        ["origin", "https://evil.example"],
      ])
    ).status,
    403,
  );
  // A sign-in from another site is refused too: the victim would work in the
  // attacker's account.
  for (const origin of ["https://evil.example", "null"]) {
    const a = await call("POST", "/api/session", [json, ["origin", origin]], { token: secrets.ADMIN_TOKEN });
    assert.equal(a.status, 403, origin);
    assert.equal(a.get("set-cookie"), undefined);
  }
  assert.equal(
    (await call("DELETE", "/api/session", [s.cookie, json, ["origin", "https://evil.example"], s.csrf])).status,
    403,
  );
  assert.equal(
    (await call("GET", `/${me.machineId}/api/providers`, [s.cookie])).status,
    200,
    "signed out by another site",
  );
  assert.equal(JSON.stringify(await aliases()), before);
});

test("a cookie is valid for management alone, and for its own machine", async () => {
  const s = await session();
  for (const path of ["/v1/models", `/${me.machineId}/v1/models`])
    assert.equal((await call("GET", path, [s.cookie])).status, 401, path);
  assert.equal((await call("POST", "/v1/embeddings", s.page, { model: "up/m", input: "a" })).status, 401);
  const manage = await operator.call("POST", `/${me.machineId}/api/keys`, { name: "m", scopes: ["manage"] }),
    other = await operator.machine();
  const mine = await session(manage.key ?? manage.apiKey);
  assert.equal((await call("GET", `/${me.machineId}/api/providers`, [mine.cookie])).status, 200);
  for (const path of [`/${other.machineId}/api/providers`, "/api/machines"])
    assert.equal((await call("GET", path, [mine.cookie])).status, 401, path);
  assert.equal((await signIn(me.apiKey)).status, 403, "a data key signs in");
  // A cookie made by hand: of another object, another id, another form.
  const [name, value] = mine.cookie[1].split(/=(.*)/s),
    [home, id, mac] = value.split(".");
  for (const v of [
    `${other.machineId}.${id}`,
    `registry.${id}`,
    `${home}.${"A".repeat(43)}`,
    `${home}.${id}x`,
    `../registry.${id}`,
    `${home}`,
    `${home}.${id}.${id}`,
    `${home}.${id}`,
    `${other.machineId}.${id}.${mac}`,
    `registry.${id}.${mac}`,
    `${home}.${"A".repeat(43)}.${mac}`,
    `${home}.${id}.${mac}x`,
    "",
    `${home}.${id}\u0001`,
  ]) {
    const a = await call("GET", `/${me.machineId}/api/providers`, [["cookie", `${name}=${v}`]]);
    assert.ok(a === null || a.status === 401 || a.status === 400, `${v}: ${a?.status}`);
  }
  await operator.call("DELETE", `/${me.machineId}/api/keys/${manage.id}`);
  assert.equal((await call("GET", `/${me.machineId}/api/providers`, [mine.cookie])).status, 401, "the key is revoked");
});

test("a session that ended, expired or whose token was changed is refused [T32]", async () => {
  const path = `/${me.machineId}/api/providers`,
    status = async (s) => (await call("GET", path, [s.cookie])).status;
  const out = await session();
  assert.equal((await call("DELETE", "/api/session", out.page)).status, 204);
  assert.equal(await status(out), 401);
  const [one, two] = [await session(), await session()];
  assert.deepEqual([await status(one), await status(two)], [200, 200]);
  assert.equal((await call("DELETE", "/api/session?all=true", one.page)).status, 204);
  assert.deepEqual([await status(one), await status(two)], [401, 401]);
  // An existing cookie does not survive a new sign-in.
  const first = await session(),
    again = await signIn(secrets.ADMIN_TOKEN, [first.cookie]);
  assert.equal(again.status, 200);
  assert.notEqual(cookieOf(again), first.cookie[1]);
  assert.equal(await status(first), 401, "the session before is still open");
  // Unused for hours, twelve hours in all, five minutes for what cannot be undone.
  const idle = await session(),
    long = await session(),
    used = await session(),
    later = await session();
  await gw.close();
  const ago = (minutes) => String(Date.now() - minutes * 60_000);
  const digests = await Promise.all(
    [idle, long, used].map(async (s) =>
      Buffer.from(await crypto.subtle.digest("SHA-256", Buffer.from(s.cookie[1].split(".")[1]))).toString("hex"),
    ),
  );
  let changed = 0;
  edit(persist, (key, text) => {
    const at = digests.findIndex((d) => key === `session:${d}`);
    if (at < 0) return text;
    changed++;
    const set = (t, name, value) => t.replace(new RegExp(`("${name}":)\\d{13}`), `$1${value}`);
    if (at === 0) return set(text, "seenAt", ago(11 * 60));
    if (at === 1) return set(text, "createdAt", ago(12 * 60 + 1));
    return set(set(text, "createdAt", ago(6)), "authAt", ago(6));
  });
  await up();
  assert.equal(changed, 3, "the sessions were not found in the storage");
  assert.deepEqual(
    [await status(idle), await status(long), await status(used), await status(later)],
    [200, 401, 200, 200],
  );
  const a = await call("POST", `/${me.machineId}/api/export`, used.page, { passphrase: "a passphrase of the test" });
  assert.deepEqual([a.status, JSON.parse(a.text).error.code], [403, "reauth_required"]); // docs/reference/reliability.md, T33
  const gone = await call("DELETE", `/api/machines/${me.machineId}`, used.page);
  assert.deepEqual([gone.status, JSON.parse(gone.text).error.code], [403, "reauth_required"]);
  await gw.close();
  await up({ ADMIN_TOKEN: "another-admin-token-0123456789abcdef012345" });
  assert.equal(await status(later), 401, "the operator's token was changed");
  await gw.close();
  await up();
});

test("failed sign-ins are limited by client address; a valid credential always passes [T31]", async () => {
  const minute = () => Math.floor(Date.now() / 60_000),
    begun = minute();
  let judged = 0,
    limited = 0;
  for (let i = 0; i < 60; i++) {
    const claims = [
      ["x-forwarded-for", `10.0.${i}.1`],
      gw.from("192.0.2.1"),
      ["x-real-ip", `10.2.${i}.1`],
      ["user-agent", `g${i}`],
    ];
    const a = await signIn(`guess-${i}-0123456789abcdef0123456789abcdef`, claims);
    assert.equal(a.get("set-cookie"), undefined);
    if (a.status === 429) {
      limited++;
      assert.ok(+a.get("retry-after") >= 1);
    } else {
      judged++;
      assert.equal(a.status, 401, a.text);
    }
  }
  assert.ok(judged <= 10 * (minute() - begun + 1), `${judged} guesses were judged`);
  assert.equal(judged + limited, 60);
  assert.equal(
    (await signIn(secrets.ADMIN_TOKEN, [gw.from("192.0.2.1")])).status,
    200,
    "the guesser keeps the operator out",
  );
  assert.equal((await signIn(secrets.ADMIN_TOKEN)).status, 200);
  assert.equal((await signIn("guess-0123456789abcdef0123456789abcdef", [gw.from("192.0.2.2")])).status, 401);
  assert.equal((await operator.call("GET", "/api/machines")).data.length > 0, true); // the API is not locked
});

// A regression: each forged request created an object, which is billed.
test("requests without a valid credential create no object", async () => {
  const open = await start({ env: { REQUIRE_API_KEY: "false" } });
  try {
    const objects = () => machines(open.dir);
    const { machineId } = await admin(open).machine();
    assert.equal((await open.fetch(`/${machineId}/v1/models`)).status, 200, "a machine that was just made is found");
    const before = await objects(),
      id = (i) => `madeup${String(i).padStart(10, "0")}`;
    assert.ok(before > 0);
    for (let i = 0; i < 10; i++) {
      const cookie = `__Host-weir=${id(i)}.${"A".repeat(43)}`;
      for (const c of [cookie, `${cookie}.${"0".repeat(32)}`])
        assert.equal((await (await open.fetch("/api/session", { headers: { cookie: c } })).json()).signedIn, false);
      assert.equal(
        (await open.fetch(`/${id(i)}/v1/models`, { headers: { authorization: "Bearer sk-abcdefgh12" } })).status,
        401,
      );
      assert.equal((await open.fetch(`/${id(i)}/v1/models`)).status, 401);
    }
    assert.equal(await objects(), before);
  } finally {
    await open.close();
  }
});

// The cookie was dropped: the query was taken for a path of /v1.
test("a query that looks like a path of /v1 does not drop the session", async () => {
  const { cookie } = await session();
  for (const path of ["/api/machines", `/${me.machineId}/api/providers`]) {
    const a = await call("GET", `${path}?x=/v1/embeddings`, [cookie]);
    assert.equal(a.status, 200, `${path}: ${a.text}`);
  }
});
