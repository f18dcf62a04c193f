// Accounts that are connected by a sign-in at the provider.
import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import { start as startIdp } from "../upstream/idp.mjs";
import { accessible, bench, canary, looks, open, settled, shot } from "./browser.mjs";

let b, idp;
before(async () => {
  idp = await startIdp();
  b = await bench({
    env: {
      OAUTH_PROVIDERS: JSON.stringify([
        {
          id: "mistral",
          name: "Mistral AI",
          clientId: idp.clientId,
          clientSecret: idp.clientSecret,
          authorizeUrl: `${idp.url}/authorize`,
          tokenUrl: `${idp.url}/token`,
          deviceUrl: `${idp.url}/device`,
          scopes: ["models"],
        },
      ]),
    },
  });
  b.upstream.script = (req) =>
    req.host !== "api.mistral.ai" || idp.accepts(req.headers.authorization) ? null : "status=401";
});
after(async () => {
  await b?.close();
  await idp?.close();
});
beforeEach(() => Object.assign(idp, { calls: [], deviceCalls: [], faults: [] }));

// gallery opens the dialog that adds a provider.
async function gallery(t, failures = []) {
  const { machineId } = await b.operator.machine({ name: "Test" });
  const page = await open(t, b, { at: `#/m/${machineId}/providers/add`, failures });
  await settled(page);
  await page.getByRole("searchbox", { name: "Search providers" }).fill("mistral");
  await page.getByRole("button", { name: "Add Mistral AI" }).click();
  const list = async () => (await b.operator.call("GET", `/${machineId}/api/providers`)).data;
  return { machineId, page, dialog: page.getByRole("dialog"), list };
}

// visit replaces the provider's pages: they redirect back at once, with the query
// that answer returns.
async function visit(page, answer = (url) => idp.approve(url)) {
  await page.context().route(`${idp.url}/**`, (route) => {
    const url = route.request().url();
    return route.fulfill({
      status: 302,
      headers: { location: `${new URL(url).searchParams.get("redirect_uri")}?${answer(url)}` },
    });
  });
}

test("after a sign-in in another tab the page continues", async (t) => {
  const { page, dialog, list } = await gallery(t);
  await visit(page);
  await looks(page, "oauth-add");
  await dialog.getByLabel("Name").fill("Mine");
  await dialog.getByRole("button", { name: "Continue" }).click();
  const link = dialog.getByRole("link", { name: "Sign in with Mistral AI" });
  await link.waitFor();
  await looks(page, "oauth-authorize");
  const [tab] = await Promise.all([page.context().waitForEvent("page"), link.click()]);
  await tab.getByText("The account at Mistral AI is connected.").waitFor();
  await tab.close();
  await page.getByRole("dialog", { name: "Mine is connected" }).getByText("Works", { exact: true }).waitFor();
  const [c] = await list();
  assert.deepEqual([c.name, c.authType, c.status], ["Mine", "oauth", "active"]);
});

test("an account is connected with a device code while the page waits", async (t) => {
  const { page, dialog, list } = await gallery(t);
  await dialog.getByRole("radio", { name: "Use a device code" }).check();
  await dialog.getByRole("button", { name: "Continue" }).click();
  const code = dialog.locator(".usercode");
  await code.waitFor();
  const shown = await code.innerText();
  assert.ok((await code.evaluate((e) => parseFloat(getComputedStyle(e).fontSize))) >= 28, "the code is large");
  assert.match(await dialog.getByRole("link", { name: /^https:/ }).getAttribute("href"), /^https:/);
  await dialog.getByRole("progressbar", { name: "Time left" }).waitFor();
  await dialog.getByRole("button", { name: "Copy code" }).click();
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), shown);
  await looks(page, "oauth-device");
  idp.decide(shown, "allow");
  await page.getByRole("dialog", { name: "Mistral AI is connected" }).getByText("Works", { exact: true }).waitFor();
  assert.equal((await list()).length, 1);
});

test("a refused sign-in shows the reason and can be started again", async (t) => {
  const { page, dialog, list } = await gallery(t, ["POST /* 400"]);
  await dialog.getByRole("radio", { name: "Use a device code" }).check();
  await dialog.getByRole("button", { name: "Continue" }).click();
  const code = dialog.locator(".usercode");
  await code.waitFor();
  idp.decide(await code.innerText(), "deny");
  await dialog.getByRole("alert").waitFor();
  await looks(page, "oauth-refused");
  await dialog.getByRole("button", { name: "Start again" }).click();
  await code.waitFor();
  await dialog.getByRole("button", { name: "Cancel" }).click();
  await dialog.getByRole("button", { name: "Continue" }).waitFor();
  assert.deepEqual(await list(), []);
});

test("an account whose sign-in has ended is signed in again", async (t) => {
  const { page, dialog, list, machineId } = await gallery(t);
  await visit(page);
  await dialog.getByRole("button", { name: "Continue" }).click();
  let [tab] = await Promise.all([
    page.context().waitForEvent("page"),
    dialog.getByRole("link", { name: "Sign in with Mistral AI" }).click(),
  ]);
  await tab.getByText("is connected.").waitFor();
  await page.getByRole("dialog", { name: "Mistral AI is connected" }).getByText("Works", { exact: true }).waitFor();
  const [c] = await list();
  idp.expire();
  idp.faults.push({ status: 400, json: { error: "invalid_grant", error_description: canary } });
  await b.operator.call("POST", `/${machineId}/api/providers/${c.id}/test`, {});
  assert.equal((await list())[0].status, "needs_reauth");

  await page.getByRole("link", { name: "All providers" }).click();
  await page.locator(".badge").getByText("Sign in again", { exact: true }).waitFor();
  await page.getByRole("link", { name: "Sign in again" }).click();
  await page.getByText("Sign in again to use this account.").waitFor();
  await page.getByText("The provider no longer accepts the sign-in (invalid_grant).").waitFor();
  await settled(page);
  await accessible(page, "connection-reauth");
  await shot(page, "connection-reauth");
  await page.getByRole("button", { name: "Sign in with Mistral AI again" }).click();
  [tab] = await Promise.all([
    page.context().waitForEvent("page"),
    page.getByRole("link", { name: "Sign in with Mistral AI" }).click(),
  ]);
  await tab.getByText("is connected again.").waitFor();
  await page.getByText("Account connected again.").waitFor();
  assert.deepEqual(
    (await list()).map((x) => [x.id, x.status]),
    [[c.id, "active"]],
  );
});
