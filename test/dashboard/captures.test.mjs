// Captured bodies: turned on in the settings or for a key, shown in the drawer of a
// request after signing in again, and deleted.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { indented } from "../../worker/dashboard/src/format.ts";
import { compatible, secrets } from "../e2e/gateway.mjs";
import { answered, becomes, bench, canary, looks, open, settled } from "./browser.mjs";
import { openPage } from "./used.mjs";

let b;
before(async () => {
  b = await bench();
});
after(() => b?.close());

// machine creates a machine with an account.
async function machine() {
  const { machineId, apiKey } = await b.operator.machine({ name: "Test" });
  await b.operator.connect(machineId, compatible(b.upstream, { prefix: "up" }));
  const api = (path, method = "GET", body) => b.operator.call(method, `/${machineId}/api${path}`, body);
  const chat = async (content, key = apiKey) => {
    const res = await b.gateway.fetch("/v1/chat/completions", {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify({ model: "up/test-chat", messages: [{ role: "user", content }] }),
    });
    assert.equal(res.status, 200, await res.text());
    return res.headers.get("x-request-id");
  };
  const captured = async () => (await api("/captures")).data.map((c) => c.id);
  return { machineId, apiKey, api, chat, captured };
}

// drawer opens the drawer of a request.
async function drawer(t, m, id, options) {
  await becomes(async () => (await m.api("/requests")).data.some((r) => r.id === id && r.captured), true);
  const page = await openPage(t, b, m.machineId, "Requests", options);
  await page.goto(`${b.url}/#/m/${m.machineId}/requests/${id}`);
  const dialog = page.getByRole("dialog", { name: "Request", exact: true });
  await dialog.getByText(id).first().waitFor();
  return { page, dialog };
}

test("capturing is turned on in the settings, and what it stores is deleted there", async (t) => {
  const m = await machine();
  const page = await open(t, b, { at: `#/m/${m.machineId}/settings/captures` });
  const section = page.getByRole("region", { name: "Stored prompts", exact: true });
  await section.getByText("No prompts or answers are stored.").waitFor();
  await section.getByLabel("Share of requests (%)").fill("100");
  await section.getByLabel("Keep for").selectOption({ label: "6 h" });
  await answered(page, "PATCH", () => section.getByRole("button", { name: "Save" }).click());
  const { capturePercent, captureHours } = await m.api("/settings");
  assert.deepEqual([capturePercent, captureHours], [100, 6]);
  const id = await m.chat("hello");
  await becomes(m.captured, [id]);
  await page.reload();
  await section.getByText("1 request stored").waitFor();
  await looks(page, "settings-captures");
  await section.getByRole("button", { name: "Delete all" }).click();
  await answered(page, "DELETE", () => section.getByRole("button", { name: "Delete", exact: true }).click());
  await section.getByText("No prompts or answers are stored.").waitFor();
  assert.deepEqual(await m.captured(), []);
  // Settings of another section are saved after that.
  await page.getByRole("radio", { name: "Routing and timeouts" }).check();
  await page.getByLabel("First-byte timeout (seconds)").fill("30");
  await answered(page, "PATCH", () =>
    page.getByRole("region", { name: "Routing and timeouts" }).getByRole("button", { name: "Save" }).click(),
  );
});

test("bodies are shown after signing in again, with their texts as texts", async (t) => {
  const m = await machine();
  await m.api("/settings", "PATCH", { capturePercent: 100 });
  const id = await m.chat(`${canary} and the key sk-ant-api03-0123456789abcdefghij`);
  const { page, dialog } = await drawer(t, m, id, { failures: [`GET /${m.machineId}/api/captures/* 403`] });
  // As five minutes later: the gateway asks for the token once more.
  let asked = 0;
  await page.route(`**/api/captures/${id}`, async (route) => {
    if (asked++) return route.continue();
    await route.fulfill({
      status: 403,
      contentType: "application/json",
      body: `{"error":{"message":"sign in again to do this","type":"permission_error","code":"reauth_required"}}`,
    });
  });
  await dialog.getByRole("button", { name: "Show prompt and answer" }).click();
  const again = page.getByRole("dialog", { name: "Sign in again" });
  await again.getByLabel("Token or key").fill(secrets.ADMIN_TOKEN);
  await again.getByRole("button", { name: "Sign in" }).click();
  const request = dialog.getByRole("region", { name: "Request", exact: true });
  await request.getByText('"role": "user"').waitFor();
  const text = await request.textContent();
  assert.ok(text.includes("<img src=x") && text.includes("the key ***") && !text.includes("sk-ant"), text);
  await dialog.getByRole("region", { name: "Answer", exact: true }).getByText('"object": "chat.completion"').waitFor();
  await looks(page, "requests-bodies");
  const looked = (await m.api("/audit")).data.filter((r) => r.action === "GET /api/captures/{id}");
  assert.deepEqual(
    looked.map((r) => [r.actor, r.target]),
    [["operator", id]],
  );
  await answered(page, "DELETE", () => dialog.getByRole("button", { name: "Delete prompt and answer" }).click());
  await dialog.getByText("The prompt and answer of this request were deleted.").waitFor();
  assert.deepEqual(await m.captured(), []);
});

