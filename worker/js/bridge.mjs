// The JS side of the bridge: boots the Go program, carries requests, upstream
// calls and object calls between the platform and Go through linear memory.
// One Go instance serves every request of an isolate.
import { connect } from "cloudflare:sockets";
import module from "./app.wasm";
import { SEED } from "./seed.mjs";
import "./wasm_exec.js";
import { Call } from "./call.mjs";
import { BUDGET, CANCELED, END, IDLE, LATE, NETWORK, OK, TIMEOUT, TOO_LARGE } from "./codes.mjs";
import { failed, imports } from "./operations.mjs";
import { rehearse } from "./warmup.mjs";
import { Sockets } from "./sockets.mjs";
import { Streams, readAll, spent } from "./streams.mjs";

const enc = new TextEncoder(),
  dec = new TextDecoder();
const replaceAt = 64 << 20; // bytes of linear memory

// The fields of a client's request that Go may see
// (docs/reference/reliability.md, T20: all others have no meaning for the
// gateway and never reach an upstream). Each look-up costs as much as a small
// allocation, so the busiest paths have a short list.
const callFields = [
  "authorization",
  "content-length",
  "content-encoding",
  "x-stainless-timeout",
  "x-connection-id",
  "x-weir-hop",
  "origin",
  "idempotency-key",
  "upgrade",
];
const dataFields = [
  ...callFields,
  "x-api-key",
  "content-type",
  "accept",
  "anthropic-version",
  "anthropic-beta",
  "openai-beta",
  "x-provider",
  "x-model",
  "x-weir-internal-models-fetch",
];
const managementFields = [
  ...dataFields,
  "cookie",
  "if-match",
  "if-none-match",
  "sec-fetch-site",
  "x-csrf-token",
  "cf-connecting-ip",
];

// Header fields of coding tools that are passed on to an upstream of the client's
// dialect: open lists, see provider.SessionHeader.
const toolFields = [
  ["/v1/messages", /^(?:anthropic-|x-claude-code-|x-app$)/],
  ["/v1/responses", /^(?:x-codex-|x-openai-|session[_-]id$|thread-id$|conversation_id$|originator$)/],
];

function fieldsFor(url) {
  if (url.endsWith("/v1/embeddings") || url.endsWith("/v1/chat/completions")) return callFields;
  return url.includes("/v1/") && !url.includes("/oauth/callback?") ? dataFields : managementFields;
}

// Numbers of values in wasm_exec.js, and the one property of the Go object with
// a name of this length.
const goObject = 6,
  nullValue = 2,
  pendingEvent = "_pendingEvent";

// platform is what github.com/syumai/workers reads as globalThis.context.
const platform = { env: null, ctx: null, connect, binding: {} };

globalThis.tryCatch = (fn) => {
  try {
    return { result: fn() };
  } catch (error) {
    return { error };
  }
};

// A body of up to withHead declared bytes is read before Go is entered, and
// given up after bodyWait ms.
const withHead = 64 << 10,
  bodyWait = 20000;

// Fields of an upstream's answer that mean nothing to the gateway.
const noise = new Set([
  "date",
  "server",
  "connection",
  "keep-alive",
  "transfer-encoding",
  "vary",
  "via",
  "alt-svc",
  "set-cookie",
  "etag",
  "strict-transport-security",
  "x-content-type-options",
  "content-security-policy",
  "x-frame-options",
  "cf-ray",
  "cf-cache-status",
  "nel",
  "report-to",
  "server-timing",
  "x-envoy-upstream-service-time",
  "x-powered-by",
  "access-control-allow-origin",
  "access-control-expose-headers",
  "access-control-allow-credentials",
]);

// Instance is one running Go program with everything that is in flight in it.
let booting = true; // until the first event

class Instance {
  constructor() {
    this.calls = new Map();
    this.streams = new Streams(this);
    this.sockets = new Sockets(this);
    this.nextID = 1;
    this.dead = false;
    this.view = null;
    this.listed = null;
    this.boot();
  }

