// The pictures of the README and of the documentation: a machine as a small team uses
// it. With GOLDEN=update they are written to docs/images; otherwise the test checks that
// each page still shows what its picture does, and that each picture is used.
import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { compatible } from "../e2e/gateway.mjs";
import { bench, open, settled } from "./browser.mjs";
import { recorded } from "./used.mjs";

const root = fileURLToPath(new URL("../../", import.meta.url));
const images = join(root, "docs/images");
const update = process.env.GOLDEN === "update";

let b, machineId;
before(async () => {
  b = await bench();
  const machine = await b.operator.machine({ name: "Team" });
  machineId = machine.machineId;
  const at = (path) => `/${machineId}/api${path}`;
  await b.operator.connect(machineId, { provider: "openai", name: "Team billing", apiKey: "sk-0123456789abcdef0123" });
  await b.operator.connect(machineId, { provider: "openai", name: "Personal", apiKey: "sk-0123456789abcdef4567" });
  await b.operator.connect(machineId, { provider: "anthropic", name: "Team", apiKey: "sk-ant-0123456789abcdef" });
  await b.operator.connect(machineId, compatible(b.upstream, { prefix: "vllm", name: "GPU server" }));
  await b.operator.call("POST", at("/combos"), {
    name: "smart",
    models: ["vllm/llama-3.3-70b!status=503", "anthropic/claude-sonnet-4-5"],
  });
  await b.operator.call("POST", at("/budgets"), { name: "Team", unit: "usd", limit: 50, window: "month" });
  await b.operator.call("POST", at("/budgets"), {
    name: "Requests a day",
    unit: "requests",
    limit: 200,
    window: "day",
  });
  const send = async (model, words) => {
    const res = await b.gateway.fetch("/v1/chat/completions", {
      method: "POST",
      headers: { authorization: `Bearer ${machine.apiKey}`, "content-type": "application/json" },
      body: JSON.stringify({ model, messages: [{ role: "user", content: "Hello ".repeat(words) }] }),
    });
    await res.text();
    return res.status;
  };
  const models = ["openai/gpt-4.1-mini", "smart", "anthropic/claude-sonnet-4-5", "openai/gpt-4.1"];
  for (let i = 0; i < 23; i++) assert.equal(await send(models[i % 4], 20 * i), 200);
  assert.equal(await send("groq/llama-3.3-70b", 1), 400);
  await recorded((path) => b.operator.call("GET", at(path)), 24);
});
after(() => b?.close());

const pictures = [
  { file: "overview.png", at: "overview", heading: "Overview" },
  { file: "overview-dark.png", at: "overview", heading: "Overview", dark: true },
  { file: "providers.png", at: "providers", heading: "Providers" },
  { file: "requests.png", at: "requests", heading: "Requests" },
  { file: "usage.png", at: "usage", heading: "Usage" },
  { file: "connect.png", at: "connect", heading: "Connect a tool" },
];

for (const { file, at, heading, dark } of pictures)
  test(`docs/images/${file} shows ${heading}`, async (t) => {
    const p = await open(t, b, { at: `#/m/${machineId}/${at}`, dark, viewport: { width: 1280, height: 800 } });
    await p.getByRole("heading", { level: 1, name: heading }).waitFor();
    await settled(p);
    if (update) {
      mkdirSync(images, { recursive: true });
      await p.screenshot({ path: join(images, file) });
    }
    assert.ok(existsSync(join(images, file)), `${file} is missing: GOLDEN=update`);
  });

test("each picture is used, and no other is there", () => {
  const pages = readdirSync(join(root, "docs"))
    .filter((f) => f.endsWith(".md"))
    .map((f) => `docs/${f}`);
  const texts = ["README.md", ...pages].map((f) => readFileSync(join(root, f), "utf8")).join("\n");
  assert.deepEqual(readdirSync(images).sort(), pictures.map(({ file }) => file).sort());
  const unused = pictures.filter(({ file }) => !texts.includes(`images/${file}`));
  assert.deepEqual(unused, []);
});
