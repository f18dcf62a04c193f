// WebSocket connections of the Go program: those of clients, and those that it has
// opened to upstreams. Each belongs to one call, whose event alone may use it. Limits
// and codes are those of pkg/wire/socket.
//
// The platform passes messages as they arrive and has no bound for those that are on
// their way to a peer, so both are counted here.
import { BINARY_MESSAGE, CANCELED, END_OF_BODY, NETWORK, OK, TEXT_MESSAGE, TIMEOUT } from "./contract.mjs";

const encoder = new TextEncoder();

const normal = 1000;
const noStatus = 1005;
const abnormal = 1006;
const policy = 1008;
const tooBig = 1009;
const internal = 1011;
const restart = 1012;
const tryLater = 1013;

// The bytes that all connections of a program may have of large messages that wait for
// Go, or that it works on: an isolate has 128 MiB. Those of one machine have three quarters
// of it. One message is always accepted, and one of each machine if there is room.
const maxLarge = 32 << 20;
const small = 64 << 10;

// How often a connection looks whether it was silent for too long, and whether its
// program ends, in ms. Nothing but its own event can close it.
const checkEvery = 5000;

// How long a relay of a program that is being replaced may continue while messages
// flow, and how long it is silent before it ends, in ms.
const retireMs = 60_000;
const quietMs = checkEvery;

// The most messages of a relay that wait for the program.
const maxShown = 64;

// sendable returns the code to send for one, as socket.Sendable does.
function sendable(code) {
  if (code === noStatus) return normal;
  if ((code >= 1000 && code <= 1014 && code !== 1004 && code !== abnormal) || (code >= 3000 && code <= 4999))
    return code;
  return internal;
}

// sizeOf returns the bytes of a message, of a text at least its characters. It is exact
// where it matters for limit.
function sizeOf(data, limit) {
  if (typeof data !== "string") return data.byteLength;
  const n = data.length;
  return n > limit || 3 * n <= limit ? n : encoder.encode(data).byteLength;
}

// largeOf returns the bytes that count of a message.
function largeOf(size) {
  return size > small ? size : 0;
}

class Conn {
  constructor(sockets, id, call, ws, limits, ofClient, machine) {
    this.sockets = sockets;
    this.machine = machine; // of a client's connection, else ""
    this.inst = sockets.inst;
    this.id = id;
    this.call = call;
    this.ws = ws;
    this.limits = limits;
    this.ofClient = ofClient;
    this.queue = []; // { data, size }, of messages that Go has not read
    this.queued = 0; // bytes of queue
    this.large = 0; // bytes counted of large messages, see maxLarge
    this.given = 0; // those of the message that Go works on
    this.op = 0; // that waits for a message
    this.ended = null; // { code, reason }
    this.evicted = null; // { code, reason } with which another call ends it
    this.relay = null; // of a client's connection
    this.peer = null; // the other one of a relay
    this.lastAt = this.sentAt = Date.now();
    this.unsent = 0; // see socket.Limits
    ws.binaryType = "arraybuffer";
    ws.addEventListener("message", ({ data }) => this.#arrived(data));
    ws.addEventListener("close", ({ code, reason }) => {
      if (code === abnormal) reason = ""; // the platform's own words
      this.#shut(code, reason);
      this.#over(code, reason);
    });
    ws.addEventListener("error", () => this.#over(abnormal, ""));
    ws.accept();
    this.deadline = call.addDeadline(Math.min(checkEvery, limits.idle), () => this.#check());
  }

  #arrived(data) {
    if (this.ended) return;
    if (this.inst.dead) return this.#check();
    const { limits, queue } = this;
    this.lastAt = Date.now();
    this.unsent = 0;
    const size = sizeOf(data, limits.message);
    if (size > limits.message) return this.fail(tooBig, `a message has more than ${limits.message} bytes`);
    if (this.peer) return this.#pass(data, size);
    if (!this.#count(size)) return this.fail(tryLater, "the gateway has too little memory, try again");
    if (this.op) {
      const op = this.op;
      this.op = 0;
      this.given = largeOf(size);
      return this.#deliver(op, data);
    }
    const behind = queue.length ? this.queued - queue[0].size + size : 0;
    if (queue.length >= limits.length || behind > limits.queue) return this.fail(policy, "too many messages wait");
    queue.push({ data, size });
    this.queued += size;
  }

  // count counts a message and reports whether there is room for it.
  #count(size) {
    const { sockets, machine } = this;
    const n = largeOf(size);
    if (n && sockets.large && sockets.large + n > maxLarge) return false;
    const own = machine ? (sockets.largeByMachine.get(machine) ?? 0) : 0;
    if (n && own && own + n > (maxLarge / 4) * 3) return false;
    this.#add(n);
    return true;
  }

  #free(n) {
    this.#add(-n);
  }

  #add(n) {
    const { sockets, machine } = this;
    this.large += n;
    sockets.large += n;
    if (!machine || !n) return;
    const own = (sockets.largeByMachine.get(machine) ?? 0) + n;
    if (own) sockets.largeByMachine.set(machine, own);
    else sockets.largeByMachine.delete(machine);
  }