  // boot runs the program up to its event loop. At global scope the platform
  // has neither clock nor randomness, so both are stubbed until a request
  // comes: the hash seed is made at build time and nothing secret uses it.
  boot() {
    const go = (this.go = new Go());
    const js = go.importObject.gojs,
      realRandom = js["runtime.getRandomData"];
    let last = 1;
    js["runtime.getRandomData"] = (sp) => {
      if (!booting) return realRandom(sp);
      sp >>>= 0;
      const at = go.mem.getUint32(sp + 8, true),
        n = go.mem.getUint32(sp + 16, true);
      const out = new Uint8Array(go._inst.exports.mem.buffer, at, n);
      for (let i = 0; i < n; i++) out[i] = SEED[i % SEED.length];
    };
    // A clock that stands still, or at zero, makes the Go runtime abort.
    js["runtime.nanotime1"] = (sp) => {
      last = Math.max(last + 1000, Date.now() * 1e6); // whole microseconds: exact in a double
      go.mem.setUint32((sp >>> 0) + 8, last >>> 0, true);
      go.mem.setUint32((sp >>> 0) + 12, last / 4294967296, true);
    };
    // No timers: one would fire in the I/O context of another request.
    js["runtime.scheduleTimeoutEvent"] = (sp) => {
      go.mem.setInt32((sp >>> 0) + 16, 1, true);
    };
    js["runtime.clearTimeoutEvent"] = () => {};
    // Every event makes the runtime ask for a pending callback; there is one only
    // while a promise of syscall/js settles.
    const valueGet = js["syscall/js.valueGet"];
    js["syscall/js.valueGet"] = (sp) => {
      sp >>>= 0;
      if (
        go._pendingEvent !== null ||
        go.mem.getUint32(sp + 8, true) !== goObject ||
        go.mem.getUint32(sp + 24, true) !== pendingEvent.length
      )
        return valueGet(sp);
      go.mem.setUint32(sp + 36, 0x7ff80000, true);
      go.mem.setUint32(sp + 32, nullValue, true);
    };
    // What the runtime prints when it dies may hold a request's data: only its
    // own fixed words go on.
    let line = "";
    js["runtime.wasmWrite"] = (sp) => {
      sp >>>= 0;
      const at = Number(go.mem.getBigInt64(sp + 16, true)),
        n = go.mem.getInt32(sp + 24, true);
      line += dec.decode(new Uint8Array(go._inst.exports.mem.buffer, at, n));
      const lines = line.split("\n");
      line = lines.pop();
      for (const l of lines) {
        if (/^(fatal error: [a-z ,-]+|runtime: goroutine stack exceeds \d+-byte limit)$/.test(l))
          console.error("go: " + l);
        else if (l.startsWith("panic: ")) console.error("go: panic");
      }
    };
    go.exit = () => {};
    go._resume = () => this.enter(() => go._inst.exports.resume());
    const instance = new WebAssembly.Instance(module, { ...go.importObject, host: imports(this) });
    go.run(instance, platform);
    this.x = instance.exports;
    this.scratch = this.x.weir_scratch();
    this.scratchSize = this.x.weir_scratch_size();
  }

  u8() {
    if (this.view === null || this.view.buffer !== this.x.mem.buffer) this.view = new Uint8Array(this.x.mem.buffer);
    return this.view;
  }

  text(at, n) {
    return n ? dec.decode(this.u8().subarray(at, at + n)) : "";
  }
  bytes(at, n) {
    return this.u8().slice(at, at + n);
  }

  // enter runs fn inside Go. An exception, or the end of the program, ends this
  // instance: what is in flight inside fails, the next request gets a new one.
  enter(fn) {
    if (this.dead) return undefined;
    try {
      const result = fn();
      if (this.go.exited) this.die("exit");
      return result;
    } catch (e) {
      this.die(e instanceof WebAssembly.RuntimeError ? "trap" : e?.name);
      return undefined;
    }
  }

  die(why) {
    if (this.dead) return;
    this.dead = true;
    console.error(JSON.stringify({ level: "error", msg: "instance ended", why, inFlight: this.calls.size }));
    for (const call of this.calls.values()) {
      // A Response made here would belong to the request that died; each call
      // makes its own when it learns of this.
      call.answer(null);
      call.done?.();
    }
    this.calls.clear();
    this.streams.abandon();
    this.sockets.abandon();
  }

  get idle() {
    return this.calls.size === 0 && this.streams.size === 0;
  }

  // head puts text where Go finds it and gives its length, or -1 when it is too long.
  head(text) {
    const { read, written } = enc.encodeInto(text, this.u8().subarray(this.scratch, this.scratch + this.scratchSize));
    return read === text.length ? written : -1;
  }

