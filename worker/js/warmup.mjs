// The warm-up: before the first event, the program serves an invented request on a
// host that consists of tables. The engine compiles a function when it is first
// called; without the warm-up the first request of an isolate would wait until most
// of what it needs is compiled. Nothing of it remains: the program's state is rebuilt
// for the first real event.
//
// It is one call of the busiest kind, once: each repetition makes the engine compile
// more with its second, slow compiler. docs/decisions/0004-warm-up-at-boot.md.
import { OBJECT_CALL, OK } from "./contract.mjs";
import { API_KEY, ROWS, SECRETS } from "./machine.mjs";

const encoder = new TextEncoder();
const decoder = new TextDecoder();

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

// Rows is the synchronous storage of the machine's object.
class Rows {
  constructor() {
    this.rows = new Map(ROWS.map(([key, text]) => [key, encoder.encode(text)]));
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

// The answer of the upstream.
const embedding = JSON.stringify({
  object: "list",
  data: [{ object: "embedding", index: 0, embedding: "AACAPwAAAEA=" }],
  model: "m",
  usage: { prompt_tokens: 1, total_tokens: 1 },
});

// WarmupHost has the methods of platform. Operations end when settle runs.
class WarmupHost {
  constructor() {
    this.queue = [];
    this.machine = new Rows();
    this.env = {
      ...SECRETS,
      ALLOW_PRIVATE_UPSTREAMS: "true",
      PRICES_URL: "off",
      LOG_LEVEL: "error",
      KV: { get: () => thenable(this.queue, null) },
    };
  }

  settle() {
    for (let i = 0; i < 2000 && this.queue.length; i++) this.queue.shift()();
  }

  pause(inst, op) {
    this.queue.push(() => inst.emit(op, OK));
  }

  fetch(inst, op) {
    const head = "content-type\napplication/json\nx-request-id\nr";
    this.queue.push(() => inst.emit(op, OK, 200, head, encoder.encode(embedding)));
  }

  // callObject enters the object for what a call waits for. The report comes after
  // the answer, so its part of the program is compiled when it first runs.
  callObject(inst, op, _call, name, verb, body) {
    if (verb === "report") return void this.queue.push(() => inst.emit(op, OK, 200, "", encoder.encode("{}")));
    const call = inst.add(this.env, (answer) => {
      this.queue.push(() => inst.emit(op, OK, answer.status, "", answer.body));
    });
    call.storage = { kv: this.machine, setAlarm() {}, deleteAlarm() {}, transactionSync: (use) => use() };
    this.queue.push(() => inst.beginEvent(call, OBJECT_CALL, name, verb, body));
  }

  respond(call, status, _template, _fields, body) {
    call.answer({ status, body });
  }
}

// warmUp serves the invented request on inst. It throws if that fails.
export function warmUp(inst) {
  const host = new WarmupHost();
  inst.host = host;
  const body = encoder.encode(JSON.stringify({ model: "r/m", input: "a", encoding_format: "base64" }));
  const head =
    `POST\nhttp://warmup.example/v1/embeddings\nauthorization\nBearer ${API_KEY}` +
    `\ncontent-type\napplication/json\ncontent-length\n${body.byteLength}`;
  let answer = null;
  const call = inst.add(host.env, (a) => {
    answer = a;
  });
  inst.begin(call, head, body);
  host.settle();
  if (answer?.status !== 200)
    throw new Error(`status ${answer?.status} ${answer?.body ? decoder.decode(answer.body) : ""}`);
  if (!inst.idle) throw new Error("a call has not ended");
}
