// The host of the program in production: upstream calls, calls of objects and
// answers, by the platform. WarmupHost in warmup.mjs has the same methods.
import { BODY_IDLE, BODY_TIMEOUT, BUDGET, CANCELED, IGNORED, NETWORK, OK, TIMEOUT, TOO_LARGE } from "./contract.mjs";
import { appendFields } from "./imports.mjs";
import { detach, readAll } from "./streams.mjs";

// How long an object may take, in ms. The machine's snapshot is asked for before
// a call; if there is no answer, the replica serves. A refresh answers within
// 10 s, see worker.mjs.
const snapshotMs = 10_000;
const objectMs = 30_000;

const ignored = new Set(IGNORED);

// An upstream call whose answer Go receives whole. It has no AbortController, which
// would cost as much as a tenth of passing a call on: one that is given up is left
// to the platform, which ends it together with the event of its request.
class WholeFetch {
  constructor(call, inst, op) {
    this.call = call;
    this.inst = inst;
    this.op = op;
    this.reported = false;
    this.reader = null; // of its body
    this.deadline = null;
  }

  // report reports to Go how the call ended, once.
  report(outcome, status = 0, head = "", body = null) {
    if (this.reported) return;
    this.reported = true;
    this.call.inflight?.delete(this);
    if (this.deadline) this.call.removeDeadline(this.deadline);
    this.inst.emit(this.op, outcome, status, head, body);
  }

  // giveUp ends the call with an outcome.
  giveUp(outcome) {
    this.reader?.cancel().catch(() => {});
    this.report(outcome);
  }

  // cancel ends the call because the client has left.
  cancel() {
    queueMicrotask(() => this.giveUp(CANCELED));
  }
}

// An upstream call whose answer is a stream, from its start to the end of its body.
class StreamFetch {
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

// fieldsOf returns "name\nvalue…" with the fields of an answer.
function fieldsOf(headers) {
  let head = "";
  headers.forEach((value, name) => {
    if (!ignored.has(name)) head += head ? "\n" + name + "\n" + value : name + "\n" + value;
  });
  return head;
}

// outcomeOf returns the outcome of a call that fetch has rejected.
const outcomeOf = (e) => (/^too many subrequests/i.test(e?.message) ? BUDGET : NETWORK);

export const platform = {
  pause(inst, op, ms) {
    scheduler.wait(ms).then(() => inst.emit(op, OK));
  },

  // fetch makes an upstream call. It reports the head, with the whole body if
  // maxBody is positive, else with a stream. A large init.body is freed once the
  // head has come if ownsBody is set: nothing else has those bytes. Of an answer
  // that is read whole, idleMs limits the silence within the body.
  fetch(inst, op, call, url, init, headerMs, totalMs, idleMs, maxBody, outlive, ownsBody) {
    if (outlive) call.keep();
    else if (call.canceled) return void queueMicrotask(() => inst.emit(op, CANCELED));
    if (maxBody > 0) this.fetchWhole(inst, op, call, url, init, headerMs, totalMs, idleMs, maxBody, outlive, ownsBody);
    else this.fetchStream(inst, op, call, url, init, headerMs, totalMs, outlive, ownsBody);
  },

  async fetchWhole(inst, op, call, url, init, headerMs, totalMs, idleMs, maxBody, outlive, ownsBody) {
    const inflight = new WholeFetch(call, inst, op);
    if (!outlive) {
      call.inflight ??= new Set();
      call.inflight.add(inflight);
    }
    const limit = totalMs > 0 ? Date.now() + totalMs : Infinity;
    let headArrived = false;
    const expire = () => inflight.giveUp(!headArrived ? TIMEOUT : Date.now() >= limit ? BODY_TIMEOUT : BODY_IDLE);
    const first = headerMs > 0 && !(totalMs > 0 && totalMs <= headerMs) ? headerMs : totalMs;
    if (first > 0) inflight.deadline = call.addDeadline(first, expire);
    try {
      const r = await fetch(url, init);
      if (ownsBody) detach(init.body);
      if (inflight.reported) return void r.body?.cancel().catch(() => {});
      headArrived = true;
      // Each chunk postpones the limit of the silence.
      const onChunk = () => {
        const at = Math.min(limit, idleMs > 0 ? Date.now() + idleMs : Infinity);
        if (inflight.deadline) call.moveDeadline(inflight.deadline, at);
        else if (at < Infinity) inflight.deadline = call.addDeadline(at - Date.now(), expire);
      };
      onChunk();
      const body = await readAll(r, maxBody, idleMs, onChunk, (reader) => {
        inflight.reader = reader;
      });
      if (body === null) inflight.report(TOO_LARGE, r.status);
      else inflight.report(OK, r.status, fieldsOf(r.headers), body);
    } catch (e) {
      inflight.report(outcomeOf(e));
    }
  },

  async fetchStream(inst, op, call, url, init, headerMs, totalMs, outlive, ownsBody) {
    const inflight = new StreamFetch(call);
    init.signal = inflight.controller.signal;
    if (!outlive) {
      call.inflight ??= new Set();
      call.inflight.add(inflight);
    }
    let headArrived = false;
    const expire = () => inflight.abort(headArrived ? BODY_TIMEOUT : TIMEOUT);
    if (totalMs > 0) inflight.deadline = call.addDeadline(totalMs, expire);
    const header = headerMs > 0 && !(totalMs > 0 && totalMs <= headerMs) ? call.addDeadline(headerMs, expire) : null;
    try {
      const r = await fetch(url, init);
      if (ownsBody) detach(init.body);
      if (header) call.removeDeadline(header);
      headArrived = true;
      // The stream keeps its deadline and can be aborted until its end.
      inst.emit(op, OK, r.status, fieldsOf(r.headers), null, r.body ? inst.streams.add(r, inflight, -1) : 0);
    } catch (e) {
      if (header) call.removeDeadline(header);
      inflight.finish();
      inst.emit(op, inflight.outcome === NETWORK ? outcomeOf(e) : inflight.outcome);
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

  // respond answers a request. template has the constant fields, or is undefined;
  // fields are "name\nvalue…"; body is null, bytes or a stream.
  respond(call, status, template, fields, body) {
    const response = new Response(body, { status, headers: template });
    appendFields(response.headers, fields);
    call.answer(response);
  },
};