  // put copies bytes to where Go takes a body from.
  put(bytes) {
    const n = bytes.byteLength;
    if (n) {
      const at = this.x.weir_alloc(n) >>> 0; // may grow the memory, which ends older views
      this.u8().set(bytes, at);
    }
    return n;
  }

  // emit tells Go how an operation ended.
  emit(op, kind, status, head, body) {
    this.enter(() => {
      const headLen = head ? this.head(head) : 0;
      const bodyLen = body ? this.put(body) : 0;
      spent(body); // before Go goes on: it may ask for as much again
      if (headLen < 0) this.x.weir_event(op, NETWORK, 0, 0, 0);
      else this.x.weir_event(op, kind, status, headLen, bodyLen);
      this.x.resume();
    });
  }

  // fly makes the call and tells Go of its head, and of its body when maxBody asks for it.
  // own tells that nobody else has the bytes of the request's body.
  async fly(op, call, url, init, headerMs, totalMs, idleMs, maxBody, outlive, own) {
    const flight = { ctl: new AbortController(), why: NETWORK, call, total: null };
    init.signal = flight.ctl.signal;
    const stop = (why) => {
      flight.why = why;
      flight.ctl.abort();
    };
    flight.leave = () => stop(CANCELED);
    if (!outlive) {
      if (call.left) return void queueMicrotask(() => this.emit(op, CANCELED, 0));
      (call.flights ??= new Set()).add(flight);
    }
    let headed = false;
    const late = () => stop(headed ? LATE : TIMEOUT);
    if (totalMs > 0) flight.total = call.limit(totalMs, late);
    let quiet = null;
    const header = headerMs > 0 && !(totalMs > 0 && totalMs <= headerMs) ? call.limit(headerMs, late) : null;
    try {
      const r = await fetch(url, init);
      if (own) spent(init.body);
      if (header) call.lift(header);
      headed = true;
      const { headers } = r;
      let head = "";
      for (const [k, v] of headers) if (!noise.has(k)) head += (head ? "\n" : "") + k + "\n" + v;
      if (maxBody > 0) {
        quiet = idleMs > 0 ? call.limit(idleMs, () => stop(IDLE)) : null;
        const body = await readAll(
          r,
          maxBody,
          idleMs,
          quiet &&
            (() => {
              quiet.at = Date.now() + idleMs;
            }),
        );
        if (quiet) call.lift(quiet);
        this.land(flight);
        if (body === null) {
          flight.ctl.abort();
          this.emit(op, TOO_LARGE, r.status);
        } else this.emit(op, OK, r.status, head, body);
        return;
      }
      // A stream keeps its total limit and stays abortable until it is done with.
      const stream = r.body ? this.streams.add(r, flight, -1) : 0;
      this.emit(op, END, r.status, head + (head ? "\n" : "") + ":stream\n" + stream);
    } catch (e) {
      if (header) call.lift(header);
      if (quiet) call.lift(quiet);
      this.land(flight);
      // The platform made as many calls for this request as it makes for one.
      this.emit(op, flight.why === NETWORK && /^too many subrequests/i.test(e?.message) ? BUDGET : flight.why, 0);
    }
  }

  // land forgets an upstream call that is over.
  land(flight) {
    if (!flight) return;
    flight.call.flights?.delete(flight);
    if (flight.total) flight.call.lift(flight.total);
  }

  // begin hands a request to Go, with its body when that is already here.
  begin(call, head, hasBody, body) {
    if (call.answered) return;
    this.enter(() => {
      const n = this.head(head);
      if (n < 0) return this.refuse(call, 431, "the request's headers are too large");
      this.x.weir_request(call.id, n, hasBody, body === null ? -1 : this.put(body));
      this.x.resume();
    });
  }

  // runObject hands an event without a request to Go.
  runObject(call, kind, name, verb, body) {
    this.enter(() => {
      const n = this.head(name + "\n" + verb),
        b = body ? this.put(body) : 0;
      this.x.weir_run(call.id, kind, n, b);
      this.x.resume();
    });
  }

  // refuse answers a request that Go never saw.
  refuse(call, status, message) {
    if (call.answered) return;
    this.calls.delete(call.id);
    call.answer(failed(call.request?.url ?? "", status, message, "invalid_request_error", null));
    call.end();
  }

  // leave tells Go that a call's client has gone and aborts what may be aborted.
  leave(call) {
    if (call.left || this.dead) return;
    call.left = true;
    if (call.flights) for (const flight of call.flights) flight.leave();
    this.enter(() => {
      this.x.weir_left(call.id);
      this.x.resume();
    });
  }
}

