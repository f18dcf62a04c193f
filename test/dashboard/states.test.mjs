// Pages while their data loads, and when loading fails.
import { after, before, test } from "node:test";
import { compatible } from "../e2e/gateway.mjs";
import { accessible, bench, canary, open, settled } from "./browser.mjs";

let b;
before(async () => {
  b = await bench();
  await b.operator.machine({ name: "Other" }); // with one machine alone the dashboard opens its overview
});
after(() => b?.close());

for (const [path, heading, data, what] of [
  ["combos", "Combos", "/api/combos", "combos"],
  ["keys", "Keys", "/api/keys", "keys"],
  ["usage", "Usage", "/api/usage", "usage"],
  ["requests", "Requests", "/api/requests", "requests"],
  ["playground", "Playground", "/api/models/list/llm", "models"],
]) {
  test(`${path}: shows that it loads, shows an error and tries again`, async (t) => {
    const { machineId } = await b.operator.machine({ name: "Test" });
    await b.operator.connect(machineId, compatible(b.upstream));
    const page = await open(t, b, { failures: ["GET /* 503"] });
    let answer = () => {};
    const held = new Promise((r) => {
      answer = r;
    });
    await page.route(
      (url) => url.pathname === `/${machineId}${data}`,
      async (route) => {
        await held;
        await route.fulfill({
          status: 503,
          contentType: "application/json",
          body: JSON.stringify({ error: { message: `not now ${canary}` } }),
        });
      },
    );
    await page.goto(`${b.url}/#/m/${machineId}/${path}`);
    await page.getByRole("heading", { level: 1, name: heading }).waitFor();
    await page.getByRole("status", { name: `Loading ${what}` }).waitFor();
    await accessible(page, `${path} while it loads`);
    answer();
    const alert = page.getByRole("alert").filter({ hasText: "Not now" }).first();
    await alert.getByText(canary).waitFor();
    await accessible(page, `${path} when it failed`);
    await page.unrouteAll({ behavior: "wait" });
    await alert.getByRole("button", { name: "Try again" }).focus();
    await page.keyboard.press("Enter");
    await page.getByRole("alert").waitFor({ state: "detached" });
    await settled(page);
  });
}
