// Which instance of the program serves an event. Linear memory never shrinks, so an
// instance whose memory has grown is replaced: new events go to its successor, and it
// ends with the calls and streams that it has. There are at most two at a time.

const replaceAt = 40 << 20; // bytes of linear memory
const smallCalls = 1 << 20; // bytes of calls under way that may end in a predecessor
const roomUntil = 72 << 20; // bytes of linear memory with which the predecessor serves large requests
const mostAsked = 64; // requests that a predecessor gets for the usage that it has not reported

export class Instances {
  constructor(first) {
    this.current = this.#of(first);
    this.old = null; // the predecessor, until it has nothing more to do
  }

  #of(inst) {
    inst.objects = new Map(); // by name: calls under way
    inst.asked = 0; // requests since its retirement that it got to report usage
    inst.others = () => this.#others(inst);
    inst.peers = () => this.all().filter((other) => other !== inst && !other.dead);
    return inst;
  }

  // next returns the instance for new events.
  next() {
    this.old?.sweep();
    if (this.old && (this.old.dead || this.#over(this.old))) {
      this.old.handOver(this.current);
      this.old = null;
    }
    const inst = this.current;
    // Large calls under way count on the memory that a successor takes, small ones do not:
    // there may always be some.
    const grown = inst.x.mem.buffer.byteLength > replaceAt && this.old === null && inst.x.weir_used() <= smallCalls;
    if (inst.dead || grown) {
      if (grown && !inst.dead && !this.#over(inst)) {
        this.old = inst;
        inst.retiredAt = Date.now(); // its WebSockets end soon
      }
      this.current = this.#of(inst.replacement());
    }
    return this.current;
  }

  // #over reports whether an instance has nothing to do, and no usage to report: a call that
  // the platform has ended with its event could not.
  #over(inst) {
    return inst.idle && (inst.asked >= mostAsked || !(inst.enter(() => inst.x.weir_unreported()) > 0));
  }

  // forRequest returns the instance for a request. The predecessor has memory for a
  // large one, which its successor would have to grow for, unless it has grown too far. A
  // predecessor that has nothing left but usage to report gets a request, with whose end it
  // does so, but no WebSocket: it would end that soon.
  forRequest(large, request) {
    const inst = this.next();
    const { old } = this;
    if (old === null) return inst;
    if (large) return old.x.mem.buffer.byteLength <= roomUntil ? old : inst;
    if (!old.idle || request.headers.has("upgrade")) return inst;
    old.asked++;
    return old;
  }

  // forObject returns the instance for a call of an object. Two instances may not work
  // on one object, so one that has calls under way in the predecessor stays there.
  // Before it moves, flush has the predecessor write what it has buffered of it.
  async forObject(name, flush) {
    const inst = this.next();
    const old = this.old;
    const entry = old?.objects.get(name);
    if (!entry) return inst;
    if (entry.calls === 0) await this.within(old, name, () => flush(old));
    if (!old.dead && entry.calls > 0) return old;
    old.objects.delete(name);
    return this.next();
  }

  // within runs a call of an object on an instance.
  async within(inst, name, call) {
    let entry = inst.objects.get(name);
    if (!entry) inst.objects.set(name, (entry = { calls: 0 }));
    entry.calls++;
    try {
      return await call();
    } finally {
      if (--entry.calls === 0 && inst === this.current) inst.objects.delete(name);
    }
  }

  // all returns the instances that live.
  all() {
    return this.old && !this.old.dead ? [this.current, this.old] : [this.current];
  }

  // #others returns the bytes that the other instance has, or will need.
  #others(inst) {
    let n = 0;
    for (const other of inst.peers()) n += other.x.mem.buffer.byteLength + other.x.weir_held();
    return n;
  }
}