  // pass sends a message to the other connection of a relay.
  #pass(data, size) {
    const { peer } = this;
    peer.lastAt = this.lastAt;
    if (!peer.send(data, size) || this.ofClient || typeof data !== "string") return;
    const { relay } = peer;
    if (!relay.texts.some((text) => data.includes(text))) return;
    if (relay.shown.length >= maxShown) return peer.fail(internal, "the gateway is too slow");
    relay.shown.push(data);
    peer.#advance();
  }

  #deliver(op, data) {
    const text = typeof data === "string";
    const bytes = text ? encoder.encode(data) : new Uint8Array(data);
    this.inst.emit(op, OK, text ? TEXT_MESSAGE : BINARY_MESSAGE, "", bytes);
  }

  // report reports the end to an operation, the last one.
  #report(op) {
    const { code, reason, byPeer } = this.ended;
    this.#free(this.large);
    this.sockets.table.delete(this.id);
    this.inst.emit(op, END_OF_BODY, code, reason, null, byPeer ? 1 : 0);
  }

  // next answers an operation of Go with the next message: it is done with the one
  // before. Go is not entered within its own call.
  next(op) {
    this.#free(this.given);
    this.given = 0;
    const first = this.queue.shift();
    if (first) {
      this.queued -= first.size;
      this.given = largeOf(first.size);
      queueMicrotask(() => this.#deliver(op, first.data));
    } else if (this.ended) queueMicrotask(() => this.#report(op));
    else this.op = op;
  }

  // send sends a message and reports whether the connection is open.
  send(data, size) {
    if (this.ended) return false;
    const now = Date.now();
    const { unsent } = this.limits;
    this.unsent = this.unsentAt(now) + size;
    this.sentAt = this.lastAt = now;
    if (this.unsent > unsent) {
      this.fail(policy, "the messages are not read");
      return false;
    }
    if (this.unsent > unsent / 16 && this.sockets.crowded(this, now)) {
      this.fail(tryLater, "too many messages of all connections are not read, try again");
      return false;
    }
    try {
      this.ws.send(data);
      return true;
    } catch {
      this.#over(abnormal, "");
      return false;
    }
  }

  // unsentAt returns how many bytes may be on their way to the peer.
  unsentAt(now) {
    return Math.max(0, this.unsent - ((now - this.sentAt) * this.limits.rate) / 1000);
  }

  // relayTo passes messages between this connection, of a client, and another.
  relayTo(to, texts, everyMs) {
    this.relay = { texts, everyMs, checkAt: Date.now() + everyMs, shown: [], tick: null };
    this.peer = to;
    to.peer = this;
    for (const c of [this, to]) {
      const { queue } = c;
      c.queue = [];
      c.#free(c.large);
      c.given = 0;
      for (const { data, size } of queue) c.#pass(data, size);
      if (c.ended) this.#endBoth(c);
    }
  }

  // relayed answers an operation of Go with what it is shown of a relay, with TIMEOUT
  // once its check is due, or with the end.
  relayed(op) {
    const { relay } = this;
    this.op = op;
    if (relay.everyMs > 0)
      relay.tick ??= this.call.addDeadline(Math.max(0, relay.checkAt - Date.now()), () => {
        relay.tick = null;
        relay.checkAt = Date.now() + relay.everyMs;
        if (this.op) this.#take(TIMEOUT);
        else relay.due = true;
      });
    queueMicrotask(() => this.#advance());
  }

  #advance() {
    const { relay } = this;
    if (!this.op) return;
    if (relay.shown.length) {
      const op = this.op;
      this.op = 0;
      return this.#deliver(op, relay.shown.shift());
    }
    if (this.ended) {
      const op = this.op;
      this.op = 0;
      if (relay.tick) this.call.removeDeadline(relay.tick);
      return this.#report(op);
    }
    if (relay.due) {
      relay.due = false;
      this.#take(TIMEOUT);
    }
  }

  #take(outcome) {
    const op = this.op;
    this.op = 0;
    this.inst.emit(op, outcome);
  }

  #check() {
    if (this.ended) return;
    const now = Date.now();
    const left = this.lastAt + this.limits.idle - now;
    if (this.inst.dead) return this.fail(restart, "the gateway restarted, connect again");
    if (this.evicted) return this.fail(this.evicted.code, this.evicted.reason);
    if (left <= 0) return this.fail(policy, "no message for too long");
    if (this.inst.retiredAt && this.ofClient && this.#rests(now))
      return this.fail(restart, "the gateway restarts, connect again");
    this.call.setDeadline(this.deadline, now + Math.min(checkEvery, left));
  }

  // rests reports whether a client's connection can end without a loss: its program
  // waits for a message, or a relay is silent, or has had its time.
  #rests(now) {
    if (!this.relay) return this.op !== 0;
    return now - this.lastAt >= quietMs || now - this.inst.retiredAt >= retireMs;
  }

  // fail ends the connection for a reason of the gateway's own.
  fail(code, reason) {
    if (this.ended) return;
    this.#shut(code, reason);
    this.#over(code, reason);
  }

  // close ends the connection for Go, which asks for nothing more.
  close(code, reason) {
    this.#free(this.large);
    this.sockets.table.delete(this.id);
    if (this.ended) return;
    this.ended = { code, reason };
    this.call.removeDeadline(this.deadline);
    if (this.relay?.tick) this.call.removeDeadline(this.relay.tick);
    this.#shut(code, reason);
  }

  #shut(code, reason) {
    try {
      this.ws.close(sendable(code), reason);
    } catch {
      /* closed already */
    }
  }

  // over records how the connection has ended, and reports it to Go. A client that has left
  // needs nothing that is under way.
  #over(code, reason) {
    if (this.ended) return;
    this.ended = { code, reason };
    this.call.removeDeadline(this.deadline);
    if (this.ofClient) {
      this.queue = [];
      this.#free(this.large - this.given);
      this.inst.cancel(this.call);
    }
    if (this.peer) return (this.ofClient ? this : this.peer).#endBoth(this);
    if (!this.op) return;
    const op = this.op;
    this.op = 0;
    this.#report(op);
  }

  // endBoth ends a relay that one of the two has ended.
  #endBoth(by) {
    const other = by.peer;
    if (!other.ended) {
      other.ended = { ...by.ended };
      other.call.removeDeadline(other.deadline);
      other.#shut(by.ended.code, by.ended.reason);
    }
    this.ended.byPeer = by !== this;
    this.sockets.table.delete(this.peer.id);
    this.#advance();
  }
}

