// ./build.sh bench: what a call costs in weir, as a ratio to a worker that
// passes everything on and looks at nothing, in the same workerd build, with
// the same upstream, in one run. Writes test/out/bench.json.
//
// The CPU is that of the workerd process; load and upstream run beside it. Each
// figure is the median of ROUNDS (3), measured in turns with the floor. ROWS is
// a regular expression on the ids of the rows to take; absent, all.
import { execFileSync, spawn } from "node:child_process";
import { createHmac, randomBytes } from "node:crypto";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { gzipSync } from "node:zlib";
import { MiB, debug } from "../e2e/isolate.mjs";
import { prepare, root, serve } from "./workerd.mjs";

const rounds = Number(process.env.ROUNDS ?? 3);
const out = join(root, "test/out/bench");
const secrets = {
  ADMIN_TOKEN: "bench-admin-token-0123456789abcdef01234",
  API_KEY_SECRET: "bench-api-key-secret-0123456789abcdef01",
  CREDENTIALS_KEY: "bench-credentials-key-0123456789abcdef0",
};
const wanted = (id) => new RegExp(process.env.ROWS ?? "").test(id);
const median = (list) => list.toSorted((a, b) => a - b)[list.length >> 1];
const json = { "content-type": "application/json" };

rmSync(out, { recursive: true, force: true });
mkdirSync(out, { recursive: true });
for (const program of ["load", "upstream"])
  execFileSync("go", ["build", "-o", join(out, program), `./test/bench/${program}`], { cwd: root, stdio: "inherit" });

const upstream = spawn(join(out, "upstream"), { stdio: ["pipe", "pipe", "inherit"] });
const [port, kvPort] = (await new Promise((r) => createInterface(upstream.stdout).once("line", r))).split(" ");
const upstreamUrl = `http://127.0.0.1:${port}`;

// load runs the load generator and returns its report.
function load(url, { n, c = 32, seconds = 20, body = null, headers = {}, ends = "", pieces = 1, equal = false }) {
  const args = ["-url", url, "-n", n, "-c", c, "-seconds", seconds, "-ends", ends, "-pieces", pieces].map(String);
  if (equal) args.push("-equal");
  if (body) args.push("-post");
  for (const [k, v] of Object.entries({ ...(body ? json : {}), ...headers })) args.push("-header", `${k}: ${v}`);
  return new Promise((resolve, reject) => {
    const child = spawn(join(out, "load"), args, { stdio: ["pipe", "pipe", "inherit"] });
    let text = "";
    child.stdout.on("data", (d) => {
      text += d;
    });
    child.on("close", (code) => (code ? reject(new Error(`load ended with ${code}`)) : resolve(JSON.parse(text))));
    child.stdin.end(body ?? "");
  });
}

// Targets: the floor, the same translation in JavaScript, the bare bridge
// (worker/bridgetest) and the gateway.
const floor = {
  name: "floor",
  dir: prepare("floor", join(root, "test/bench/floor.mjs")),
  main: "floor.mjs",
  env: { UPSTREAM: upstreamUrl },
};
const script = {
  name: "script",
  dir: prepare("script", join(root, "test/bench/translate.mjs")),
  main: "translate.mjs",
  env: { UPSTREAM: upstreamUrl },
};
const bridge = { name: "bridge", dir: prepare("bridge", join(root, "test/out/bridge")), main: "worker.mjs", env: {} };
const weir = {
  name: "weir",
  dir: prepare("weir", join(root, "build"), [join(root, "test/bench/entry.mjs")]),
  main: "entry.mjs",
  env: { ...secrets, ALLOW_PRIVATE_UPSTREAMS: "true", LOG_LEVEL: "error" },
  kvPort,
};

