// People of a machine: invitations, what each role may do, attacks of members, and a removal that
// counts at the next call. See docs/guides/team.md.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { start as startUpstream } from "../../upstream/server.mjs";
import { admin, compatible, start } from "../gateway.mjs";
import { until } from "../wait.mjs";

let gw, up, operator, machineId, other;
before(async () => {
  up = await startUpstream();
  gw = await start();
  operator = admin(gw);
  [{ machineId }, { machineId: other }] = await Promise.all([operator.machine(), operator.machine()]);
  await operator.connect(machineId, compatible(up));
});
after(async () => {
  await gw?.close();
  await up?.close();
});

const own = (method, path, body) => operator.call(method, `/${machineId}/api${path}`, body);

const invited = async (body) => (await own("POST", "/invitations", body)).link.split("/#/invitation/")[1].split("?")[0];

// enter signs in by the body of POST /api/session.
async function enter(body) {
  const res = await gw.fetch("/api/session", {
    method: "POST",
    headers: { "content-type": "application/json", origin: gw.url },
    body: JSON.stringify(body),
  });
  const session = await res.json();
  const headers = {
    cookie: res.headers.get("set-cookie")?.split(";")[0] ?? "",
    origin: gw.url,
    "x-csrf-token": session.csrfToken ?? "",
    "content-type": "application/json",
  };
  // call returns the answer to a call of the person.
  const call = async (method, path, body) => {
    const answer = await gw.fetch(path, { method, headers, body: body && JSON.stringify(body) });
    const text = await answer.text();
    return { status: answer.status, body: text ? JSON.parse(text) : null };
  };
  return {
    status: res.status,
    session,
    call,
    at: (method, path, body) => call(method, `/${machineId}/api${path}`, body),
  };
}

// joins is a person with a role on the machine.
async function joins(name, body) {
  const p = await enter({ invitation: await invited(body), name });
  assert.equal(p.status, 200, JSON.stringify(p.session));
  return p;
}

const embed = (key) =>
  gw.fetch("/v1/embeddings", {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({ model: "up/m", input: "a" }),
  });

test("an invitation opens one session, however many ask at once", async () => {
  const invitation = await invited({ role: "viewer" });
  const { status, session: offer } = await enter({ invitation, preview: true });
  assert.deepEqual([status, offer.machine, offer.role], [200, machineId, "viewer"], "it can be read before");
  const all = await Promise.all([1, 2, 3, 4].map((n) => enter({ invitation, name: `Ann ${n}` })));
  assert.deepEqual(all.map((p) => p.status).sort(), [200, 401, 401, 401]);
  assert.equal((await enter({ invitation, preview: true })).status, 401);
  const [ann] = all.filter((p) => p.status === 200);
  assert.deepEqual(ann.session.roles, { [machineId]: "viewer" });
  assert.match(ann.session.token, /^wp_/);
  const again = await enter({ token: ann.session.token });
  assert.deepEqual([again.status, again.session.personId, again.session.token], [200, ann.session.personId, undefined]);
  const { data } = (await ann.call("GET", "/api/machines")).body;
  assert.deepEqual(
    data.map((m) => [m.machineId, m.role]),
    [[machineId, "viewer"]],
  );
});

test("roles admit what they name, and nothing on another machine", async () => {
  const calls = [
    ["GET", "/keys", undefined, "member"],
    ["GET", "/providers", undefined, "viewer"],
    ["POST", "/budgets", { name: "b", limit: 1, unit: "usd", window: "day" }, "editor"],
    ["GET", "/people", undefined, "owner"],
    ["POST", "/invitations", { role: "viewer" }, "owner"],
    ["GET", "/captures", undefined, "owner"],
  ];
  const order = ["member", "viewer", "editor", "owner"];
  for (const role of order) {
    const p = await joins(`A ${role}`, { role });
    for (const [method, path, body, least] of calls) {
      const { status } = await p.at(method, path, body);
      const admitted = order.indexOf(role) >= order.indexOf(least);
      assert.equal(status < 300, admitted, `${role} ${method} ${path}: ${status}`);
      if (!admitted) assert.equal(status, 403);
    }
    assert.equal((await p.at("POST", "/keys", { name: "k" })).status, role === "viewer" ? 403 : 201, role);
    assert.equal((await p.call("GET", `/${other}/api/keys`)).status, 403);
    assert.equal((await p.call("POST", "/api/machines", {})).status, 403);
    const records = (await operator.call("GET", "/api/sign-ins")).data;
    const refusal = records.find((r) => r.actor === `person:${p.session.personId}` && r.action === "role.refused");
    assert.deepEqual(refusal.fields, ["POST /api/machines"], "the latest refusal is recorded");
  }
});

