// ./build.sh dev: the gateway on this machine, with a demo machine whose
// provider is the test upstream, so that everything printed works offline.
//
// PORT (8787), STATE_DIR (.wrangler/state), DEMO=0 for the gateway alone.
// STATE_DIR/demo.json (mode 600) remembers the demo machine between runs;
// .weir/dev.json tells tools of the server that was started last.
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { start as startUpstream } from "../upstream/server.mjs";
import { demo as answers } from "./demo.mjs";
import { names, random } from "./secrets.mjs";
import { root, wrangler } from "./wrangler.mjs";

const port = Number(process.env.PORT ?? 8787);
const state = resolve(root, process.env.STATE_DIR ?? ".wrangler/state");
const demo = process.env.DEMO !== "0";
const baseUrl = `http://127.0.0.1:${port}`;

function writePrivate(file, value) {
  writeFileSync(file, value, { mode: 0o600 });
  chmodSync(file, 0o600);
}

// vars reads .dev.vars and adds what it lacks.
function vars() {
  const file = join(root, ".dev.vars");
  let text = existsSync(file) ? readFileSync(file, "utf8") : "";
  const have = () =>
    Object.fromEntries([...text.matchAll(/^([A-Z_]+)\s*=\s*"?(.*?)"?\s*$/gm)].map((m) => [m[1], m[2]]));
  const lacking = { ...random(names), ALLOW_PRIVATE_UPSTREAMS: "true" };
  for (const name of Object.keys(have())) delete lacking[name];
  if (Object.keys(lacking).length) {
    if (text && !text.endsWith("\n")) text += "\n";
    text += Object.entries(lacking)
      .map(([k, v]) => `${k}=${v}\n`)
      .join("");
    writePrivate(file, text);
  }
  return have();
}

async function call(token, method, path, body) {
  const res = await fetch(baseUrl + path, {
    method,
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  if (!res.ok) throw new Error(`${method} ${path} answered ${res.status}: ${await res.text()}`);
  return res.status === 204 ? null : res.json();
}

// connections are those of the demo machine: models, and a search service.
const connections = (upstream) => [
  {
    provider: "openai-compatible-de300000",
    name: "test upstream",
    apiKey: "demo-upstream-key",
    providerSpecificData: { baseUrl: `${upstream.url}/v1`, prefix: "demo" },
  },
  {
    provider: "searxng",
    name: "test search",
    providerSpecificData: { baseUrl: upstream.url },
  },
];

// demoMachine returns the demo machine of this state: the earlier one, with its
// connections changed to the upstream's present address, or a new one.
async function demoMachine(token, upstream, known) {
  const file = join(state, "demo.json");
  if (known) {
    if (known.upstreamPort === upstream.port) return known;
    for (const [i, c] of connections(upstream).entries())
      await call(token, "PUT", `/${known.machineId}/api/providers/${known.connectionIds[i]}`, c);
  } else {
    const { machineId, apiKey } = await call(token, "POST", "/api/machines", { name: "demo" });
    const connectionIds = [];
    for (const c of connections(upstream))
      connectionIds.push((await call(token, "POST", `/${machineId}/api/providers`, c)).id);
    known = { machineId, apiKey, connectionIds };
  }
  known = { ...known, upstreamPort: upstream.port };
  writePrivate(file, JSON.stringify(known));
  return known;
}

// upstreamAt starts the test upstream on the port it had, or on another.
async function upstreamAt(wanted) {
  try {
    return await startUpstream({ port: wanted ?? 0, keep: false, script: answers });
  } catch (e) {
    if (e.code !== "EADDRINUSE") throw e;
    return startUpstream({ keep: false, script: answers });
  }
}

// Only the owner may read the server's state: it holds replicas, and traces
// with the queries of sign-ins.
mkdirSync(state, { recursive: true, mode: 0o700 });
chmodSync(state, 0o700);
// wrangler's storage explorer is served on the gateway's own port without
// authentication.
process.env.X_LOCAL_EXPLORER = "false";
const { ADMIN_TOKEN } = vars();
const child = wrangler(
  ["dev", "--ip", "127.0.0.1", "--port", String(port), "--persist-to", state, "--show-interactive-dev-session=false"],
  { stdio: ["ignore", "inherit", "inherit"] },
);
let upstream = null;

// stop ends both; a signal that reached the whole group finds them ending.
async function stop(code) {
  child.kill("SIGTERM");
  await upstream?.close();
  process.exit(code);
}
for (const [signal, code] of [
  ["SIGINT", 130],
  ["SIGTERM", 143],
  ["SIGHUP", 129],
])
  process.on(signal, () => stop(code));
child.on("exit", (code) => stop(code ?? 1));

// healthy waits for the gateway.
async function healthy() {
  for (let i = 0; i < 300; i++) {
    try {
      const res = await fetch(baseUrl + "/health");
      await res.arrayBuffer();
      if (res.ok) return;
    } catch {
      /* not up yet */
    }
    await new Promise((r) => setTimeout(r, 200));
  }
  throw new Error(`${baseUrl}/health did not answer in 60 s`);
}

try {
  await healthy();
  mkdirSync(join(root, ".weir"), { recursive: true });
  const about = { adminToken: ADMIN_TOKEN, machineId: null, apiKey: null, baseUrl };
  if (demo) {
    const file = join(state, "demo.json");
    const kept = existsSync(file) ? JSON.parse(readFileSync(file, "utf8")) : null,
      known = kept?.connectionIds ? kept : null;
    upstream = await upstreamAt(known?.upstreamPort);
    const { machineId, apiKey } = await demoMachine(ADMIN_TOKEN, upstream, known);
    Object.assign(about, { machineId, apiKey });
  }
  writePrivate(join(root, ".weir", "dev.json"), JSON.stringify(about, null, 2) + "\n");
  console.log(`\nweir is on ${baseUrl}, its dashboard at /; the operator's token is in .weir/dev.json\n`);
  if (demo) {
    const body = `-H 'Content-Type: application/json' -d '{"model":"demo/test-embed","input":"hello"}'`;
    console.log("The demo machine's provider is a test upstream on this computer. Try:\n");
    console.log(`curl -s ${baseUrl}/v1/embeddings -H 'Authorization: Bearer ${about.apiKey}' ${body}\n`);
    console.log(
      `curl -s ${baseUrl}/${about.machineId}/v1/embeddings -H 'Authorization: Bearer ${about.apiKey}' ${body}\n`,
    );
  }
  console.log("Ctrl-C stops it.");
} catch (e) {
  console.error(String(e.message ?? e));
  await stop(1);
}
