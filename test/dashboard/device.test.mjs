// The page on which the sign-in of a command line is approved.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { bench, open } from "./browser.mjs";

let b;
before(async () => {
  b = await bench();
});
after(() => b?.close());

test("a sign-in is shown, compared and approved", async (t) => {
  const { machineId } = await b.operator.machine({ name: "Test" });
  const post = async (path, body) =>
    (
      await b.gateway.fetch(path, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify(body),
      })
    ).json();
  const d = await post("/api/device", { name: "laptop <b>" });
  const page = await open(t, b, { at: `#/device?code=${d.user_code}` });
  const choice = page.getByLabel("Machine of the key");
  if (await choice.isVisible().catch(() => false)) await choice.selectOption(machineId);
  await page.getByRole("button", { name: "Continue" }).click();
  await page.getByText("laptop <b>").waitFor();
  await page.getByText(d.user_code, { exact: true }).waitFor();
  await page.getByRole("button", { name: "Approve" }).click();
  await page.getByText("Approved. Return to the terminal.").waitFor();
  const key = await post("/api/device/token", { device_code: d.device_code });
  assert.equal(key.machineId, machineId);
});
