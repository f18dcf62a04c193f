// The operator's page of the identity providers.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { presets } from "../../worker/dashboard/src/identity/presets.ts";
import { start as startIssuer } from "../upstream/issuer.mjs";
import { answered, bench, canary, looks, open } from "./browser.mjs";

let b, issuer;
before(async () => {
  issuer = await startIssuer();
  b = await bench();
});
after(async () => {
  await b?.close();
  await issuer?.close();
});

const api = (method, path = "", body) => b.operator.call(method, `/api/identity-providers${path}`, body);

test("the operator adds, tests, changes and removes a provider", async (t) => {
  const { machineId } = await b.operator.machine({ name: "Team" });
  const path = "POST /api/identity-providers 400";
  const page = await open(t, b, { at: "#/identity-providers", failures: [path] });
  await page.getByText("No identity providers yet").waitFor();
  await looks(page, "identity-empty");
  await page.getByRole("button", { name: "Add identity provider" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Provider").selectOption("keycloak");
  assert.equal(await dialog.getByRole("region", { name: "Redirect URI" }).innerText(), `${b.url}/oidc/callback`);
  assert.equal(await dialog.getByLabel("Claim", { exact: true }).inputValue(), "realm_access > roles");
  await dialog.getByLabel("Name", { exact: true }).fill(`Acme ${canary}`.slice(0, 60));
  await dialog.getByLabel("Issuer", { exact: true }).fill(`${issuer.url}/wrong`);
  await dialog.getByLabel("Client ID", { exact: true }).fill("weir");
  await dialog.getByLabel("Client secret", { exact: true }).fill("s3cret-of-weir");
  await dialog.getByLabel("Value", { exact: true }).fill("ai");
  await dialog.getByLabel("Role").selectOption("editor");
  await dialog.getByLabel("Machine").selectOption(machineId);
  await looks(page, "identity-form");
  await dialog.getByRole("button", { name: "Save" }).click();
  await dialog.getByText("The issuer cannot be used (issuer_status).").waitFor();
  await dialog.getByLabel("Issuer", { exact: true }).fill(issuer.url);
  await answered(page, "POST", () => dialog.getByRole("button", { name: "Save" }).click());
  await dialog.waitFor({ state: "detached" });
  const [row] = (await api("GET")).data;
  assert.deepEqual(row.rules, [
    { claim: ["realm_access", "roles"], value: "ai", role: "editor", machines: [machineId] },
  ]);
  assert.equal(row.hasSecret, true);
  await answered(page, "POST", () => page.getByRole("button", { name: /^Test Acme/ }).click());
  await page.getByText("its addresses and keys can be used").waitFor();
  await page.getByText("identity-provider.create").or(page.getByText("operator").first()).first().waitFor();
  await looks(page, "identity");

  await page.getByRole("button", { name: /^Edit Acme/ }).click();
  await dialog.getByRole("button", { name: "Add rule" }).click();
  await dialog.getByLabel("Value", { exact: true }).nth(1).fill("admins");
  await dialog.getByLabel("Role").nth(1).selectOption("owner");
  await dialog.getByLabel("Name", { exact: true }).fill("Acme");
  await answered(page, "PUT", () => dialog.getByRole("button", { name: "Save" }).click());
  await dialog.waitFor({ state: "detached" });
  const [changed] = (await api("GET")).data;
  assert.equal(changed.hasSecret, true, "the secret stays");
  assert.equal(changed.rules.length, 2);

  issuer.answers["/keys"] = (res) => res.writeHead(500).end();
  await answered(page, "POST", () => page.getByRole("button", { name: "Test Acme" }).click());
  await page.getByText("The identity provider answered with an error.").waitFor();
  delete issuer.answers["/keys"];

  await page.getByRole("button", { name: "End all sessions" }).click();
  await answered(page, "DELETE", () => dialog.getByRole("button", { name: "End all sessions" }).click());
  await page.getByRole("button", { name: "Remove Acme" }).click();
  await answered(page, "DELETE", () => dialog.getByRole("button", { name: "Remove provider" }).click());
  await page.getByText("No identity providers yet").waitFor();
  assert.deepEqual((await api("GET")).data, []);
});

test("every preset has a form that the API admits", async () => {
  for (const p of presets) {
    for (const name of ["id", "title", "issuer", "claim", "value", "note"]) assert.ok(p[name], `${p.id}: ${name}`);
    if (p.kind === "ci") assert.match(p.client, /Audience/);
  }
  assert.equal(new Set(presets.map((p) => p.id)).size, presets.length);
});
