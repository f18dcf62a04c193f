// Settings: Notifications and Exports, where a machine sends messages, telemetry and its log
// of requests.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { exports, notifications } from "../../worker/dashboard/src/pages/settings/destinations/kinds.ts";
import { createStore } from "../upstream/s3.mjs";
import { answered, becomes, bench, canary, looks, open, settled } from "./browser.mjs";

let b;
const hook = { status: 200, seen: [] };
const secret = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";
const store = createStore({ buckets: ["weir-logs"], keys: { AKIATEST: { secret } }, region: "us-east-1" });

before(async () => {
  b = await bench();
  b.upstream.script = (got) => {
    if (!got.path.startsWith("/hook")) return store.script(got);
    hook.seen.push(got.json);
    return { status: hook.status, headers: { "content-type": "text/html" }, body: canary };
  };
});
after(() => b?.close());

async function machine(t, at = "settings/notifications", options = {}) {
  const { machineId } = await b.operator.machine({ name: "Test" });
  const api = (method, path, body) => b.operator.call(method, `/${machineId}/api${path}`, body);
  const list = async () => (await api("GET", "/destinations")).data;
  const page = await open(t, b, { at: `#/m/${machineId}/${at}`, ...options });
  return { machineId, api, list, page, at: `#/m/${machineId}/settings/notifications` };
}

test("every kind of the API has a form with its settings", async () => {
  const { machineId } = await b.operator.machine({ name: "Test" });
  const { kinds, events } = await b.operator.call("GET", `/${machineId}/api/destinations`);
  const presets = [...notifications, ...exports];
  const missing = [];
  for (const kind of kinds) {
    const own = presets.filter((p) => p.kind === kind.name);
    if (own.length === 0) missing.push(kind.name);
    for (const p of own) {
      const typed = Object.fromEntries(p.inputs.map((i) => [i.name, "x"]));
      const sent = Object.keys(p.values?.(typed) ?? typed);
      for (const f of kind.fields) {
        if (f.required && !sent.includes(f.name)) missing.push(`${p.id}: ${f.name}`);
        const input = p.inputs.find((i) => i.name === f.name);
        if (input && !!input.secret !== !!f.secret) missing.push(`${p.id}: ${f.name} is secret`);
        for (const [value] of input?.choices ?? [])
          if (value && f.values && !f.values.includes(value)) missing.push(`${p.id}: ${f.name}=${value}`);
      }
      for (const name of sent) {
        if (!kind.fields.some((f) => f.name === name)) missing.push(`${p.id} sends ${name}`);
      }
      for (const { event } of p.inputs)
        if (event && !events.some((e) => e.name === event)) missing.push(`${p.id}: the event ${event}`);
    }
  }
  for (const p of presets) if (!kinds.some((k) => k.name === p.kind)) missing.push(`no kind ${p.kind}`);
  assert.deepEqual(missing, []);
});

