// Compares what builds of the worker cost before their first call, and in it.
//
//	node test/bench/start.mjs NAME=FOLDER … [ROUNDS]
//
// The floor is measured with them. Each figure is the median of ROUNDS (9), taken in
// turns. CPU is the time of the workerd process by the kernel's scheduler, in ms:
//
//	start     from the start until nothing runs any more: all threads
//	isolate   the part of the thread that boots the worker
//	rss       memory of the process then, in MiB
//	health    the first GET /health of an isolate: time until the answer, CPU until idle
//	call      the first embeddings call of an isolate, and next the one after it
//
// Before, it prints what the engine compiles, which is the same on every computer:
// functions and kB of their code, once by the quick compiler (Liftoff), and again by
// the slow one (TurboFan), at the start and in the first call.
import { execFileSync, spawn } from "node:child_process";
import { mkdirSync } from "node:fs";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { admin } from "../e2e/gateway.mjs";
import { MiB } from "../e2e/isolate.mjs";
import { embed } from "./rows.mjs";
import { prepare, root, serve } from "./workerd.mjs";

const args = process.argv.slice(2);
const rounds = Number(args.find((a) => !a.includes("=")) ?? 9);
const out = join(root, "test/out/bench");
const secrets = {
  ADMIN_TOKEN: "bench-admin-token-0123456789abcdef01234",
  API_KEY_SECRET: "bench-api-key-secret-0123456789abcdef01",
  CREDENTIALS_KEY: "bench-credentials-key-0123456789abcdef0",
};

mkdirSync(out, { recursive: true });
for (const program of ["load", "upstream"])
  execFileSync("go", ["build", "-o", join(out, program), `./test/bench/${program}`], { cwd: root, stdio: "inherit" });
const upstream = spawn(join(out, "upstream"), { stdio: ["pipe", "pipe", "inherit"] });
const [port, kvPort] = (await new Promise((r) => createInterface(upstream.stdout).once("line", r))).split(" ");
const upstreamUrl = `http://127.0.0.1:${port}`;

// variant is one worker under measurement; figures has a list for each of its names.
const variant = (name, from, main, how) => {
  const dir = prepare("start-" + name, from);
  return { name, figures: {}, start: (more) => serve(dir, main, { ...how, ...more }) };
};
const floor = variant("floor", join(root, "test/bench/floor.mjs"), "floor.mjs", { env: { UPSTREAM: upstreamUrl } });
const builds = args
  .filter((a) => a.includes("="))
  .map((a) => {
    const [name, folder] = a.split("=");
    const env = { ...secrets, ALLOW_PRIVATE_UPSTREAMS: "true", PRICES_URL: "off", LOG_LEVEL: "error" };
    return variant(name, resolve(folder), "worker.mjs", { env, kvPort });
  });
const variants = [floor, ...builds];
const note = ({ figures }, more) => {
  for (const [name, x] of Object.entries(more)) (figures[name] ??= []).push(x);
};
const median = (list) => list.toSorted((a, b) => a - b)[list.length >> 1];

// ready starts a worker and waits until nothing runs in it any more.
async function ready(variant, flags = []) {
  const server = await variant.start({ flags });
  await server.idle();
  return server;
}

// tenant creates a machine and returns the head of a caller, as options of load.
async function tenant() {
  const server = await ready(builds[0]),
    operator = admin({ fetch: (path, init) => fetch(server.url + path, init) }, secrets.ADMIN_TOKEN);
  const { machineId, apiKey } = await operator.machine();
  await operator.connect(machineId, {
    provider: "openai-compatible-0123abcd",
    name: "up",
    apiKey: "bench-upstream-key",
    providerSpecificData: { baseUrl: `${upstreamUrl}/v1`, prefix: "up", enabledModels: ["bench"] },
  });
  await new Promise((r) => setTimeout(r, 3000)); // its alarm, which would run at the next start
  await server.idle();
  await server.close();
  return ["-header", `authorization: Bearer ${apiKey}`, "-header", "content-type: application/json"];
}

// request sends one request and waits until nothing runs any more.
async function request(server, caller, path, body) {
  const cpu = server.cpu(),
    options = ["-url", server.url + path, "-n", "1", "-c", "1", ...caller, ...(body ? ["-method", "POST"] : [])];
  const report = JSON.parse(execFileSync(join(out, "load"), options, { input: body ?? "" }));
  await server.idle();
  return { ms: report.p50_us / 1000, cpu: (server.cpu() - cpu) * 1000 };
}
const call = (server, caller) => request(server, caller, "/v1/embeddings", embed("up/bench"));

function compiled(text, compiler) {
  const sizes = [...text.matchAll(new RegExp(`using ${compiler}, .* bodysize (\\d+)`, "g"))].map((m) => Number(m[1]));
  return `${compiler} ${sizes.length} functions, ${Math.round(sizes.reduce((a, b) => a + b, 0) / 1000)} kB`;
}

// compilations prints what is compiled.
async function compilations(build, caller) {
  const server = await ready(build, ["--trace-wasm-compilation-times"]),
    first = server.output();
  await call(server, caller);
  for (const [when, text] of [
    ["at the start", first],
    ["in the first call", server.output().slice(first.length)],
  ])
    console.log(`${build.name} ${when}: ${compiled(text, "Liftoff")}; ${compiled(text, "TurboFan")}`);
  await server.close();
}

try {
  const caller = await tenant();
  for (const build of builds) await compilations(build, caller);
  for (let i = 0; i < rounds; i++) {
    for (const v of variants) {
      let server = await ready(v);
      note(v, { start: server.cpu() * 1000, isolate: server.threads()[0] * 1000, rss: server.rss() / MiB });
      const health = await request(server, caller, "/health");
      note(v, { health_ms: health.ms, health_cpu: health.cpu });
      await server.close();
      server = await ready(v);
      note(v, { start: server.cpu() * 1000, isolate: server.threads()[0] * 1000 });
      const first = await call(server, caller),
        next = await call(server, caller);
      note(v, { call_ms: first.ms, call_cpu: first.cpu, next_ms: next.ms, next_cpu: next.cpu });
      await server.close();
    }
  }
  const names = Object.keys(floor.figures);
  console.log("".padEnd(20) + names.map((n) => n.padStart(11)).join(""));
  for (const { name, figures } of variants)
    for (const [what, of] of [
      ["median", median],
      ["least", (list) => Math.min(...list)],
    ])
      console.log(`${name} ${what}`.padEnd(20) + names.map((n) => of(figures[n]).toFixed(1).padStart(11)).join(""));
} finally {
  upstream.stdin.end();
}
