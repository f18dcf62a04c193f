// ./build.sh doctor URL: examines a gateway from outside. Each failure is one line
// with what to do; a gateway without failures is one line.
import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { root } from "./wrangler.mjs";

const callMs = 20_000;
const clockMs = 30_000; // AWS refuses signatures of clocks that are 5 minutes off
const changeMs = 60_000; // until a change is known everywhere
const stubModel = "doctor-embedding";
const stubVector = [0.25, -0.5, 1];
const foreignOrigin = "https://doctor.example.com";

// Failure is what a person reads: what is wrong and what to do.
class Failure extends Error {}
const fail = (wrong, todo) => {
  throw new Failure(`${wrong}; ${todo}`);
};

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

// unreachable puts the error of a call that got no answer into words.
function unreachable(url, e) {
  const code = e.cause?.code ?? e.cause?.errors?.[0]?.code ?? e.code ?? "";
  const { host } = new URL(url);
  if (e.name === "TimeoutError")
    return [`no answer within ${callMs / 1000} s`, "run it again; then look at the gateway's log"];
  if (code === "ENOTFOUND" || code === "EAI_AGAIN")
    return [`the name ${host} does not resolve`, "check the address; the name of a new domain takes some minutes"];
  if (code === "ECONNREFUSED") return [`nothing listens at ${host}`, "start the gateway, or correct the port"];
  if (/WRONG_VERSION_NUMBER|PACKET_LENGTH/.test(code))
    return [`${host} does not speak TLS`, "write http:// instead of https:// if that is meant"];
  if (/CERT|SSL|TLS|SELF_SIGNED|UNABLE_TO_/.test(code))
    return [`no valid certificate (${code})`, "renew it; the certificate of a new domain takes some minutes"];
  return [`no answer (${code || e.message})`, "check the address, and a proxy in front"];
}

// seconds prints a difference of two clocks.
const seconds = (ms) => `${Math.round(Math.abs(ms) / 1000)} s`;

// Visit is one examination of the gateway at url, which has no path.
class Visit {
  constructor(url, { token = "", apiKey = "", model = "", openKeys = false, version = "" }) {
    Object.assign(this, { url, token, apiKey, model, openKeys, expected: version });
    this.machine = null; // the temporary one: {machineId, apiKey}
    this.stub = null;
    this.notes = []; // of the line for a gateway without failures
    const { hostname } = new URL(url);
    this.local = /^(localhost|.*\.localhost|127\.[0-9.]+|\[::1\])$/.test(hostname);
  }

  // call returns {status, headers, text, json, middle}; middle is the local time
  // halfway, in ms.
  async call(method, path, { bearer, body, headers = {}, again = 2 } = {}) {
    const sent = Date.now();
    let res, text;
    try {
      res = await fetch(this.url + path, {
        method,
        redirect: "manual",
        signal: AbortSignal.timeout(callMs),
        headers: {
          ...(bearer ? { authorization: `Bearer ${bearer}` } : {}),
          ...(body === undefined ? {} : { "content-type": "application/json" }),
          ...headers,
        },
        body: body === undefined ? undefined : JSON.stringify(body),
      });
      text = await res.text();
    } catch (e) {
      fail(...unreachable(this.url, e));
    }
    let json = null;
    try {
      json = JSON.parse(text);
    } catch {
      // a page, or a proxy's own answer
    }
    // Right after a deployment the platform answers some calls with an error page of its own.
    if (method === "GET" && res.status >= 500 && json === null && again > 0) {
      await pause(1000);
      return this.call(method, path, { bearer, body, headers, again: again - 1 });
    }
    return { status: res.status, headers: res.headers, text, json, middle: (sent + Date.now()) / 2 };
  }

  operator(method, path, body) {
    return this.call(method, path, { bearer: this.token, body });
  }

  checkClock(what, theirs, ours) {
    const ahead = theirs - ours;
    if (Math.abs(ahead) > clockMs)
      fail(
        `${what} is ${seconds(ahead)} ${ahead > 0 ? "ahead of" : "behind"} this computer's`,
        "set the wrong clock by NTP: signatures and sign-ins fail with it",
      );
  }

  async health() {
    const res = await this.call("GET", "/health");
    if (res.status >= 300 && res.status < 400)
      fail(
        `it redirects to ${new URL(res.headers.get("location") ?? "", this.url).origin}`,
        "run the doctor with that address",
      );
    if (res.status !== 200 || res.json?.status !== "ok")
      fail(
        `GET /health answered ${res.status}, not weir's {"status":"ok"}`,
        "check that the address is scheme, host and port of a weir, and that its proxy passes every path on",
      );
    this.date = Date.parse(res.headers.get("date") ?? "");
    this.dateAt = res.middle;
  }

