// A browser whose clock is wrong by days: what is compared with times of the gateway, or sent to
// it, follows the gateway's clock.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { bench, becomes, holds, open, settled } from "./browser.mjs";
import { used } from "./used.mjs";

let b;
before(async () => {
  b = await bench();
});
after(() => b?.close());

// Regression: a key of an hour was refused, or lived for 73.
for (const days of [-3, 3])
  test(`a clock that is ${days} days off changes no end of a key and no period`, async (t) => {
    const { machineId, api } = await used(b);
    const page = await open(t, b, { at: `#/m/${machineId}/overview` });
    await page.addInitScript((ms) => {
      const Real = Date;
      globalThis.Date = class extends Real {
        constructor(...args) {
          super(...(args.length ? args : [Real.now() + ms]));
        }
        static now() {
          return Real.now() + ms;
        }
      };
    }, days * 86_400_000);
    // workerd alone sends no date; Cloudflare does.
    if (process.env.PLATFORM === "workerd")
      await page.route("**/api/**", async (route) => {
        const response = await route.fetch();
        await route.fulfill({ response, headers: { ...response.headers(), date: new Date().toUTCString() } });
      });
    const show = async (path) => {
      await page.goto(`${b.url}/#/m/${machineId}/${path}`);
      await page.reload();
      await settled(page);
    };
    await show("keys/new");
    const dialog = page.getByRole("dialog", { name: "New key" });
    await dialog.getByLabel("Name", { exact: true }).fill("hour");
    await dialog.getByLabel("Expires").selectOption({ label: "In 1 hour" });
    await dialog.getByRole("button", { name: "Create key" }).click();
    await page.getByRole("dialog", { name: "Key created" }).waitFor();
    const { data } = await api("/keys");
    const lived = (k) => Math.round((k.expiresAt - k.createdAt) / 60_000);
    assert.equal(lived(data.find((k) => k.name === "hour")), 60);
    await page.getByRole("button", { name: "Done" }).click();
    await page.getByRole("row", { name: /hour/ }).waitFor();
    assert.equal(await page.getByText("Expired", { exact: true }).count(), 0);

    await show("settings/audit?days=1");
    await page.getByRole("region", { name: "Changes" }).getByText("Created API key").waitFor();
    await show("usage?range=24h");
    await page.getByRole("region", { name: "Usage" }).or(page.locator(".tilerow")).first().waitFor();
    assert.equal(await page.getByText("No usage in this period").count(), 0);
    await show("requests?range=15m");
    await holds(page, () => document.querySelectorAll("tbody tr").length >= 6);

    await show("playground");
    await page.getByLabel("Model", { exact: true }).fill("up/test-chat");
    await page.getByLabel("Message").fill("hello");
    await page.getByRole("button", { name: "Send", exact: true }).click();
    await becomes(async () => {
      const own = (await api("/keys")).data.find((k) => k.name === "Dashboard playground");
      return own && lived(own);
    }, 60);
  });
