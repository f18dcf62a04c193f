// Runs one worker in a workerd of its own, with a config that has nothing in
// it but the worker and its storage.
import { execFileSync, spawn } from "node:child_process";
import { closeSync, cpSync, mkdirSync, openSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { answering, freePort, listening, onCore, usage } from "./process.mjs";

export const root = fileURLToPath(new URL("../../", import.meta.url));
const toml = readFileSync(join(root, "wrangler.toml"), "utf8");
const shared = join(root, "test/out/bench/storage");
const setting = (name) => JSON.parse(new RegExp(`^${name} = (.+)$`, "m").exec(toml)[1]);

// config is the text of the capnp config.
//
//	env       text bindings
//	kvPort    where the KV is, for a worker with the gateway's storage
//	flags     of V8
//	disk      the folder of that storage
function config(main, files, port, env, kvPort, flags, disk) {
  const kind = (f) => (f.endsWith(".wasm") ? "wasm" : "esModule");
  const modules = [main, ...files.filter((f) => f !== main)].map((f) => `(name = "${f}", ${kind(f)} = embed "${f}")`);
  const bindings = Object.entries(env).map(([k, v]) => `(name = "${k}", text = ${JSON.stringify(v)})`);
  if (kvPort)
    bindings.push(`(name = "KV", kvNamespace = "kv")`, `(name = "MACHINE", durableObjectNamespace = "Machine")`);
  return `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [
    (name = "main", worker = .main),
    (name = "internet", network = (allow = ["public", "private", "local"])),
    ${
      kvPort
        ? `(name = "kv", external = (address = "127.0.0.1:${kvPort}", http = ())),
    (name = "disk", disk = (path = "${disk}", writable = true)),`
        : ""
    }
  ],
  v8Flags = ${JSON.stringify(flags)},
  sockets = [(name = "http", address = "127.0.0.1:${port}", http = (), service = "main")],
);
const main :Workerd.Worker = (
  modules = [${modules.join(", ")}],
  bindings = [${bindings.join(", ")}],
  compatibilityDate = "${setting("compatibility_date")}",
  compatibilityFlags = ${JSON.stringify(setting("compatibility_flags"))},
  ${
    kvPort
      ? `durableObjectNamespaces = [(className = "Machine", uniqueKey = "bench", enableSql = true)],
  durableObjectStorage = (localDisk = "disk"),`
      : ""
  }
);
`;
}

// prepare lays a worker's files out; `from` is a folder or a single module.
export function prepare(name, from, more = []) {
  const dir = join(root, "test/out/bench", name);
  rmSync(dir, { recursive: true, force: true });
  mkdirSync(dir, { recursive: true });
  for (const f of [from, ...more])
    cpSync(f, f.endsWith(".mjs") ? join(dir, f.split("/").at(-1)) : dir, { recursive: true });
  return dir;
}

// serve starts workerd with the files of dir; inspect opens its debugger, core pins
// it to one core, ready waits until it answers instead of until it listens, and storage is the
// folder of the objects, which all workers share by default.
//
// The result has url, startMs (until then), what usage of process.mjs has, output(),
// inspector (where the debugger listens) and close(). flags are for V8.
export async function serve(
  dir,
  main,
  { env = {}, kvPort = 0, inspect = false, core, ready = false, flags = [], storage = shared } = {},
) {
  mkdirSync(storage, { recursive: true });
  const port = await freePort(),
    inspector = inspect ? `127.0.0.1:${await freePort()}` : null,
    url = `http://127.0.0.1:${port}`;
  const files = readdirSync(dir).filter((f) => /\.(mjs|js|wasm)$/.test(f));
  writeFileSync(join(dir, "config.capnp"), config(main, files, port, env, kvPort, flags, storage));
  const binary = join(root, "node_modules/workerd/bin/workerd");
  const path = (await import(join(root, "node_modules/workerd/lib/main.js"))).default.default ?? binary;
  // Compiled before the start: as text, the config with the program in it takes
  // longer to read than the program to start.
  const compiled = openSync(join(dir, "config.bin"), "w");
  execFileSync(path, ["compile", "--config-only", join(dir, "config.capnp")], {
    stdio: ["ignore", compiled, "inherit"],
  });
  closeSync(compiled);
  const from = performance.now();
  const args = ["serve", "--experimental", "--binary", ...(inspector ? [`--inspector-addr=${inspector}`] : [])];
  const child = spawn(...onCore(core, path, [...args, join(dir, "config.bin")]), {
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "",
    complaints = "";
  child.stdout.setEncoding("utf8").on("data", (t) => {
    output += t;
  });
  child.stderr.setEncoding("utf8").on("data", (t) => {
    if (complaints.length < 10_000) complaints += t;
  });
  if (!(ready ? await answering(url, child, !kvPort) : await listening(port, child)))
    throw new Error(`workerd did not start\n${complaints}`);
  return {
    url,
    inspector,
    startMs: performance.now() - from,
    ...usage(child.pid),
    output: () => output,
    complaints: () => complaints,
    close: () =>
      new Promise((resolve) => {
        child.once("exit", resolve);
        child.kill("SIGKILL");
      }),
  };
}