  clock() {
    if (!Number.isNaN(this.date)) this.checkClock("the clock of the gateway", this.date, this.dateAt);
  }

  // settings finds missing secrets: every route but /health names them then.
  async settings() {
    const res = await this.call("GET", "/api/machines?limit=1");
    if (res.json?.error?.code === "misconfigured")
      fail(
        said(res),
        "set it (npx wrangler secret put NAME, or ./build.sh deploy, which creates missing ones; natively the variable or secrets.json)",
      );
    if (res.status !== 401)
      fail(
        `GET /api/machines without a token answered ${res.status} instead of 401`,
        "remove what adds credentials, or its own answers, in front of the gateway",
      );
  }

  async crossOrigin() {
    const asked = {
      origin: foreignOrigin,
      "access-control-request-method": "POST",
      "access-control-request-headers": "authorization,content-type",
    };
    const todo = "let the proxy in front pass OPTIONS and the fields access-control-* on, and add none of its own";
    const pre = await this.call("OPTIONS", "/v1/embeddings", { headers: asked });
    const field = (res, name) => res.headers.get(`access-control-${name}`) ?? "";
    if (
      ![200, 204].includes(pre.status) ||
      field(pre, "allow-origin") !== "*" ||
      !/\bPOST\b/.test(field(pre, "allow-methods")) ||
      !/\bauthorization\b/i.test(field(pre, "allow-headers"))
    )
      fail(`browsers of other sites may not call /v1/embeddings (OPTIONS answered ${pre.status})`, todo);
    const call = await this.call("POST", "/v1/embeddings", { headers: { origin: foreignOrigin }, body: {} });
    if (field(call, "allow-origin") !== "*")
      fail("an answer of /v1/embeddings lacks access-control-allow-origin: *", todo);
    const api = await this.call("OPTIONS", "/api/machines", { headers: asked });
    if (field(api, "allow-origin")) fail("sites of others may call the management routes", todo);
  }

  // keys finds a gateway that serves callers without a key.
  async keys() {
    if (this.openKeys) return;
    const body = { model: stubModel, input: "hello" };
    for (const base of ["", this.machine && `/${this.machine.machineId}`]) {
      if (base === null) continue;
      const res = await this.call("POST", `${base}/v1/embeddings`, { body });
      if (res.status !== 401)
        fail(
          `POST ${base && "/{machineId}"}/v1/embeddings without a key answered ${res.status} instead of 401`,
          "remove REQUIRE_API_KEY=false, or what adds keys in front; if it is intended, run the doctor with REQUIRE_API_KEY=false",
        );
    }
  }

