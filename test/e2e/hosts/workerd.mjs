// The edge platform of the tests: the built worker in real workerd, by miniflare,
// with its storage. gateway.mjs documents what a host exports.
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { fileURLToPath } from "node:url";
import { Log, LogLevel, Miniflare, convertV4MiniflareOptions } from "miniflare";
import { debug, limit, resident, workers } from "../isolate.mjs";

const root = fileURLToPath(new URL("../../../", import.meta.url));
const toml = readFileSync(join(root, "wrangler.toml"), "utf8");
const setting = (name) => JSON.parse(new RegExp(`^${name} = (.+)$`, "m").exec(toml)[1]);

// modules reads a folder that build.sh made; the entry comes first.
function modules(dir) {
  const names = readdirSync(dir).filter((n) => /\.(mjs|js|wasm)$/.test(n));
  names.sort((a, b) => (b === "worker.mjs") - (a === "worker.mjs"));
  return names.map((n) => ({
    type: n.endsWith(".wasm") ? "CompiledWasm" : "ESModule",
    path: join(dir, n),
    contents: readFileSync(join(dir, n)),
  }));
}

// inspected is an entry with one more path, /bench-stats, that reports what is
// in flight.
function inspected(dir) {
  return { type: "ESModule", path: join(dir, "entry.mjs"), contents: readFileSync(join(root, "test/bench/entry.mjs")) };
}

// vendorHosts is a worker that sends calls of real vendors' hosts to the test
// upstream, which finds the host in x-vendor-host.
function vendorHosts(upstream) {
  const script = `export default { fetch(request) {
    const url = new URL(request.url);
    if (url.hostname === "127.0.0.1") return fetch(request, { redirect: "manual" });
    const headers = new Headers(request.headers);
    headers.set("x-vendor-host", url.host);
    return fetch(${JSON.stringify(upstream.url)} + url.pathname + url.search, { method: request.method, headers, body: request.body, redirect: "manual" });
  } }`;
  return {
    name: "vendors",
    modules: [{ type: "ESModule", path: "vendors.mjs", contents: script }],
    compatibilityDate: setting("compatibility_date"),
  };
}

// assets are the dashboard's files, served by the rules of wrangler.toml.
function assets(dir) {
  return {
    directory: join(dir, "dashboard"),
    routerConfig: { has_user_worker: true },
    run_worker_first: setting("run_worker_first"),
    assetConfig: { html_handling: setting("html_handling"), not_found_handling: setting("not_found_handling") },
  };
}

// steady wraps a KV namespace of miniflare and repeats a call once whose
// connection had just been closed.
function steady(kv) {
  const call =
    (name) =>
    async (...args) => {
      try {
        return await kv[name](...args);
      } catch (e) {
        if (e.cause?.code !== "UND_ERR_SOCKET" && e.cause?.code !== "ECONNRESET") throw e;
        return kv[name](...args);
      }
    };
  return Object.fromEntries(["get", "put", "delete", "list"].map((name) => [name, call(name)]));
}

// faultyStorage stands in front of worker.mjs: of the objects' storage one read or
// write in `every` throws.
const faultyStorage = `
import worker, { Machine as Whole } from "./worker.mjs";
let every = 0, seed = 1, thrown = 0;
function fails() {
  seed = (seed * 1103515245 + 12345) & 0x7fffffff;
  if (!every || (seed >> 8) % every) return;
  thrown++;
  throw new Error("an injected fault");
}
const faulty = (storage) => ({
  kv: {
    get: (k) => { fails(); return storage.kv.get(k); },
    put: (k, v) => { fails(); storage.kv.put(k, v); },
    delete: (k) => { fails(); return storage.kv.delete(k); },
    list: (o) => { fails(); return storage.kv.list(o); },
  },
  transactionSync: (use) => storage.transactionSync(use),
  setAlarm: (at) => { fails(); return storage.setAlarm(at); },
  deleteAlarm: () => { fails(); return storage.deleteAlarm(); },
});
export class Machine extends Whole {
  constructor(ctx, env) {
    super(ctx, env);
    Object.defineProperty(this, "ctx", { value: { id: ctx.id, storage: faulty(ctx.storage) } });
  }
}
export default {
  ...worker,
  fetch(request, env, ctx) {
    const url = new URL(request.url);
    if (url.pathname !== "/faults") return worker.fetch(request, env, ctx);
    every = Number(url.searchParams.get("every"));
    return Response.json({ thrown });
  },
};`;

// launched are the processes of workerd that a gateway is known to run in.
const launched = new Set();

// ownProcess returns the process of a gateway that has just started.
function ownProcess() {
  const fresh = workers().filter((pid) => !launched.has(pid));
  for (const pid of fresh) launched.add(pid);
  return () => {
    if (fresh.length !== 1) throw new Error(`${fresh.length} processes of workerd started at once`);
    return fresh[0];
  };
}

// Ended is the error of a gateway that ends instead of serving, as none does here.
export class Ended extends Error {}