// tenant seeds a machine through KV, as `wrangler kv key put` does, and returns
// the headers of a caller.
async function tenant() {
  const machineId = randomBytes(8).toString("hex"),
    keyId = randomBytes(13).toString("hex");
  const check = createHmac("sha256", secrets.API_KEY_SECRET)
    .update(machineId + keyId)
    .digest("hex")
    .slice(0, 8);
  const apiKey = `sk-${machineId}-${keyId}-${check}`;
  const connection = (family, prefix) => ({
    id: `bench-${prefix}`,
    provider: `${family}-compatible-0123abcd`,
    apiKey: "bench-upstream-key",
    providerSpecificData: { baseUrl: upstreamUrl + "/v1", prefix },
  });
  // "two" has a second account behind the first; the lists make 1,000 models of five connections.
  const two = [1, 2].map((priority) => ({
    ...connection("openai", "two"),
    id: `bench-two-${priority}`,
    provider: "openai-compatible-22222222",
    priority,
  }));
  const lists = [3, 4].map((i) => ({
    ...connection("openai", `list${i}`),
    provider: `openai-compatible-${i}${i}${i}${i}${i}${i}${i}${i}`,
  }));
  const connections = [connection("openai", "up"), connection("anthropic", "an"), ...two, ...lists];
  for (const c of connections)
    c.providerSpecificData.enabledModels = Array.from({ length: 200 }, (_, i) => `bench-${i}`);
  await fetch(`http://127.0.0.1:${kvPort}/machine:${machineId}`, {
    method: "PUT",
    body: JSON.stringify({ connections, apiKeys: [apiKey] }),
  });
  return { authorization: `Bearer ${apiKey}` };
}

const embed = (model) =>
  JSON.stringify({ model, input: "The food was delicious and the waiter friendly.", encoding_format: "base64" });
const chat = (model, stream) =>
  JSON.stringify({
    model,
    messages: [{ role: "user", content: "Say hello in a friendly way." }],
    ...(stream ? { stream: true } : {}),
  });
const message = (model, stream) =>
  JSON.stringify({
    model,
    max_tokens: 1000,
    messages: [{ role: "user", content: "Say hello in a friendly way." }],
    ...(stream ? { stream: true } : {}),
  });
const done = "data: [DONE]\n\n",
  stopped = 'event: message_stop\ndata: {"type":"message_stop"}\n\n';

// A form of 24 MiB that goes up with its model first.
const formPart = (name, more = "") =>
  `------formdata-undici-028837456192\r\nContent-Disposition: form-data; name="${name}"${more}\r\n\r\n`;
const form = (model) =>
  Buffer.concat([
    Buffer.from(formPart("model") + model + "\r\n" + formPart("file", '; filename="a.mp3"')),
    Buffer.alloc(24 * MiB, "0123456789abcdef"),
    Buffer.from("\r\n------formdata-undici-028837456192--\r\n"),
  ]);
const formHead = { "content-type": "multipart/form-data; boundary=----formdata-undici-028837456192" };

// A row compares one way to serve with the floor's way to serve the same, or
// with that of another target, base.
//
//	of(target) returns path, body and more for load; limit is the budget; MiB is
//	how many a request moves: the figure is for one of them then. same checks
//	that both write the same bytes.
const rows = [
  {
    id: "embeddings",
    title: "CPU per embeddings call, 32 connections",
    limit: 1.7,
    n: 15000,
    target: weir,
    of: (t) => ({ path: "/v1/embeddings", body: embed(t === weir ? "up/bench" : "bench") }),
  },
  {
    id: "fallback",
    title: "the same with a second account behind the first",
    limit: 1.7,
    n: 15000,
    target: weir,
    of: (t) => ({ path: "/v1/embeddings", body: embed(t === weir ? "two/bench" : "bench") }),
  },
  {
    id: "chat",
    title: "CPU per chat call, 32 connections",
    limit: 1.7,
    n: 15000,
    target: weir,
    of: (t) => ({ path: "/v1/chat/completions", body: chat(t === weir ? "up/bench" : "bench") }),
  },
  {
    id: "stream",
    title: "CPU per 200-chunk stream, same dialect, metered",
    limit: 1.5,
    n: 640,
    target: weir,
    of: (t) => ({
      path: "/v1/chat/completions",
      body: chat(t === weir ? "up/bench" : "bench", true),
      ends: done,
      equal: true,
    }),
  },
  {
    id: "chat_from_messages",
    title: "CPU per 200-chunk stream, Messages to chat, against JS",
    limit: 1.1,
    n: 640,
    base: script,
    target: weir,
    same: true,
    of: (t) => ({ path: "/v1/chat/completions", body: chat(t === weir ? "an/bench" : "bench", true), ends: done }),
  },
  {
    id: "messages_from_chat",
    title: "CPU per 200-chunk stream, chat to Messages, against JS",
    limit: 1.1,
    n: 640,
    base: script,
    target: weir,
    same: true,
    of: (t) => ({ path: "/v1/messages", body: message(t === weir ? "up/bench" : "bench", true), ends: stopped }),
  },
  {
    id: "upload",
    title: "CPU per MiB of a form with its model first",
    n: 60,
    MiB: 24,
    target: weir,
    of: (t) => ({
      path: "/v1/audio/transcriptions",
      body: form(t === weir ? "up/bench" : "bench"),
      headers: formHead,
      c: 4,
      ends: "}",
      equal: true,
    }),
  },
  {
    id: "download",
    title: "CPU per MiB of a video's content",
    n: 60,
    MiB: 24,
    target: weir,
    of: (t) => ({ path: t === weir ? "/v1/videos/job-1/content" : "/file.mp4", c: 4, ends: "def", equal: true }),
  },
  {
    id: "bridge_post",
    title: "bridge alone: CPU per call",
    n: 15000,
    target: bridge,
    of: (t) =>
      t === bridge
        ? { path: `/post?${upstreamUrl}/v1/embeddings`, body: embed("bench") }
        : { path: "/v1/embeddings", body: embed("bench") },
  },
  ...["splice", "watch", "through"].map((kind) => ({
    id: `bridge_${kind}`,
    title: `bridge alone: CPU per 200-chunk stream, ${kind}`,
    n: 640,
    target: bridge,
    of: (t) =>
      t === bridge
        ? { path: `/${kind}?${upstreamUrl}/v1/events`, ends: kind === "through" ? "<end <nil>>" : done }
        : { path: "/v1/events", ends: done },
  })),
];