export class WebSockets {
  constructor(inst) {
    this.inst = inst;
    this.table = new Map(); // number → Conn
    this.large = 0; // see maxLarge
    this.largeByMachine = new Map(); // the same by machine
    this.following = 1;
  }

  get size() {
    return this.table.size;
  }

  // add accepts a socket of the platform and returns the number of its connection.
  // line is what Go writes: the limits, and the machine of a client's connection.
  add(call, ws, line, ofClient) {
    const words = line.split(" ");
    const [message, idle, queue, length, unsent, rate] = words.map(Number);
    const limits = { message, idle, queue, length, unsent, rate };
    const id = this.following++;
    this.table.set(id, new Conn(this, id, call, ws, limits, ofClient, words[6] ?? ""));
    call.sockets = true;
    return id;
  }

  // accept answers a request with a connection and returns its number.
  accept(call, template, limits, fields) {
    const { 0: theirs, 1: ours } = new WebSocketPair();
    const id = this.add(call, ours, limits, true);
    call.keep();
    this.inst.host.upgrade(call, template, fields, theirs);
    return id;
  }

  next(op, id) {
    const c = this.table.get(id);
    if (c) c.next(op);
    else this.#gone(op);
  }

  // send returns 0 if the message was sent.
  send(id, data, size) {
    return this.table.get(id)?.send(data, size) ? 0 : 1;
  }

