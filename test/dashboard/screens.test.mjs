// Every page on a phone, a tablet and a desktop: nothing is wider than the
// screen, the first row of a list is near its top, rows are one line and on a phone three, of a
// failed request four, and
// axe finds nothing in both themes, whatever the names and however many rows; with a wrong clock, and while the
// gateway is away.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { pages } from "../../worker/dashboard/src/pages.ts";
import { sections } from "../../worker/dashboard/src/pages/settings/sections.ts";
import { secrets } from "../e2e/gateway.mjs";
import { accessible, bench, holds, open, settled, shot, signIn } from "./browser.mjs";
import { used } from "./used.mjs";

const names = ["Wide ".repeat(40), "W".repeat(200), "مفتاح الإنتاج للفريق ‎(١)", "👩‍💻🎉 Ünïcode", "Laptop"];
const bounds = { providers: 500, combos: 500, keys: 1000, budgets: 100 }; // of a machine
const screens = [
  [390, 844],
  [768, 1024],
  [1024, 768],
  [1280, 860],
  [1440, 900],
];
const firstRow = { table: "tbody tr:not(.gap)", list: ".order > li, .accounts li, .cards > li, .tiles > li" };

let b, me;
before(async () => {
  b = await bench();
  me = await used(b);
  const add = (path, body) => b.operator.call("POST", `/${me.machineId}/api${path}`, body);
  await b.operator.call("PATCH", `/api/machines/${me.machineId}`, { name: names[1] });
  await add("/budgets", { name: "Team", unit: "usd", limit: 50, window: "month" });
  await add("/destinations", { kind: "webhook", name: "Hook", settings: { url: `${b.upstream.url}/hook` } });
  await add("/models/custom", { providerAlias: "up", id: "own-model" });
});
after(() => b?.close());

// rows lets the page read n rows in place of those of each list, made of its first one.
async function rows(page, n) {
  await page.route(
    ({ pathname, search }) =>
      !search.startsWith("?q=") && // what the page itself looks for
      /\/api\/(machines|providers|keys|budgets|combos|requests|audit|models\/list\/\w+)$/.test(pathname),
    async (route) => {
      if (route.request().method() !== "GET") return route.continue();
      const url = new URL(route.request().url());
      const answer = await (await route.fetch()).json();
      const all = Math.min(n, bounds[url.pathname.split("/").pop()] ?? n);
      const [first] = answer.data,
        limit = Number(url.searchParams.get("limit") ?? (/requests|machines|audit/.test(url.pathname) ? 100 : all));
      if (!first || url.searchParams.has("after")) return route.fulfill({ json: answer });
      const data = Array.from({ length: Math.min(all, limit) }, (_, i) => {
        const name = `${names[i % names.length].slice(0, 195)} ${i}`;
        const ofId = { id: url.pathname.includes("/models/list/") ? `up/${name}${i}` : `${first.id}${i}` };
        const ofMachine = { machineId: i ? `m${String(i).padStart(15, "0")}` : first.machineId };
        return {
          ...first,
          ...(first.id && ofId),
          ...(first.machineId && ofMachine),
          ...(first.seq && { seq: 1_000_000 - i }),
          ...(first.asked && { asked: name, error: `error of ${name}`, status: i % 3 ? 200 : 502 }),
          ...(!first.asked && !url.pathname.includes("/models/") && { name }),
        };
      });
      const more = data.length < all;
      await route.fulfill({
        json: { ...answer, data, total: all, has_more: more, ...(more && { cursor: "1", next: "1" }) },
      });
    },
  );
}

const addresses = [
  ...pages.map((p) => p.path),
  ...sections.slice(1).map((s) => `settings/${s.id}`),
  "providers/add",
  "models?view=prices",
  "usage?by=model",
  "machines", // the list of machines
];
const others = ["overview", "usage", "usage?by=model", "explain", "playground"]; // begin with something else
const addressOf = (path) => (path === "machines" ? "#/machines" : `#/m/${me.machineId}/${path}`);

const lists = ["requests", "keys", "models", "budgets", "providers", "machines"]; // of one line for each row
const lineHeight = 37;