const warmed = new Set();
async function measure(server, target, row, headers) {
  const { path, ...how } = row.of(target);
  const options = { n: row.n, ...how, headers: { ...headers, ...how.headers } };
  // Warm, so that nothing is compiled any more: the engine's best code comes after some thousand calls.
  const warm = row.id + target.name;
  await load(server.url + path, { ...options, n: warmed.has(warm) ? Math.ceil(row.n / 5) : Math.max(1500, row.n / 5) });
  warmed.add(warm);
  const cpu = server.cpu(),
    report = await load(server.url + path, options);
  if (report.wrong)
    throw new Error(`${row.id} on ${target.name}: ${report.wrong} wrong answers, the first: ${report.first_wrong}`);
  return {
    ms: ((server.cpu() - cpu) * 1000) / report.n / (row.MiB ?? 1),
    p50: report.p50_us / 1000,
    perSecond: report.n / report.seconds,
  };
}

// served returns the target's answer to the row, or false when the target does
// not serve the row's path.
async function served(server, target, row, headers) {
  const { path, body, headers: own } = row.of(target);
  const res = await fetch(server.url + path, {
    method: body ? "POST" : "GET",
    headers: { ...headers, ...(body ? json : {}), ...own },
    body,
  });
  const text = await res.text();
  if (res.ok) return text;
  if (res.status === 404 || res.status === 405) return false;
  throw new Error(`${row.id} on ${target.name}: ${res.status} ${text.slice(0, 200)}`);
}

const results = [],
  gateways = new Map(),
  keys = new Map();
async function up(target) {
  if (!gateways.has(target)) {
    gateways.set(target, await serve(target.dir, target.main, target));
    keys.set(target, target === weir ? await tenant() : {});
  }
  return gateways.get(target);
}

// waiting takes one connection and calls in turn: what waiting is added.
async function waiting() {
  const row = { ...rows[0], n: 2000 },
    times = { floor: [], weir: [] };
  for (let i = 0; i < rounds; i++) {
    for (const target of [floor, weir]) {
      const server = await up(target),
        { path, ...how } = row.of(target);
      times[target.name].push(
        (await load(server.url + path, { ...how, n: row.n, c: 1, headers: keys.get(target) })).p50_us / 1000,
      );
    }
  }
  const p50 = { floor: median(times.floor), weir: median(times.weir) };
  results.push({
    id: "added_p50",
    title: "added p50, one connection",
    unit: "ms",
    ...p50,
    difference: p50.weir - p50.floor,
    limit: 0.2,
  });
}

// modelList is the list of 1,000 models over five providers from what is kept.
async function modelList() {
  const server = await up(weir),
    options = { n: 5000, headers: keys.get(weir) },
    url = server.url + "/v1/models";
  const listed = (await (await fetch(url, { headers: keys.get(weir) })).json()).data.length;
  if (listed < 1000) throw new Error(`${listed} models are listed`);
  await load(url, { ...options, n: 500 });
  const cpu = server.cpu();
  await load(url, options);
  results.push({
    id: "models",
    title: `CPU per kept list of ${listed} models`,
    unit: "ms CPU",
    weir: ((server.cpu() - cpu) * 1000) / options.n,
    limit: 0.6,
  });
}