  close(id, code, reason) {
    this.table.get(id)?.close(code, reason);
  }

  // silent returns for how many ms no message has passed on a connection of any call.
  silent(id) {
    const c = this.table.get(id);
    return c ? Date.now() - c.lastAt : 0;
  }

  // evict ends a connection of any call, in its own event.
  evict(id, code, reason) {
    const c = this.table.get(id);
    if (c) c.evicted = { code, reason };
  }

  relay(id, to, texts, everyMs) {
    const c = this.table.get(id);
    const other = this.table.get(to);
    if (c && other) c.relayTo(other, texts, everyMs);
    else (c ?? other)?.fail(internal, "");
  }

  relayed(op, id) {
    const c = this.table.get(id);
    if (c?.relay) c.relayed(op);
    else if (c) c.next(op);
    else this.#gone(op);
  }

  #gone(op) {
    queueMicrotask(() => this.inst.emit(op, END_OF_BODY, abnormal));
  }

  // crowded reports whether more is on its way on all connections than may be on one,
  // and more than its share of that on conn.
  crowded(conn, now) {
    const most = conn.limits.unsent;
    let all = 0;
    let n = 0;
    for (const c of this.table.values()) {
      const unsent = c.ended ? 0 : c.unsentAt(now);
      if (unsent <= most / 16) continue;
      all += unsent;
      n++;
    }
    return all > most && conn.unsent > most / n;
  }

  // leave ends the connection of a client that has left without a word.
  leave(call) {
    for (const c of this.table.values()) if (c.call === call && c.ofClient) c.fail(abnormal, "");
  }

  // end closes the connections of a call that has ended.
  end(call) {
    for (const c of this.table.values()) if (c.call === call) c.close(normal, "");
  }

  // abandon forgets the connections of a program that has ended; each closes in its
  // own event.
  abandon() {
    this.table.clear();
  }
}

// dial makes an upstream call that opens a connection. It reports the answer, with the
// whole body if the upstream refuses.
export async function dial(inst, op, call, url, headers, limits, headerMs, read) {
  let over = false;
  const end = (outcome) => {
    if (over) return;
    over = true;
    call.inflight?.delete(inflight);
    call.removeDeadline(deadline);
    if (outcome !== OK) inst.emit(op, outcome);
  };
  const inflight = { cancel: () => queueMicrotask(() => end(CANCELED)) };
  call.add(inflight);
  const deadline = call.addDeadline(headerMs, () => end(TIMEOUT));
  try {
    const r = await fetch(url, { headers: [...headers, ["upgrade", "websocket"]], redirect: "manual" });
    const ws = r.webSocket;
    if (ws && over) {
      ws.accept();
      ws.close(normal, "");
    } else if (ws) {
      end(OK);
      const id = inst.webSockets.add(call, ws, limits, false);
      if (!inst.emit(op, OK, r.status, read.head(r), null, id)) inst.webSockets.close(id, normal, "");
    } else if (over) r.body?.cancel().catch(() => {});
    else {
      const body = await read.body(r);
      if (over) return;
      end(OK);
      inst.emit(op, OK, r.status, read.head(r), body);
    }
  } catch {
    end(NETWORK);
  }
}