// rowsOf returns of the rows of the lists that are shown the heights, the number of lines of
// text, and names that are cut without a tooltip.
const rowsOf = (page) =>
  page.evaluate(() => {
    const linesOf = (row) => {
      const middles = [];
      const texts = document.createTreeWalker(row, NodeFilter.SHOW_TEXT);
      while (texts.nextNode()) {
        const of = texts.currentNode.parentElement;
        if (!texts.currentNode.data.trim() || !of.checkVisibility() || of.closest(".hidden")) continue;
        const range = document.createRange();
        range.selectNodeContents(texts.currentNode);
        for (const r of range.getClientRects()) middles.push((r.top + r.bottom) / 2);
      }
      return middles.sort((a, b) => a - b).filter((y, i) => i === 0 || y - middles[i - 1] > 6).length;
    };
    const all = (selectors) => [...document.querySelectorAll(selectors)];
    const nameless = /^(…|Revoked key|Deleted account)$/; // whose tooltip is the id
    const rows = all("main .list tbody tr:not(.gap)");
    return {
      heights: [...new Set(rows.map((r) => r.offsetHeight))],
      lines: Math.max(0, ...[...rows, ...all("main .order > li")].map(linesOf)),
      names: Math.max(0, ...all("main :is(.conn h3, .cards h2, .list :is(.cut, .middle))").map(linesOf)),
      wrong: all("main .cut")
        .filter(
          (e) =>
            !(nameless.test(e.textContent) ? e.title : e.title === e.textContent) ||
            getComputedStyle(e).unicodeBidi !== "isolate",
        )
        .map((e) => e.outerHTML),
      sideways: Math.max(0, ...[...document.querySelectorAll("main .list")].map((e) => e.scrollWidth - e.clientWidth)),
    };
  });

// inLines checks the rows of the list that is open.
async function inLines(page, what, width) {
  const { heights, lines, names, wrong, sideways } = await rowsOf(page);
  assert.equal(sideways, 0, `${what} is scrolled sideways at ${width} px`);
  assert.equal(names, 1, `${what}: lines of a name at ${width} px`);
  assert.deepEqual(wrong, [], `${what}: names without a tooltip, or not isolated`);
  if (width > 390)
    assert.ok(
      heights.every((h) => h === lineHeight),
      `${what}: rows of ${heights} px at ${width} px`,
    );
  else if (!/^(budgets|machines)/.test(what))
    assert.ok(lines <= (what.startsWith("requests") ? 4 : 3), `${what}: ${lines} lines of a row at ${width} px`);
}

// fits checks the page that is open on all screens. Themes have colors of their own alone.
async function fits(page, what, most) {
  for (const [width, height] of screens) {
    await page.setViewportSize({ width, height });
    const found = await page.evaluate(() => {
      const wide = document.documentElement.scrollWidth - innerWidth;
      if (wide <= 0) return "";
      const all = [...document.querySelectorAll("main *")].filter((e) => e.getBoundingClientRect().right > innerWidth);
      return `${wide} px: ${all.slice(0, 3).map((e) => e.outerHTML.slice(0, 120))}`;
    });
    assert.equal(found, "", `${what} is wider than ${width} px`);
    if (lists.includes(what.split(" ")[0]) && !/ 0 rows/.test(what)) await inLines(page, what, width);
    if (width >= 1024) {
      const hidden = await page.evaluate(() => {
        const side = document.querySelector(".side");
        return side.scrollHeight - side.clientHeight;
      });
      assert.ok(hidden <= 0, `${what}: ${hidden} px of the navigation are below a screen of ${height} px`);
    }
    if (width > 390) continue;
    const top = await page.evaluate((selectors) => {
      const first = document.querySelector("main")?.querySelector(selectors);
      return first ? first.getBoundingClientRect().top + scrollY : 0;
    }, Object.values(firstRow).join(", "));
    assert.ok(top <= most * height, `${what}: the first row is at ${Math.round(top)} px`);
  }
}

for (const n of [0, 1, 30, 10_000])
  test(`nothing is wider than the screen with ${n} rows`, async (t) => {
    const page = await open(t, b, { at: addressOf("settings") });
    await rows(page, n);
    for (const path of addresses) {
      await page.goto(`${b.url}/${addressOf(path)}`);
      await page.reload();
      await settled(page);
      await fits(page, `${path} with ${n} rows`, others.includes(path) || path.startsWith("settings") ? 3 : 1);
      if (n === 30) {
        await page.setViewportSize({ width: 390, height: 844 });
        await shot(page, `screen-${path.replace(/\W+/g, "-")}-390`);
      }
    }
  });

