// ./build.sh bench: what a call costs in weir, in workerd and as the native server,
// as a ratio to a worker that passes everything on and looks at nothing, with the
// same upstream, in one run. Writes test/out/bench.json.
//
// The CPU is that of the server's process; load and upstream run beside it. Each
// figure is the median of ROUNDS (3), measured in turns with the floor. ROWS is
// a regular expression on the ids of the rows to take; absent, all. SHARE (1)
// multiplies the number of requests: a smaller one is for a busy computer.
import { execFileSync, spawn } from "node:child_process";
import { mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { loadavg } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { gzipSync } from "node:zlib";
import { admin } from "../e2e/gateway.mjs";
import { MiB, debug } from "../e2e/isolate.mjs";
import * as weir from "./native.mjs";
import { runLoad, usage } from "./process.mjs";
import { chat, done, embed, message, requests, rowsOf, stopped } from "./rows.mjs";
import { prepare, root, serve } from "./workerd.mjs";

const rounds = Number(process.env.ROUNDS ?? 3);
const share = Number(process.env.SHARE ?? 1);
const out = join(root, "test/out/bench");
const secrets = {
  ADMIN_TOKEN: "bench-admin-token-0123456789abcdef01234",
  API_KEY_SECRET: "bench-api-key-secret-0123456789abcdef01",
  CREDENTIALS_KEY: "bench-credentials-key-0123456789abcdef0",
};
const settings = { ...secrets, ALLOW_PRIVATE_UPSTREAMS: "true", PRICES_URL: "off", LOG_LEVEL: "error" };
const wanted = (id) => new RegExp(process.env.ROWS ?? "").test(id);
const median = (list) => list.toSorted((a, b) => a - b)[list.length >> 1];
const json = { "content-type": "application/json" };
const sleep = (ms) => new Promise((r) => setTimeout(r, ms));

rmSync(out, { recursive: true, force: true });
mkdirSync(out, { recursive: true });
for (const program of ["load", "upstream"])
  execFileSync("go", ["build", "-o", join(out, program), `./test/bench/${program}`], { cwd: root, stdio: "inherit" });

const upstream = spawn(join(out, "upstream"), { stdio: ["pipe", "pipe", "inherit"] });
const [port, kvPort] = (await new Promise((r) => createInterface(upstream.stdout).once("line", r))).split(" ");
const upstreamUrl = `http://127.0.0.1:${port}`;

const load = (url, how) => runLoad(join(out, "load"), url, how);

// Targets: the floor, the same translation in JavaScript, the bare bridge
// (worker/bridgetest), and the gateway in workerd and as the native server. own
// marks the gateways, which have a tenant.
const worker = (name, from, env = { UPSTREAM: upstreamUrl }) => {
  const dir = prepare(name, join(root, from)),
    main = from.endsWith(".mjs") ? from.split("/").at(-1) : "worker.mjs";
  return { name, start: (how) => serve(dir, main, { env, ...how }) };
};
const floor = worker("floor", "test/bench/floor.mjs");
const script = worker("script", "test/bench/translate.mjs");
const bridge = worker("bridge", "test/out/bridge", {});
const edgeDir = prepare("edge", join(root, "build"), [join(root, "test/bench/entry.mjs")]);
const edge = {
  name: "edge",
  own: true,
  start: (how) => serve(edgeDir, "entry.mjs", { env: settings, kvPort, ...how }),
};
const native = {
  name: "native",
  own: true,
  start: (how) => weir.serve(join(out, "data"), { env: settings, ...how }),
};

// direct is the upstream without a gateway: what waiting is compared with.
const direct = { name: "direct", start: () => ({ url: upstreamUrl, ...usage(upstream.pid), close() {} }) };

// tenant creates a machine through the management API and returns the headers of
// a caller. limits, if not absent, are settings of the machine, and destinations what it
// exports to.
async function tenant(server, limits, destinations = []) {
  const operator = admin({ fetch: (path, init) => fetch(server.url + path, init) }, secrets.ADMIN_TOKEN);
  const { machineId, apiKey } = await operator.machine();
  if (limits) await operator.call("PATCH", `/${machineId}/api/settings`, limits);
  for (const d of destinations) await operator.call("POST", `/${machineId}/api/destinations`, d);
  const connect = (family, prefix, suffix, { path = "/v1", ...more } = {}) =>
    operator.connect(machineId, {
      provider: `${family}-compatible-${suffix}`,
      name: prefix,
      apiKey: "bench-upstream-key",
      providerSpecificData: {
        baseUrl: upstreamUrl + path,
        prefix,
        enabledModels: Array.from({ length: 200 }, (_, i) => `bench-${i}`),
      },
      ...more,
    });
  await connect("openai", "up", "0123abcd");
  await connect("anthropic", "an", "0123abcd");
  await connect("openai", "co", "11111111", { path: "/chatonly/v1" }); // without a Responses API
  // "two" has a second account behind the first; the lists make 1,000 models of five providers.
  for (const priority of [1, 2]) await connect("openai", "two", "22222222", { priority });
  for (const i of [3, 4]) await connect("openai", `list${i}`, `${i}`.repeat(8));
  return { authorization: `Bearer ${apiKey}` };
}

// sinks are destinations of every export that calls cause.
const sink = `${upstreamUrl}/sink`;
const sinks = [
  { name: "collector", kind: "otlp", settings: { endpoint: sink } },
  {
    name: "store",
    kind: "s3",
    settings: { endpoint: sink, region: "auto", bucket: "logs", accessKeyId: "AKIA", secretAccessKey: "bench-secret" },
  },
];
const asOperator = { authorization: `Bearer ${secrets.ADMIN_TOKEN}` };

const running = new Map(),
  keys = new Map(),
  results = [],
  before = loadavg()[0];

const number = (x, digits) => (x === undefined ? "" : x.toFixed(digits)).padStart(9);
const times = (x) => (x === undefined ? "" : `× ${x.toFixed(2)}`).padStart(8);
const bound = (x) => (x === undefined ? "" : `≤ ${Number(x.toFixed(2))}`).padStart(8);
const heading = (x) => x.padStart(9);

// add prints a result and writes all of them.
function add(r) {
  if (results.length === 0)
    console.log(
      `${"".padEnd(60)} ${"unit".padEnd(7)}${heading("floor")}${heading("edge")}${"".padStart(16)}${heading("native")}${"".padStart(8)}${"goal".padStart(8)}`,
    );
  results.push(r);
  const { floor: f, edge: e, native: n } = r.figures,
    digits = r.digits ?? 3,
    ratio = (x) => times(r.ratio && f && x !== undefined ? x / f : undefined);
  console.log(
    `${r.title.padEnd(60)} ${r.unit.padEnd(7)}${number(f, digits)}${number(e, digits)}${ratio(e)}${bound(r.limit)}${number(n, digits)}${ratio(n)}${bound(r.goal)}`,
  );
  const all = { at: new Date().toISOString(), rounds, share, load: { before, now: loadavg()[0] }, results };
  writeFileSync(join(root, "test/out/bench.json"), JSON.stringify(all, null, 2) + "\n");
}

// up returns the server of a target, which it starts at the first call, and makes
// the tenant of a gateway.
async function up(target) {
  if (!running.has(target)) {
    const server = await target.start();
    running.set(target, server);
    if (target.own && !keys.has(target)) keys.set(target, await tenant(server));
  }
  return running.get(target);
}

async function down() {
  for (const s of running.values()) await s.close();
  running.clear();
}

const warmed = new Set();
async function measure(target, row) {
  const server = await up(target),
    { path, ...how } = row.of(target);
  const n = Math.ceil(row.n * share),
    options = { n, ...how, headers: { ...keys.get(target), ...how.headers } };
  // Warm, so that nothing is compiled any more: the engine's best code comes after some thousand calls.
  const warm = row.id + target.name;
  await load(server.url + path, { ...options, n: Math.ceil(warmed.has(warm) ? n / 5 : Math.max(1500 * share, n / 5)) });
  warmed.add(warm);
  const cpu = server.cpu(),
    report = await load(server.url + path, options);
  if (report.wrong)
    throw new Error(`${row.id} on ${target.name}: ${report.wrong} wrong answers, the first: ${report.first_wrong}`);
  return ((server.cpu() - cpu) * 1000) / report.n / (row.MiB ?? 1);
}

// answer returns a target's answer to a row.
async function answer(target, row) {
  const server = await up(target),
    { path, body, headers: own } = row.of(target);
  const res = await fetch(server.url + path, {
    method: body ? "POST" : "GET",
    headers: { ...keys.get(target), ...(body ? json : {}), ...own },
    body,
  });
  const text = await res.text();
  if (!res.ok) throw new Error(`${row.id} on ${target.name}: ${res.status} ${text.slice(0, 200)}`);
  return text;
}

// compare takes one row.
async function compare(row) {
  if (row.id === "download")
    for (const target of row.targets)
      await (
        await fetch((await up(target)).url + "/v1/videos/generations", {
          method: "POST",
          headers: { ...keys.get(target), ...json },
          body: '{"model":"up/bench","prompt":"a"}',
        })
      ).text();
  const all = [row.base, ...row.targets];
  const answers = new Map();
  for (const target of all) answers.set(target, await answer(target, row));
  if (row.same) {
    const alike = (target) =>
      answers
        .get(target)
        .replace(/"(item_)?id":"[^"]*"/g, "")
        .replace(/"created(_at)?":\d+/g, "");
    for (const target of row.targets)
      if (alike(target) !== alike(row.base))
        throw new Error(`${row.id} on ${target.name}: not the same\n${alike(target).slice(0, 600)}`);
  }
  const times = new Map(all.map((t) => [t, []]));
  for (let i = 0; i < rounds; i++) for (const target of all) times.get(target).push(await measure(target, row));
  const figures = Object.fromEntries(
    all.map((t) => [t === row.base ? "floor" : t === native ? "native" : "edge", median(times.get(t))]),
  );
  add({
    id: row.id,
    title: row.title,
    unit: "ms CPU",
    figures,
    ratio: true,
    limit: row.limit,
    goal: row.goal,
  });
}

// waiting takes one connection and calls in turn: what waiting is added to a call
// without a gateway.
async function waiting() {
  const all = [direct, floor, edge, native];
  for (const endpoint of ["embeddings", "chat", "messages", "responses"]) {
    const times = new Map(all.map((t) => [t, { p50: [], p99: [] }]));
    for (let i = 0; i <= rounds; i++) {
      for (const target of all) {
        const server = await up(target),
          { path, ...how } = requests[endpoint](target),
          n = Math.ceil(Math.max(1000, 2000 * share));
        const report = await load(server.url + path, { ...how, n, c: 1, headers: keys.get(target) });
        if (report.wrong) throw new Error(`waiting for ${endpoint} on ${target.name}: ${report.first_wrong}`);
        if (i > 0) for (const p of ["p50", "p99"]) times.get(target)[p].push(report[p + "_us"] / 1000);
      }
    }
    for (const [p, limit, goal] of [["p50", 0.35, 0.15], ["p99"]]) {
      const of = (t) => median(times.get(t)[p]),
        less = of(direct);
      add({
        id: `added_${p}_${endpoint}`,
        title: `added ${p} of ${endpoint}, one connection (${less.toFixed(3)} without)`,
        unit: "ms",
        figures: { floor: of(floor) - less, edge: of(edge) - less, native: of(native) - less },
        limit,
        goal,
      });
    }
  }
}

// rates takes calls for each second of a core's time, with the server on one core,
// and load and upstream on the other. The calls in a second of the clock are fewer
// where other programs use the cores; perSecond in the JSON has them.
async function rates() {
  await down();
  const pin = (cores) => execFileSync("taskset", ["-a", "-c", "-p", cores, String(upstream.pid)], { stdio: "ignore" });
  pin("1");
  const seconds = Math.max(1, Math.round(3 * share));
  for (const c of [1, 32]) {
    for (const kind of ["embeddings", "chat"]) {
      const rate = {},
        perSecond = {},
        p99 = {};
      for (const target of [floor, edge, native]) {
        if (!running.has(target)) {
          const server = await target.start({ core: 0 });
          running.set(target, server);
          if (target.own && !keys.has(target)) keys.set(target, await tenant(server));
        }
        const server = running.get(target),
          { path, ...how } = requests[kind](target),
          options = { ...how, c, core: 1, headers: keys.get(target) };
        await load(server.url + path, { ...options, n: 3000, seconds: 2 * seconds }); // warm
        const taken = [];
        for (let i = 0; i < rounds; i++) {
          const cpu = server.cpu(),
            report = await load(server.url + path, { ...options, n: 1e9, seconds });
          if (report.wrong) throw new Error(`rate of ${kind} on ${target.name}: ${report.first_wrong}`);
          taken.push({
            rate: report.n / (server.cpu() - cpu),
            perSecond: report.n / report.seconds,
            p99: report.p99_us / 1000,
          });
        }
        taken.sort((a, b) => a.rate - b.rate);
        const { name } = target;
        ({ rate: rate[name], perSecond: perSecond[name], p99: p99[name] } = taken[rounds >> 1]);
      }
      const title = `${kind} calls per second of a core, ${c} connection${c > 1 ? "s" : ""}`;
      add({ id: `rate_${kind}_${c}`, title, unit: "1/s", figures: rate, digits: 0, perSecond });
      add({ id: `p99_${kind}_${c}`, title: "  its p99", unit: "ms", figures: p99 });
    }
  }
  pin("0,1");
  await down();
}

// modelList is the list of 1,000 models over five providers from the cache.
async function modelList() {
  const figures = {};
  for (const target of [edge, native]) {
    const server = await up(target),
      options = { n: 5000, headers: keys.get(target) },
      url = server.url + "/v1/models";
    const listed = (await (await fetch(url, { headers: keys.get(target) })).json()).data.length;
    if (listed < 1000) throw new Error(`${listed} models are listed`);
    await load(url, { ...options, n: 500 });
    const cpu = server.cpu();
    await load(url, options);
    figures[target.name] = ((server.cpu() - cpu) * 1000) / options.n;
  }
  add({ id: "models", title: "CPU per cached list of 1,000 models", unit: "ms CPU", figures, limit: 0.6 });
}

// memory is looked at after 50,000 and after 100,000 requests of many sizes, in a
// new process: the linear memory of the edge build, and the resident one of the
// native server. It has reached its size in the first half.
async function memory() {
  const texts = [1, 20, 300, 2000].map((n) => "The food was delicious. ".repeat(n));
  const early = {},
    late = {};
  for (const [target, used] of [
    [edge, async (server) => (await (await fetch(server.url + "/bench-stats")).json()).memory / MiB],
    [native, async (server) => server.rss() / MiB],
  ]) {
    const server = await target.start(),
      headers = keys.get(target);
    const send = async (n) => {
      for (const input of texts) {
        for (const model of ["up/bench", "unknown/bench"])
          await load(server.url + "/v1/embeddings", {
            n: n / texts.length / 2,
            seconds: 60,
            headers,
            body: JSON.stringify({ model, input }),
          });
      }
    };
    await send(50_000);
    early[target.name] = await used(server);
    await send(50_000);
    late[target.name] = await used(server);
    await server.close();
  }
  const growth = { edge: late.edge - early.edge, native: late.native - early.native };
  const title = "memory after 100,000 requests (linear; process)";
  add({ id: "memory", title, unit: "MiB", figures: late, limit: 24 });
  add({
    id: "memory_growth",
    title: "  its growth in the second half",
    unit: "MiB",
    figures: growth,
    limit: 1,
  });
}

// neighbour is what one machine's calls take beside 1,000 clients of another, which have
// 90 KiB of a chat translated all the time. Most of these are refused; patient ones wait
// as Retry-After says, the others ask again at once, bounded ones those of a machine that
// may have 16 calls under way.
async function neighbour() {
  const input = message("up/bench").replace("Say hello", "Say hello ".repeat(9000));
  for (const clients of ["patient", "hasty", "bounded"]) {
    const p50 = {},
      p99 = {},
      served = {};
    for (const target of [edge, native]) {
      const server = await target.start(),
        other = await tenant(server, clients === "bounded" ? { maxParallel: 16 } : undefined),
        seconds = Math.max(4, Math.round(10 * share)),
        small = { body: embed("up/bench"), headers: keys.get(target), c: 4, n: 1e9 };
      await load(server.url + "/v1/embeddings", { ...small, n: 3000 }); // warm
      const large = load(server.url + "/v1/messages", {
        n: 1e9,
        c: 1000,
        seconds: seconds + 3,
        body: input,
        headers: other,
        patient: clients === "patient",
      });
      await sleep(2000);
      const report = await load(server.url + "/v1/embeddings", { ...small, seconds });
      if (report.wrong) throw new Error(`neighbour on ${target.name}: ${report.first_wrong}`);
      p50[target.name] = report.p50_us / 1000;
      p99[target.name] = report.p99_us / 1000;
      served[target.name] = (await large).n;
      await server.close();
    }
    const id = clients === "patient" ? "neighbour" : `neighbour_${clients}`;
    const title = `embeddings beside 1,000 ${clients} clients of another machine: p50`;
    add({ id, title, unit: "ms", figures: p50 });
    add({ id: id + "_p99", title: "  its p99", unit: "ms", figures: p99, limit: 300, goal: 100 });
    add({
      id: id + "_served",
      title: "  calls of the other machine that were served",
      unit: "",
      figures: served,
      digits: 0,
    });
  }
}

// resting is the memory of the processes after the start and after 1,000 calls.
async function resting() {
  const start = {},
    used = {};
  for (const target of [floor, edge, native]) {
    const server = await target.start({ ready: true }),
      { path, ...how } = requests.chat(target);
    await server.idle();
    start[target.name] = server.rss() / MiB;
    await load(server.url + path, { ...how, n: 1000, headers: keys.get(target) });
    await server.idle();
    used[target.name] = server.rss() / MiB;
    await server.close();
  }
  add({ id: "rss", title: "the process, idle after its start", unit: "MiB", figures: start, goal: 40 });
  add({ id: "rss_used", title: "  after 1,000 calls", unit: "MiB", figures: used, goal: 40 });
}

// many keeps 1,000 streams open at once and takes what the isolate of a worker has:
// at most, and open with all garbage gone; the process; the CPU of all streams.
async function many(id, title, base, of, limit = 128) {
  const figures = {};
  for (const target of [base, edge, native]) {
    const isolated = target !== native,
      server = await target.start({ inspect: isolated }),
      headers = keys.get(target) ?? {};
    const stats =
      target === edge
        ? async () => (await fetch(server.url + "/bench-stats")).json()
        : async () => {
            await (await fetch(server.url, { method: "POST", body: "{}" })).text();
            return { memory: 0 };
          };
    const { path, ...how } = of(target.own);
    const fast = { ...how, headers, body: how.body.replace(/(slow|idle)/, "bench"), pieces: 1 };
    await load(server.url + path, { ...fast, n: 1, c: 1 }); // adopts the machine
    await load(server.url + path, { ...fast, n: 50 }); // warm
    const isolate = isolated ? await debug(server.inspector, stats) : null;
    await isolate?.collect();
    const rss = server.rss(),
      cpu = server.cpu(),
      watched = isolate?.watch(500),
      streams = load(server.url + path, { ...how, n: 1000, c: 1000, seconds: 1, headers });
    await sleep(7000);
    const open = await isolate?.collect(),
      open_rss = server.rss(),
      report = await streams,
      peak = await watched?.stop();
    if (report.wrong || report.n !== 1000)
      throw new Error(`${id} on ${target.name}: ${report.n} right, ${report.wrong} wrong: ${report.first_wrong}`);
    figures[target === base ? "floor" : target.name] = {
      open: open && open.total / MiB,
      peak: peak && peak.total / MiB,
      rss: open_rss / MiB,
      more: (open_rss - rss) / MiB,
      cpu: server.cpu() - cpu,
    };
    isolate?.close();
    await server.close();
  }
  const of3 = (name) => Object.fromEntries(Object.entries(figures).map(([target, f]) => [target, f[name]]));
  add({ id, title: `${title}: isolate at most`, unit: "MiB", figures: of3("peak"), limit });
  add({ id: id + "_open", title: "  its garbage collected", unit: "MiB", figures: of3("open") });
  add({ id: id + "_rss", title: "  the process", unit: "MiB", figures: of3("rss"), goal: 120 });
  add({ id: id + "_more", title: "  more than before", unit: "MiB", figures: of3("more") });
  const cpu = { id: id + "_cpu", title: "  CPU of all, looking included", unit: "s", ratio: true };
  add({ ...cpu, figures: of3("cpu") });
}

// starts takes what a new process costs: the time until it answers, the CPU time
// until it is idle, and the first request of one that is, whose machine is stored.
// The CPU time of that one counts until the process is idle again: a warm-up that
// waits for the first answer is in it.
async function starts() {
  const figures = { cold: {}, first_cpu: {}, start: {}, start_cpu: {} };
  for (const target of [floor, edge, native]) {
    const taken = { cold: [], first_cpu: [], start: [], start_cpu: [] };
    for (let i = 0; i < Math.max(5, rounds); i++) {
      let server = await target.start({ ready: true });
      taken.start.push(server.startMs);
      await server.close();
      server = await target.start();
      await server.idle(); // a worker listens before it has booted
      const booted = server.cpu(),
        { path, ...how } = requests.embeddings(target);
      const report = await load(server.url + path, { ...how, n: 1, c: 1, headers: keys.get(target) });
      await server.idle();
      taken.start_cpu.push(booted * 1000);
      taken.first_cpu.push((server.cpu() - booted) * 1000);
      await server.close();
      if (report.wrong) throw new Error(`cold ${target.name}: ${report.first_wrong}`);
      taken.cold.push(report.p50_us / 1000);
    }
    for (const [id, list] of Object.entries(taken)) figures[id][target.name] = median(list);
  }
  const rows = {
    start: { title: "start until /health answers (workerd compiles and boots)", unit: "ms", goal: 100 },
    start_cpu: { title: "CPU from start until idle", unit: "ms CPU", limit: 250 },
    cold: { title: "first request of a new isolate", unit: "ms", limit: 15 },
    first_cpu: { title: "  its CPU until idle", unit: "ms CPU" },
  };
  for (const [id, row] of Object.entries(rows)) add({ id, ...row, figures: figures[id] });
}

// shared compares the native server over PostgreSQL, which is a server of its own with fsync, with
// the one over a data directory.
async function shared() {
  const database = spawn(
    join(root, "test/out/weir-test"),
    ["postgres", "fsync=on", "shared_preload_libraries=pg_stat_statements"],
    { stdio: ["pipe", "pipe", "inherit"] },
  );
  const url = await new Promise((resolve) => {
    createInterface(database.stdout).once("line", resolve);
    database.once("exit", () => resolve(""));
  });
  if (!url) return console.log("PostgreSQL does not start: its rows are left out");
  const psql = (sql) => execFileSync("psql", [url, "-Atqc", sql], { encoding: "utf8" }).trim();
  const counted = () => Number(psql("SELECT sum(calls) FROM pg_stat_statements"));
  const over = {
    name: "postgres",
    own: true,
    start: () => weir.serve(join(out, "shared"), { env: settings, database: url }),
  };
  try {
    psql("CREATE EXTENSION pg_stat_statements");
    const taken = new Map([direct, native, over].map((t) => [t, { chat: [], embeddings: [] }]));
    for (let i = 0; i <= rounds; i++)
      for (const target of taken.keys())
        for (const kind of ["chat", "embeddings"]) {
          const server = await up(target),
            { path, ...how } = requests[kind](target);
          const report = await load(server.url + path, { ...how, n: 2000, c: 1, headers: keys.get(target) });
          if (report.wrong) throw new Error(`${kind} on ${target.name}: ${report.first_wrong}`);
          if (i > 0) taken.get(target)[kind].push(report.p50_us / 1000);
        }
    for (const kind of ["chat", "embeddings"]) {
      const of = (t) => median(taken.get(t)[kind]) - median(taken.get(direct)[kind]);
      add({
        id: `postgres_p50_${kind}`,
        title: `over PostgreSQL: added p50 of ${kind} (${of(native).toFixed(3)} over a file)`,
        unit: "ms",
        figures: { native: of(over) },
        goal: of(native) + 0.02,
      });
    }
    const row = { id: "postgres", n: 15_000, of: requests.chat },
      cpu = new Map([native, over].map((t) => [t, []])),
      statements = [];
    for (let i = 0; i < rounds; i++)
      for (const target of cpu.keys()) {
        const before = counted();
        cpu.get(target).push(await measure(target, row));
        if (target === over) statements.push(((counted() - before) * 1000) / Math.ceil(row.n * share) / 1.2);
      }
    add({
      id: "postgres_cpu",
      title: `  CPU per chat call, 32 connections (${median(cpu.get(native)).toFixed(3)} over a file)`,
      unit: "ms CPU",
      figures: { native: median(cpu.get(over)) },
    });
    add({
      id: "postgres_statements",
      title: "  statements per 1,000 chat calls, ticks and reports included",
      unit: "",
      figures: { native: median(statements) },
      digits: 0,
    });
    for (const [id, what, method] of [
      ["reads", "turns that read, per second, 16 connections", "GET"],
      ["writes", "changes of one machine per second, 16 connections", "PUT"],
    ]) {
      const rate = {};
      for (const target of cpu.keys()) {
        const server = await up(target),
          options = {
            c: 16,
            n: 1e9,
            seconds: Math.max(2, Math.round(5 * share)),
            headers: { ...json, authorization: `Bearer ${secrets.ADMIN_TOKEN}` },
            ...(method === "PUT" ? { method, body: '{"alias":"bench","model":"up/bench"}' } : {}),
          },
          machineId = keys.get(target).authorization.split("-")[1];
        const report = await load(`${server.url}/${machineId}/api/models/alias`, options);
        if (report.wrong) throw new Error(`${what} on ${target.name}: ${report.first_wrong}`);
        rate[target.name] = report.n / report.seconds;
      }
      add({
        id: `postgres_${id}`,
        title: `  ${what} (${rate.native.toFixed(0)} over a file)`,
        unit: "1/s",
        figures: { native: rate.postgres },
        digits: 0,
      });
    }
  } finally {
    await down();
    database.stdin.end();
  }
}

// exports compares a server whose machine exports all that can be with one that exports
// nothing: spans, metrics and logs by OTLP, the log of requests to a store, and GET /metrics
// every 15 s. Both run at once and are called in turns, in slices of a second whose calls a
// report can list, so nothing is dropped. The CPU is that of all slices and of what follows
// them: exports come seconds after their calls.
async function exports() {
  const count = Math.ceil(60 * share),
    cpu = {},
    more = {};
  for (const [name, n] of [
    ["native", 400],
    ["edge", 100],
  ]) {
    const taken = [];
    for (let i = 0; i < rounds; i++) taken.push(await sliced(name, n, count, i));
    cpu[name] = median(taken.map((t) => t.exporting));
    more[name] = median(taken.map((t) => (t.exporting / t.plain - 1) * 100));
  }
  add({ id: "exports", title: "CPU per chat call with every export on", unit: "ms CPU", figures: cpu });
  const title = "  more than without an export";
  add({ id: "exports_more", title, unit: "%", figures: more, digits: 1, limit: 5, goal: 4 });
}

// sliced returns the CPU of a call in milliseconds, with and without exports, of new servers.
async function sliced(name, n, count, round) {
  const servers = {},
    spent = {};
  for (const kind of ["plain", "exporting"]) {
    const id = `exports-${kind}-${round}`,
      storage = join(out, id, "storage");
    const server = await (name === "native"
      ? weir.serve(storage, { env: settings })
      : serve(prepare(id, join(root, "build")), "worker.mjs", { env: settings, kvPort, storage }));
    servers[kind] = { server, headers: await tenant(server, undefined, kind === "exporting" ? sinks : []) };
  }
  const call = ({ server, headers }, n) => {
    const { path, ...how } = requests.chat({ own: true });
    return load(server.url + path, { ...how, n, c: 8, headers });
  };
  const settled = () => sleep(12_000); // reports are written after 10 s
  const dropped = async () => {
    const { server, headers } = servers.exporting,
      path = `/${headers.authorization.split("-")[1]}/api/destinations`;
    const { data } = await (await fetch(server.url + path, { headers: asOperator })).json();
    return data.reduce((sum, d) => sum + d.dropped, 0);
  };
  const slice = async (i) => {
    const next = sleep(1000);
    for (const kind of i % 2 ? ["plain", "exporting"] : ["exporting", "plain"]) {
      const report = await call(servers[kind], n);
      if (report.wrong) throw new Error(`exports on ${name}: ${report.first_wrong}`);
    }
    if (i % 15 === 7) await (await fetch(servers.exporting.server.url + "/metrics", { headers: asOperator })).text();
    await next;
  };
  for (let i = 0; i < 15; i++) await slice(i); // warm
  await settled();
  for (const [kind, { server }] of Object.entries(servers)) spent[kind] = -server.cpu();
  for (let i = 0; i < count; i++) await slice(i);
  await settled();
  for (const [kind, { server }] of Object.entries(servers))
    spent[kind] = ((spent[kind] + server.cpu()) * 1000) / (n * count);
  if ((await dropped()) > 0) throw new Error(`exports on ${name}: ${await dropped()} entries were dropped`);
  for (const s of Object.values(servers)) await s.server.close();
  return spent;
}

function sizes() {
  const wasm = readFileSync(join(root, "build/app.wasm"));
  add({
    id: "size",
    title: "app.wasm and the binary",
    unit: "MiB",
    figures: { edge: wasm.length / MiB, native: statSync(weir.binary).size / MiB },
    goal: 28,
  });
  const gzipped = gzipSync(wasm, { level: 9 }).length / MiB;
  add({ id: "wasm_gzip", title: "app.wasm gzipped", unit: "MiB", figures: { edge: gzipped } });
}

try {
  for (const row of rowsOf({ floor, script, bridge, edge, native, upstreamUrl }).filter((r) => wanted(r.id)))
    await compare(row);
  if (wanted("models")) await modelList();
  if (wanted("added")) await waiting();
  if (wanted("postgres")) await shared();
  if (wanted("exports")) await exports();
  for (const target of [edge, native]) await up(target); // have the machines that the rows below use
  await down();
  if (wanted("rate")) await rates();
  if (wanted("neighbour")) await neighbour();
  if (wanted("rss")) await resting();
  if (wanted("memory")) await memory();
  const own = (is, name) => (is ? `up/${name}` : name);
  const metered = (name, pieces) => (is) => ({
    path: "/v1/chat/completions",
    body: chat(own(is, name), true),
    ends: done,
    pieces,
    equal: true,
  });
  const translated = (is) => ({
    path: "/v1/messages",
    body: message(own(is, "slow"), true),
    ends: stopped,
    pieces: 12,
  });
  if (wanted("slow")) await many("slow", "1,000 slow streams, metered", floor, metered("slow", 12), 60);
  if (wanted("slow_translated")) await many("slow_translated", "1,000 slow streams, translated", script, translated);
  if (wanted("idle")) await many("idle", "1,000 idle streams, metered", floor, metered("idle", 1));
  if (wanted("cold")) await starts();
  sizes();
} finally {
  await down();
  upstream.stdin.end();
}
console.log("\nwritten to test/out/bench.json");