test("large bodies say that they are cut, and missing ones that they are gone", async (t) => {
  const m = await machine();
  await m.api("/settings", "PATCH", { capturePercent: 100 });
  const id = await m.chat("a long text ".repeat(50_000));
  const { page, dialog } = await drawer(t, m, id, { failures: [`GET /${m.machineId}/api/captures/* 404`] });
  await dialog.getByRole("button", { name: "Show prompt and answer" }).click();
  await dialog.getByText("Truncated: only the first 262.1 kB are stored.").first().waitFor();
  assert.match(await dialog.textContent(), /application\/json · 600\.\d kB/);
  await m.api("/captures", "DELETE");
  await page.reload();
  await dialog.getByRole("button", { name: "Show prompt and answer" }).click();
  await dialog.getByText("The prompt and answer are no longer stored.").waitFor();
});

test("a request without captured bodies has no panel", async (t) => {
  const m = await machine();
  const id = await m.chat("hello");
  await becomes(async () => (await m.api("/requests")).data.length, 1);
  const page = await openPage(t, b, m.machineId, "Requests");
  await page.goto(`${b.url}/#/m/${m.machineId}/requests/${id}`);
  const dialog = page.getByRole("dialog", { name: "Request", exact: true });
  await dialog.getByText(id).first().waitFor();
  await settled(page);
  assert.equal(await dialog.getByRole("heading", { name: "Prompt and answer" }).count(), 0);
});

test("a key has its own share", async (t) => {
  const m = await machine();
  const made = await m.api("/keys", "POST", { name: "laptop" });
  const page = await openPage(t, b, m.machineId, "Keys");
  const edit = async (value) => {
    await page.getByRole("row").filter({ hasText: "laptop" }).getByRole("button", { name: "Edit" }).click();
    const dialog = page.getByRole("dialog", { name: "Edit laptop" });
    await dialog.getByLabel("Stored prompts and answers (%)").fill(value);
    await answered(page, "PUT", () => dialog.getByRole("button", { name: "Save" }).click());
    return (await m.api(`/keys/${made.id}`)).capturePercent;
  };
  assert.equal(await edit("100"), 100);
  await m.chat("by another key");
  const own = await m.chat("by this key", made.apiKey);
  await becomes(m.captured, [own]);
  assert.equal(await edit("0"), 0);
  assert.equal(await edit(""), undefined);
});

test("JSON is indented without a change of its values", () => {
  const odd = '{"id":12345678901234567890,"x":1.0,"s":"a\\"{,:\\\\","none":{},"empty":[ ],"list":[1,{"a":null}]}';
  assert.equal(
    indented(odd),
    [
      "{",
      '  "id": 12345678901234567890,',
      '  "x": 1.0,',
      '  "s": "a\\"{,:\\\\",',
      '  "none": {},',
      '  "empty": [],',
      '  "list": [',
      "    1,",
      "    {",
      '      "a": null',
      "    }",
      "  ]",
      "}",
    ].join("\n"),
  );
  for (const value of [0, "x", [], {}, [[]], [{}, []], { a: [1, 2], b: { c: "é \u0000" } }, [[[1], 2], 3]])
    assert.equal(indented(JSON.stringify(value)), JSON.stringify(value, null, 2));
  assert.equal(indented('{"a":'), "");
  const long = JSON.stringify({ text: '\\"'.repeat(500_000) });
  assert.deepEqual(JSON.parse(indented(long)), JSON.parse(long));
});