export async function start({ dir = join(root, "build"), env, vendors, dashboard, storage, inspect, faulty, entry }) {
  const logs = [];
  const mf = new Miniflare(
    convertV4MiniflareOptions({
      rootPath: root,
      host: "127.0.0.1",
      port: 0,
      cf: false,
      log: new Log(LogLevel.ERROR),
      handleStructuredLogs({ level, message }) {
        logs.push(
          ...message.split("\n").map((line) => (level === "error" || level === "warn" ? `${level}: ` : "") + line),
        );
      },
      workers: [
        {
          name: "weir",
          modulesRoot: dir,
          modules: [
            ...(inspect
              ? [inspected(dir)]
              : entry || faulty
                ? [{ type: "ESModule", path: join(dir, "entry.mjs"), contents: entry ?? faultyStorage }]
                : []),
            ...modules(dir),
          ],
          compatibilityDate: setting("compatibility_date"),
          compatibilityFlags: setting("compatibility_flags"),
          bindings: env,
          kvNamespaces: ["KV"],
          durableObjects: { MACHINE: { className: "Machine", useSQLite: true } },
          // A socket of workerd's own: miniflare's entry in front would compress and buffer.
          unsafeDirectSockets: [{ host: "127.0.0.1", port: 0 }],
          ...(vendors ? { outboundService: "vendors" } : {}),
          ...(dashboard ? { assets: assets(dir) } : {}),
        },
        ...(vendors ? [vendorHosts(vendors)] : []),
      ],
      resourcePersistencePath: storage,
      ...(inspect ? { inspectorPort: 0 } : {}),
    }),
  );
  await mf.ready;
  const pid = ownProcess();
  const url = (await mf.unsafeGetDirectURL("weir")).href.replace(/\/$/, "");
  const stats = async () => (await fetch(url + "/bench-stats")).json();
  const isolate = inspect ? await debug((await mf.getInspectorURL()).host, stats) : null;
  return {
    url,
    logs,
    stats,
    memory: isolate && { limit, ...isolate },
    resident: () => resident(pid()),
    kv: steady(await mf.getKVNamespace("KV", "weir")),
    cron: async () => (await mf.getWorker("weir")).scheduled({ cron: "*/5 * * * *" }),
    faults: async (every) => (await fetch(`${url}/faults?every=${every}`)).json(),
    from: (address) => ["cf-connecting-ip", address],
    async kill() {
      process.kill(pid(), "SIGKILL");
      await mf.dispose();
    },
    async close() {
      isolate?.close();
      await mf.dispose();
    },
  };
}

// The objects' storage on disk: a database of SQLite for each.
const files = (dir) =>
  readdirSync(dir, { recursive: true, withFileTypes: true })
    .filter((f) => f.name.endsWith(".sqlite") && f.name !== "metadata.sqlite" && f.parentPath.includes("weir-Machine"))
    .map((f) => join(f.parentPath, f.name));

export async function rows(dir) {
  const out = [];
  for (const file of files(dir)) {
    const db = new DatabaseSync(file, { readOnly: true, timeout: 10_000 });
    try {
      if (!db.prepare("select 1 from sqlite_master where name = '_cf_KV'").get()) continue;
      for (const { key, value } of db.prepare("select key, value from _cf_KV").all())
        out.push({ machine: file, key, value: Buffer.from(value).toString("latin1") });
    } finally {
      db.close();
    }
  }
  return out;
}

export function elapse(dir, ms) {
  for (const file of files(dir)) {
    const db = new DatabaseSync(file, { timeout: 10_000 });
    try {
      const meta = db.prepare("select value from _cf_KV where key = 'meta'").get();
      if (!meta) continue;
      const at = String(Date.now() - ms),
        text = Buffer.from(meta.value).toString("latin1");
      if (at.length !== 13) throw new Error("the length of the row would change");
      const moved = text.replace(/"(pruneAt|alarmAt)":\d{13}/g, `"$1":${at}`);
      db.prepare("update _cf_KV set value = ? where key = 'meta'").run(Buffer.from(moved, "latin1"));
      if (db.prepare("select 1 from sqlite_master where name = '_cf_METADATA'").get())
        db.exec("delete from _cf_METADATA"); // the alarm
    } finally {
      db.close();
    }
  }
}

export function edit(dir, change) {
  for (const file of files(dir)) {
    const db = new DatabaseSync(file, { timeout: 10_000 });
    try {
      if (!db.prepare("select 1 from sqlite_master where name = '_cf_KV'").get()) continue;
      for (const { key, value } of db.prepare("select key, value from _cf_KV").all()) {
        const text = Buffer.from(value).toString("latin1"),
          now = change(key, text);
        if (now.length !== text.length) throw new Error(`the length of ${key} would change`);
        if (now !== text) db.prepare("update _cf_KV set value = ? where key = ?").run(Buffer.from(now, "latin1"), key);
      }
    } finally {
      db.close();
    }
  }
}

// machines returns the number of objects that have storage.
export const machines = async (dir) => files(dir).length;
