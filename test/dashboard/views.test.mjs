// Saved views of Requests and Usage: filters, period and columns under a name, kept in the browser.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { bench, looks, settled } from "./browser.mjs";
import { openPage, used } from "./used.mjs";

let b, machineId;
before(async () => {
  b = await bench();
  ({ machineId } = await used(b));
});
after(() => b?.close());

// menu opens the views of the page that is shown.
async function menu(p) {
  await p
    .locator(".pop > summary")
    .filter({ hasNotText: /^(Filters|Columns|Export)/ })
    .first()
    .click();
  const field = p.getByRole("textbox", { name: "Save this view as" });
  await field.waitFor();
  const save = async (name) => {
    await field.fill(name);
    await field.press("Enter");
  };
  return {
    save,
    view: (name) => p.getByRole("list", { name: "Saved views" }).getByRole("button", { name, exact: true }),
  };
}

const query = (p) => Object.fromEntries(new URLSearchParams(p.url().split("?")[1] ?? ""));

test("a view of requests is saved, opened, renamed and deleted, and outlives a reload", async (t) => {
  const p = await openPage(t, b, machineId, "Requests");
  await p.getByText("Filters", { exact: true }).click();
  await p.getByRole("combobox", { name: "Outcome" }).selectOption("refused");
  await p.getByRole("combobox", { name: "Period" }).selectOption("24h");
  await p.getByRole("combobox", { name: "Sort" }).selectOption("cost");
  await p.keyboard.press("Escape");
  let views = await menu(p);
  await p.getByText("Saved in this browser.").waitFor();
  await views.save("Refused today");
  await p.getByLabel("View: Refused today").click();
  await views.view("Refused today").waitFor();
  await looks(p, "views");
  await p.keyboard.press("Escape");

  await p.getByRole("button", { name: "Clear filters" }).click();
  assert.equal(await p.getByLabel("View: Refused today").count(), 0);
  await p.reload();
  await settled(p);
  views = await menu(p);
  await views.save(" Everything ");
  await p.getByLabel("View: Everything").click();
  await views.view("Refused today").click();
  await p.getByRole("row", { name: /nothing\/like-it/ }).waitFor();
  assert.deepEqual(query(p), { outcome: "refused", range: "24h", sort: "cost" });
  await p.getByLabel("View: Refused today").waitFor();

  // The name of another view replaces it.
  await p.getByLabel("View: Refused today").click();
  await p.getByRole("button", { name: "Rename Refused today" }).click();
  const field = p.getByRole("textbox", { name: "Rename Refused today" });
  assert.equal(await field.inputValue(), "Refused today");
  await field.fill("Everything");
  await field.press("Enter");
  await p.getByLabel("View: Everything").waitFor();
  const names = p.getByRole("list", { name: "Saved views" }).getByRole("listitem");
  assert.equal(await names.count(), 1);

  await p.getByRole("button", { name: "Delete Everything" }).click();
  await p.getByRole("button", { name: "Undo" }).click();
  await p.getByLabel("View: Everything").click();
  await p.getByRole("button", { name: "Delete Everything" }).click();
  await p.getByText("Views", { exact: true }).waitFor();
  assert.equal(await names.count(), 0);
});

test("a view of usage has the period and the columns, and is of its machine and page alone", async (t) => {
  const p = await openPage(t, b, machineId, "Usage");
  await p.getByText(/^Columns \(/).click();
  await p.getByRole("group", { name: "Columns" }).getByLabel("Reasoning").check();
  await p.keyboard.press("Escape");
  await p.getByRole("combobox", { name: /^Group by/ }).selectOption("model");
  await p.getByRole("radio", { name: "30 days" }).check();
  await settled(p);
  const views = await menu(p);
  await views.save("Month");
  const saved = query(p);
  assert.deepEqual([saved.range, saved.by, saved.columns.includes("Reasoning")], ["30d", "model", true]);
  await p.getByRole("combobox", { name: /^Group by/ }).selectOption("");
  await p.getByText("Views", { exact: true }).waitFor();
  await (await menu(p)).view("Month").click();
  await p.getByRole("columnheader", { name: "Reasoning" }).waitFor();
  await p.getByRole("rowheader", { name: "up/test-embed" }).first().waitFor();
  await p.goBack(); // a view is an entry of the history
  await p.getByText("Views", { exact: true }).waitFor();

  const other = await b.operator.machine({ name: "Other" });
  for (const [id, page] of [
    [machineId, "requests"],
    [other.machineId, "usage"],
  ]) {
    await p.goto(`${b.url}/#/m/${id}/${page}`);
    await settled(p);
    await menu(p);
    assert.equal(await p.getByRole("list", { name: "Saved views" }).count(), 0, `${id} ${page}`);
  }
});

test("a browser without storage says so, and wrong contents are no views", async (t) => {
  const p = await openPage(t, b, machineId, "Requests");
  await p.evaluate(() => {
    Storage.prototype.setItem = () => {
      throw new DOMException("full", "QuotaExceededError");
    };
  });
  await (await menu(p)).save("Lost");
  await p.getByText("This browser doesn’t store views.").waitFor();
  for (const [stored, want] of [
    ["{", 0],
    ["null", 0],
    [JSON.stringify([null, 1, { name: 1 }, { name: "b" }, { name: "a", query: "q=1" }]), 1],
  ]) {
    await p.reload(); // which brings setItem back
    await p.evaluate(([id, text]) => localStorage.setItem(`weir-views-${id}-requests`, text), [machineId, stored]);
    await p.reload();
    await settled(p);
    await menu(p);
    assert.equal(await p.getByRole("list", { name: "Saved views" }).getByRole("listitem").count(), want, stored);
  }
});
