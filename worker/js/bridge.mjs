// The JavaScript half of the bridge: carries requests, upstream calls and object
// calls between the platform and the Go program through linear memory. One
// instance of the program serves every request of an isolate.
import { boot, booted } from "./boot.mjs";
import { Call, listenAfter, timers } from "./call.mjs";
import { BODY_LATER, DROPPED, NETWORK, NO_BODY, OBJECT_CALL, SMALL_BODY, UPLOAD_IDLE } from "./contract.mjs";
import { imports } from "./imports.mjs";
import { Instances } from "./instances.mjs";
import { platform } from "./platform.mjs";
import { errorResponse, headOf } from "./request.mjs";
import { Sockets } from "./sockets.mjs";
import { detach, Streams } from "./streams.mjs";
import { warmUp } from "./warmup.mjs";
import { WebSockets } from "./websockets.mjs";

const encoder = new TextEncoder();
const decoder = new TextDecoder();

const maxHead = 96 << 10; // bytes

// How often the calls are looked through for those whose events are over, in ms. A
// live one is silent in three rounds only if the isolate was blocked between them.
const sweepEvery = 1000;

// Instance is one running Go program with everything that is in flight in it.
class Instance {
  constructor() {
    this.host = platform;
    this.context = { env: null };
    this.templates = []; // Headers by number
    this.peers = () => []; // the other instances of the isolate
    this.calls = new Map();
    this.streams = new Streams(this);
    this.sockets = new Sockets(this);
    this.webSockets = new WebSockets(this);
    this.retiredAt = 0; // when a successor has taken the new events over, 0 before
    this.nextID = 1;
    this.sweptAt = 0;
    this.dead = false;
    this.view = null;
    this.result = null; // bytes or rows that Go copies next
    this.clock = { now: 0 };
    this.go = boot(imports(this), this.context, this.clock, (fn) => this.enter(fn));
    this.x = this.go._inst.exports;
    this.scratch = this.x.weir_scratch();
    this.scratchSize = this.x.weir_scratch_size();
  }

  u8() {
    if (this.view === null || this.view.buffer !== this.x.mem.buffer) this.view = new Uint8Array(this.x.mem.buffer);
    return this.view;
  }

  text(at, n) {
    return n ? decoder.decode(this.u8().subarray(at, at + n)) : "";
  }
  bytes(at, n) {
    return this.u8().slice(at, at + n);
  }

  // enter runs fn inside Go. An exception, or the end of the program, ends this
  // instance: the calls in flight fail, and the next request gets a new instance.
  enter(fn) {
    if (this.dead) return undefined;
    this.clock.now = 0;
    try {
      const result = fn();
      if (this.go.exited) this.#die("exit");
      return result;
    } catch (e) {
      this.#die(e instanceof WebAssembly.RuntimeError ? "trap" : e?.name);
      return undefined;
    }
  }

  #die(why) {
    if (this.dead) return;
    this.dead = true;
    console.error(JSON.stringify({ level: "error", msg: "instance ended", why, inFlight: this.calls.size }));
    for (const call of this.calls.values()) {
      call.fail();
    }
    this.calls.clear();
    this.streams.abandon();
    this.sockets.abandon();
    this.webSockets.abandon();
  }

  // replacement returns a new instance, which takes over what Go has buffered in
  // this one.
  replacement() {
    const next = new Instance();
    this.handOver(next);
    return next;
  }

  // handOver passes what Go has buffered in this instance to another.
  handOver(next) {
    const n = this.enter(() => this.x.weir_hand_over());
    if (!(n > 0)) return;
    const left = this.bytes(this.x.weir_out() >>> 0, n);
    next.enter(() => {
      next.putEvent("", left);
      next.x.weir_take_over(n);
    });
  }

  get idle() {
    return this.calls.size === 0 && this.streams.size === 0;
  }

  // putHead copies text to where Go reads a head and returns its length, or -1 if
  // it is too long.
  putHead(text) {
    const { read, written } = encoder.encodeInto(text, this.u8().subarray(this.scratch, this.scratch + maxHead));
    return read === text.length ? written : -1;
  }

  // putEvent copies the head and the body of an event to where Go takes them from,
  // and returns the length of the head, or -1 if it is too long. The body follows
  // the head if it fits there.
  putEvent(head, body) {
    const length = head ? this.putHead(head) : 0;
    if (length < 0 || !body?.byteLength) return length;
    const n = body.byteLength;
    const at = n <= this.scratchSize - length ? this.scratch + length : this.x.weir_alloc(n) >>> 0;
    this.u8().set(body, at); // after weir_alloc, which may grow the memory and end older views
    return length;
  }

  // run calls one of the exports that run tasks, then the scheduler of the Go
  // runtime if one of them needs it.
  run(scheduled) {
    if (scheduled) this.x.resume();
  }

  // emit reports to Go how an operation ended. A large body is freed. handle is
  // the number of a stream, a held body or a socket. emit reports whether Go has taken
  // it.
  emit(op, outcome, status = 0, head = "", body = null, handle = 0) {
    return this.enter(() => {
      const n = this.putEvent(head, body);
      const size = body ? body.byteLength : 0;
      detach(body); // before Go continues: it may ask for as much again
      const took =
        n < 0 ? this.x.weir_event(op, NETWORK, 0, 0, 0, 0) : this.x.weir_event(op, outcome, status, n, size, handle);
      if (took === DROPPED) return false;
      this.run(took);
      return n >= 0;
    });
  }

  // begin passes a request to Go. body is its bytes, NO_BODY or BODY_LATER.
  begin(call, head, body) {
    if (call.answered) return;
    call.begun = true;
    this.enter(() => {
      const known = typeof body === "number";
      const n = this.putEvent(head, known ? null : body);
      if (n < 0) return this.refuse(call, 431, "the request's headers are too large");
      this.run(this.x.weir_request(call.id, n, known ? body : body.byteLength));
    });
  }

  // beginEvent passes an event without a request to Go.
  beginEvent(call, kind, name, verb, body) {
    this.enter(() => {
      const n = this.putEvent(name + "\n" + verb, body);
      this.run(this.x.weir_run(call.id, kind, n, body ? body.byteLength : 0));
    });
  }

  // forget ends a call that has nothing under way.
  forget(call) {
    this.calls.delete(call.id);
    call.end();
  }

  // refuse answers a request that Go does not receive.
  refuse(call, status, message) {
    if (call.answered) return;
    call.answer(errorResponse(call.request, status, message, "invalid_request_error", null));
    this.forget(call);
  }

  // cancel reports to Go that a call's client has left, and aborts its upstream calls.
  cancel(call) {
    if (call.canceled || this.dead) return;
    call.canceled = true;
    if (call.inflight) for (const inflight of call.inflight) inflight.cancel();
    this.streams.leave(call);
    this.enter(() => this.x.weir_cancel(call.id));
    if (call.sockets) this.webSockets.leave(call);
  }

  // sweep ends the calls whose events the platform has ended without a word, as it
  // does when the client leaves: at once if it was not asked to keep the event alive,
  // else after 30 s.
  sweep() {
    const now = Date.now();
    if (now - this.sweptAt < sweepEvery) return;
    this.sweptAt = now;
    for (const call of this.calls.values()) {
      if (now - call.since < 2 * listenAfter) break;
      if (call.request === null || !call.lost(now)) continue;
      if (!call.begun)
        this.calls.delete(call.id); // while its body arrived
      else {
        call.fail(); // an answer that Go makes now would belong to this event
        this.streams.sweep(call);
        this.enter(() => this.run(this.x.weir_sweep(call.id)));
        if (call.over) this.forget(call);
      }
    }
  }

  // add creates a call of this instance. resolve gets its answer.
  add(env, resolve) {
    this.context.env = env;
    this.sweep();
    const call = new Call(this.nextID++, env, resolve, this);
    this.calls.set(call.id, call);
    return call;
  }
}