  async dashboard() {
    const page = await this.call("GET", "/");
    const redeploy = "deploy again from a clone (./build.sh deploy), or let the proxy in front pass / and /assets on";
    if (page.status !== 200 || !page.text.includes("<title>weir</title>"))
      fail(`GET / answered ${page.status} without the dashboard's page`, redeploy);
    if (page.text.includes("built without the dashboard")) {
      this.notes.push("no dashboard in this build");
      return;
    }
    if (!/script-src 'self'/.test(page.headers.get("content-security-policy") ?? ""))
      fail("the dashboard's page lacks its content-security-policy", redeploy);
    for (const [, path] of page.text.matchAll(/(?:src|href)="(\/assets\/[^"]+\.(?:js|css))"/g)) {
      const res = await this.call("GET", path);
      if (res.status !== 200 || !/javascript|css/.test(res.headers.get("content-type") ?? ""))
        fail(`GET ${path}, which the dashboard loads, answered ${res.status}`, redeploy);
    }
  }

  async adminToken() {
    const res = await this.operator("GET", "/api/version");
    if (res.status === 401)
      fail(
        "ADMIN_TOKEN is not this gateway's",
        this.local
          ? "pass that of .dev.vars, or natively of secrets.json in the data directory"
          : "pass the one that the first deployment printed, or set another: npx wrangler secret put ADMIN_TOKEN",
      );
    if (res.status !== 200)
      fail(
        `GET /api/version answered ${res.status}: ${said(res)}`,
        "deploy this version of weir, then run the doctor again",
      );
    this.version = res.json.version;
    if (this.expected && this.version !== this.expected)
      fail(
        `it runs version ${this.version}, not ${this.expected}`,
        "wait a minute and run the doctor again; an earlier version may still be served",
      );
  }

  // expectedVersion reports whether the version that was just deployed answers, or
  // what else does is for adminToken to say.
  async expectedVersion() {
    if (!this.token || !this.expected) return true;
    const res = await this.operator("GET", "/api/version");
    return res.status !== 200 || res.json?.version === this.expected;
  }

  // storage creates the temporary machine in its object, whose clock it reads.
  async storage() {
    const todo =
      "look at the log (npx wrangler tail), then at the bindings MACHINE and KV in wrangler.toml, or the free space of the data directory";
    const made = await this.operator("POST", "/api/machines", { name: "doctor, temporary" });
    const at = made.middle;
    if (made.status !== 201) fail(`a machine could not be created (${made.status}: ${said(made)})`, todo);
    this.machine = made.json;
    const list = await this.operator("GET", `/api/machines?q=${this.machine.machineId}`);
    const row = list.json?.data?.find((m) => m.machineId === this.machine.machineId);
    if (!row) fail(`the new machine is not in the list (${list.status})`, todo);
    this.checkClock("the clock of the machine's object", row.createdAt, at);
  }

  // embeddings makes one call: with the key that the operator passed, through the
  // stub if the gateway can reach it, else it plans one.
  async embeddings() {
    if (this.apiKey) return this.ownModel();
    if (!this.machine) return;
    if (this.local && (await this.connect(await this.startStub()))) return this.throughStub();
    await this.connect("https://doctor.example.com/v1");
    const path = `/${this.machine.machineId}/api/explain`;
    const asked = { path: "/v1/embeddings", body: { model: `doctor/${stubModel}`, input: "hello" } };
    let res = await this.operator("POST", path, asked);
    // Another isolate may not know the connection yet.
    for (const end = Date.now() + changeMs; res.status === 400 && Date.now() < end; await pause(1000))
      res = await this.operator("POST", path, asked);
    const step = res.json?.plan?.[0];
    if (res.status !== 200 || step?.try !== 1 || !step.upstream.includes("https://doctor.example.com/v1/embeddings"))
      fail(`a call could not be planned (${res.status}: ${said(res)})`, "look at the gateway's log");
    this.notes.push(
      "the embeddings call was planned, not sent: pass WEIR_API_KEY to make one with an account of yours",
    );
  }

  async ownModel() {
    let model = this.model;
    if (!model) {
      const list = await this.call("GET", "/v1/models/embedding", { bearer: this.apiKey });
      if (list.status === 401) fail("WEIR_API_KEY is not a key of this gateway", "pass a key of one of its machines");
      model = list.json?.data?.[0]?.id;
      if (!model)
        fail(
          "WEIR_API_KEY can call no embeddings model",
          "name another model in MODEL, or add a provider that has one",
        );
    }
    const res = await this.call("POST", "/v1/embeddings", { bearer: this.apiKey, body: { model, input: "hello" } });
    if (res.status === 401) fail("WEIR_API_KEY is not a key of this gateway", "pass a key of one of its machines");
    if (res.status !== 200 || !res.json?.data?.[0]?.embedding)
      fail(
        `an embeddings call of ${model} answered ${res.status}: ${said(res)}`,
        "test the connection in the dashboard",
      );
    this.notes.push(`embeddings call of ${model}`);
  }

  // startStub serves an embeddings provider on this computer and returns its base URL.
  async startStub() {
    this.stubKey = `doctor-${randomBytes(16).toString("hex")}`;
    this.stub = createServer((req, res) => {
      const known = req.headers.authorization === `Bearer ${this.stubKey}`;
      req.resume().on("end", () => {
        res.writeHead(known ? 200 : 401, { "content-type": "application/json" });
        res.end(
          JSON.stringify({
            object: "list",
            model: stubModel,
            data: [{ object: "embedding", index: 0, embedding: stubVector }],
            usage: { prompt_tokens: 1, total_tokens: 1 },
          }),
        );
      });
    });
    await new Promise((resolve, reject) => this.stub.on("error", reject).listen(0, "127.0.0.1", resolve));
    return `http://127.0.0.1:${this.stub.address().port}/v1`;
  }

  // connect adds a provider to the temporary machine. It reports false if the
  // gateway refuses private addresses.
  async connect(baseUrl) {
    const res = await this.operator("POST", `/${this.machine.machineId}/api/providers`, {
      provider: "openai-compatible-d0c70000",
      name: "doctor",
      apiKey: this.stubKey ?? `doctor-${randomBytes(16).toString("hex")}`,
      providerSpecificData: { baseUrl, prefix: "doctor" },
    });
    if (res.status === 400 && /baseUrl/.test(res.json?.error?.param ?? "") && baseUrl.startsWith("http://"))
      return false;
    if (res.status !== 201)
      fail(`a connection could not be added (${res.status}: ${said(res)})`, "look at the gateway's log");
    return true;
  }

  async throughStub() {
    const res = await this.call("POST", "/v1/embeddings", {
      bearer: this.machine.apiKey,
      body: { model: `doctor/${stubModel}`, input: "hello" },
    });
    if (res.status !== 200)
      fail(
        `an embeddings call through a stub on this computer answered ${res.status}: ${said(res)}`,
        "look at the gateway's log; a gateway in a container cannot reach the stub: pass WEIR_API_KEY to call a model of yours",
      );
    if (JSON.stringify(res.json?.data?.[0]?.embedding) !== JSON.stringify(stubVector))
      fail("an embeddings call through a stub returned another vector", "look for a proxy that changes answers");
    this.notes.push("embeddings call through a stub");
  }

  async cleanUp() {
    this.stub?.close();
    this.stub?.closeAllConnections();
    if (!this.machine) return;
    const { machineId } = this.machine;
    this.machine = null;
    const res = await this.operator("DELETE", `/api/machines/${machineId}`);
    if (res.status !== 204 && res.status !== 404)
      fail(`the temporary machine ${machineId} could not be deleted (${res.status})`, "delete it in the dashboard");
  }
}

