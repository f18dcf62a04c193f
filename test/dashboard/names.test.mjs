// Stored names and texts of others on every page: they are text, never markup, and
// characters that change the direction of text are shown. Times are local, with UTC in
// the tooltip.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { pages } from "../../worker/dashboard/src/pages.ts";
import { sections } from "../../worker/dashboard/src/pages/settings/sections.ts";
import { compatible } from "../e2e/gateway.mjs";
import { becomes, bench, holds, open, settled } from "./browser.mjs";
import { ask, openPage, recorded, used } from "./used.mjs";

let b;
before(async () => {
  b = await bench();
});
after(() => b?.close());

// A name may have no slash where it is an alias.
const evil = `"'><img src=x onerror=canary()>`;

// named creates a machine in which everything that has a name has that one.
async function named(t) {
  const { machineId, apiKey } = await b.operator.machine({ name: evil });
  const call = (method, path, body) => b.operator.call(method, `/${machineId}/api${path}`, body);
  const c = await b.operator.connect(machineId, compatible(b.upstream, { prefix: "up", name: evil }));
  await call("POST", "/keys", { name: evil });
  await call("POST", "/budgets", { name: evil, unit: "requests", limit: 1000, window: "day" });
  await call("POST", "/models/custom", { id: "own", providerAlias: "up", name: evil });
  await call("PUT", "/models/alias", { alias: evil, model: "up/test-chat" });
  const combo = await call("POST", "/combos", { name: "best", models: [evil, "up/test-chat"] });
  b.upstream.script = (got) =>
    got.path.endsWith("/models")
      ? { body: JSON.stringify({ data: [{ id: evil, name: evil, owned_by: evil }, { id: "test-chat" }] }) }
      : got.json?.model === "bad"
        ? { status: 400, body: JSON.stringify({ error: { message: `No ${evil} \u202elive`, type: evil, code: evil } }) }
        : null;
  t.after(() => {
    b.upstream.script = null;
  });
  const ask = (model) =>
    b.gateway
      .fetch("/v1/chat/completions", {
        method: "POST",
        headers: { authorization: `Bearer ${apiKey}`, "content-type": "application/json" },
        body: JSON.stringify({ model, messages: [{ role: "user", content: evil }] }),
      })
      .then((res) => res.text());
  for (const model of ["up/test-chat", "up/bad", evil, `nothing/${evil}`, "best"]) await ask(model);
  await becomes(async () => (await call("GET", "/requests?limit=50")).data.length, 5);
  return { machineId, c, combo };
}

test("every stored name is text on every page", async (t) => {
  const { machineId, c, combo } = await named(t);
  const page = await open(t, b, { at: "#/machines" });
  const at = (...path) => `#/m/${[machineId, ...path].join("/")}`;
  // Pages that show such a name, and further addresses of theirs.
  const shown = [
    "#/machines",
    at("providers"),
    at("keys"),
    at("budgets"),
    at("requests"),
    at("combos"),
    at("settings", "audit"),
  ];
  const addresses = [
    "#/machines",
    ...pages.map((p) => at(p.path)),
    at("providers", c.id),
    at("providers", "add"),
    at("combos", combo.id),
    ...sections.map((s) => at("settings", s.id)),
  ];
  for (const address of addresses) {
    await page.evaluate((a) => {
      location.hash = a;
    }, address);
    await holds(page, () => document.querySelector("main")?.innerText.trim() && !document.querySelector(".skeleton"));
    const made = await page.evaluate(() =>
      [...document.querySelectorAll("*")]
        .filter(
          (e) =>
            [...e.attributes].some((a) => /^on/i.test(a.name)) ||
            (e.localName === "img" && !new URL(e.src || "x:").pathname.startsWith("/assets/")),
        )
        .map((e) => e.outerHTML.slice(0, 200)),
    );
    assert.deepEqual(made, [], address);
    if (shown.includes(address))
      await holds(page, (name) => document.querySelector("main").innerText.includes(name), evil);
  }
});