test("a webhook is added, tested, changed without its address, paused and deleted", async (t) => {
  const { page, list } = await machine(t);
  const section = page.getByRole("region", { name: "Notifications", exact: true });
  await section.getByText("No notifications yet.").waitFor();
  await section.getByRole("button", { name: "Add a notification" }).click();
  const form = page.getByRole("dialog", { name: "Add a notification" });
  await form.getByLabel("Webhook URL").waitFor();
  await looks(page, "destinations-new");
  await form.getByLabel("Send to").selectOption({ label: "Webhook" });
  await form.getByRole("textbox", { name: "Name" }).fill("Pager");
  await form.getByLabel("Webhook URL").fill(`${b.upstream.url}/hook/secret-part?sig=1`);
  assert.ok(await form.getByLabel("An account needs a new sign-in").isChecked());
  assert.equal(await form.getByLabel("Limited for (minutes)").count(), 0);
  await form.getByLabel("An account stays rate-limited").check();
  await form.getByLabel("Limited for (minutes)").fill("45");
  await form.getByLabel("Quiet hours").fill("22:00-07:00");
  await answered(page, "POST", () => form.getByRole("button", { name: "Add", exact: true }).click());
  await form.waitFor({ state: "detached" });
  const row = section.getByRole("row", { name: /Pager/ });
  await row.getByText("Nothing sent yet").waitFor();
  const [made] = await list();
  assert.deepEqual(made.settings, { coolingMinutes: "45", quietHours: "22:00-07:00" });
  assert.ok(made.events.includes("account.cooling") && made.events.includes("account.sign_in"));
  assert.ok(!(await page.content()).includes("secret-part"));

  await answered(page, "POST", () => row.getByRole("button", { name: "Send test to Pager" }).click());
  await row.getByText("The test was delivered.").waitFor();
  await row.getByText("Delivering").waitFor();
  assert.equal(hook.seen.at(-1).type, "test");
  await looks(page, "destinations");

  hook.status = 404;
  await answered(page, "POST", () => row.getByRole("button", { name: "Send test to Pager" }).click());
  await row.getByText("The test was not delivered: status 404").waitFor();
  await row.getByText("Failing", { exact: true }).waitFor();
  await looks(page, "destinations-failing");
  hook.status = 200;

  await row.getByRole("button", { name: "Edit Pager" }).click();
  const edit = page.getByRole("dialog", { name: "Edit Pager" });
  assert.equal(await edit.getByLabel("Webhook URL").inputValue(), "");
  assert.equal(await edit.getByLabel("Webhook URL").getAttribute("placeholder"), "Unchanged");
  assert.equal(await edit.getByLabel("Limited for (minutes)").inputValue(), "45");
  await edit.getByRole("region", { name: "Signing secret" }).getByText("whsec_").waitFor();
  await edit.getByRole("textbox", { name: "Name" }).fill("On call");
  await answered(page, "PUT", () => edit.getByRole("button", { name: "Save" }).click());
  const renamed = section.getByRole("row", { name: /On call/ });
  await answered(page, "POST", () => renamed.getByRole("button", { name: "Send test to On call" }).click());
  await renamed.getByText("The test was delivered.").waitFor();

  await answered(page, "PUT", () => renamed.getByRole("switch", { name: "Send to On call" }).click());
  await renamed.getByText("Paused").waitFor();
  assert.equal((await list())[0].enabled, false);

  await renamed.getByRole("button", { name: "Delete On call" }).click();
  const confirm = page.getByRole("dialog", { name: "Delete On call?" });
  await answered(page, "DELETE", () => confirm.getByRole("button", { name: "Delete", exact: true }).click());
  await section.getByText("No notifications yet.").waitFor();
  assert.deepEqual(await list(), []);
});

test("a bucket is added by a preset, and a refusal of the store is explained in place", async (t) => {
  const { page, list } = await machine(t, "settings/exports/new");
  const form = page.getByRole("dialog", { name: "Add an export" });
  await form.getByLabel("Send to").selectOption({ label: "Cloudflare R2" });
  await form.getByLabel("Account ID").fill("0123456789abcdef0123456789abcdef");
  await form.getByLabel("Jurisdiction").selectOption({ label: "European Union" });
  await form.getByLabel("Bucket").fill("weir-logs");
  await form.getByLabel("Access key ID").fill("AKIATEST");
  await form.getByLabel("Secret access key").fill(secret);
  await looks(page, "destinations-r2");
  await answered(page, "POST", () => form.getByRole("button", { name: "Add", exact: true }).click());
  await form.waitFor({ state: "detached" });
  const section = page.getByRole("region", { name: "Exports", exact: true });
  const r2 = section.getByRole("row", { name: /Cloudflare R2/ }).first();
  await r2.waitFor();
  assert.deepEqual((await list())[0].settings, {
    endpoint: "https://0123456789abcdef0123456789abcdef.eu.r2.cloudflarestorage.com/",
    region: "auto",
    style: "path",
    bucket: "weir-logs",
    accessKeyId: "AKIATEST",
  });
  await r2.getByRole("button", { name: "Edit Cloudflare R2" }).click();
  const edit = page.getByRole("dialog", { name: "Edit Cloudflare R2" });
  assert.equal(await edit.getByLabel("Account ID").inputValue(), "0123456789abcdef0123456789abcdef");
  assert.equal(await edit.getByLabel("Jurisdiction").inputValue(), "eu");
  await edit.getByRole("button", { name: "Close" }).click();

  await section.getByRole("button", { name: "Add an export" }).click();
  await form.getByLabel("Send to").selectOption({ label: "Other S3-compatible storage" });
  await form.getByRole("textbox", { name: "Name" }).fill("MinIO");
  await form.getByLabel("Endpoint").fill(b.upstream.url);
  await form.getByLabel("Bucket", { exact: true }).fill("other");
  await form.getByLabel("Folder").fill("weir");
  await form.getByLabel("Access key ID").fill("AKIATEST");
  await form.getByLabel("Secret access key").fill(secret);
  await answered(page, "POST", () => form.getByRole("button", { name: "Add", exact: true }).click());
  const row = section.getByRole("row", { name: /MinIO/ });
  await answered(page, "POST", () => row.getByRole("button", { name: "Send test to MinIO" }).click());
  await row.getByText("The test was not delivered: status 404 NoSuchBucket: there is no bucket of this name").waitFor();
  await looks(page, "destinations-exports");
  await row.getByRole("button", { name: "Edit MinIO" }).click();
  const other = page.getByRole("dialog", { name: "Edit MinIO" });
  await other.getByLabel("Bucket", { exact: true }).fill("weir-logs");
  assert.equal(await other.getByLabel("Send stored prompts and answers").isChecked(), false);
  await other.getByLabel("Send stored prompts and answers").check();
  await looks(page, "destinations-bodies");
  await answered(page, "PUT", () => other.getByRole("button", { name: "Save" }).click());
  await answered(page, "POST", () => row.getByRole("button", { name: "Send test to MinIO" }).click());
  await row.getByText("The test was delivered.").waitFor();
  assert.ok([...store.objects.keys()].some((name) => name.startsWith("weir-logs/weir/weir-test-")));
  const stored = async () => (await list()).find((d) => d.name === "MinIO").settings.bodies;
  assert.equal(await stored(), "true");
  await row.getByRole("button", { name: "Edit MinIO" }).click();
  await other.getByLabel("Send stored prompts and answers").uncheck();
  await answered(page, "PUT", () => other.getByRole("button", { name: "Save" }).click());
  await other.waitFor({ state: "detached" });
  assert.equal(await stored(), undefined);
});

