// The warm-up: before the first event, the program serves a few invented requests
// on a host that consists of tables. The engine compiles a function when it is
// first called; without the warm-up the first request of an isolate would wait
// until most of the program is compiled. Nothing of it remains: the program's
// state is rebuilt for the first real event.
import { ALARM, NO_BODY, OBJECT_CALL, OK } from "./contract.mjs";

const encoder = new TextEncoder();
const decoder = new TextDecoder();
const secret = (c) => c.repeat(40); // protects nothing

// thenable returns a promise that settles from queue: at global scope the platform
// runs no callbacks.
const thenable = (queue, value) => ({
  then(f) {
    queue.push(() => f(value));
    return this;
  },
  catch() {
    return this;
  },
});

// Rows is the synchronous storage of an object.
class Rows {
  constructor() {
    this.rows = new Map();
  }
  get(key) {
    return this.rows.get(key);
  }
  put(key, value) {
    this.rows.set(key, value);
  }
  delete(key) {
    return this.rows.delete(key);
  }
  list({ prefix = "", startAfter = "", limit = Infinity }) {
    return [...this.rows]
      .filter(([k]) => k.startsWith(prefix) && k > startAfter)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .slice(0, limit);
  }
}

// The answers of upstreams by the last segment of the URL.
const answers = {
  embeddings: {
    object: "list",
    data: [{ object: "embedding", index: 0, embedding: "AACAPwAAAEA=" }],
    model: "m",
    usage: { prompt_tokens: 1, total_tokens: 1 },
  },
  models: { object: "list", data: [{ id: "m", object: "model", created: 1, owned_by: "o" }] },
};

// WarmupHost has the methods of platform. Operations end when settle runs.
class WarmupHost {
  constructor() {
    this.queue = [];
    this.objects = new Map();
    const kv = new Map();
    this.env = {
      ADMIN_TOKEN: secret("a"),
      API_KEY_SECRET: secret("k"),
      CREDENTIALS_KEY: secret("c"),
      ALLOW_PRIVATE_UPSTREAMS: "true",
      LOG_LEVEL: "error",
      KV: {
        get: (key) => thenable(this.queue, kv.get(key) ?? null),
        put: (key, value) => {
          kv.set(key, value);
          return thenable(this.queue, undefined);
        },
        delete: (key) => {
          kv.delete(key);
          return thenable(this.queue, undefined);
        },
      },
    };
  }

  storage(name) {
    if (!this.objects.has(name)) this.objects.set(name, new Rows());
    return { kv: this.objects.get(name), setAlarm() {}, deleteAlarm() {}, transactionSync: (use) => use() };
  }

  // event starts an event without a request. done gets its answer.
  event(inst, kind, name, verb, body, done) {
    const call = inst.add(this.env, done);
    call.storage = this.storage(name);
    inst.beginEvent(call, kind, name, verb, body);
  }

  settle() {
    for (let i = 0; i < 2000 && this.queue.length; i++) this.queue.shift()();
  }

  fetch(inst, op, _call, url) {
    const answer = answers[url.slice(url.lastIndexOf("/") + 1)];
    const body = encoder.encode(JSON.stringify(answer ?? {}));
    const head = "content-type\napplication/json\nx-request-id\nr";
    this.queue.push(() => inst.emit(op, OK, answer ? 200 : 404, head, body));
  }

  callObject(inst, op, _call, name, verb, body) {
    const done = (answer) => this.queue.push(() => inst.emit(op, OK, answer.status, "", answer.body));
    this.queue.push(() => this.event(inst, OBJECT_CALL, name, verb, body, done));
  }

  respond(call, { status }, body) {
    call.answer({ status, body });
  }
}

// warmUp serves the invented requests on inst. It throws if one fails.
export function warmUp(inst) {
  const host = new WarmupHost();
  inst.host = host;
  // request serves one request to its end.
  const request = (method, path, key, json) => {
    const body = json ? encoder.encode(JSON.stringify(json)) : NO_BODY;
    const head =
      `${method}\nhttp://warmup.example${path}\nauthorization\nBearer ${key}` +
      (json ? `\ncontent-type\napplication/json\ncontent-length\n${body.byteLength}` : "");
    let answer = null;
    const call = inst.add(host.env, (a) => {
      answer = a;
    });
    inst.begin(call, head, body);
    host.settle();
    if (!answer) throw new Error(`${method} ${path}: no answer`);
    const text = answer.body ? decoder.decode(answer.body) : "";
    if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.status} ${text}`);
    return text ? JSON.parse(text) : null;
  };
  const { machineId, apiKey } = request("POST", "/api/machines", secret("a"), {});
  request("POST", `/${machineId}/api/providers`, secret("a"), {
    provider: "openai-compatible-0123abcd",
    apiKey: "warmup-key",
    providerSpecificData: { baseUrl: "http://warmup.example/v1", prefix: "r" },
  });
  request("GET", `/${machineId}/api/providers`, secret("a"));
  host.event(inst, ALARM, machineId, "", null, () => {}); // publishes the replica
  host.settle();
  for (let i = 0; i < 2; i++) {
    request("POST", "/v1/embeddings", apiKey, { model: "r/m", input: "a", encoding_format: "base64" });
    request("POST", `/${machineId}/v1/embeddings`, apiKey, { model: "r/m", input: "a" });
  }
  request("GET", "/v1/models", apiKey);
}
