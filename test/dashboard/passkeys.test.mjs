// Passkeys, with an authenticator that Chromium plays: the operator turns them on, someone accepts an
// invitation by one and signs in again.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { secrets } from "../e2e/gateway.mjs";
import { answered, bench, looks, open, settled, signIn } from "./browser.mjs";

let b, named;
before(async () => {
  b = await bench();
  named = { ...b, url: b.url.replace("127.0.0.1", "localhost") }; // passkeys belong to a name
});
after(() => b?.close());

// device adds an authenticator to a page, and returns how it is asked and removed.
async function device(page, transport = "internal") {
  const cdp = await page.context().newCDPSession(page);
  await cdp.send("WebAuthn.enable");
  const options = {
    protocol: "ctap2",
    transport,
    hasResidentKey: true,
    hasUserVerification: true,
    isUserVerified: true,
  };
  const { authenticatorId } = await cdp.send("WebAuthn.addVirtualAuthenticator", { options });
  const asks = (method, more) => cdp.send(`WebAuthn.${method}`, { authenticatorId, ...more });
  return { asks, credentials: async () => (await asks("getCredentials")).credentials };
}

const invited = async (machineId, body) =>
  (await b.operator.call("POST", `/${machineId}/api/invitations`, body)).link.split("/#/")[1];

// visit opens the dashboard by its name.
const visit = (t, at, failures = []) => open(t, named, { as: null, at, failures });

const turnedOn = async (t) => {
  const page = await visit(t, "#/identity-providers");
  await signIn(page, secrets.ADMIN_TOKEN);
  await page.getByRole("heading", { name: "Sign-in", exact: true }).waitFor();
  const button = page.getByRole("button", { name: "Turn on passkeys" });
  await page.getByRole("button", { name: "Add identity provider" }).waitFor();
  await settled(page);
  if (await button.count()) await answered(page, "POST", () => button.click());
  await page.getByRole("row", { name: /Passkeys/ }).waitFor();
  return page;
};

test("passkeys are refused in words where they cannot work", async (t) => {
  const page = await open(t, b, { at: "#/identity-providers", failures: ["POST /api/identity-providers 400"] });
  await page.getByRole("button", { name: "Turn on passkeys" }).click();
  await page.getByText("Passkeys work at https://NAME and at http://localhost, not at http://127.0.0.1").waitFor();
});

test("someone accepts an invitation by a passkey, and signs in with it", async (t) => {
  const operator = await turnedOn(t);
  await looks(operator, "passkeys-on");
  await operator.getByRole("button", { name: "Test Passkeys" }).click();
  await operator.getByText("people can use them at this address").waitFor();
  const { machineId } = await b.operator.machine({ name: "Team" });
  const page = await visit(t, `#/${await invited(machineId, { role: "member" })}`, ["POST /api/session/passkey 403"]);
  const { asks, credentials } = await device(page);
  const create = page.getByRole("button", { name: "Create a passkey" });
  assert.equal(await create.isDisabled(), true, "a name is needed");
  await page.getByLabel("Your name").fill("Ada");
  await looks(page, "passkeys-invitation");
  await asks("setAutomaticPresenceSimulation", { enabled: true });
  await create.click();
  await page.getByRole("heading", { name: "Connect a tool" }).waitFor();
  await page.getByText("Signed in as Ada (member)").waitFor();
  const [made] = await credentials();
  assert.deepEqual([made.rpId, made.isResidentCredential], ["localhost", true]);
  const { data } = await b.operator.call("GET", `/${machineId}/api/people`);
  assert.equal(Buffer.from(made.userHandle, "base64").toString(), data[0].id);

  const out = async () => {
    await settled(page);
    await page.getByRole("button", { name: "Sign out", exact: true }).click();
    await page.getByText("You have been signed out.").waitFor();
  };
  const by = page.getByRole("button", { name: "Sign in with a passkey" });
  await out();
  await looks(page, "passkeys-signin");
  await by.click();
  await page.getByText("Signed in as Ada (member)").waitFor();

  await out();
  await asks("setUserVerified", { isUserVerified: false });
  await by.click();
  await page.getByText("No passkey was used").waitFor();
  await asks("setUserVerified", { isUserVerified: true });
  await b.operator.call("DELETE", `/${machineId}/api/people/${data[0].id}`);
  await by.click();
  await page.getByText("The sign-in was refused (passkey_unknown).").waitFor();
});

test("a person adds, renames and deletes passkeys", async (t) => {
  await turnedOn(t);
  const { machineId } = await b.operator.machine();
  const page = await visit(t, `#/${await invited(machineId, { role: "member" })}`, ["DELETE /api/passkeys/* 409"]);
  const first = await device(page);
  await page.getByLabel("Your name").fill("Cyd");
  await page.getByRole("button", { name: "Create a passkey" }).click();
  await page.getByText("Signed in as Cyd (member)").waitFor();
  await settled(page);
  await page.getByRole("link", { name: "Passkeys" }).click();
  await page.getByRole("row", { name: /Not yet/ }).waitFor();
  await page.locator('.who [aria-current="page"]').getByText("Passkeys").waitFor();
  // Regression: the texts below the user's name did not begin in one column.
  const column = await page
    .locator(".who .row > *")
    .evaluateAll((all) => all.map((e) => getComputedStyle(e).gridColumnStart + e.getBoundingClientRect().left));
  assert.equal(new Set(column).size, 1, column.join());
  await page.getByRole("button", { name: "Add passkey" }).click();
  await page.getByText("You already have a passkey on this device.").waitFor();

  const second = await device(page, "usb");
  await answered(page, "POST", () => page.getByRole("button", { name: "Add passkey" }).click());
  await page.getByText("Passkey added.").waitFor();
  assert.deepEqual([(await first.credentials()).length, (await second.credentials()).length], [1, 1]);
  await page.getByRole("button", { name: "Rename Passkey" }).nth(1).click();
  await page.getByRole("dialog").getByLabel("Name").fill("Blue key");
  await answered(page, "PUT", () => page.getByRole("dialog").getByRole("button", { name: "Rename" }).click());
  await page.getByRole("row", { name: /Blue key/ }).waitFor();
  await looks(page, "passkeys");

  const remove = async (name) => {
    await page.getByRole("button", { name: `Delete ${name}` }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Delete passkey" }).click();
  };
  await remove("Blue key");
  await page.getByRole("row", { name: /Blue key/ }).waitFor({ state: "detached" });
  await remove("Passkey");
  await page.getByText("This is the only passkey that you sign in with.").waitFor();
});

test("an invitation to another machine is accepted by a passkey that one has", async (t) => {
  await turnedOn(t);
  const [{ machineId }, { machineId: other }] = [await b.operator.machine(), await b.operator.machine()];
  const page = await visit(t, `#/${await invited(machineId, { role: "viewer" })}`);
  await device(page);
  await page.getByLabel("Your name").fill("Bob");
  await page.getByRole("button", { name: "Create a passkey" }).click();
  await page.getByText("Signed in as Bob (viewer)").waitFor();
  await page.goto(`${named.url}/#/${await invited(other, { role: "editor" })}`);
  await page.getByRole("button", { name: "Accept with an existing passkey" }).click();
  await page.getByText("Signed in as Bob").waitFor();
  const { data } = await b.operator.call("GET", `/${other}/api/people`);
  assert.deepEqual([data[0].name, data[0].role], ["Bob", "editor"]);
});