test("a member reaches nothing but their own, and no more than the template", async () => {
  const template = { keys: 1, models: ["up/m"], rpm: 50, maxParallel: 2, days: 7, budgetUsd: 5 };
  const ann = await joins("Ann", { role: "member", template }),
    bob = await joins("Bob", { role: "member" });
  const id = (await bob.at("POST", "/keys", { name: "bob" })).body.id;
  for (const [method, step, body] of [
    ["GET", ""],
    ["PUT", "", { name: "mine" }],
    ["DELETE", ""],
    ["POST", "/rotate", {}],
    ["GET", "/usage"],
    ["GET", "/networks"],
  ])
    assert.equal((await ann.at(method, `/keys/${id}${step}`, body)).status, 404, method + step);
  for (const body of [
    { scopes: ["manage"] },
    { models: ["up/other"] },
    { models: [] },
    { rpm: 0 },
    { maxParallel: 1000 },
    { tags: ["person=p_x"] },
    { budget: { limit: 1000, unit: "usd", window: "day" } },
    { person: bob.session.personId },
  ])
    assert.equal((await ann.at("POST", "/keys", body)).status, 400, JSON.stringify(body));
  const made = await ann.at("POST", "/keys", { name: "ann", expiresAt: Date.now() + 90 * 86_400_000 });
  assert.equal(made.status, 201);
  const k = made.body;
  assert.deepEqual([k.models, k.rpm, k.maxParallel], [["up/m"], 50, 2]);
  assert.ok(k.expiresAt <= Date.now() + 7 * 86_400_000, "the template's end counts");
  assert.equal((await ann.at("POST", "/keys", {})).status, 409, "a second key");
  assert.equal((await ann.at("PUT", `/keys/${k.id}`, { rpm: 9 })).status, 400);
  assert.equal((await ann.at("PUT", `/people/${ann.session.personId}`, { role: "owner" })).status, 403, "own role");
  assert.equal((await embed(k.apiKey)).status, 200);
  const budget = (await ann.at("GET", "/budgets")).body.data;
  assert.deepEqual(
    budget.map((b) => [b.tag, b.limit]),
    [[`person=${ann.session.personId}`, 5]],
  );
});

test("a removal ends sessions and pauses keys at the next call", async () => {
  const cleo = await joins("Cleo", { role: "editor" });
  const { apiKey, id } = (await cleo.at("POST", "/keys", { name: "cleo" })).body;
  assert.equal((await embed(apiKey)).status, 200);
  assert.equal((await cleo.at("GET", "/keys")).status, 200);
  await own("DELETE", `/people/${cleo.session.personId}`);
  assert.equal((await cleo.at("GET", "/keys")).status, 401);
  assert.equal((await cleo.at("POST", "/keys", {})).status, 401);
  assert.equal((await embed(apiKey)).status, 403);
  assert.ok((await own("GET", `/keys/${id}`)).pausedAt);
  assert.ok(!(await own("GET", "/people")).data.some((p) => p.id === cleo.session.personId));
  assert.equal((await enter({ token: cleo.session.token })).status, 403, "the personal token has no role left");
});

test("the last owner may leave: the operator stays", async () => {
  const olga = await joins("Olga", { role: "owner" });
  assert.equal((await olga.at("DELETE", `/people/${olga.session.personId}`)).status, 204);
  assert.equal((await olga.at("GET", "/people")).status, 401);
  assert.ok(await own("GET", "/people"));
});

test("people move with an encrypted export of their machine, and keys keep their person", async () => {
  const passphrase = "correct horse battery staple";
  const { machineId: from } = await operator.machine();
  const link = async (body) =>
    (await operator.call("POST", `/${from}/api/invitations`, body)).link.split("/#/invitation/")[1];
  const template = { keys: 2, budgetUsd: 5 };
  const ann = await enter({ invitation: await link({ role: "member", template }), name: "Ann of the export" });
  const eve = await enter({ invitation: await link({ role: "owner" }), name: "Eve" });
  const key = (await ann.call("POST", `/${from}/api/keys`, { name: "laptop" })).body;
  await operator.call("DELETE", `/${from}/api/people/${eve.session.personId}`);
  const plain = await operator.call("GET", `/${from}/api/export`);
  assert.deepEqual([plain.people, plain.keys], [undefined, undefined]);
  const document = await operator.call("POST", `/${from}/api/export`, { passphrase });
  const take = (id, more) => operator.call("POST", `/${id}/api/import`, { document, passphrase, keys: true, ...more });

  // At another machine of the gateway, whose registry knows them.
  const { machineId: to } = await operator.machine();
  assert.deepEqual([(await take(to)).people, (await take(to)).peopleSkipped], [undefined, 2]);
  assert.equal((await take(to, { people: true, preview: true })).people, 2);
  assert.equal((await ann.call("GET", `/${to}/api/keys`)).status, 403, "a preview changes nothing");
  assert.equal((await take(to, { people: true })).people, 2);
  assert.equal((await ann.call("GET", `/${to}/api/keys`)).status, 200);
  assert.equal((await eve.call("GET", `/${to}/api/keys`)).status, 401, "who was removed stays so");
  const owner = await enter({ invitation: await invited({ role: "owner" }), name: "Olga" });
  const asOwner = { document, passphrase, people: true };
  assert.equal((await owner.at("POST", "/import", asOwner)).status, 403, "the operator alone moves people");

  // At a place that does not know them: nothing is left of a machine that is erased, nor of people without a role.
  for (const id of [from, to]) await operator.call("DELETE", `/api/machines/${id}?now=true`);
  await until("she is forgotten", async () => (await enter({ token: ann.session.token })).status === 401);
  await operator.call("POST", "/api/machines", { name: "moved", machineId: from });
  assert.equal((await take(from, { people: true })).people, 2);
  const [there] = (await operator.call("GET", `/${from}/api/people`)).data;
  assert.deepEqual(
    [there.id, there.name, there.role, there.template],
    [ann.session.personId, "Ann of the export", "member", template],
  );
  const { data, people } = await operator.call("GET", `/${from}/api/keys`);
  const moved = data.find((k) => k.id === key.id);
  assert.deepEqual([moved.person, people[moved.person]], [ann.session.personId, "Ann of the export"]);
  const again = await operator.call("POST", `/${from}/api/invitations`, { person: ann.session.personId });
  const back = await enter({ invitation: again.link.split("/#/invitation/")[1].split("?")[0] });
  assert.equal(back.session.personId, ann.session.personId, "a new link signs in the same person");
});
