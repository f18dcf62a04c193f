// People: an owner invites someone, who accepts in another browser, connects a tool, calls a
// model, and is removed. Roles see different pages.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { compatible } from "../e2e/gateway.mjs";
import { start as startIssuer } from "../upstream/issuer.mjs";
import { answered, bench, looks, open, settled } from "./browser.mjs";

let b;
before(async () => {
  b = await bench();
});
after(() => b?.close());

async function machine() {
  const { machineId } = await b.operator.machine({ name: "Team" });
  await b.operator.connect(machineId, compatible(b.upstream));
  const api = (method, path, body) => b.operator.call(method, `/${machineId}/api${path}`, body);
  return { machineId, api, invited: async (body) => (await api("POST", "/invitations", body)).link.split("/#/")[1] };
}

const pages = (page) => page.getByRole("navigation", { name: "Pages" }).getByRole("link").allInnerTexts();

// accepts opens the link of an invitation in a browser of its own.
async function accepts(t, link, name, options = {}) {
  const page = await open(t, b, { as: null, at: `#/${link}`, ...options });
  await page.getByLabel("Your name").fill(name);
  await page.getByRole("button", { name: "Accept invitation" }).click();
  await page.getByRole("heading", { name: `Welcome, ${name}` }).waitFor();
  const token = await page.getByRole("region", { name: "Personal sign-in token" }).innerText();
  assert.match(token, /^wp_[\w-]{43}$/);
  await page.getByRole("button", { name: "Continue" }).click();
  const asked = page.getByRole("alert").filter({ hasText: "Have you copied the token?" });
  await asked.getByRole("button", { name: "Back" }).click();
  await page.getByRole("button", { name: "Copy" }).click();
  return { page, token };
}

