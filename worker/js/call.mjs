// How long a call runs before its client's departure is watched for, in ms.
// Most are over by then, and listening costs as much as a header field each.
const watchAfter = 1000;

// Call is one event that Go handles: a request, an object call, an alarm.
export class Call {
  constructor(id, env, resolve, inst) {
    this.id = id;
    this.env = env;
    this.resolve = resolve;
    this.inst = inst;
    this.request = null;
    this.storage = null;
    this.rehearsal = null;
    this.answered = false;
    this.left = false;
    this.flights = null; // upstream calls to abort when the client leaves
    this.limits = null; // time limits: { at, fire }
    this.timer = 0;
    this.timerAt = 0;
    this.done = null;
  }

  answer(response) {
    if (this.answered) return;
    this.answered = true;
    this.resolve(response);
  }

  // limit calls fire after ms, unless the limit is lifted before. All limits of
  // a call share one timer.
  limit(ms, fire) {
    const limit = { at: Date.now() + ms, fire };
    (this.limits ??= new Set()).add(limit);
    if (!this.timer || limit.at < this.timerAt)
      this.arm(Math.min(ms, this.request && !this.watching ? watchAfter : ms));
    return limit;
  }

  lift(limit) {
    this.limits?.delete(limit);
  }

  arm(ms) {
    if (this.timer) clearTimeout(this.timer);
    this.timerAt = Date.now() + ms;
    this.timer = setTimeout(() => this.tick(), ms);
  }

  tick() {
    this.timer = 0;
    if (this.request && !this.watching) {
      this.watching = true;
      const { signal } = this.request;
      if (signal?.aborted) this.inst.leave(this);
      else signal?.addEventListener("abort", () => this.inst.leave(this), { once: true });
    }
    const now = Date.now();
    let next = Infinity;
    for (const limit of this.limits) {
      if (limit.at <= now) {
        this.limits.delete(limit);
        limit.fire();
      } else next = Math.min(next, limit.at);
    }
    if (next < Infinity) this.arm(next - now);
  }

  end() {
    if (this.timer) clearTimeout(this.timer);
    this.done?.();
  }
}