// Part is a call of the rehearsal: without timers, and answered at once.
class Part extends Call {
  constructor(inst, rehearsal) {
    super(inst.nextID++, rehearsal.env, null, inst);
    this.rehearsal = rehearsal;
    inst.calls.set(this.id, this);
  }

  limit() {
    return null;
  }
  finish(answer) {
    if (!this.answered) {
      this.answered = true;
      this.answer = answer;
    }
  }
}

// Stage is the instance as the rehearsal sees it.
class Stage {
  constructor(inst) {
    this.inst = inst;
  }
  emit(...event) {
    this.inst.emit(...event);
  }

  request(head, body, rehearsal) {
    platform.env = rehearsal.env;
    const part = new Part(this.inst, rehearsal);
    this.inst.begin(part, head, body ? 1 : 0, body);
    return part;
  }

  object(kind, storage, name, verb, body, rehearsal) {
    const part = new Part(this.inst, rehearsal);
    part.storage = storage;
    this.inst.runObject(part, kind, name, verb, body);
    return part;
  }
}

// first boots the instance that the isolate starts with. The rehearsal is only
// ever a gain of time: one that fails leaves nothing behind.
function first() {
  const inst = new Instance();
  try {
    if (inst.x.weir_reset) rehearse(new Stage(inst));
    inst.x.weir_reset?.();
    if (inst.idle && !inst.dead) return inst;
  } catch (e) {
    console.error(JSON.stringify({ level: "error", msg: "rehearsal", what: String(e?.message).slice(0, 200) }));
  }
  return new Instance();
}

let instance = first();
booting = false;

function current() {
  if (instance.dead || (instance.x.mem.buffer.byteLength > replaceAt && instance.idle)) instance = new Instance();
  return instance;
}

// handle serves one request.
export async function handle(request, env, ctx) {
  const inst = current();
  platform.env = env;
  const { method, url, headers } = request;
  let head = method + "\n" + url;
  for (const name of fieldsFor(url)) {
    const v = headers.get(name);
    if (v !== null) head += "\n" + name + "\n" + v;
  }
  for (const [path, own] of toolFields) {
    if (!url.includes(path)) continue;
    for (const [name, v] of headers) if (own.test(name) && !dataFields.includes(name)) head += "\n" + name + "\n" + v;
  }
  // The key of Anthropic's clients; theirs and OpenAI's are never looked for twice.
  if (!headers.has("authorization")) {
    const v = headers.get("x-api-key");
    if (v !== null) head += "\nx-api-key\n" + v;
  }
  const call = new Call(inst.nextID++, env, null, inst);
  call.request = request;
  inst.calls.set(call.id, call);
  const answered = new Promise((resolve) => {
    call.resolve = resolve;
  });
  ctx.waitUntil(
    new Promise((done) => {
      call.done = done;
    }),
  );
  if (request.body === null) inst.begin(call, head, 0, null);
  else if (+(headers.get("content-length") ?? Infinity) > withHead || headers.has("content-encoding"))
    inst.begin(call, head, 1, null);
  else {
    // A small body comes with the head: the request enters Go once instead of twice.
    const late = call.limit(bodyWait, () => inst.refuse(call, 408, "the request body did not arrive in time"));
    request.arrayBuffer().then(
      (body) => {
        call.lift(late);
        inst.begin(call, head, 1, new Uint8Array(body));
      },
      () => inst.refuse(call, 400, "the request body broke off"),
    );
  }
  const response = await answered;
  return response ?? failed(url, 503, "the gateway restarted, try again", "server_error", "restarted");
}

// run serves one event that has no request: an object call, an alarm, the cron.
export async function run(kind, env, storage, name, verb, body) {
  const inst = current();
  platform.env = env;
  const answer = await new Promise((resolve) => {
    const call = new Call(inst.nextID++, env, resolve, inst);
    call.storage = storage;
    inst.calls.set(call.id, call);
    inst.runObject(call, kind, name, verb, body);
  });
  return answer ?? { status: 503, body: null };
}

// stats is for tests: what is in flight.
export function stats() {
  return {
    calls: instance.calls.size,
    streams: instance.streams.size,
    memory: instance.x.mem.buffer.byteLength,
    dead: instance.dead,
  };
}
