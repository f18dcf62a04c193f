// The sign-in by an identity provider, from the page to the session and back.
import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import { start as startIssuer } from "../upstream/issuer.mjs";
import { bench, looks, open } from "./browser.mjs";

let b, issuer;
before(async () => {
  issuer = await startIssuer();
  b = await bench();
  await b.operator.call("POST", "/api/identity-providers", {
    name: "Acme <b>",
    issuer: issuer.url,
    clientId: "weir",
    rules: [{ claim: ["groups"], value: "ai", role: "owner", machines: ["*"] }],
  });
});
after(async () => {
  await b?.close();
  await issuer?.close();
});
beforeEach(() => {
  issuer.user = { sub: "ada", name: "Ada", groups: ["ai"] };
  issuer.change = null;
});

const button = (page) => page.getByRole("button", { name: "Sign in with Acme <b>" });
// visit opens the sign-in page without a session.
const visit = (t, options = {}) => open(t, b, { as: null, elsewhere: issuer.url, ...options });
const session = (page) => page.evaluate(async () => (await fetch("/api/session")).json());

test("the page offers the providers beside the token, in both themes", async (t) => {
  const page = await visit(t);
  await button(page).waitFor();
  await page.getByLabel("Token or key").waitFor();
  await looks(page, "sign-in");
});

test("a person signs in and comes back to the page that was asked for", async (t) => {
  const { machineId } = await b.operator.machine({ name: "Test" });
  const at = `#/m/${machineId}/providers`;
  const page = await visit(t, { at, failures: ["GET /api/machines 403", "GET /api/version 403"] });
  await button(page).click();
  await page.waitForURL(`${b.url}/${at}`);
  await page.getByRole("button", { name: "Sign out", exact: true }).waitFor();
  const { signedIn, operator, personName } = await session(page);
  assert.deepEqual({ signedIn, operator, personName }, { signedIn: true, operator: false, personName: "Ada" });
});

test("a refused sign-in says why in plain words, and leads back", async (t) => {
  const page = await visit(t, { failures: ["GET /oidc/callback 403"] });
  issuer.user = { sub: "eve" };
  await button(page).click();
  await page.getByRole("heading", { name: "Not signed in" }).waitFor();
  await page.getByText("access", { exact: false }).first().waitFor();
  await page.getByRole("link", { name: "Back to weir" }).click();
  issuer.change = (claims) => (claims.nonce = "of another sign-in");
  await button(page).click();
  await page.getByText("The token of the identity provider is not one that this gateway can trust.").waitFor();
  await page.goto(`${b.url}/`);
  assert.equal((await session(page)).signedIn, false);
});
