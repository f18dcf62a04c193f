// The host of the program in production: upstream calls, calls of objects and
// answers, by the platform. WarmupHost in warmup.mjs has the same methods.
import {
  BODY_IDLE,
  BODY_TIMEOUT,
  BUDGET,
  CANCELED,
  CUT,
  IGNORED,
  NETWORK,
  NO_MEMORY,
  OK,
  PLACE,
  TIMEOUT,
  TOO_LARGE,
} from "./contract.mjs";
import { noMemory, reserver } from "./memory.mjs";
import { hintOf } from "./object.mjs";
import { detach, inOneStep, readAll } from "./streams.mjs";
import { dial } from "./websockets.mjs";

const ignored = new Set(IGNORED);

// An upstream call whose answer Go receives whole. It has no AbortController, which
// would cost as much as a tenth of passing a call on: one that is given up is left
// to the platform, which ends it together with the event of its request. It is a
// deadline of its call.
class WholeFetch {
  constructor(inst, op, call, totalMs, idleMs, maxBody, sending) {
    this.inst = inst;
    this.op = op;
    this.call = call;
    this.limit = totalMs > 0 ? Date.now() + totalMs : Infinity;
    this.idleMs = idleMs;
    this.maxBody = maxBody;
    this.sending = sending;
    this.at = Infinity; // of the deadline
    this.response = null;
    this.reader = null; // of its body
    this.reported = false;
  }

  start(url, init, headerMs, ownsBody) {
    this.#within(headerMs);
    if (this.sending && headerMs > 0)
      this.sending.progress = (taken) => {
        if (taken) this.#within(headerMs);
        else this.at = this.limit;
      };
    fetch(url, init).then(
      (r) => {
        if (ownsBody) detach(init.body);
        this.#read(r);
      },
      (e) => this.report(outcomeOf(e), wasCut(this.sending)),
    );
  }

  // within limits the time until the next step.
  #within(ms) {
    if (this.reported) return;
    const at = ms > 0 ? Math.min(this.limit, Date.now() + ms) : this.limit;
    if (at < Infinity) this.call.setDeadline(this, at);
  }

  #read(r) {
    if (this.reported) return void r.body?.cancel().catch(() => {});
    this.response = r;
    if (this.sending) this.sending.progress = null;
    this.#within(this.idleMs);
    const { head, length } = headOf(r.headers, r.status);
    if (inOneStep(length, this.maxBody, this.idleMs)) {
      r.arrayBuffer().then(
        (body) => this.report(OK, r.status, head, new Uint8Array(body)),
        () => this.report(CUT),
      );
      return;
    }
    readAll(
      r,
      this.maxBody,
      this.idleMs,
      () => this.#within(this.idleMs), // each chunk postpones the limit of the silence
      (reader) => {
        this.reader = reader;
      },
      reserver(this.inst, this.op),
    ).then(
      (body) => {
        if (body === null) this.report(TOO_LARGE, r.status);
        else this.report(OK, r.status, head, body);
      },
      (e) => this.report(e === noMemory ? NO_MEMORY : CUT),
    );
  }

  // report reports to Go how the call ended, once.
  report(outcome, status = 0, head = "", body = null) {
    if (this.reported) return;
    this.reported = true;
    this.call.inflight?.delete(this);
    this.call.removeDeadline(this);
    this.sending?.stop();
    this.inst.emit(this.op, outcome, status, head, body);
  }

  expire() {
    this.#giveUp(this.response === null ? TIMEOUT : Date.now() >= this.limit ? BODY_TIMEOUT : BODY_IDLE);
  }

  #giveUp(outcome) {
    this.reader?.cancel().catch(() => {});
    this.report(outcome, wasCut(this.sending));
  }

  // cancel ends the call because the client has left.
  cancel() {
    queueMicrotask(() => this.#giveUp(CANCELED));
  }
}

// An upstream call whose answer is a stream, from its start to the end of its body.
class StreamFetch {
  constructor(call, sending) {
    this.call = call;
    this.sending = sending;
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
    this.sending?.stop();
    if (this.deadline) this.call.removeDeadline(this.deadline);
  }
}

