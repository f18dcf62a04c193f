// How long a request runs before the platform is asked to keep its event alive and
// to report the client's departure, in ms. Many calls are over by then: the first
// costs a tenth of passing a call on, the second as much as reading a header field.
export const listenAfter = 1000;

// A request that runs longer shows every aliveEvery ms that the platform has not
// ended its event, as it does with one that is kept alive 30 s after the client has
// left.
const aliveEvery = 10_000;

// How much earlier than another timer one may have been due and still come after it, in
// ms. In an isolate on a loaded computer 9 s were seen.
const outOfTurn = 10_000;

// timers are those of the isolate.
export const timers = {
  until: 0, // those that were due by then have come
  asked: false, // a silent call waits for another one's
};

// Call is one event that the program handles: a request, an object call, an alarm.
export class Call {
  constructor(id, env, resolve, inst) {
    this.id = id;
    this.env = env;
    this.resolve = resolve;
    this.inst = inst;
    this.request = null;
    this.ctx = null;
    this.since = Date.now();
    this.aliveAt = this.since; // when its event was known to live
    this.silent = 0; // times that lost has found it silent
    this.storage = null;
    this.begun = false; // Go knows it
    this.answered = false;
    this.ended = false;
    this.canceled = false; // the client has left
    this.inflight = null; // upstream calls to abort when the client leaves
    this.deadlines = null; // { at, expire }
    this.sockets = false; // it has had WebSockets
    this.streams = 0; // of those in Streams, how many are its own
    this.over = false; // Go has forgotten it, and it has streams under way
    this.timer = 0;
    this.timerAt = 0;
    this.listening = false;
    this.kept = false;
    this.done = null; // ends what keep has promised
  }

  // serve makes the call that of a request.
  serve(request, ctx) {
    this.request = request;
    this.ctx = ctx;
    this.#arm(listenAfter);
  }

  // probe sets a timer of this call's event that is due at once, for lost to know until
  // when timers have come.
  probe() {
    const at = Date.now();
    timers.asked = false;
    this.ctx.waitUntil(
      new Promise((done) => {
        setTimeout(() => {
          timers.until = Math.max(timers.until, at);
          done();
        }, 0);
      }),
    );
  }

  // keep keeps the event of a request alive, also after its answer and the client's
  // departure, until the call has ended. It is called within that event.
  keep() {
    if (this.kept || !this.ctx) return;
    this.kept = true;
    this.ctx.waitUntil(
      new Promise((done) => {
        this.done = done;
      }),
    );
  }

  // lost reports whether the event has been silent for longer than a live one is, and
  // was so the last two times. In a busy isolate timers are late: one that has not come
  // says nothing until one that was due much later has.
  lost(now) {
    const silence = now - this.aliveAt;
    if (silence < (this.listening ? 3 * aliveEvery : 2 * listenAfter)) return false;
    if (timers.until < this.timerAt + outOfTurn) {
      timers.asked = true;
      return false;
    }
    return ++this.silent > 2;
  }

  // add adds an upstream call to cancel when the client leaves.
  add(inflight) {
    this.inflight ??= new Set();
    this.inflight.add(inflight);
  }

  answer(response) {
    if (this.answered) return;
    this.answered = true;
    this.resolve(response);
  }

  // fail ends a call whose instance has ended. A Response created here would belong
  // to the request that ended it; each call creates its own.
  fail() {
    this.answer(null);
    this.done?.();
  }

  // addDeadline calls expire after ms, unless the deadline is removed before. Moving
  // its `at` postpones it. All deadlines of a call share one timer.
  addDeadline(ms, expire) {
    const deadline = { at: 0, expire };
    this.setDeadline(deadline, Date.now() + ms);
    return deadline;
  }

  // setDeadline sets or moves a deadline with a method expire.
  setDeadline(deadline, at) {
    deadline.at = at;
    this.deadlines ??= new Set();
    this.deadlines.add(deadline);
    if (!this.timer || at < this.timerAt) this.#arm(at - Date.now());
  }

  removeDeadline(deadline) {
    this.deadlines?.delete(deadline);
  }

  #arm(ms) {
    if (this.timer) clearTimeout(this.timer);
    this.timerAt = Date.now() + ms;
    this.timer = setTimeout(() => this.#tick(), ms);
  }

  #tick() {
    if (this.ended) return;
    this.timer = 0;
    timers.until = Math.max(timers.until, this.timerAt);
    const now = Date.now();
    this.aliveAt = now;
    this.silent = 0;
    if (this.request && !this.listening) {
      this.listening = true;
      this.keep();
      const { signal } = this.request;
      if (signal?.aborted) this.inst.cancel(this);
      else signal?.addEventListener("abort", () => this.inst.cancel(this), { once: true });
    }
    let next = this.request ? now + aliveEvery : Infinity;
    for (const deadline of this.deadlines ?? []) {
      if (deadline.at <= now) {
        this.deadlines.delete(deadline);
        deadline.expire();
      } else next = Math.min(next, deadline.at);
    }
    if (next < Infinity) this.#arm(next - now);
  }

  // end ends the call. The timer of an event that is not kept alive ends with it.
  end() {
    this.ended = true;
    if (this.timer && (this.kept || !this.request)) clearTimeout(this.timer);
    this.done?.();
  }
}