// memory is looked at after 10,000 and after 100,000 requests of many sizes,
// in a new isolate.
async function memory() {
  const server = await serve(weir.dir, weir.main, weir),
    headers = keys.get(weir);
  const texts = [1, 20, 300, 2000].map((n) => "The food was delicious. ".repeat(n));
  const used = async () => (await (await fetch(server.url + "/bench-stats")).json()).memory / 2 ** 20;
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
  await send(10_000);
  const early = await used();
  for (let i = 0; i < 9; i++) await send(10_000);
  const late = await used();
  await server.close();
  results.push({ id: "memory", title: "linear memory after 100,000 requests", unit: "MiB", weir: late, limit: 16 });
  results.push({
    id: "memory_growth",
    title: "its growth since request 10,000",
    unit: "MiB",
    weir: late - early,
    limit: 0.05 * early,
  });
}

// idle waits until a server does nothing any more.
async function idle(server) {
  for (let before = -1, now = server.cpu(); now > before; before = now, now = server.cpu())
    await new Promise((r) => setTimeout(r, 200));
}

// many keeps 1,000 streams open at once and takes what the isolate has: at
// most, and open with all garbage gone; the process; the CPU of a stream.
async function many(id, title, base, of) {
  const figures = {};
  for (const target of [base, weir]) {
    const server = await serve(target.dir, target.main, { ...target, inspect: true }),
      headers = target === weir ? keys.get(weir) : {};
    const stats =
      target === weir
        ? async () => (await fetch(server.url + "/bench-stats")).json()
        : async () => {
            await (await fetch(server.url, { method: "POST", body: "{}" })).text();
            return { memory: 0 };
          };
    const { path, ...how } = of(target === weir);
    await (
      await fetch(server.url + path, {
        method: "POST",
        headers: { ...headers, ...json },
        body: how.body.replace(/(slow|idle)/, "bench"),
      })
    ).text(); // adopts the machine
    await load(server.url + path, {
      ...how,
      body: how.body.replace(/(slow|idle)/, "bench"),
      pieces: 1,
      n: 50,
      headers,
    }); // warm
    const isolate = await debug(server.inspector, stats),
      before = { ...(await isolate.collect()), rss: server.rss() };
    const cpu = server.cpu(),
      watched = isolate.watch(500),
      running = load(server.url + path, { ...how, n: 1000, c: 1000, seconds: 1, headers });
    await new Promise((r) => setTimeout(r, 7000));
    const open = await isolate.collect(),
      rss = server.rss() - before.rss,
      report = await running,
      peak = await watched.stop();
    if (report.wrong || report.n !== 1000)
      throw new Error(`${id} on ${target.name}: ${report.n} right, ${report.wrong} wrong: ${report.first_wrong}`);
    figures[target === weir ? "weir" : "floor"] = {
      open: open.total / MiB,
      peak: peak.total / MiB,
      rss: rss / MiB,
      cpu: server.cpu() - cpu,
      parts: Object.fromEntries(Object.entries(peak).map(([k, v]) => [k, +(v / MiB).toFixed(1)])),
    };
    isolate.close();
    await server.close();
  }
  const { floor: a, weir: b } = figures,
    both = (name) => ({ floor: a[name], weir: b[name] });
  results.push({ id, title: `${title}: isolate at most`, unit: "MiB", ...both("peak"), limit: 128, parts: b.parts });
  results.push({ id: id + "_open", title: "  its garbage collected", unit: "MiB", ...both("open") });
  results.push({
    id: id + "_rss",
    title: "  the process, more than before",
    unit: "MiB",
    ...both("rss"),
    difference: b.rss - a.rss,
  });
  results.push({
    id: id + "_cpu",
    title: "  CPU of all, looking included",
    unit: "s",
    ...both("cpu"),
    ratio: b.cpu / a.cpu,
  });
}

// firstRequests takes the first request of an isolate: a new process each
// time, the machine known to its object and to KV.
async function firstRequests(key) {
  const cold = { floor: [], weir: [] },
    starts = { floor: [], weir: [] };
  for (let i = 0; i < Math.max(5, rounds); i++) {
    for (const target of [floor, weir]) {
      const server = await serve(target.dir, target.main, target),
        { path, ...how } = rows[0].of(target);
      await idle(server); // it listens before its worker has booted
      const report = await load(server.url + path, { ...how, n: 1, c: 1, headers: target === weir ? key : {} });
      await server.close();
      if (report.wrong) throw new Error(`cold ${target.name}: ${report.first_wrong}`);
      cold[target.name].push(report.p50_us / 1000);
      starts[target.name].push(server.startMs);
    }
  }
  results.push({
    id: "cold",
    title: "first request of a cold isolate",
    unit: "ms",
    floor: median(cold.floor),
    weir: median(cold.weir),
    limit: 10,
  });
  results.push({
    id: "start",
    title: "start of workerd until it listens (compiles, boots)",
    unit: "ms",
    floor: median(starts.floor),
    weir: median(starts.weir),
  });
}

