// Passkeys of people, by an authenticator in software, with the signatures that each platform checks. The
// attacks are tables in test/api/passkeys_test.go.
import assert from "node:assert/strict";
import { createHash, generateKeyPairSync, randomBytes, sign } from "node:crypto";
import { after, before, test } from "node:test";
import { admin, secrets, start } from "../gateway.mjs";

let gw, operator, machineId, origin;
before(async () => {
  gw = await start();
  operator = admin(gw);
  origin = gw.url.replace("127.0.0.1", "localhost"); // passkeys belong to a name
  ({ machineId } = await operator.machine());
  const headers = { authorization: `Bearer ${secrets.ADMIN_TOKEN}` };
  const made = await call("POST", "/api/identity-providers", { kind: "passkey", name: "Passkeys" }, headers);
  assert.equal(made.status, 201, made.text);
});
after(() => gw?.close());

const base64url = (bytes) => Buffer.from(bytes).toString("base64url");
const sha256 = (bytes) => createHash("sha256").update(bytes).digest();

async function call(method, path, body, headers = {}) {
  const res = await fetch(origin + path, {
    method,
    headers: { "content-type": "application/json", origin, ...headers },
    body: body && JSON.stringify(body),
  });
  const text = await res.text();
  return { status: res.status, text, body: text ? JSON.parse(text) : null, cookie: res.headers.get("set-cookie") };
}

// authenticator is one with a passkey of a kind, which verifies its user.
function authenticator(kind) {
  const { privateKey, publicKey } =
    kind === "RS256"
      ? generateKeyPairSync("rsa", { modulusLength: 2048 })
      : generateKeyPairSync("ec", { namedCurve: "P-256" });
  const id = randomBytes(32);
  let counter = 0,
    person = "";
  const data = (type, challenge, flags, rest = Buffer.alloc(0)) => {
    const count = Buffer.alloc(5);
    count[0] = flags;
    count.writeUInt32BE(counter, 1);
    return {
      clientDataJSON: Buffer.from(JSON.stringify({ type, challenge, origin, crossOrigin: false })),
      authenticatorData: Buffer.concat([sha256("localhost"), count, rest]),
    };
  };
  const encoded = (fields) =>
    Object.fromEntries(Object.entries(fields).map(([name, v]) => [name, Buffer.isBuffer(v) ? base64url(v) : v]));
  return {
    create(options) {
      person = options.person;
      const rest = Buffer.concat([Buffer.alloc(16), Buffer.from([0, id.length]), id, Buffer.from([0xa0])]);
      return encoded({
        ...data("webauthn.create", options.challenge, 0x45, rest),
        publicKey: publicKey.export({ type: "spki", format: "der" }),
        algorithm: kind === "RS256" ? -257 : -7,
      });
    },
    get(options) {
      counter++;
      const d = data("webauthn.get", options.challenge, 0x05);
      const signed = Buffer.concat([d.authenticatorData, sha256(d.clientDataJSON)]);
      return encoded({ id, ...d, signature: sign("sha256", signed, privateKey), userHandle: Buffer.from(person) });
    },
  };
}

const options = async (body = {}) => {
  const res = await call("POST", "/api/sign-in/passkey", body);
  assert.equal(res.status, 200, res.text);
  assert.equal(res.body.rpId, "localhost");
  return res.body;
};

// of returns the header fields of a session.
const of = (res) => {
  assert.equal(res.status, 200, res.text);
  return { cookie: res.cookie.split(";")[0], "x-csrf-token": res.body.csrfToken };
};

for (const kind of ["ES256", "RS256"])
  test(`a person with a passkey of ${kind} is invited, signs in, adds another and is removed`, async () => {
    const link = async (body) =>
      (await operator.call("POST", `/${machineId}/api/invitations`, body)).link
        .split("/#/invitation/")[1]
        .split("?")[0];
    const invitation = await link({ role: "editor" });
    const [first, second] = [authenticator(kind), authenticator(kind)];
    const entered = await call("POST", "/api/session/passkey", {
      newPasskey: first.create(await options({ invitation })),
      invitation,
      name: "Ann",
    });
    let ann = of(entered);
    assert.deepEqual([entered.body.personName, entered.body.token], ["Ann", undefined]);
    const { personId } = entered.body;
    assert.equal((await call("GET", `/${machineId}/api/keys`, undefined, ann)).status, 200);

    const challenge = await call("POST", "/api/passkeys/challenge", {}, ann);
    assert.equal(challenge.body.exclude.length, 1, challenge.text);
    const made = await call("POST", "/api/passkeys", { newPasskey: second.create(challenge.body), name: "Phone" }, ann);
    assert.equal(made.status, 201, made.text);
    for (const a of [first, second, first]) {
      const used = a.get(await options());
      const again = await call("POST", "/api/session/passkey", { passkey: used });
      ann = of(again);
      assert.equal(again.body.personId, personId);
      const replayed = await call("POST", "/api/session/passkey", { passkey: used });
      assert.deepEqual([replayed.status, replayed.cookie], [403, null], replayed.text);
      assert.match(replayed.body.error.message, /passkey_used/);
    }
    const wrong = first.get(await options());
    wrong.signature = second.get(await options()).signature;
    const refused = await call("POST", "/api/session/passkey", { passkey: wrong });
    assert.match(refused.body.error.message, /passkey_signature/);

    await call("DELETE", `/api/passkeys/${made.body.id}`, {}, ann);
    assert.equal((await call("GET", "/api/passkeys", undefined, ann)).body.data.length, 1);
    await operator.call("DELETE", `/${machineId}/api/people/${personId}`);
    assert.equal((await call("GET", "/api/passkeys", undefined, ann)).status, 401);
    const gone = await call("POST", "/api/session/passkey", { passkey: first.get(await options()) });
    assert.match(gone.body.error.message, /passkey_unknown/);
    const { data } = await operator.call("GET", "/api/sign-ins");
    assert.ok(data.some((r) => r.action === "sign-in.refused" && r.fields[0] === "passkey_unknown"));
  });