// first boots the instance that the isolate starts with and warms it up. If that
// fails, a new instance serves: the warm-up only saves time.
function first() {
  const inst = new Instance();
  try {
    warmUp(inst);
    inst.x.weir_reset();
    inst.host = platform;
    return inst;
  } catch (e) {
    console.error(JSON.stringify({ level: "error", msg: "warm-up failed", error: String(e?.message).slice(0, 200) }));
  }
  return new Instance();
}

const instances = new Instances(first());
booted();

// handle serves one request.
export async function handle(request, env, ctx) {
  const { head, length, encoded } = headOf(request);
  const later = request.body !== null && (length < 0 || length > SMALL_BODY || encoded);
  const inst = instances.forRequest(later, request);
  let resolve;
  const answered = new Promise((r) => {
    resolve = r;
  });
  const call = inst.add(env, resolve);
  call.serve(request, ctx);
  if (timers.asked) call.probe();
  if (request.body === null) inst.begin(call, head, NO_BODY);
  else if (later) {
    call.keep();
    inst.begin(call, head, BODY_LATER);
  } else {
    // A small body comes with the head: Go is entered once instead of twice.
    const deadline = call.addDeadline(UPLOAD_IDLE, () =>
      inst.refuse(call, 408, "the request body did not arrive in time"),
    );
    request.arrayBuffer().then(
      (body) => {
        call.removeDeadline(deadline);
        inst.begin(call, head, new Uint8Array(body));
      },
      () => inst.refuse(call, 400, "the connection closed before the request body was complete"),
    );
  }
  const response = await answered;
  return response ?? errorResponse(request, 503, "the gateway restarted, try again", "server_error", "restarted");
}

// run serves one event that has no request: an object call, an alarm, the cron.
export async function run(kind, env, storage, name, verb, body) {
  const event = (inst, kind, verb, body) =>
    new Promise((resolve) => {
      const call = inst.add(env, resolve);
      call.storage = storage;
      inst.beginEvent(call, kind, name ?? "", verb, body);
    });
  if (!name) return (await event(instances.next(), kind, verb, body)) ?? { status: 503, body: null };
  const inst = await instances.forObject(name, (old) => event(old, OBJECT_CALL, "flush", null));
  const answer = await instances.within(inst, name, () => event(inst, kind, verb, body));
  return answer ?? { status: 503, body: null };
}

// stats reports what is in flight, for tests.
export function stats() {
  const all = instances.all();
  const sums = { calls: 0, ops: 0, streams: 0, sockets: 0, goroutines: 0, memory: 0, held: 0 };
  for (const inst of all) {
    const { x } = inst;
    const at = inst.enter(() => x.weir_stats() >>> 0) ?? 0;
    const [calls, ops, flows, goroutines] = new Int32Array(x.mem.buffer, at, 4);
    sums.calls += Math.max(inst.calls.size, calls);
    sums.ops += ops;
    sums.streams += Math.max(inst.streams.size, flows);
    sums.sockets += inst.sockets.size + inst.webSockets.size;
    sums.goroutines += goroutines;
    sums.memory += x.mem.buffer.byteLength;
    sums.held += x.weir_used();
  }
  return {
    ...sums,
    instances: all.length,
    dead: instances.current.dead,
  };
}
