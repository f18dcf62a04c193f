// Starts the built worker in real workerd, with its storage, for the tests.
import { readFileSync, readdirSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Log, LogLevel, Miniflare, convertV4MiniflareOptions } from "miniflare";
import { debug } from "./isolate.mjs";

const root = fileURLToPath(new URL("../../", import.meta.url));
const toml = readFileSync(join(root, "wrangler.toml"), "utf8");
const setting = (name) => JSON.parse(new RegExp(`^${name} = (.+)$`, "m").exec(toml)[1]);

export const secrets = {
  ADMIN_TOKEN: "test-admin-token-0123456789abcdef0123456789",
  API_KEY_SECRET: "test-api-key-secret-0123456789abcdef012345",
  CREDENTIALS_KEY: "test-credentials-key-0123456789abcdef01234",
};

// modules reads a folder that build.sh made; the entry comes first.
export function modules(dir) {
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

// start starts a gateway.
//
//	dir        folder of the built worker (build/)
//	env        bindings besides the secrets; a secret set to undefined is left out
//	vendors    a test upstream that answers for every host that is not loopback
//	dashboard  serve its pages too, as the platform does: in front of the program
//	persist    folder of the storage; absent, a fresh one that close() removes
//	entry      text of a module that stands in front of worker.mjs
//	inspect    opens the debugger: the result has stats() and isolate, see isolate.mjs
//
// The result has `url`, `fetch(path, init)`, `mf`, `dir` (of the storage),
// `logs` (what the worker printed) and `close()`.
export async function start({
  dir = join(root, "build"),
  env = {},
  vendors = null,
  dashboard = false,
  persist = null,
  entry = "",
  inspect = false,
} = {}) {
  const storage = persist ?? (await mkdtemp(join(tmpdir(), "weir-test-")));
  const bindings = { ...secrets, ALLOW_PRIVATE_UPSTREAMS: "true", ...env };
  for (const [name, value] of Object.entries(bindings)) if (value === undefined) delete bindings[name];
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
              : entry
                ? [{ type: "ESModule", path: join(dir, "entry.mjs"), contents: entry }]
                : []),
            ...modules(dir),
          ],
          compatibilityDate: setting("compatibility_date"),
          compatibilityFlags: setting("compatibility_flags"),
          bindings,
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
  const namespace = mf.getKVNamespace.bind(mf);
  mf.getKVNamespace = async (...which) => steady(await namespace(...which));
  const url = (await mf.unsafeGetDirectURL("weir")).href.replace(/\/$/, "");
  const stats = async () => (await fetch(url + "/bench-stats")).json();
  const isolate = inspect ? await debug((await mf.getInspectorURL()).host, stats) : null;
  return {
    mf,
    url,
    logs,
    dir: storage,
    stats,
    isolate,
    fetch: (path, init) => fetch(url + path, init),
    async close() {
      isolate?.close();
      await mf.dispose();
      if (!persist) await rm(storage, { recursive: true, force: true });
    },
  };
}

// admin is a client of the operator's routes.
export function admin(gateway, token = secrets.ADMIN_TOKEN) {
  async function call(method, path, body) {
    const res = await gateway.fetch(path, {
      method,
      headers: {
        authorization: `Bearer ${token}`,
        ...(body === undefined ? {} : { "content-type": "application/json" }),
      },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
    const text = await res.text();
    let json = null;
    try {
      json = text ? JSON.parse(text) : null;
    } catch {
      /* stays text */
    }
    if (!res.ok)
      throw Object.assign(new Error(`${method} ${path}: ${res.status} ${text.slice(0, 300)}`), {
        status: res.status,
        body: json,
      });
    return json;
  }
  return {
    call,
    machine: (body = {}) => call("POST", "/api/machines", body),
    connect: (machineId, connection) => call("POST", `/${machineId}/api/providers`, connection),
  };
}

// compatible is a connection to a test upstream under a prefix.
export function compatible(
  upstream,
  { prefix = "up", path = "/v1", apiKey = "upstream-key", suffix = "0123abcd", ...more } = {},
) {
  return {
    provider: `openai-compatible-${suffix}`,
    name: prefix,
    apiKey,
    providerSpecificData: { baseUrl: upstream.url + path, prefix },
    ...more,
  };
}

// tenant creates a machine with one connection to the test upstream.
export async function tenant(gateway, upstream, options = {}) {
  const operator = admin(gateway);
  const { machineId, apiKey } = await operator.machine();
  await operator.connect(machineId, compatible(upstream, options));
  return { machineId, apiKey };
}

// families creates a machine with a connection to the test upstream for each
// family: compatible ones as up/ and an/, and the vendors' own.
export async function families(operator, upstream) {
  const me = await operator.machine();
  await operator.connect(me.machineId, compatible(upstream));
  await operator.connect(me.machineId, {
    ...compatible(upstream, { prefix: "an" }),
    provider: "anthropic-compatible-0123abcd",
  });
  for (const provider of ["gemini", "openai", "anthropic"])
    await operator.connect(me.machineId, { provider, apiKey: `${provider}-test-key-0123456789` });
  return me;
}
