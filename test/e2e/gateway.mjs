// Starts the gateway on the platform that PLATFORM names, for the tests.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { host } from "./platforms.mjs";
import { until } from "./wait.mjs";

export const secrets = {
  ADMIN_TOKEN: "test-admin-token-0123456789abcdef0123456789",
  API_KEY_SECRET: "test-api-key-secret-0123456789abcdef012345",
  CREDENTIALS_KEY: "test-credentials-key-0123456789abcdef01234",
};

// start starts a gateway.
//
//	env        settings besides the secrets; a secret set to undefined is left out
//	vendors    a test upstream that answers for every host that is not loopback
//	dashboard  serve its pages too
//	persist    folder of the storage; absent, a fresh one that close() removes
//	inspect    the result has memory, see below; workerd: opens the debugger
//	proxy      the tests are a trusted proxy: from(ip) counts
//	faulty     the storage fails as faults(every) sets
//	dir, entry workerd alone: folder of the built worker, and the text of a module
//	           that stands in front of worker.mjs
//
// The result has
//
//	url, fetch(path, init)
//	logs       lines that the gateway printed, with "error: " or "warn: " in front
//	           of those of that level
//	dir        of the storage
//	close()    ends the gateway and waits for that; kill() does so without warning
//	cron()     does the work of the scheduled trigger
//	faults(every) with faulty: lets one access to the storage in every fail, 0 for
//	           none, and returns {thrown}, how many have
//	resident() bytes that the process has in memory
//	from(ip)   a header field that says where the client is, as the platform tells
//	           the gateway, with proxy
//	stats()    what is in flight, with inspect: {calls, streams, goroutines, memory,
//	           dead}; in workerd operations of the host and sockets too
//	stacks()   natively: the stacks of all goroutines
//	memory     with inspect: limit, memory(), collect(), watch(ms), see isolate.mjs
//	kv         the KV namespace: get, put, delete and list; null on a platform without
export async function start({ env = {}, persist = null, vendors = null, ...options } = {}) {
  const storage = persist ?? (await mkdtemp(join(tmpdir(), "weir-test-")));
  const all = { ...secrets, ALLOW_PRIVATE_UPSTREAMS: "true", PRICES_URL: "off", LOG_LEVEL: "info", ...env };
  for (const [name, value] of Object.entries(all)) if (value === undefined) delete all[name];
  const gateway = await host.start({ ...options, env: all, vendors, storage });
  return {
    ...gateway,
    dir: storage,
    fetch: (path, init) => fetch(gateway.url + path, init),
    async close() {
      await gateway.close();
      if (!persist) await rm(storage, { recursive: true, force: true });
    },
  };
}

// unusable starts a gateway with settings that it cannot use: natively it ends at
// once, a worker answers 503. The result is what it says.
export async function unusable(options) {
  let gateway;
  try {
    gateway = await start(options);
  } catch (e) {
    assert.ok(e instanceof host.Ended, e);
    return e.message;
  }
  try {
    for (const path of ["/v1/models", "/v1/embeddings", "/api/machines"]) {
      const res = await gateway.fetch(path),
        text = await res.text();
      assert.equal(res.status, 503, `${path}: ${text}`);
      assert.equal(JSON.parse(text).error.code, "misconfigured");
    }
    assert.equal((await gateway.fetch("/health")).status, 200);
    return gateway.logs.join("\n");
  } finally {
    await gateway.close();
  }
}

// replicas returns the texts of the machines' replicas, once there are at least
// that many. A platform without KV has none.
export async function replicas({ kv }, least = 0) {
  if (!kv) return [];
  const names = await until("the replicas", async () => {
    const all = [];
    for (let cursor; ; ) {
      const page = await kv.list({ cursor });
      all.push(...page.keys.map((k) => k.name));
      if (page.list_complete) break;
      ({ cursor } = page);
    }
    return all.length >= least && all;
  });
  return Promise.all(names.map(async (name) => ({ name, text: await kv.get(name) })));
}

// placed creates a machine with connections and one key. By KV, where there is
// one, that is faster, but without settings.
export async function placed(gateway, connections, settings = null) {
  if (gateway.kv && !settings) {
    const machineId = `placed${randomBytes(5).toString("hex")}`,
      apiKey = `sk-old${machineId}`;
    await gateway.kv.put(`machine:${machineId}`, JSON.stringify({ connections, apiKeys: [apiKey] }));
    return { machineId, apiKey };
  }
  const operator = admin(gateway),
    { machineId, apiKey } = await operator.machine();
  for (const { id, ...c } of connections) await operator.connect(machineId, c);
  if (settings) await operator.call("PATCH", `/${machineId}/api/settings`, settings);
  return { machineId, apiKey };
}

// connected counts the accounts of a machine by what calls name: machine, provider, prefix.
const connected = new Map();

// admin is a client of the operator's routes. connect tries accounts of the same models
// in the order of their creation, unless a connection states its priority: those of
// equal priority share the calls.
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
    connect: (machineId, connection) => {
      const of = [machineId, connection.provider, connection.providerSpecificData?.prefix].join(" "),
        n = connected.get(of) ?? 0;
      connected.set(of, n + 1);
      return call("POST", `/${machineId}/api/providers`, { ...(n ? { priority: n } : {}), ...connection });
    },
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
