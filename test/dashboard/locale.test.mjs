// Numbers, amounts and times as the browser's language and time zone have them.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { compatible } from "../e2e/gateway.mjs";
import { bench } from "./browser.mjs";
import { openPage } from "./used.mjs";

let b;
before(async () => {
  b = await bench();
});
after(() => b?.close());

// fake lets the page read a document instead of the gateway's.
const fake = (context, path, body) =>
  context.route(
    (url) => url.pathname.endsWith(path),
    (route) => route.fulfill({ json: body }),
  );

test("numbers, money and times are written for the viewer", async (t) => {
  const { machineId } = await b.operator.machine({ name: "Test" });
  await b.operator.connect(machineId, compatible(b.upstream));
  const at = (year) => Date.UTC(year, 10, 20, 12, 30);
  const key = {
    id: "k1",
    name: "Ann",
    scopes: ["data"],
    requestsLastDay: 1_234_567,
    spentUsd: 1234.5,
    spentMonthUsd: 1234.5,
    refused: 0,
  };
  for (const [locale, timezoneId, want] of [
    ["en-US", "UTC", ["1,234,567", "$1,234.50", "Nov 20, 2020, 12:30", "Nov 20, 12:30"]],
    ["de-DE", "Asia/Tokyo", ["1.234.567", "1.234,50\u00a0$", "20. Nov. 2020, 21:30", "20. Nov., 21:30"]],
    ["ar-EG", "UTC", []],
  ]) {
    const p = await openPage(t, b, machineId, "Providers", { locale, timezoneId });
    await fake(p, "/api/keys", {
      data: [{ ...key, lastUsedAt: at(2020), expiresAt: at(new Date().getUTCFullYear()) }],
    });
    await p.goto(`${b.url}/#/m/${machineId}/keys`);
    const row = p.getByRole("row").filter({ hasText: "Ann" });
    await row.waitFor();
    const text = await row.innerText();
    if (locale === "ar-EG") assert.match(text, /1.234.567/, "Latin digits");
    else for (const part of want) assert.ok(text.includes(part), `${locale}: ${part} in ${text}`);
  }
});
