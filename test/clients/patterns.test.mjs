// Conversations as tools hold them, over every family of upstreams. See tools.mjs and
// model.mjs. docs/compatibility.md has the results.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { drivers } from "./drivers.mjs";
import { tools } from "./tools.mjs";
import { families } from "./families.mjs";
import { scenarios } from "./patterns.mjs";
import { record } from "./compatibility.mjs";
import { world } from "./world.mjs";

let w;
before(async () => {
  w = await world();
});
after(() => w?.close());

const soak = process.env.SOAK === "1";
const brief = !soak && process.env.PLATFORM !== "native";
const first = (tool) => tools.find((t) => t.driver === tool.driver) === tool;

for (const [i, tool] of tools.entries())
  describe(tool.name, () => {
    const name = `${tool.id}${i}`;
    let me;
    before(async () => {
      me = await w.machine(name);
    });
    // play plays a scenario over a family. The result is "" or what failed.
    async function play(id, family) {
      const at = {
        url: w.gateway.url,
        key: me.apiKey,
        model: (tool.alias ?? "") + family.model,
        think: id === "thinking",
      };
      const account = w.account(family.id, name);
      const fresh = () => drivers[tool.driver](tool, at);
      const session = fresh();
      try {
        const seen = () => w.script.seen.filter((q) => q.account === account);
        await scenarios[id].play(session, { tool, family, at, seen, fresh });
        return "";
      } catch (e) {
        return `over ${family.name}: ${e.message}\n${/^ +at .*patterns\.mjs.*$/m.exec(e.stack)?.[0]}`;
      } finally {
        session.close?.();
      }
    }
    // A run that is not long plays everything with the first tool of each protocol, and
    // most with the others; in workerd most with the first alone.
    for (const [id, scenario] of Object.entries(scenarios)) {
      if (scenario.when && !scenario.when(tool)) continue;
      if (brief && !first(tool)) continue;
      const over = soak || (first(tool) && !brief) ? families : families.filter((f) => f.brief && !scenario.long);
      if (!over.length) continue;
      test(scenario.title, async () => {
        const failures = await Promise.all(
          over.map(async (family) => {
            const failure = await play(id, family);
            record("play", tool, family, id, failure === "");
            return failure;
          }),
        );
        const all = failures.filter(Boolean);
        assert.ok(!all.length, all.join("\n"));
        assert.deepEqual(w.script.faults.splice(0), []);
      });
    }
    if (tool.lists)
      test("the list of models", async () => {
        const { path, headers, ids } = tool.lists;
        const res = await w.gateway.fetch(path, { headers: headers({ key: me.apiKey }), redirect: "manual" });
        assert.equal(res.status, 200);
        const listed = ids(await res.json());
        assert.ok(listed.includes((tool.alias ?? "") + families[0].model), listed.join());
      });
  });
