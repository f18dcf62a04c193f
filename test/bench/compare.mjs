// Compares what a call costs in checkouts of weir, in workerd, as ratios to the floor:
// what a change has done to the rows of the benchmark.
//
//	node test/bench/compare.mjs ROWS ROUNDS NAME=CHECKOUT …
//
// ROWS is a regular expression on the ids of the rows, as "^(embeddings|chat)$". Each
// checkout is built before. In each round all are measured, in turns, in an order that
// changes; a figure is the median of the rounds, and the last column the median of the
// round's ratios to the first checkout, which other programs on the computer disturb
// least. SHARE (1) multiplies the number of requests.
import { execFileSync, spawn } from "node:child_process";
import { mkdirSync } from "node:fs";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";
import { admin } from "../e2e/gateway.mjs";
import { runLoad } from "./process.mjs";
import { rowsOf } from "./rows.mjs";
import { root } from "./workerd.mjs";

const [rows, count, ...checkouts] = process.argv.slice(2);
const rounds = Number(count),
  share = Number(process.env.SHARE ?? 1);
if (!rows || !(rounds > 0) || checkouts.length === 0) {
  console.error("usage: node test/bench/compare.mjs ROWS ROUNDS NAME=CHECKOUT …");
  process.exit(2);
}
const secrets = {
  ADMIN_TOKEN: "bench-admin-token-0123456789abcdef01234",
  API_KEY_SECRET: "bench-api-key-secret-0123456789abcdef01",
  CREDENTIALS_KEY: "bench-credentials-key-0123456789abcdef0",
};
const out = join(root, "test/out/bench");
const median = (list) => list.toSorted((a, b) => a - b)[list.length >> 1];

mkdirSync(out, { recursive: true });
for (const program of ["load", "upstream"])
  execFileSync("go", ["build", "-o", join(out, program), `./test/bench/${program}`], { cwd: root, stdio: "inherit" });
const upstreams = [];

// upstreamOf starts an upstream with a KV of its own.
async function upstreamOf() {
  const child = spawn(join(out, "upstream"), { stdio: ["pipe", "pipe", "inherit"] });
  upstreams.push(child);
  const [port, kvPort] = (await new Promise((r) => createInterface(child.stdout).once("line", r))).split(" ");
  return { url: `http://127.0.0.1:${port}`, kvPort };
}

const load = (url, how) => runLoad(join(out, "load"), url, { seconds: 60, ...how });

// gateway starts a checkout's build, with a machine that has the connections of the rows.
async function gateway(name, checkout) {
  const { prepare, serve } = await import(pathToFileURL(join(resolve(checkout), "test/bench/workerd.mjs")));
  const { url, kvPort } = await upstreamOf();
  const env = { ...secrets, ALLOW_PRIVATE_UPSTREAMS: "true", PRICES_URL: "off", LOG_LEVEL: "error" };
  const server = await serve(prepare(`compare-${name}`, join(resolve(checkout), "build")), "worker.mjs", {
    env,
    kvPort,
  });
  const operator = admin({ fetch: (path, init) => fetch(server.url + path, init) }, secrets.ADMIN_TOKEN);
  const { machineId, apiKey } = await operator.machine();
  for (const [family, prefix, path, priority = 1] of [
    ["openai", "up", "/v1"],
    ["anthropic", "an", "/v1"],
    ["openai", "co", "/chatonly/v1"],
    ["openai", "two", "/v1"],
    ["openai", "two", "/v1", 2],
  ])
    await operator.connect(machineId, {
      provider: `${family}-compatible-${Buffer.from(prefix).toString("hex").padEnd(8, "0")}`,
      name: prefix,
      apiKey: "bench-upstream-key",
      priority,
      providerSpecificData: { baseUrl: url + path, prefix, enabledModels: ["bench"] },
    });
  return { name, own: true, server, headers: { authorization: `Bearer ${apiKey}` }, figures: [] };
}

const { url: upstreamUrl } = await upstreamOf();
const { prepare, serve } = await import("./workerd.mjs");
const started = async (name) => ({
  name,
  server: await serve(prepare(`compare-${name}`, join(root, `test/bench/${name}.mjs`)), `${name}.mjs`, {
    env: { UPSTREAM: upstreamUrl },
  }),
});
const floor = await started("floor"),
  script = await started("translate");
const builds = [];
for (const c of checkouts) builds.push(await gateway(...c.split("=")));

async function measure(target, row, part = 1) {
  const { path, ...how } = row.of(target),
    n = Math.ceil(row.n * share * part);
  const cpu = target.server.cpu();
  const report = await load(target.server.url + path, { ...how, n, headers: { ...target.headers, ...how.headers } });
  if (report.wrong)
    throw new Error(`${row.id} on ${target.name}: ${report.wrong} wrong answers: ${report.first_wrong}`);
  return ((target.server.cpu() - cpu) * 1000) / report.n;
}

const all = rowsOf({ floor, script, bridge: {}, edge: null, native: null, upstreamUrl });
console.log(`${"".padEnd(26)}${"floor".padStart(9)}${builds.map((b) => b.name.padStart(22)).join("")}`);
for (const row of all.filter((r) => new RegExp(rows).test(r.id) && !r.id.startsWith("bridge"))) {
  const targets = [row.base, ...builds],
    figures = new Map(targets.map((t) => [t, []]));
  for (const t of targets) await measure(t, row);
  for (let i = 0; i < rounds; i++) {
    const order = targets.map((_, j) => targets[(i + j) % targets.length]);
    for (const t of i % 2 ? order.toReversed() : order) figures.get(t).push(await measure(t, row, 1 / 3));
  }
  const base = figures.get(row.base),
    first = figures.get(builds[0]);
  const column = (t) => {
    const own = figures.get(t);
    return `${median(own).toFixed(3)} × ${median(own.map((x, i) => x / base[i])).toFixed(2)} (${median(own.map((x, i) => x / first[i])).toFixed(3)})`;
  };
  console.log(
    `${row.id.padEnd(26)}${median(base).toFixed(3).padStart(9)}${builds.map((b) => column(b).padStart(22)).join("")}`,
  );
}
for (const t of [floor, script, ...builds]) await t.server.close();
for (const u of upstreams) u.kill();