test("unsaved input survives, but for secrets, and the address names what is open", async (t) => {
  const { machineId, page, at } = await machine(t, "settings/notifications/new", { phone: true });
  const form = page.getByRole("dialog", { name: "Add a notification" });
  await form.getByLabel("Send to").selectOption({ label: "ntfy" });
  await form.getByRole("textbox", { name: "Name" }).fill("Phone");
  await form.getByLabel("Access token").fill("tk_secret");
  await page.evaluate((to) => {
    location.hash = to;
  }, `#/m/${machineId}/overview`);
  await page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
  await page.evaluate((to) => {
    location.hash = to;
  }, `${at}/new`);
  await form.getByText("Unsaved changes restored.").waitFor();
  assert.equal(await form.getByRole("textbox", { name: "Name" }).inputValue(), "Phone");
  assert.equal(await form.getByLabel("Access token").inputValue(), "");
  await page.keyboard.press("Escape");
  await form.getByText("Discard unsaved changes?").waitFor();
  await form.getByRole("button", { name: "Discard", exact: true }).click();
  await form.waitFor({ state: "detached" });
  assert.equal(await page.evaluate(() => location.hash), at);
});

test("what waits and what was dropped is listed, with texts of destinations as texts", async (t) => {
  const { machineId, page, api } = await machine(t);
  const made = await api("POST", "/destinations", {
    name: canary.slice(0, 90),
    kind: "webhook",
    settings: { url: `${b.upstream.url}/hook` },
  });
  const failing = {
    ...made,
    status: "failing",
    lastError: `status 500 ${canary}`,
    lastErrorAt: Date.now(),
    waiting: 1,
    dropped: 12,
    nextTryAt: Date.now() + 60_000,
  };
  const events = (await api("GET", "/destinations")).events;
  await page.route(`**/${machineId}/api/destinations`, (route) =>
    route.fulfill({ json: { object: "list", data: [failing], kinds: [], events } }),
  );
  await page.route(`**/api/destinations/${made.id}/deliveries`, (route) =>
    route.fulfill({
      json: {
        object: "list",
        data: [
          { id: "d1", type: "notification", title: canary, state: "waiting", at: Date.now(), tries: 2, error: canary },
          {
            id: "d2",
            type: "notification",
            title: "Old",
            state: "dropped",
            at: Date.now(),
            tries: 9,
            error: "status 500",
          },
        ],
      },
    }),
  );
  await page.reload();
  const section = page.getByRole("region", { name: "Notifications", exact: true });
  await section.getByText("12 messages dropped").waitFor();
  await section.getByText("1 delivery waiting").waitFor();
  await section.getByText("Waiting and dropped").click();
  await section.getByText("9 tries").waitFor();
  await settled(page);
  await looks(page, "destinations-waiting");
});

test("the page of budgets leads to the notifications", async (t) => {
  const { machineId, page } = await machine(t, "budgets/new");
  const form = page.getByRole("dialog", { name: "New budget" });
  await form.getByRole("link", { name: "Notifications" }).click();
  await page.getByRole("heading", { level: 1, name: "Settings" }).waitFor();
  await becomes(() => page.evaluate(() => location.hash), `#/m/${machineId}/settings/notifications`);
  await becomes(
    () =>
      page.evaluate(() => {
        const top = document.querySelector('section[aria-label="Notifications"]')?.getBoundingClientRect().top;
        return top !== undefined && top > -50 && top < innerHeight;
      }),
    true,
  );
});