test("a name that would be read backwards shows its hidden characters", async (t) => {
  const { machineId } = await b.operator.machine({ name: "Test" });
  await b.operator.call("POST", `/${machineId}/api/keys`, { name: "marker" });
  const page = await open(t, b, { at: `#/m/${machineId}/usage` });
  // Names from before such characters were refused.
  await page.route("**/api/keys", async (route) => {
    const res = await route.fetch();
    await route.fulfill({ response: res, body: (await res.text()).replaceAll("marker", "pay\u202etset\u2066") });
  });
  await page.goto(`${b.url}/#/m/${machineId}/keys`);
  await page.getByText("pay[U+202E]tset[U+2066]", { exact: true }).waitFor();
  await page.getByRole("button", { name: "Edit pay[U+202E]tset[U+2066]" }).waitFor();
  assert.equal(await page.evaluate(() => /[\u202a-\u202e\u2066-\u2069]/.test(document.body.innerText)), false);
});

test("times are local, with UTC in the tooltip", async (t) => {
  const { machineId } = await b.operator.machine({ name: "Test" });
  const { id, createdAt } = (await b.operator.call("GET", `/${machineId}/api/keys`)).data[0];
  assert.ok(id);
  const page = await open(t, b, { at: `#/m/${machineId}/keys`, timezoneId: "Asia/Kolkata" });
  await settled(page);
  await page.getByRole("button", { name: "Edit Default key" }).click();
  const time = page.getByRole("dialog").locator("time").first();
  const utc = new Date(createdAt).toISOString();
  assert.equal(await time.getAttribute("title"), `${utc.slice(0, 19).replace("T", " ")} UTC`);
  assert.equal(await time.getAttribute("datetime"), utc);
  const local = new Date(createdAt + 5.5 * 3_600_000).toISOString().slice(11, 16);
  assert.ok((await time.innerText()).endsWith(local), await time.innerText());
});

test("requests and usage name what was deleted, and show no id", async (t) => {
  const { machineId, second } = await used(b);
  const call = (method, path, body) => b.operator.call(method, `/${machineId}/api${path}`, body);
  const { id: keyId, apiKey } = await call("POST", "/keys", { name: "Laptop" });
  assert.equal(await ask(b, apiKey, "two/test-chat"), 200);
  await recorded((path) => call("GET", path), 7);
  await call("DELETE", `/keys/${keyId}`);
  await call("DELETE", `/providers/${second.id}`);
  const page = await openPage(t, b, machineId, "Requests");
  const row = page.getByRole("row", { name: /Second \(deleted\).* Laptop \(revoked\)/ });
  await row.getByRole("link").click();
  const drawer = page.getByRole("dialog", { name: "Request" });
  await drawer.getByText("Second (deleted)", { exact: true }).last().waitFor();
  assert.equal(await drawer.getByRole("link", { name: /Second/ }).count(), 0, "no link to what is gone");
  await page.goto(`${b.url}/#/m/${machineId}/usage?by=connection&connection=${second.id}`);
  const table = page.getByRole("region", { name: "Usage" });
  await table.getByRole("rowheader", { name: "Second (deleted)" }).waitFor();
  await page.getByRole("button", { name: "Remove Account: Second (deleted)" }).waitFor();

  // An account that the audit log no longer names.
  await page.route(/\/api\/audit\?/, (route) => route.fulfill({ json: { data: [], names: {}, has_more: false } }));
  await page.reload();
  const unnamed = table.getByRole("rowheader", { name: "Deleted account" }).locator(".cut");
  await unnamed.waitFor();
  assert.equal(await unnamed.getAttribute("title"), second.id);
  await page.goto(`${b.url}/#/m/${machineId}/requests`);
  await page.getByRole("row").filter({ hasText: "Deleted account after First 429" }).waitFor();
});
