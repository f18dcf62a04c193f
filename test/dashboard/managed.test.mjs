// A configuration file of the server owns some rows: the pages say so, and what would answer 409
// managed_by_file is disabled with the reason. Other rows can be changed.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { compatible } from "../e2e/gateway.mjs";
import { answered, bench, looks, open } from "./browser.mjs";

let b;
before(async () => {
  b = await bench();
});
after(() => b?.close());

const reason = "Managed by weir.yaml. Change it there.";

async function owned(t) {
  const { machineId } = await b.operator.machine();
  const api = (method, path, body) => b.operator.call(method, `/${machineId}/api${path}`, body);
  const account = await b.operator.connect(machineId, compatible(b.upstream));
  const key = await api("POST", "/keys", { name: "of the file" });
  await b.operator.connect(machineId, compatible(b.upstream, { name: "second" }));
  const hand = await api("POST", "/keys", { name: "by hand" });
  const budget = await api("POST", "/budgets", {
    name: "of the file",
    unit: "usd",
    limit: 5,
    window: "month",
    keyId: hand.id,
  });
  const page = await open(t, b);
  await page.route(`**/${machineId}/api/health`, async (route) => {
    const json = await (await route.fetch()).json();
    json.file = {
      name: "weir.yaml",
      state: "applied",
      owned: {
        "/api/keys": [key.id],
        "/api/providers": [account.id],
        "/api/budgets": [budget.id],
        "/api/settings": ["*"],
      },
    };
    await route.fulfill({ json });
  });
  await page.reload(); // it may have asked before
  const at = async (path) => {
    await page.goto(`${b.url}/#/m/${machineId}/${path}`);
    await page.getByRole("main").getByRole("heading", { level: 1 }).waitFor();
  };
  return { page, at, api, account, key };
}

// disabled checks that a control is disabled with the reason, and that a click of it calls nothing.
async function disabled(page, control) {
  await control.and(page.locator('[aria-disabled="true"], [disabled]')).waitFor();
  assert.equal(await control.getAttribute("title"), reason);
  await control.click({ force: true });
}

test("rows of a configuration file cannot be changed, others can", async (t) => {
  const { page, at, api, account, key } = await owned(t);
  const changes = [];
  page.on("request", (r) => {
    if (r.method() !== "GET") changes.push(`${r.method()} ${new URL(r.url()).pathname}`);
  });
  const banner = page.getByRole("main").getByText("Managed by weir.yaml, the configuration file of the server");

  await at("keys");
  await banner.waitFor();
  await disabled(page, page.getByRole("button", { name: "Revoke of the file" }));
  await looks(page, "managed-keys");
  await page.getByRole("button", { name: "Edit of the file" }).click();
  await page.getByLabel("Name").fill("renamed");
  await disabled(page, page.getByRole("button", { name: "Save", exact: true }));
  await disabled(page, page.getByRole("button", { name: "Pause" }));
  await page.getByLabel("Name").press("Enter");
  assert.deepEqual(changes, [], "neither a click nor Enter calls the gateway");
  await answered(page, "POST", () => page.getByRole("button", { name: "Rotate key" }).click());
  await page.getByRole("button", { name: "Done" }).click();
  assert.equal((await api("GET", `/keys/${key.id}`)).name, "of the file");
  await page.getByRole("button", { name: "Edit by hand" }).click();
  const limit = page.getByLabel("Budget (US dollars)");
  await page.getByText(reason, { exact: true }).waitFor();
  assert.ok(await limit.isDisabled(), "the budget of the file");
  await page.getByLabel("Name").fill("of my own");
  await answered(page, "PUT", () => page.getByRole("button", { name: "Save", exact: true }).click());
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "Revoke of my own" }).click();
  await answered(page, "DELETE", () => page.getByRole("button", { name: "Revoke key" }).click());

  await at("providers");
  await banner.waitFor();
  const turned = page.getByRole("switch").first();
  await disabled(page, turned);
  assert.equal(await turned.isChecked(), true);
  await disabled(page, page.getByRole("button", { name: "Move up down" }));
  const [grip, below] = await Promise.all([0, 1].map((i) => page.locator(".order .grip").nth(i).boundingBox()));
  await page.mouse.move(grip.x + 5, grip.y + 5);
  await page.mouse.down();
  await page.mouse.move(below.x + 5, below.y + 30, { steps: 4 });
  await page.mouse.up();
  await at(`providers/${account.id}`);
  await disabled(page, page.getByRole("button", { name: "Save", exact: true }));
  await disabled(page, page.getByRole("button", { name: "Delete account…" }));

  await at("settings");
  await banner.waitFor();
  await disabled(
    page,
    page.getByRole("region", { name: "Routing and timeouts" }).getByRole("button", { name: "Save" }),
  );

  await at("combos");
  await page.getByRole("button", { name: "New combo" }).first().waitFor();
  assert.equal(await banner.count(), 0, "a page without rows of the file says nothing");
  assert.deepEqual(
    changes.map((c) => c.replace(/[^/]{26,}/, "ID").replace(/\/\w{16}\//, "/M/")),
    ["POST /M/api/keys/ID/rotate", "PUT /M/api/keys/ID", "DELETE /M/api/keys/ID"],
  );
});
