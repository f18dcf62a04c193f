// The alert rules and the dashboards of deploy/observability, by Prometheus itself over a
// gateway with traffic. Without Debian's package prometheus they are skipped.
// workerd: soak
import assert from "node:assert/strict";
import { execFile, execFileSync, spawn } from "node:child_process";
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { start as startUpstream } from "../../upstream/server.mjs";
import { admin, compatible, secrets, start } from "../gateway.mjs";
import { until } from "../wait.mjs";

const folder = new URL("../../../deploy/observability/", import.meta.url).pathname;
const run = promisify(execFile);

// missing returns why the tests are skipped, or false.
function missing() {
  try {
    execFileSync("promtool", ["--version"], { stdio: "ignore" });
    return false;
  } catch {
    assert.notEqual(process.env.CI, "1", "Prometheus is not installed");
    return "Prometheus is not installed (apt-get install prometheus)";
  }
}
const skip = missing();

// configured writes a configuration and returns its path: that of deploy/observability with
// another target, or what replace makes of it.
async function configured(dir, replace) {
  const text = (await readFile(join(folder, "prometheus.yml"), "utf8")).replace(
    "/etc/prometheus/rules.yml",
    join(folder, "rules.yml"),
  );
  const path = join(dir, "prometheus.yml");
  await writeFile(path, replace(text));
  return path;
}

test("promtool takes the configuration and the rules, and the rules alert when they should", { skip }, async () => {
  const dir = await mkdtemp(join(tmpdir(), "weir-prometheus-"));
  const path = await configured(dir, (text) => text);
  await run("promtool", ["check", "config", path]);
  const { stdout } = await run("promtool", ["check", "rules", join(folder, "rules.yml")]);
  assert.match(stdout, /SUCCESS: \d+ rules found/);
  await run("promtool", ["test", "rules", "rules_test.yml"], { cwd: folder });
  await rm(dir, { recursive: true });
  // Each rule has a test.
  const names = (text) => [...text.matchAll(/alert: (\w+)/g)].map((m) => m[1]);
  const tested = await readFile(join(folder, "rules_test.yml"), "utf8");
  for (const name of names(await readFile(join(folder, "rules.yml"), "utf8")))
    assert.ok(tested.includes(`alertname: ${name}\n`) || tested.includes(`alertname: ${name} `), name);
});

async function freePort() {
  const s = createServer().listen(0, "127.0.0.1");
  await new Promise((r) => s.once("listening", r));
  const { port } = s.address();
  await new Promise((r) => s.close(r));
  return port;
}

// queries returns the queries of all dashboards, with the values of their variables.
async function queries() {
  const all = [];
  for (const name of await readdir(join(folder, "dashboards"))) {
    const board = JSON.parse(await readFile(join(folder, "dashboards", name), "utf8"));
    for (const p of board.panels)
      for (const t of p.targets)
        all.push({
          of: `${name}: ${p.title}`,
          expr: t.expr.replaceAll("$machine", ".*").replaceAll("$__rate_interval", "20s").replaceAll("$__range", "1m"),
        });
  }
  return all;
}

test("every query of the dashboards has an answer over a gateway with traffic", { skip }, async (t) => {
  const up = await startUpstream();
  const gw = await start({ vendors: up });
  const dir = await mkdtemp(join(tmpdir(), "weir-prometheus-"));
  const port = await freePort();
  const path = await configured(dir, (text) =>
    text
      .replaceAll(/(scrape|evaluation)_interval: 15s/g, "$1_interval: 1s")
      .replace(
        "targets: [weir:9090]",
        `targets: [${JSON.stringify(new URL(gw.url).host)}]\n    authorization: {credentials: ${secrets.ADMIN_TOKEN}}`,
      ),
  );
  const prometheus = spawn(
    "prometheus",
    [`--config.file=${path}`, `--storage.tsdb.path=${join(dir, "data")}`, `--web.listen-address=127.0.0.1:${port}`],
    { stdio: "ignore" },
  );
  t.after(async () => {
    const over = new Promise((r) => prometheus.once("exit", r));
    prometheus.kill();
    await over;
    await gw.close();
    await up.close();
    await rm(dir, { recursive: true, force: true });
  });
  const operator = admin(gw);
  const me = await operator.machine({ name: "observed" });
  await operator.connect(me.machineId, compatible(up));
  await operator.connect(me.machineId, compatible(up, { prefix: "down", apiKey: "k" }));
  const api = (method, path, body) => operator.call(method, `/${me.machineId}/api${path}`, body);
  await api("POST", "/budgets", { name: "team", unit: "requests", limit: 10_000, window: "day" });
  const call = (model, stream) =>
    gw
      .fetch("/v1/chat/completions", {
        method: "POST",
        headers: { authorization: `Bearer ${me.apiKey}`, "content-type": "application/json" },
        body: JSON.stringify({ model, stream, messages: [{ role: "user", content: "hi" }] }),
      })
      .then((res) => res.text());
  await api("POST", "/providers", { provider: "openai", apiKey: "openai-test-key-0123456789" });
  const priced = JSON.stringify({
    id: "c",
    object: "chat.completion",
    created: 1,
    model: "m",
    choices: [{ index: 0, message: { role: "assistant", content: "hi" }, finish_reason: "stop" }],
    usage: { prompt_tokens: 2000, completion_tokens: 50, prompt_tokens_details: { cached_tokens: 1024 } },
  });
  up.script = (r) => {
    const asked = JSON.stringify(r);
    if (asked.includes("up-fails")) return { status: 429, body: "{}" };
    return asked.includes("gpt-5") ? { body: priced } : null;
  };

  const ask = async (expr) => {
    const res = await fetch(`http://127.0.0.1:${port}/api/v1/query?query=${encodeURIComponent(expr)}`).catch(
      () => null,
    );
    // Until it is ready it refuses connections, then answers 503.
    return res && res.status !== 503 ? res.json() : { status: "starting", data: { result: [] } };
  };
  const all = await queries();
  assert.ok(all.length > 50, `${all.length} queries`);
  // Those that need a failure of an export, or figures of a process that the edge does not have.
  const absent = /weir_export_|weir_(calls|memory|sockets|goroutines|database|start_time)/;
  const native = process.env.PLATFORM === "native";
  let open;
  await until("answers to all queries", async () => {
    await Promise.all([
      call("up/test-chat"),
      call("up/test-chat", true),
      call("up/up-fails"),
      call("openai/gpt-5"),
      call("unknown/model"),
    ]);
    open = [];
    for (const q of all) {
      const a = await ask(q.expr);
      if (a.status === "error") assert.fail(`${q.of}: ${q.expr}: ${a.error}`);
      const optional = q.expr.includes("weir_export_") || (!native && absent.test(q.expr));
      if (a.status !== "success" || (a.data.result.length === 0 && !optional)) open.push(q.of);
    }
    return open.length === 0;
  }).catch((e) => assert.fail(`${e.message}: ${open.join("; ")}`));
  const down = await ask('up{job="weir"} == 0');
  assert.equal(down.data.result.length, 0);
  const text = await (
    await gw.fetch("/metrics", { headers: { authorization: `Bearer ${secrets.ADMIN_TOKEN}` } })
  ).text();
  const samples = await ask('count({__name__=~"weir_.*"})');
  assert.ok(
    Number(samples.data.result[0].value[1]) >= text.split("\n").filter((l) => l.startsWith("weir_")).length - 5,
  );
  const rules = await (await fetch(`http://127.0.0.1:${port}/api/v1/rules`)).json();
  for (const r of rules.data.groups[0].rules) assert.equal(r.health, "ok", `${r.name}: ${r.lastError}`);
});
