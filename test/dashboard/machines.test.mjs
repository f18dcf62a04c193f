// Signing in, and the operator's list of machines.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { secrets } from "../e2e/gateway.mjs";
import { bench, canary, looks, open, settled, shot, signIn } from "./browser.mjs";

let b;
before(async () => {
  b = await bench();
});
after(() => b?.close());

const heading = (page, name) => page.getByRole("heading", { level: 1, name });

test("a machine that does not exist is one notice with a link to all machines", async (t) => {
  const page = await open(t, b, { at: "#/m/abcdefghijklmnop/overview", failures: ["GET /abcdefghijklmnop/api/* 404"] });
  await page.getByRole("heading", { level: 1, name: "Machine not found" }).waitFor();
  await page.getByText("It was deleted, or its address is wrong.").waitFor();
  assert.equal(await page.getByRole("alert").count(), 0);
  assert.equal(await page.getByRole("link", { name: "Providers" }).count(), 0, "it has no pages");
  await page.getByRole("link", { name: "Back to machines" }).click();
  await heading(page, "Machines").waitFor();
});

test("the operator creates, opens, switches and deletes machines", async (t) => {
  const page = await open(t, b);
  await heading(page, "Machines").waitFor();
  await page.getByText("No machines yet").waitFor();
  await looks(page, "machines-empty");

  await page.getByRole("button", { name: "Create machine" }).click();
  const name = page.getByRole("dialog", { name: "Create machine" }).getByLabel("Name", { exact: true }),
    create = page.getByRole("button", { name: "Create", exact: true });
  assert.equal(await create.isDisabled(), true, "a machine is not made without a name");
  await looks(page, "machines-create");
  await name.fill("Research");
  await create.click();
  const dialog = page.getByRole("dialog", { name: "Machine created" });
  const key = await dialog.getByRole("region", { name: "API key" }).innerText();
  assert.match(key, /^sk-[a-z0-9]{16}-[a-z0-9]{26,}-[0-9a-f]{8}$/);
  await dialog.getByRole("button", { name: "Copy" }).click();
  await dialog.getByText("Copied").waitFor();
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), key);
  await looks(page, "machines-key");
  await dialog.getByRole("link", { name: "Open machine" }).click();
  await heading(page, "Overview").waitFor();
  await page.getByText("Connect an account").waitFor();
  assert.equal(await page.getByText(key).count(), 0, "the key is shown once");
  assert.equal((await b.gateway.fetch("/v1/models", { headers: { authorization: `Bearer ${key}` } })).status, 200);

  const second = await b.operator.machine({ name: `Second ${canary}` });
  await page.reload();
  await settled(page);
  await page.getByRole("combobox", { name: "Machine" }).selectOption(second.machineId);
  await page.getByRole("main").getByText(`Second ${canary}`).waitFor();
  await page.getByRole("link", { name: "Machines" }).click();
  await heading(page, "Machines").waitFor();
  await looks(page, "machines");

  await page.getByRole("button", { name: "Delete Research" }).click();
  const gone = page.getByRole("button", { name: "Delete machine" });
  assert.equal(await gone.isDisabled(), true);
  await page.getByLabel("Type the machine’s name to confirm").fill("researc");
  assert.equal(await gone.isDisabled(), true, "the name must be whole");
  await page.getByLabel("Type the machine’s name to confirm").fill(" research ");
  await looks(page, "machines-delete");
  await gone.click();
  await page.getByText("Machine deleted.").waitFor();
  await page.getByRole("link", { name: "Research", exact: true }).waitFor({ state: "detached" });
  assert.deepEqual(
    (await b.operator.call("GET", "/api/machines")).data.map((m) => m.machineId),
    [second.machineId],
  );
  await page.getByText(/^Deleted, restore until/).waitFor();
  await looks(page, "machines-deleted");
  await page.getByRole("button", { name: "Restore Research" }).click();
  await page.getByText("Machine restored.").waitFor();
  await page.getByRole("link", { name: "Research", exact: true }).waitFor();
  await page.getByText(/^Deleted, restore until/).waitFor({ state: "detached" });
});

test("a machine is renamed where it is listed, chosen and audited", async (t) => {
  const { machineId } = await b.operator.machine({ name: "Before" });
  const page = await open(t, b);
  await page.getByRole("button", { name: "Rename Before" }).click();
  const dialog = page.getByRole("dialog", { name: "Rename Before" });
  const name = dialog.getByLabel("Name", { exact: true }),
    rename = dialog.getByRole("button", { name: "Rename", exact: true });
  assert.equal(await name.inputValue(), "Before");
  await name.fill("x".repeat(201));
  await rename.click();
  assert.equal(await name.evaluate((el) => el.validity.customError), true, "201 characters are too many");
  await name.fill("After");
  await looks(page, "machines-rename");
  await rename.click();
  await page.getByText("Machine renamed.").waitFor();
  await page.getByRole("link", { name: "After", exact: true }).waitFor();
  await page.getByRole("option", { name: "After", exact: true }).waitFor({ state: "attached" });
  await page.getByRole("link", { name: "Open After" }).click();
  await heading(page, "Overview").waitFor();
  await page.getByRole("main").getByText("After", { exact: true }).waitFor();
  await page.goto(`${b.url}/#/m/${machineId}/settings/audit`);
  await page.getByText("Renamed machine").waitFor();
});