// said returns what an answer of weir, or of another program, says in words.
const said = (res) =>
  (res.json?.error?.message ?? res.text.replace(/<[^>]*>/g, " "))
    .replace(/\s+/g, " ")
    .trim()
    .replace(/\.$/, "")
    .slice(0, 200);

// examine prints what it finds and returns the number of failures. print receives
// each line; until is the time, in ms, up to which a gateway may not answer yet.
export async function examine(url, options, { print = console.log, until = 0, stopped = { visit: null } } = {}) {
  const visit = (stopped.visit = new Visit(url, options));
  let failures = 0;
  const check = async (name, run) => {
    try {
      await run.call(visit);
      return true;
    } catch (e) {
      if (!(e instanceof Failure)) throw e;
      failures++;
      print(`FAIL  ${name}: ${e.message}`);
      return false;
    }
  };
  for (; Date.now() < until; await pause(1000)) {
    try {
      await visit.health();
      if (await visit.expectedVersion()) break;
    } catch {
      // the check after the last try says it
    }
  }
  try {
    if (!(await check("health", visit.health))) return failures;
    await check("clock", visit.clock);
    await check("cross-origin calls", visit.crossOrigin);
    await check("dashboard", visit.dashboard);
    if (!(await check("settings", visit.settings))) return failures;
    if (visit.token && (await check("operator token", visit.adminToken))) await check("storage", visit.storage);
    await check("keys", visit.keys);
    await check("embeddings", visit.embeddings);
  } finally {
    await check("clean-up", visit.cleanUp);
    if (!visit.token)
      visit.notes.push(`storage${visit.apiKey ? " was" : " and calls were"} not examined: pass ADMIN_TOKEN`);
    if (!failures)
      print(
        `ok    weir ${visit.version ? `${visit.version} ` : ""}at ${url}${visit.notes.map((n) => `; ${n}`).join("")}`,
      );
  }
  return failures;
}

// options reads those of the environment. The token of ./build.sh dev and serve is
// known.
export function options(url, env = process.env) {
  let token = env.ADMIN_TOKEN ?? "";
  if (!token) {
    try {
      const dev = JSON.parse(readFileSync(join(root, ".weir", "dev.json"), "utf8"));
      if (dev.baseUrl === url) token = dev.adminToken;
    } catch {
      // no such gateway was started here
    }
  }
  // A header takes no other characters, and an error of fetch would repeat the value.
  for (const [name, value] of [
    ["ADMIN_TOKEN", token],
    ["WEIR_API_KEY", env.WEIR_API_KEY ?? ""],
  ])
    if (!/^[\x21-\x7e]*$/.test(value)) {
      console.error(`doctor: ${name} has characters that no token has, such as a space or a line break; copy it again`);
      process.exit(2);
    }
  return {
    token,
    apiKey: env.WEIR_API_KEY ?? "",
    model: env.MODEL ?? "",
    openKeys: /^(false|0|off|no)$/i.test(env.REQUIRE_API_KEY ?? ""),
    version: "",
  };
}

async function main(args) {
  let url;
  try {
    url = new URL(args[0]);
  } catch {
    // no address
  }
  if (
    args.length !== 1 ||
    !url ||
    !/^https?:$/.test(url.protocol) ||
    url.pathname !== "/" ||
    url.search ||
    url.username
  ) {
    console.error("usage: ./build.sh doctor URL, where URL is scheme, host and port, such as https://weir.example.com");
    process.exit(2);
  }
  const stopped = { visit: null };
  for (const [signal, number] of [
    ["SIGINT", 2],
    ["SIGTERM", 15],
    ["SIGHUP", 1],
  ])
    process.once(signal, async () => {
      await stopped.visit?.cleanUp().catch((e) => console.log(`FAIL  clean-up: ${e.message}`));
      process.exit(128 + number);
    });
  process.exitCode = (await examine(url.origin, options(url.origin), { stopped })) ? 1 : 0;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await main(process.argv.slice(2));
