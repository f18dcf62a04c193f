// How long a call runs before it listens for the client's departure, in ms. Most
// calls are over by then, and listening costs as much as reading a header field.
const listenAfter = 1000;

// Call is one event that the program handles: a request, an object call, an alarm.
export class Call {
  constructor(id, env, resolve, inst) {
    this.id = id;
    this.env = env;
    this.resolve = resolve;
    this.inst = inst;
    this.request = null;
    this.storage = null;
    this.answered = false;
    this.canceled = false; // the client has left
    this.inflight = null; // upstream calls to abort when the client leaves
    this.deadlines = null; // { at, expire }
    this.timer = 0;
    this.timerAt = 0;
    this.listening = false;
    this.done = null;
  }

  answer(response) {
    if (this.answered) return;
    this.answered = true;
    this.resolve(response);
  }

  // addDeadline calls expire after ms, unless the deadline is removed before.
  // Moving its `at` postpones it. All deadlines of a call share one timer.
  addDeadline(ms, expire) {
    const deadline = { at: Date.now() + ms, expire };
    this.deadlines ??= new Set();
    this.deadlines.add(deadline);
    if (!this.timer || deadline.at < this.timerAt)
      this.#arm(Math.min(ms, this.request && !this.listening ? listenAfter : ms));
    return deadline;
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
    this.timer = 0;
    if (this.request && !this.listening) {
      this.listening = true;
      const { signal } = this.request;
      if (signal?.aborted) this.inst.cancel(this);
      else signal?.addEventListener("abort", () => this.inst.cancel(this), { once: true });
    }
    const now = Date.now();
    let next = Infinity;
    for (const deadline of this.deadlines) {
      if (deadline.at <= now) {
        this.deadlines.delete(deadline);
        deadline.expire();
      } else next = Math.min(next, deadline.at);
    }
    if (next < Infinity) this.#arm(next - now);
  }

  end() {
    if (this.timer) clearTimeout(this.timer);
    this.done?.();
  }
}