test("a thousand machines are searched on the server and loaded page by page", async (t) => {
  const many = Array.from({ length: 1000 }, (_, i) => ({
    machineId: `m${String(i).padStart(15, "0")}`,
    name: i % 10 ? `Team ${i}` : undefined,
    createdAt: 1_700_000_000_000 + i,
  }));
  const page = await open(t, b, { as: null });
  await page.route(/\/api\/machines(\?.*)?$/, (route) => {
    const query = new URL(route.request().url()).searchParams,
      q = query.get("q")?.toLowerCase() ?? "",
      from = Number(query.get("cursor") ?? 0);
    if (query.has("deleted")) return route.fulfill({ json: { data: [], total: 0, has_more: false } });
    const found = many.filter((m) => `${m.name ?? ""} ${m.machineId}`.toLowerCase().includes(q)),
      end = from + 100;
    return route.fulfill({
      json: {
        data: found.slice(from, end),
        total: found.length,
        ...(end < found.length ? { has_more: true, next: String(end) } : { has_more: false }),
      },
    });
  });
  await signIn(page, secrets.ADMIN_TOKEN);
  await page.getByText("100 of 1,000 machines", { exact: true }).waitFor();
  await page.getByRole("option", { name: "All machines (1,000)" }).waitFor({ state: "attached" });
  const cards = page.locator("ul.cards > li");
  assert.equal(await cards.count(), 100);
  await page.getByRole("button", { name: "Load more" }).click();
  await page.getByText("200 of 1,000 machines", { exact: true }).waitFor();
  assert.equal(await cards.count(), 200);
  const search = page.getByRole("searchbox", { name: "Search machines" });
  await search.fill("team 99");
  await page.getByText("10 machines", { exact: true }).waitFor(); // 99, 991 to 999
  await cards.filter({ hasText: "Team 999" }).getByRole("button", { name: "Delete Team 999" }).waitFor();
  assert.match(page.url(), /#\/machines\?q=team\+99$|\?q=team\+99$/);
  await shot(page, "machines-many");
  await page.reload();
  await page.getByText("10 machines", { exact: true }).waitFor();
  assert.equal(await search.inputValue(), "team 99", "the search is kept in the address");
  await search.fill(many[990].machineId);
  await page.getByText("1 machine", { exact: true }).waitFor();
  await search.fill("no such machine");
  await page.getByText("No machines found").waitFor();
});

test("a management key shows only its own machine", async (t) => {
  const { machineId } = await b.operator.machine({ name: "Mine" });
  const { apiKey } = await b.operator.call("POST", `/${machineId}/api/keys`, {
    name: `laptop ${canary}`,
    scopes: ["manage"],
  });
  const page = await open(t, b, { as: apiKey, at: "#/machines" });
  await heading(page, "Overview").waitFor();
  assert.ok(page.url().endsWith(`#/m/${machineId}/overview`));
  await page.getByText("Signed in with key laptop").waitFor();
  assert.equal(await page.getByRole("link", { name: "Machines" }).count(), 0);
  assert.equal(await page.getByRole("combobox", { name: "Machine" }).count(), 0);
  await page.goto(`${b.url}/#/m/abcdefgh01234567/providers`);
  await page.waitForURL(`**/#/m/${machineId}/overview`);
});

test("deleting a machine needs a recent sign-in, and an ended session asks to sign in", async (t) => {
  const { machineId } = await b.operator.machine({ name: "Old" });
  const page = await open(t, b, { failures: ["DELETE /api/machines/* 403", "POST /api/machines 401"] });
  await heading(page, "Machines").waitFor();
  // As five minutes later: the gateway asks for the token once more.
  let asked = 0;
  await page.route(`**/api/machines/${machineId}`, async (route) => {
    if (asked++) return route.continue();
    await route.fulfill({
      status: 403,
      contentType: "application/json",
      body: `{"error":{"message":"sign in again to do this","type":"permission_error","code":"reauth_required"}}`,
    });
  });
  await page.getByRole("button", { name: "Delete Old" }).click();
  await page.getByLabel("Type the machine’s name to confirm").fill("Old");
  await page.getByRole("button", { name: "Delete machine" }).click();
  const again = page.getByRole("dialog", { name: "Sign in again" });
  await again.getByLabel("Token or key").fill(secrets.ADMIN_TOKEN);
  await again.getByRole("button", { name: "Sign in" }).click();
  await page.getByText("Machine deleted.").waitFor();
  assert.equal(asked, 2);

  await page.context().clearCookies();
  await page.getByRole("button", { name: "Create machine" }).click();
  await page.getByLabel("Name", { exact: true }).fill("Late");
  await page.getByRole("button", { name: "Create", exact: true }).click();
  await page.getByText("Your session has ended. Sign in again.").waitFor();
  await signIn(page, secrets.ADMIN_TOKEN);
  await heading(page, "Machines").waitFor();
});

test("sign-in attempts are limited, and the page says for how long", async (t) => {
  const page = await open(t, b, { as: null, failures: ["POST /api/session 401", "POST /api/session 429"] });
  const field = page.getByLabel("Token or key"),
    button = page.getByRole("button", { name: "Sign in" });
  for (let i = 0; i < 11; i++) {
    await field.fill(`guess number ${i}`);
    const [answer] = await Promise.all([page.waitForResponse("**/api/session"), button.click()]);
    assert.equal(answer.status(), i < 10 ? 401 : 429);
  }
  await page.getByText(/Try again in \d+ min\./).waitFor();
  await looks(page, "signin-limited");
});