try {
  const low = await up(floor);
  for (const row of rows.filter((r) => wanted(r.id))) {
    const server = await up(row.target),
      headers = keys.get(row.target),
      base = row.base ?? floor,
      other = row.base ? await up(row.base) : low;
    if (row.id === "download")
      await (
        await fetch(server.url + "/v1/videos/generations", {
          method: "POST",
          headers: { ...headers, ...json },
          body: '{"model":"up/bench","prompt":"a"}',
        })
      ).text();
    const answer = await served(server, row.target, row, headers);
    if (answer === false) {
      console.log(`${row.title}: not served yet`);
      continue;
    }
    if (row.same) {
      const alike = (t) => t.replace(/"id":"[^"]*"/g, "").replace(/"created":\d+/g, ""),
        theirs = await served(other, base, row, {});
      if (alike(answer) !== alike(theirs))
        throw new Error(`${row.id}: not the same\n${answer.slice(0, 600)}\n…\n${theirs.slice(0, 600)}`);
    }
    const ours = [],
      theirs = [];
    for (let i = 0; i < rounds; i++) {
      theirs.push(await measure(other, base, row, {}));
      ours.push(await measure(server, row.target, row, headers));
    }
    const a = median(theirs.map((x) => x.ms)),
      b = median(ours.map((x) => x.ms));
    results.push({ id: row.id, title: row.title, unit: "ms CPU", floor: a, weir: b, ratio: b / a, limit: row.limit });
  }

  if (wanted("models")) await modelList();
  if (wanted("added_p50")) await waiting();
  await up(weir); // has the machine that the rows below use
  for (const s of gateways.values()) await s.close();
  gateways.clear();
  const key = keys.get(weir);
  if (wanted("memory")) await memory();
  for (const [id, title, base, of] of [
    [
      "slow",
      "1,000 slow streams, metered",
      floor,
      (own) => ({
        path: "/v1/chat/completions",
        body: chat(own ? "up/slow" : "slow", true),
        ends: done,
        pieces: 12,
        equal: true,
      }),
    ],
    [
      "slow_translated",
      "1,000 slow streams, translated",
      script,
      (own) => ({ path: "/v1/messages", body: message(own ? "up/slow" : "slow", true), ends: stopped, pieces: 12 }),
    ],
    [
      "idle",
      "1,000 idle streams, metered",
      floor,
      (own) => ({ path: "/v1/chat/completions", body: chat(own ? "up/idle" : "idle", true), ends: done, equal: true }),
    ],
  ])
    if (wanted(id)) await many(id, title, base, of);
  if (wanted("cold")) await firstRequests(key);

  const wasm = readFileSync(join(root, "build/app.wasm"));
  results.push({ id: "wasm", title: "app.wasm", unit: "MB", weir: wasm.length / 2 ** 20 });
  results.push({
    id: "wasm_gzip",
    title: "app.wasm gzipped",
    unit: "MB",
    weir: gzipSync(wasm, { level: 9 }).length / 2 ** 20,
  });
} finally {
  for (const s of gateways.values()) await s.close();
  upstream.stdin.end();
}

const cell = (x, digits = 2) => (x === undefined ? "" : x.toFixed(digits)).padStart(9);
console.log(
  `\n${"".padEnd(54)} ${"unit".padEnd(7)}${"floor".padStart(9)}${"weir".padStart(9)}${"ratio".padStart(9)}${"budget".padStart(9)}`,
);
for (const r of results) {
  const ratio = r.ratio ?? r.difference;
  console.log(
    `${r.title.padEnd(54)} ${r.unit.padEnd(7)}${cell(r.floor, 3)}${cell(r.weir, 3)}${ratio === undefined ? "".padStart(9) : (r.difference === undefined ? "×" : "+").padStart(4) + ratio.toFixed(2).padStart(5)}${cell(r.limit)}`,
  );
}
writeFileSync(
  join(root, "test/out/bench.json"),
  JSON.stringify({ at: new Date().toISOString(), rounds, results }, null, 2) + "\n",
);
console.log("\nwritten to test/out/bench.json");