test("an invited member connects a tool, calls a model and is removed", async (t) => {
  const { machineId, api } = await machine();
  const owner = await open(t, b, { at: `#/m/${machineId}/people` });
  await looks(owner, "people-empty");
  await owner.getByRole("button", { name: "Invite" }).click();
  await owner.getByLabel("For").fill("Ada <ada@example.com>");
  await owner.getByLabel("Budget (US dollars)").fill("5");
  await owner.getByText("Limits of the keys").click();
  await owner.getByLabel("Number of keys").fill("2");
  await looks(owner, "people-invite");
  await answered(owner, "POST", () => owner.getByRole("button", { name: "Create link" }).click());
  const link = (await owner.getByRole("region", { name: "Link" }).innerText()).split("/#/")[1];
  await owner.getByText(`${b.url} is this computer only.`).waitFor();
  await owner.getByRole("button", { name: "Done" }).click();
  await owner.getByRole("row", { name: "Ada <ada@example.com> Member" }).waitFor();

  const invited = await open(t, b, { as: null, at: `#/${link}` });
  await invited.getByText("Your budget: $5.00 per month.").waitFor();
  await looks(invited, "people-invitation-budget");
  const { page } = await accepts(t, link, "Ada", {
    failures: ["POST /api/session 401", `GET /${machineId}/api/* 401`, "GET /api/machines 401"],
  });
  assert.equal(new URL(page.url()).hash, "", "the link is not in the address");
  await looks(page, "people-welcome");
  await page.getByRole("button", { name: "Continue" }).click();
  await page.getByRole("heading", { name: "Connect a tool" }).waitFor();
  assert.deepEqual(await pages(page), ["Requests", "Usage", "Keys", "Connect a tool", "Machines", "Docs"]);
  await page.getByText("Signed in as Ada (member)").waitFor();
  await settled(page);

  await page.getByRole("link", { name: "Keys", exact: true }).click();
  await page.getByText("Your budget: $0.00 of $5.00").waitFor(); // before there is a key
  await page.getByRole("button", { name: "New key" }).click();
  assert.equal(await page.getByLabel("Requests per minute").count(), 0, "a member sets no limits");
  await page.getByLabel("Name").fill("laptop");
  await answered(page, "POST", () => page.getByRole("button", { name: "Create key" }).click());
  const key = await page.getByRole("region", { name: "API key" }).innerText();
  await page.getByRole("button", { name: "Done" }).click();
  await page.getByRole("row", { name: /laptop/ }).waitFor();
  await page.getByText("Your budget:").getByText("$5.00").waitFor();
  await looks(page, "people-member-keys");
  const call = () =>
    b.gateway.fetch("/v1/embeddings", {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify({ model: "up/m", input: "a" }),
    });
  const res = await call();
  assert.equal(res.status, 200, await res.text());
  for (const name of ["Usage", "Requests"]) {
    await page.getByRole("link", { name, exact: true }).click();
    await page.getByRole("heading", { level: 1, name, exact: true }).waitFor();
    await settled(page);
    assert.equal(await page.getByRole("alert").count(), 0, name);
  }
  // Members do not see the names of accounts.
  await page.getByRole("cell", { name: "OpenAI-compatible", exact: true }).waitFor();

  await owner.getByRole("link", { name: "Keys", exact: true }).click();
  await owner.getByRole("row", { name: /laptop Ada/ }).waitFor();
  await owner.getByRole("link", { name: "People", exact: true }).click();
  await owner.getByRole("row", { name: /Ada Member.* 1 .*\$0\.00 of \$5\.00/ }).waitFor();
  await looks(owner, "people");
  await owner.getByRole("link", { name: "Budgets", exact: true }).click();
  await owner.getByRole("row", { name: /Budget of Ada .* Ada / }).waitFor();
  await owner.getByRole("link", { name: "People", exact: true }).click();
  await owner.getByRole("button", { name: "Remove Ada" }).click();
  await owner.getByText("1 key is paused: laptop").waitFor();
  await answered(owner, "DELETE", () => owner.getByRole("button", { name: "Remove person" }).click());
  await owner.getByText("No people yet").waitFor();
  assert.equal((await api("GET", "/keys")).data.find((k) => k.name === "laptop").pausedAt > 0, true);
  // The page of requests, which refreshes itself, notices it.
  await page.getByText("Your session has ended. Sign in again.").waitFor();

  const again = await open(t, b, { as: null, at: `#/${link}`, failures: ["POST /api/session 401"] });
  await again.getByRole("heading", { name: "This link no longer works" }).waitFor();
  await again.getByText("This invitation was used, has expired or was withdrawn.").waitFor();
  assert.equal(await again.getByLabel("Your name").count(), 0, "nothing is asked for");
  await looks(again, "people-used-link");
});