// headOf returns "name\nvalue…" with the fields of an answer, and the declared length of
// its body, -1 if that is unknown or the body is encoded.
function headOf(headers, status) {
  let head = "";
  let length = -1;
  let encoded = false;
  headers.forEach((value, name) => {
    if (ignored.has(name) && !(status >= 400 && name === PLACE)) return;
    if (name === "content-length") length = +value;
    else if (name === "content-encoding") encoded = true;
    head += head ? "\n" + name + "\n" + value : name + "\n" + value;
  });
  return { head, length: encoded ? -1 : length };
}

// appendFields adds the fields of "name\nvalue\n…" to headers.
function appendFields(headers, text) {
  for (let at = 0; at < text.length; ) {
    const name = text.indexOf("\n", at);
    const value = text.indexOf("\n", name + 1);
    const end = value < 0 ? text.length : value;
    headers.append(text.slice(at, name), text.slice(name + 1, end));
    at = end + 1;
  }
}

// wasCut returns the status of a call that failed before its answer: 1 if much of its body
// had been sent.
const wasCut = (sending) => (sending?.cut ? 1 : 0);

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
  fetch(inst, op, call, url, init, headerMs, totalMs, idleMs, maxBody, outlive, ownsBody, sending) {
    if (outlive) call.keep();
    else if (call.canceled) {
      sending?.stop();
      return void queueMicrotask(() => inst.emit(op, CANCELED));
    }
    if (!(maxBody > 0))
      return void this.fetchStream(inst, op, call, url, init, headerMs, totalMs, outlive, ownsBody, sending);
    const inflight = new WholeFetch(inst, op, call, totalMs, idleMs, maxBody, sending);
    if (!outlive) call.add(inflight);
    inflight.start(url, init, headerMs, ownsBody);
  },

  async fetchStream(inst, op, call, url, init, headerMs, totalMs, outlive, ownsBody, sending) {
    const inflight = new StreamFetch(call, sending);
    init.signal = inflight.controller.signal;
    if (!outlive) call.add(inflight);
    let headArrived = false;
    const expire = () => inflight.abort(headArrived ? BODY_TIMEOUT : TIMEOUT);
    if (totalMs > 0) inflight.deadline = call.addDeadline(totalMs, expire);
    const header = headerMs > 0 && !(totalMs > 0 && totalMs <= headerMs) ? call.addDeadline(headerMs, expire) : null;
    if (sending && header)
      sending.progress = (taken) => {
        if (taken) call.setDeadline(header, Date.now() + headerMs);
        else header.at = Infinity;
      };
    try {
      const r = await fetch(url, init);
      if (sending) sending.progress = null;
      if (ownsBody) detach(init.body);
      if (header) call.removeDeadline(header);
      headArrived = true;
      // The stream keeps its deadline and can be aborted until its end.
      const stream = r.body ? inst.streams.add(r, inflight, -1) : 0;
      if (!inst.emit(op, OK, r.status, headOf(r.headers, r.status).head, null, stream)) inst.streams.discard(stream);
    } catch (e) {
      inflight.finish();
      if (header) call.removeDeadline(header);
      inst.emit(op, inflight.outcome === NETWORK ? outcomeOf(e) : inflight.outcome, wasCut(sending));
    }
  },

  // callObject calls the object of a machine and reports its answer. The first call
  // decides where the object is.
  callObject(inst, op, call, name, verb, body, totalMs) {
    let ended = false;
    const end = (...event) => {
      if (ended) return;
      ended = true;
      call.removeDeadline(deadline);
      inst.emit(op, ...event);
    };
    const deadline = call.addDeadline(totalMs, () => end(NETWORK, 0, "no answer in time"));
    (async () => {
      const ns = call.env.MACHINE;
      const locationHint = hintOf(call.request?.cf);
      return ns.get(ns.idFromName(name), { locationHint }).call(name, verb, body);
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

  // upgrade answers a request with the client's end of a WebSocket.
  upgrade(call, template, fields, webSocket) {
    const response = new Response(null, { status: 101, headers: template, webSocket });
    appendFields(response.headers, fields);
    call.answer(response);
  },

  // dialSocket opens a WebSocket to an upstream. One that refuses answers within as much
  // time again.
  dialSocket(inst, op, call, url, headers, limits, headerMs, maxBody) {
    if (call.canceled) return void queueMicrotask(() => inst.emit(op, CANCELED));
    dial(inst, op, call, url, headers, limits, headerMs, {
      head: (r) => headOf(r.headers, r.status).head,
      body: (r) => readAll(r, maxBody, headerMs, null, undefined, reserver(inst, op)),
    });
  },
};