test("amounts of tiles and accounts are whole at every width", async (t) => {
  const page = await open(t, b, { at: addressOf("overview") });
  // cut returns the texts that are wider than their place.
  const cut = (selectors) =>
    page.evaluate(
      (all) => [...document.querySelectorAll(all)].filter((e) => e.scrollWidth > e.clientWidth).map((e) => e.innerText),
      selectors,
    );
  let costUsd = 0;
  await page.route(/\/api\/usage\?/, async (route) => {
    const answer = await (await route.fetch()).json();
    Object.assign(answer.total, { costUsd, estimatedAttempts: 2 });
    await route.fulfill({ json: answer });
  });
  await page.route(/\/api\/providers$/, async (route) => {
    const { data } = await (await route.fetch()).json();
    const used = { spentTodayUsd: costUsd, spentMonthUsd: costUsd, lastHour: { attempts: 1234, failedAttempts: 5 } };
    await route.fulfill({ json: { data: data.map((c) => ({ ...c, ...used, unpricedAttempts: 1 })) } });
  });
  const shown = { 0.1129: /≥ \$0\.11/, 1155.6: "≥ $1,155.60", 123456.78: "≥ $123,456.78" };
  for (costUsd of [0.1129, 1155.6, 123_456.78])
    for (const path of ["overview", "usage", "providers"]) {
      await page.goto(`${b.url}/${addressOf(path)}`);
      await page.reload();
      await settled(page);
      await page.locator("main").getByText(shown[costUsd]).first().waitFor();
      for (const width of [360, 390, 600, 768, 1024, 1280, 1440]) {
        await page.setViewportSize({ width, height: 800 });
        assert.deepEqual(await cut(".stat dd, .conn .facts"), [], `${path} at ${width} px`);
      }
    }
});

test("an account whose key is refused has its buttons on the smallest phone", async (t) => {
  const page = await open(t, b, { at: addressOf("settings"), viewport: { width: 320, height: 640 } });
  await page.route(/\/api\/providers$/, async (route) => {
    const { data } = await (await route.fetch()).json();
    await route.fulfill({ json: { data: data.map((c) => ({ ...c, health: "key_refused" })) } });
  });
  await page.goto(`${b.url}/${addressOf("providers")}`);
  await page.getByRole("link", { name: "Replace key" }).first().waitFor();
  assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 320);
});

test("the name of a key has room for twenty letters beside all its limits", async (t) => {
  const page = await open(t, b, { at: addressOf("settings") });
  await page.route(/\/api\/keys$/, async (route) => {
    const { data } = await (await route.fetch()).json();
    const limits = { rpm: 600, dailyMax: 50_000, tpm: 200_000, maxParallel: 20, models: ["openai/gpt-4.1-mini"] };
    const expiresAt = Date.now() + 400 * 86_400_000;
    await route.fulfill({ json: { data: [{ ...data[0], name: "Production chat back", ...limits, expiresAt }] } });
  });
  await page.goto(`${b.url}/${addressOf("keys")}`);
  const name = page.locator("main th .cut");
  await name.waitFor();
  for (const [width, height] of screens) {
    await page.setViewportSize({ width, height });
    assert.ok(await name.evaluate((e) => e.scrollWidth <= e.clientWidth), `it is cut at ${width} px`);
    assert.equal((await rowsOf(page)).sideways, 0, `scrolled sideways at ${width} px`);
  }
});

test("a request of another day with large figures has one line, and its model an ellipsis", async (t) => {
  const page = await open(t, b, { at: addressOf("settings") });
  await page.route(/\/api\/requests\?/, async (route) => {
    const answer = await (await route.fetch()).json();
    const large = {
      latencyMs: 123_456,
      costUsd: 12.3456,
      priced: true,
      estimated: true,
      status: 429,
      outcome: "failed",
    };
    const model = { asked: "everything-that-the-team-may-use", model: "anthropic/claude-opus-4-1-20250805" };
    const data = answer.data.map((r) => ({ ...r, at: r.at - 2 * 86_400_000, ...large, ...model }));
    await route.fulfill({ json: { ...answer, data } });
  });
  await page.goto(`${b.url}/${addressOf("requests")}`);
  await settled(page);
  for (const [width, height] of screens) {
    await page.setViewportSize({ width, height });
    await inLines(page, "requests", width);
    const cut = await page
      .locator("main td.model")
      .evaluateAll((all) =>
        all
          .filter((e) => e.querySelector(".models").scrollWidth > e.querySelector(".models").clientWidth)
          .map((e) => e.innerText),
      );
    assert.deepEqual(cut, [], `models without an ellipsis at ${width} px`);
  }
});