test("a viewer sees the pages without what changes them, and an owner the people", async (t) => {
  const { machineId, invited } = await machine();
  const { page, token } = await accepts(t, await invited({ role: "viewer" }), "Vera");
  await page.getByRole("button", { name: "Continue" }).click();
  await page.getByRole("heading", { name: "Overview" }).waitFor();
  const seen = await pages(page);
  for (const name of ["Playground", "People"]) assert.ok(!seen.includes(name), name);
  for (const name of seen.filter((n) => n !== "Machines" && n !== "Docs")) {
    await page.getByRole("navigation").getByRole("link", { name, exact: true }).click();
    await page.getByRole("heading", { level: 1, name, exact: true }).waitFor();
    await settled(page);
    assert.equal(await page.getByRole("alert").count(), 0, name);
    if (name !== "Explain") assert.equal(await page.locator("main button.main:visible").count(), 0, name);
  }
  await page.goto(`${b.url}/#/m/${machineId}/people`);
  await page.getByText("This page needs a higher role. Ask an owner of this machine.").waitFor();
  await page.getByRole("button", { name: "Sign out", exact: true }).click();
  await page.getByText("You have been signed out.").waitFor();
  await page.getByLabel("Token or key").fill(token);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByText("Signed in as Vera (viewer)").waitFor();

  const { page: owner } = await accepts(t, await invited({ role: "owner" }), "Olga");
  await owner.getByRole("button", { name: "Continue" }).click();
  await owner.getByRole("link", { name: "People", exact: true }).click();
  await owner.getByRole("button", { name: "Change Vera" }).click();
  await owner.getByLabel("Role").selectOption("editor");
  await answered(owner, "PUT", () => owner.getByRole("button", { name: "Save" }).click());
  await owner.getByRole("row", { name: /Vera Editor/ }).waitFor();
  await answered(owner, "POST", () => owner.getByRole("button", { name: "New link for Vera" }).click());
  const link = (await owner.getByRole("region", { name: "Link" }).innerText()).split("/#/")[1];
  const renewed = await open(t, b, { as: null, at: `#/${link}` });
  await renewed.getByText("This link signs you in to the machine “Team”.").waitFor();
  assert.equal(await renewed.getByLabel("Your name").count(), 0);
  await renewed.getByRole("button", { name: "Sign in" }).click();
  await renewed.getByRole("heading", { name: "Welcome, Vera" }).waitFor();

  await owner.getByRole("button", { name: "Done" }).click();
  await owner.getByRole("button", { name: "Invite" }).click();
  await owner.getByLabel("Role").selectOption("editor");
  await answered(owner, "POST", () => owner.getByRole("button", { name: "Create link" }).click());
  const sent = (await owner.getByRole("region", { name: "Link" }).innerText()).split("/#/")[1];
  const invitee = await open(t, b, { as: null, at: `#/${sent}` });
  await invitee.getByRole("heading", { name: "Olga invites you to the machine “Team” as an editor" }).waitFor();
  await invitee.getByText("You can change everything except people").waitFor();
  await invitee.getByText("The link works once, until").waitFor();
  await looks(invitee, "people-invitation");
});

test("an invitation is accepted with a provider, and an owner ends the sessions", async (t) => {
  const issuer = await startIssuer();
  t.after(() => issuer.close());
  await b.operator.call("POST", "/api/identity-providers", {
    name: "Acme <b>",
    issuer: issuer.url,
    clientId: "weir",
    rules: [{ claim: ["groups"], value: "ai", role: "owner", machines: ["*"] }],
  });
  const { machineId, api, invited } = await machine();
  const link = await invited({ role: "member" });
  issuer.user = { sub: "nora", name: "Nora", groups: [] };
  const page = await open(t, b, {
    as: null,
    at: `#/${link}`,
    elsewhere: issuer.url,
    failures: [`GET /${machineId}/api/* 401`, "GET /api/machines 401", "GET /api/version 403"],
  });
  const accept = page.getByRole("button", { name: "Accept with Acme <b>" });
  await accept.waitFor();
  await page
    .getByRole("heading", { name: "The operator of this gateway invites you to the machine “Team” as a member" })
    .waitFor();
  await looks(page, "people-invitation-provider");
  const strict = await open(t, b, { as: null, at: `#/${await invited({ role: "member", signIn: "provider" })}` });
  await strict.getByRole("button", { name: "Accept with Acme <b>" }).waitFor();
  assert.equal(await strict.getByLabel("Your name").count(), 0, "a name is not enough");
  await accept.click();
  await page.getByRole("heading", { name: "Connect a tool" }).waitFor();
  await page.getByText("Signed in as Nora (member)").waitFor();
  await settled(page);
  const left = (await api("GET", "/people")).invitations;
  assert.deepEqual(
    left.map((i) => i.provider),
    [true],
    "the link was used, and one was only opened",
  );

  const owner = await open(t, b, { at: `#/m/${machineId}/people` });
  const row = owner.getByRole("row", { name: /Nora Member/ });
  await row.getByText("Signed in").waitFor();
  await looks(owner, "people-sessions");
  await answered(owner, "DELETE", () => row.getByRole("button", { name: "End sessions of Nora" }).click());
  await owner.getByText("Nora is signed out everywhere.").waitFor();
  await row.getByText("Signed in").waitFor({ state: "detached" });
  assert.equal(await row.getByRole("button", { name: /End sessions/ }).count(), 0);
  await page.getByRole("link", { name: "Keys", exact: true }).click();
  await page.getByText("Your session has ended. Sign in again.").waitFor();
});
