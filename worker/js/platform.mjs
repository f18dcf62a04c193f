// The host of the program in production: upstream calls, calls of objects and
// answers, by the platform. WarmupHost in warmup.mjs has the same methods.
import { BODY_IDLE, BODY_TIMEOUT, BUDGET, CANCELED, IGNORED, NETWORK, OK, TIMEOUT, TOO_LARGE } from "./contract.mjs";
import { detach, readAll } from "./streams.mjs";

// How long an object may take, in ms. The machine's snapshot is asked for before
// a call; if there is no answer, the replica serves. A refresh answers within
// 10 s, see worker.mjs.
const snapshotMs = 10_000;
const objectMs = 30_000;

const ignored = new Set(IGNORED);

// InflightFetch is an upstream call from its start to the end of its body.
class InflightFetch {
  constructor(call) {
    this.call = call;
    this.controller = new AbortController();
    this.outcome = NETWORK; // of a call that fails
    this.deadline = null; // for the whole of it
  }

  abort(outcome) {
    if (outcome !== undefined) this.outcome = outcome;
    this.controller.abort();
  }

  // cancel aborts the call because the client has left.
  cancel() {
    this.abort(CANCELED);
  }

  // finish forgets the call, which is over.
  finish() {
    this.call.inflight?.delete(this);
    if (this.deadline) this.call.removeDeadline(this.deadline);
  }
}

export const platform = {
  // fetch makes an upstream call. It reports the head, with the whole body if
  // maxBody is positive, else with a stream. A large init.body is freed once the
  // head has come if ownsBody is set: nothing else has those bytes.
  async fetch(inst, op, call, url, init, headerMs, totalMs, idleMs, maxBody, outlive, ownsBody) {
    const inflight = new InflightFetch(call);
    init.signal = inflight.controller.signal;
    if (!outlive) {
      if (call.canceled) return void queueMicrotask(() => inst.emit(op, CANCELED));
      call.inflight ??= new Set();
      call.inflight.add(inflight);
    }
    let headArrived = false;
    const expire = () => inflight.abort(headArrived ? BODY_TIMEOUT : TIMEOUT);
    if (totalMs > 0) inflight.deadline = call.addDeadline(totalMs, expire);
    let idle = null;
    const header = headerMs > 0 && !(totalMs > 0 && totalMs <= headerMs) ? call.addDeadline(headerMs, expire) : null;
    try {
      const r = await fetch(url, init);
      if (ownsBody) detach(init.body);
      if (header) call.removeDeadline(header);
      headArrived = true;
      let head = "";
      for (const [k, v] of r.headers) if (!ignored.has(k)) head += (head ? "\n" : "") + k + "\n" + v;
      if (!(maxBody > 0)) {
        // A stream keeps its deadline and can be aborted until its end.
        inst.emit(op, OK, r.status, head, null, r.body ? inst.streams.add(r, inflight, -1) : 0);
        return;
      }
      let onChunk = null;
      if (idleMs > 0) {
        idle = call.addDeadline(idleMs, () => inflight.abort(BODY_IDLE));
        onChunk = () => {
          idle.at = Date.now() + idleMs;
        };
      }
      const body = await readAll(r, maxBody, idleMs, onChunk);
      if (idle) call.removeDeadline(idle);
      inflight.finish();
      if (body === null) {
        inflight.abort();
        inst.emit(op, TOO_LARGE, r.status);
      } else inst.emit(op, OK, r.status, head, body);
    } catch (e) {
      if (header) call.removeDeadline(header);
      if (idle) call.removeDeadline(idle);
      inflight.finish();
      // The platform limits the number of calls that one request makes.
      const spent = inflight.outcome === NETWORK && /^too many subrequests/i.test(e?.message);
      inst.emit(op, spent ? BUDGET : inflight.outcome);
    }
  },

  // callObject calls the object of a machine and reports its answer.
  callObject(inst, op, call, name, verb, body) {
    let ended = false;
    const end = (...event) => {
      if (ended) return;
      ended = true;
      call.removeDeadline(deadline);
      inst.emit(op, ...event);
    };
    const ms = verb === "snapshot" ? snapshotMs : objectMs;
    const deadline = call.addDeadline(ms, () => end(NETWORK, 0, "no answer in time"));
    (async () => {
      const ns = call.env.MACHINE;
      return ns.get(ns.idFromName(name)).call(name, verb, body);
    })().then(
      (r) => end(OK, r.status, "", r.body),
      (e) => end(NETWORK, 0, String(e?.message ?? e).slice(0, 200)),
    );
  },

  // respond answers a request. body is null, bytes or a stream.
  respond(call, init, body) {
    call.answer(new Response(body, init));
  },
};