test("the first column of a table that scrolls has the lines of its rows", async (t) => {
  const page = await open(t, b, { at: addressOf("usage?by=model"), viewport: { width: 390, height: 844 } });
  await settled(page);
  const first = page.getByRole("region", { name: "Usage", exact: true }).locator("tbody tr").first();
  const colors = await first.evaluate((tr) => [
    ...["th", "td"].map((cell) => getComputedStyle(tr.querySelector(cell)).borderBottom),
    getComputedStyle(tr.querySelector("th")).boxShadow, // would be a second line
    getComputedStyle(tr.closest("table")).borderCollapse, // with collapse a sticky cell leaves its line behind
  ]);
  assert.deepEqual(colors.slice(1), [colors[0], "none", "separate"]);
});

test("the search of the requests has room for its hint on a phone", async (t) => {
  const page = await open(t, b, { at: addressOf("requests"), phone: true });
  await settled(page);
  const room = await page.getByRole("searchbox", { name: "Search requests" }).evaluate((e) => {
    const of = getComputedStyle(e),
      text = document.createElement("canvas").getContext("2d");
    text.font = getComputedStyle(e, "::placeholder").font;
    const inner = e.clientWidth - Number.parseFloat(of.paddingLeft) - Number.parseFloat(of.paddingRight);
    return inner - text.measureText(e.placeholder).width;
  });
  assert.ok(room >= 0, `${-room} px too few`);
});

test("axe finds nothing on any page, in both themes", async (t) => {
  const page = await open(t, b, { at: addressOf("overview") });
  await rows(page, 30);
  for (const path of addresses) {
    await page.goto(`${b.url}/${addressOf(path)}`);
    await page.reload();
    await settled(page);
    for (const colorScheme of ["light", "dark"]) {
      await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
      await accessible(page, `${path}, ${colorScheme}`);
    }
  }
});

test("a wrong clock of the viewer breaks no page", async (t) => {
  for (const days of [-400, 400]) {
    const page = await open(t, b, { as: null });
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
    await page.goto(`${b.url}/${addressOf("overview")}`);
    await page.getByRole("heading", { name: "Sign in to weir" }).waitFor();
    await signIn(page, secrets.ADMIN_TOKEN);
    for (const path of addresses) {
      await page.goto(`${b.url}/${addressOf(path)}`);
      await settled(page);
      assert.equal(await page.getByRole("alert").count(), 0, `${path}, ${days} days`);
      assert.doesNotMatch(
        await page.locator("main").innerText(),
        /NaN|Invalid Date|undefined/,
        `${path}, ${days} days`,
      );
    }
  }
});

test("every page says that the gateway is away, and continues when it is back", async (t) => {
  const page = await open(t, b, { at: addressOf("overview"), failures: ["GET /* 0"] });
  await settled(page);
  // The code of the pages is loaded before.
  for (const { title } of pages) {
    await page.getByRole("navigation").getByRole("link", { name: title, exact: true }).click();
    await page.getByRole("heading", { level: 1, name: title, exact: true }).waitFor();
  }
  for (const { path, title } of pages) {
    if (path === "explain") continue; // shows its form without them
    await page.route(/\/api\//, (route) => route.abort("connectionrefused"));
    await page.goto(`${b.url}/${addressOf(path === "settings" ? "keys" : "settings")}`);
    await page.goto(`${b.url}/${addressOf(path)}`);
    await page.getByRole("heading", { level: 1, name: title, exact: true }).waitFor();
    const away = page.getByText("The gateway cannot be reached.");
    await away.first().waitFor();
    await settled(page);
    assert.equal(await away.count(), 1, `${path} says it once`);
    await page.unrouteAll({ behavior: "wait" });
    const again = page.getByRole("button", { name: "Try again" });
    while ((await again.count()) > 0) await again.first().click();
    await settled(page);
    await holds(page, () => !document.body.innerText.includes("cannot be reached"));
  }
});
