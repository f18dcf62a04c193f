// Streams that Go names by number and the host moves: upstream and client
// bodies, prefixes, push transforms and the sampled tee.
import { END, IDLE as SILENT, NETWORK, OK, TIMEOUT, TOO_LARGE } from "./codes.mjs";

const RESET = 1,
  IDLE = 2,
  CLIENT = 3; // why a stream ended, as in bridge/body.go; 0 is a clean end
const sampleEvery = 1000; // ms; shorter for a fast stream
const firstLook = 50,
  lookBytes = 2 << 20; // ms before the first sample; bytes wanted between two
const sampleBytes = 4 << 10,
  drainBytes = 64 << 10; // a read while little flows, and else
const pieceBytes = 32 << 10; // read at a time where the length is not known
const oneGo = 64 << 10; // a body of up to so many declared bytes is read in one step
// The rate that a client must send at, in bytes a second, and the time in ms that
// it may be behind.
const leastRate = 64 << 10,
  behind = 5000;
const shortIdle = 60_000; // ms; a shorter limit is measured between single chunks
const unknown = { get: () => null, has: () => false }; // the headers of a body that was begun

// readAll gives the body of a request or response whole, or null when it is
// over maxBytes (counted as it arrives, so inflated). idleMs limits the silence
// within it; with alive the caller measures the time itself, and alive is called
// for each chunk. A body that is read in one step must arrive within that time.
export async function readAll(message, maxBytes, idleMs, alive = null) {
  const { body, headers } = message;
  if (!body) return new Uint8Array(0);
  const declared = headers.get("content-length");
  if (
    declared !== null &&
    +declared <= Math.min(maxBytes, oneGo) &&
    !headers.has("content-encoding") &&
    !(idleMs < shortIdle && idleMs > 0)
  ) {
    return new Uint8Array(await (alive ? message.arrayBuffer() : until(message.arrayBuffer(), idleMs)));
  }
  return gather(
    body,
    null,
    declared !== null && !headers.has("content-encoding") ? +declared : -1,
    maxBytes,
    idleMs,
    () => {},
    alive,
  );
}

// spent lets go of a large body that Go has by now.
export function spent(bytes) {
  if (bytes?.byteLength > oneGo) bytes.buffer.transfer(0);
}

// gather gives a stream whole with head in front of it, or null when that is
// over maxBytes. length is what both have together, -1 when it is not known.
//
// It reads into one buffer that grows in place: pieces, and what they are put
// together in, would be there twice until garbage is collected.
async function gather(body, head, length, maxBytes, idleMs, opened, alive = null) {
  let size = head?.byteLength ?? 0;
  if (size > maxBytes) return null;
  let buffer = new ArrayBuffer(Math.max(size, Math.min(length < 0 ? pieceBytes : length, maxBytes)) + 1); // a byte more shows the end, or too much
  if (head) new Uint8Array(buffer).set(head);
  const reader = body?.getReader({ mode: "byob" });
  if (reader) opened(reader);
  let many = !(idleMs > 0); // small chunks are gathered only while they arrive fast
  while (reader) {
    if (size === buffer.byteLength) buffer = buffer.transfer(Math.min(2 * size, maxBytes + 1));
    const room = new Uint8Array(buffer, size);
    const { value, done } = await until(
      many ? reader.readAtLeast(Math.min(pieceBytes, room.byteLength), room) : reader.read(room),
      alive ? 0 : idleMs,
    );
    if (value) {
      buffer = value.buffer;
      size += value.byteLength;
    }
    if (alive) {
      alive();
      many = value?.byteLength >= sampleBytes && idleMs >= shortIdle;
    }
    if (size > maxBytes) {
      reader.cancel().catch(() => {});
      buffer.transfer(0);
      return null;
    }
    if (done) break;
  }
  return new Uint8Array(buffer, 0, size);
}

// until settles as promise does, or rejects after ms with stopped.
const stopped = Symbol("stopped");
function until(promise, ms) {
  if (!(ms > 0)) return promise;
  let timer;
  const limit = new Promise((_, reject) => {
    timer = setTimeout(reject, ms, stopped);
  });
  return Promise.race([promise, limit]).finally(() => clearTimeout(timer));
}

// watchdog calls fire once nothing was waited for in vain for ms: one timer for
// a stream instead of one for each of its pieces. begin and end stand around a
// wait; stop ends it all.
function watchdog(ms, fire) {
  let since = 0,
    timer = 0;
  const look = () => {
    const left = since ? since + ms - Date.now() : ms;
    if (left > 0) timer = setTimeout(look, left);
    else fire();
  };
  if (ms > 0) timer = setTimeout(look, ms);
  return {
    begin() {
      since = Date.now();
    },
    end() {
      since = 0;
    },
    stop() {
      clearTimeout(timer);
    },
  };
}

export class Streams {
  constructor(inst) {
    this.inst = inst;
    this.table = new Map(); // number → { kind, message, body, flight, length, reader, head, src, idle }
    this.running = 0; // watched and transformed streams under way
    this.next = 1;
  }

  get size() {
    return this.table.size + this.running;
  }

  // add names the body of a request or response.
  add(message, flight, length) {
    const id = this.next++;
    this.table.set(id, { kind: "body", message, body: message.body, flight, length, reader: null });
    return id;
  }

  prefix(head, src) {
    const id = this.next++;
    this.table.set(id, { kind: "prefix", head, src });
    return id;
  }

  derived(kind, src, idle, length) {
    const id = this.next++;
    this.table.set(id, { kind, src, idle, length });
    return id;
  }

  take(id) {
    const s = this.table.get(id);
    this.table.delete(id);
    if (s?.reader) {
      s.reader.releaseLock();
      s.reader = null;
      s.message = { body: s.body, headers: unknown };
    }
    return s;
  }

  // discard lets go of a stream that nobody will read. A reader that still
  // waits cannot be released, only canceled.
  discard(id) {
    const reading = this.table.get(id);
    if (reading?.reader) {
      reading.reader.cancel().catch(() => {});
      reading.reader = null;
    }
    const s = this.take(id);
    if (!s) return;
    if (s.kind === "held") {
      s.gone = true;
      free(s);
    }
    if (s.buffer?.byteLength) s.buffer.transfer(0);
    if (s.src) this.discard(s.src);
    s.body?.cancel().catch(() => {});
    s.flight?.ctl.abort();
    this.inst.land(s.flight);
  }

  // abandon is called when the Go program is gone. What flows natively goes on;
  // the rest belongs to other requests, which alone may touch it.
  abandon() {
    this.table.clear();
  }

  // raw gives the bytes that go first and the stream after them.
  raw(id) {
    const s = this.take(id);
    if (s.kind === "body") return { head: null, body: s.body, flight: s.flight, length: s.length };
    if (s.kind === "bytes") return { head: s.bytes, body: null, flight: null, length: s.bytes.byteLength, of: s.of };
    if (s.kind === "prefix") {
      const rest = s.src ? this.raw(s.src) : { head: null, body: null, flight: null, length: 0 };
      const head = rest.head ? concat([s.head, rest.head], s.head.byteLength + rest.head.byteLength) : s.head;
      if (rest.head && !rest.of) spent(rest.head);
      return { ...rest, head, length: rest.length < 0 ? -1 : rest.length + s.head.byteLength };
    }
    throw new Error("a transformed stream cannot be transformed again");
  }

  // open gives a ReadableStream for the platform to move.
  open(id, call) {
    const s = this.table.get(id);
    if (s.kind === "through") return this.through(id, call);
    if (s.kind === "watch" || s.kind === "guard") return this.watch(id, call);
    if (s.kind === "bytes") return this.take(id).bytes;
    const { head, body, flight } = this.raw(id);
    if (!head) return body;
    if (!body) return head; // its length is known then
    const { readable, writable } = new IdentityTransformStream();
    (async () => {
      const w = writable.getWriter();
      await w.write(head);
      w.releaseLock();
      return body.pipeTo(writable);
    })().catch(() => flight?.ctl.abort());
    return readable;
  }

  async read(op, id, ms) {
    const s = this.table.get(id);
    if (!s) return void queueMicrotask(() => this.inst.emit(op, NETWORK, 0));
    if (s.kind === "bytes") {
      // a copy of a held body, piece by piece
      const piece = s.bytes.subarray(0, oneGo);
      s.bytes = s.bytes.subarray(piece.byteLength);
      if (!piece.byteLength) this.take(id);
      return void queueMicrotask(() => this.inst.emit(op, piece.byteLength ? OK : END, 0, "", piece));
    }
    try {
      s.reader ??= s.body.getReader();
      const { value, done } = await until(s.reader.read(), ms);
      if (done) this.take(id);
      this.inst.emit(op, done ? END : OK, 0, "", value);
    } catch (e) {
      this.discard(id);
      this.inst.emit(op, e === stopped ? TIMEOUT : NETWORK, 0);
    }
  }

  async readAll(op, call, id, maxBytes, idleMs, totalMs) {
    const s = this.take(id);
    if (!s) return void queueMicrotask(() => this.inst.emit(op, NETWORK, 0));
    let late = false;
    const limit =
      totalMs > 0
        ? call.limit(totalMs, () => {
            late = true;
            this.inst.emit(op, TIMEOUT, 0);
          })
        : null;
    let kind = OK,
      body = null;
    // An upstream's silence is measured by its call's own timer.
    const quiet =
      s.flight && idleMs > 0
        ? call.limit(idleMs, () => {
            kind = SILENT;
            s.flight.ctl.abort();
          })
        : null;
    try {
      body = await readAll(
        s.message,
        maxBytes,
        idleMs,
        quiet &&
          (() => {
            quiet.at = Date.now() + idleMs;
          }),
      );
      if (body === null) kind = TOO_LARGE;
    } catch (e) {
      if (kind === OK) kind = e === stopped ? SILENT : NETWORK;
    }
    if (limit) call.lift(limit);
    if (quiet) call.lift(quiet);
    if (kind !== OK) s.flight?.ctl.abort();
    this.inst.land(s.flight);
    if (!late) this.inst.emit(op, kind, 0, "", body);
    else spent(body);
  }

  // hold gathers a stream and keeps its bytes on this side.
  async hold(op, call, id, maxBytes, idleMs, totalMs) {
    const s = this.table.get(id);
    if (!s) return void queueMicrotask(() => this.inst.emit(op, NETWORK, 0));
    const { head, body, flight, length } = this.raw(id);
    let bytes = null,
      kind = TOO_LARGE,
      reader = null,
      late = false;
    const limit =
      totalMs > 0
        ? call.limit(totalMs, () => {
            late = true;
            reader?.cancel().catch(() => {});
          })
        : null;
    try {
      bytes = await gather(body, head, length, maxBytes, idleMs, (r) => {
        reader = r;
      });
    } catch (e) {
      kind = e === stopped ? TIMEOUT : NETWORK;
    }
    if (limit) call.lift(limit);
    this.inst.land(flight);
    if (late) {
      bytes = null;
      kind = TIMEOUT;
    } // what ended then was the reader
    if (bytes === null) return this.inst.emit(op, kind, 0);
    const held = this.next++;
    this.table.set(held, { kind: "held", bytes, uses: 0, gone: false });
    this.inst.emit(op, OK, held, String(bytes.byteLength));
  }

  // gather reads a client's body until it has upTo bytes, and keeps them in
  // JavaScript; another call continues. At the end of the body its bytes go to Go,
  // or are held under the same id if keep is set.
  async gather(op, id, upTo, totalMs, keep) {
    let s = this.table.get(id);
    if (!s) return void queueMicrotask(() => this.inst.emit(op, NETWORK, 0));
    if (s.kind !== "gathered") {
      const { head, body } = this.raw(id);
      s = {
        kind: "gathered",
        body,
        reader: body?.getReader({ mode: "byob" }),
        buffer: head ? head.slice().buffer : new ArrayBuffer(0),
        size: head?.byteLength ?? 0,
        ahead: behind,
        left: totalMs,
      };
      this.table.set(id, s);
    }
    let done = !s.reader;
    try {
      while (!done && s.size < upTo) {
        if (s.buffer.byteLength < upTo) s.buffer = s.buffer.transfer(upTo);
        const asked = Date.now();
        const got = await until(
          s.reader.read(new Uint8Array(s.buffer, s.size)),
          Math.max(1, Math.min(s.ahead, s.left)),
        );
        if (!this.table.has(id)) return; // discarded during the read
        const took = Date.now() - asked,
          n = got.value?.byteLength ?? 0;
        if (got.value) s.buffer = got.value.buffer;
        s.size += n;
        s.left -= took;
        s.ahead = Math.min(behind, s.ahead - took + (n * 1000) / leastRate);
        done = got.done;
      }
    } catch (e) {
      this.discard(id);
      return this.inst.emit(op, e === stopped ? TIMEOUT : NETWORK, 0);
    }
    if (!done) return void queueMicrotask(() => this.inst.emit(op, OK, s.size));
    const bytes = new Uint8Array(s.buffer.byteLength > s.size + 1 ? s.buffer.transfer(s.size) : s.buffer, 0, s.size);
    if (keep) this.table.set(id, { kind: "held", bytes, uses: 0, gone: false });
    else this.table.delete(id);
    queueMicrotask(() => this.inst.emit(op, END, s.size, "", keep ? null : bytes));
  }

  // copy names a further body with the bytes that are held.
  copy(held) {
    const id = this.next++;
    this.table.set(id, { kind: "bytes", bytes: this.held(held), of: this.table.get(held) });
    return id;
  }

  held(id) {
    return this.table.get(id).bytes;
  }

  // sample hands Go a piece of a watched stream.
  sample(id, piece) {
    this.inst.enter(() => {
      const at = this.inst.x.weir_chunk(piece.byteLength) >>> 0;
      this.inst.u8().set(piece, at);
      this.inst.x.weir_sample(id, piece.byteLength);
    });
  }

  // push hands Go a chunk and gives what goes out for it. A large piece is lent
  // from room.bytes until the next push: those of an upload would be garbage of
  // the upload's size.
  push(id, chunk, room) {
    return this.inst.enter(() => {
      const at = this.inst.x.weir_chunk(chunk.byteLength) >>> 0;
      this.inst.u8().set(chunk, at);
      let n = this.inst.x.weir_push(id, chunk.byteLength);
      if (n < 0) {
        n = ~n;
        room.enough = true;
      } // no more of the source is wanted
      if (!n) return null;
      const out = this.inst.x.weir_out() >>> 0;
      if (n < sampleBytes) return this.inst.bytes(out, n);
      if (!(room.bytes?.byteLength >= n)) room.bytes = new Uint8Array(n + (n >> 2));
      const lent = room.bytes.subarray(0, n);
      lent.set(this.inst.u8().subarray(out, out + n));
      return lent;
    });
  }

  // end tells Go how a stream ended and gives the bytes that still go out.
  end(id, cause) {
    return this.inst.enter(() => {
      const n = this.inst.x.weir_end(id, cause);
      return n ? this.inst.bytes(this.inst.x.weir_out() >>> 0, n) : null;
    });
  }

  // through moves a stream chunk by chunk through a transform in Go.
  through(id, call) {
    const { src, idle, length } = this.take(id);
    const { head, body, flight, of } = this.raw(src);
    const { readable, writable } = length >= 0 ? new FixedLengthStream(length) : new IdentityTransformStream();
    this.running++;
    if (of) of.uses++;
    (async () => {
      // An upload is read in large pieces, into one buffer: the platform's own
      // have 4 KiB. An event stream has small ones, and should hold no buffer.
      const upload = !flight;
      const w = writable.getWriter(),
        r = body?.getReader(upload ? { mode: "byob" } : undefined),
        room = { bytes: null, enough: false };
      let cause = 0,
        gone = false,
        buffer = upload && body ? new ArrayBuffer(oneGo) : null;
      const dog = watchdog(idle, () => {
        cause = IDLE;
        r?.cancel().catch(() => {});
      });
      const send = async (out) => {
        if (!out) return;
        try {
          await w.write(out);
        } catch {
          gone = true;
        }
      };
      for (let at = 0; head && at < head.byteLength && !room.enough && !gone && !this.inst.dead; at += oneGo)
        await send(this.push(id, head.subarray(at, at + oneGo), room));
      while (r && !room.enough && !gone && !this.inst.dead) {
        let chunk;
        try {
          dog.begin();
          const { value, done } = await (upload ? r.read(new Uint8Array(buffer)) : r.read());
          dog.end();
          if (done) break;
          chunk = value;
          if (upload) buffer = value.buffer;
        } catch {
          cause ||= RESET;
          break;
        }
        await send(this.push(id, chunk, room));
      }
      dog.stop();
      if (gone || (cause === RESET && (await left(call)))) cause = CLIENT;
      if (cause || room.enough) {
        r?.cancel().catch(() => {});
        flight?.ctl.abort();
      }
      this.inst.land(flight);
      if (this.inst.dead) return w.abort(new Error("restarted")).catch(() => {});
      const tail = this.end(id, cause);
      if (!gone) await send(tail);
      await (this.inst.dead ? w.abort(new Error("restarted")) : w.close()).catch(() => {});
      return cause;
    })()
      .finally(() => {
        if (of) {
          of.uses--;
          free(of);
        }
      })
      .then(
        (cause) => this.ended(id, cause),
        () => this.ended(id, RESET),
      );
    return readable;
  }

  // watch passes a stream natively and reads along: of the second branch of a
  // tee once a second while the first flows slowly (a pending read would slow the
  // first down), more often for a fast stream so that little is buffered in
  // between, and the rest when the first has ended. A guarded stream is not read
  // along: Go is told of its end only, and if it breaks the client's is cut off.
  watch(id, call) {
    const { kind, src, idle } = this.take(id),
      guarded = kind === "guard";
    const { head, body, flight } = this.raw(src);
    const { readable, writable } = new IdentityTransformStream();
    this.running++;
    (async () => {
      let cause = 0;
      if (head) {
        if (!guarded) this.sample(id, head);
        const w = writable.getWriter();
        try {
          await w.write(head);
        } catch {
          cause = CLIENT;
        }
        w.releaseLock();
      }
      if (cause) body?.cancel().catch(() => {});
      else if (body)
        cause = await (guarded ? piecewise(body, writable, idle) : this.sampledTee(id, body, writable, idle));
      if (cause === RESET && (await left(call))) cause = CLIENT;
      if (cause === CLIENT || cause === IDLE) flight?.ctl.abort();
      this.inst.land(flight);
      const w = writable.getWriter();
      const tail = this.end(id, cause);
      if ((this.inst.dead || guarded) && cause) {
        await w.abort(new Error("cut")).catch(() => {});
        return cause;
      }
      if (tail && cause !== CLIENT) await w.write(tail).catch(() => {});
      await w.close().catch(() => {});
      return cause;
    })().then(
      (cause) => this.ended(id, cause),
      () => this.ended(id, RESET),
    );
    return readable;
  }

  // sampledTee pipes body to the client, shows Go all of it, and returns how it ended.
  async sampledTee(id, body, writable, idle) {
    const [a, b] = body.tee();
    const stop = new AbortController();
    let ended = false,
      broken = 0,
      more = true,
      read = null,
      size = sampleBytes,
      seen = 0,
      full = false,
      buffer = null;
    const piped = a.pipeTo(writable, { preventClose: true, preventAbort: true, signal: stop.signal }).then(
      () => {
        ended = true;
      },
      (e) => {
        ended = true;
        broken = e?.name === "AbortError" ? CLIENT : RESET;
      },
    );
    const reader = b.getReader({ mode: "byob" });
    // The buffer of a read that waits is held as long as the stream is idle.
    const next = async () => {
      try {
        const asked = ended ? drainBytes : size;
        const { value, done } = await reader.read(new Uint8Array(buffer?.byteLength === asked ? buffer : asked));
        if (value?.byteLength) this.sample(id, value);
        seen += value?.byteLength ?? 0;
        full = value?.byteLength === asked;
        buffer = full ? value.buffer : null; // reused: else there is garbage of the stream's size
        size = value?.byteLength < sampleBytes ? sampleBytes : drainBytes;
        more = !done;
      } catch {
        more = false;
        broken = RESET;
      }
      read = null;
    };
    for (let wait = firstLook, most = sampleEvery; !ended; ) {
      await until(piped, wait).catch(() => {});
      if (ended) break;
      // A full read means that there is more. The tee buffers in memory what one
      // branch has read and the other has not.
      seen = 0;
      do {
        read ??= next();
        try {
          await until(Promise.race([read, piped]), idle);
        } catch {
          stop.abort();
          reader.cancel().catch(() => {});
          await piped;
          return IDLE;
        }
      } while (full && more && !ended);
      if (seen > lookBytes / 2) most = firstLook; // it was fast, and may be again after a pause
      wait = Math.max(1, Math.min(most, (wait * lookBytes) / Math.max(seen, 1)));
    }
    // What had arrived by the time the client left still counts as usage.
    const patience = broken === CLIENT ? 50 : 0;
    try {
      while (more) await until(read ?? next(), patience);
    } catch {
      reader.cancel().catch(() => {});
    }
    return broken;
  }

  ended(id, cause) {
    this.running--;
    this.inst.enter(() => {
      this.inst.x.weir_ended(id, cause ?? 0);
      this.inst.x.resume();
    });
  }
}

// piecewise passes body to the client piece by piece, so that silence is noticed,
// and returns how it ended.
async function piecewise(body, writable, idle) {
  const r = body.getReader({ mode: "byob" }),
    w = writable.getWriter();
  let cause = 0,
    gone = false,
    buffer = null,
    size = sampleBytes;
  w.closed.catch(() => {
    gone = true;
    r.cancel().catch(() => {});
  });
  const dog = watchdog(idle, () => {
    cause = IDLE;
    r.cancel().catch(() => {});
  });
  while (!gone && !cause) {
    let piece;
    try {
      dog.begin();
      const { value, done } = await r.read(new Uint8Array(buffer?.byteLength === size ? buffer : size));
      dog.end();
      if (done) break;
      piece = value;
    } catch {
      cause ||= RESET;
      break;
    }
    const full = piece.byteLength === size;
    try {
      await w.write(piece);
    } catch {
      gone = true;
    }
    // What waits for a slow upstream holds a small buffer.
    buffer = full ? piece.buffer : null;
    size = full || piece.byteLength >= sampleBytes ? drainBytes : sampleBytes;
  }
  dog.stop();
  if (gone) cause = CLIENT;
  w.releaseLock();
  return cause;
}

// left reports whether the client of a call has closed the connection. The pipe
// reports only that one end broke, and may do so before the platform aborts the
// request's signal.
async function left(call) {
  const signal = call.request?.signal;
  if (signal && !signal.aborted) await new Promise((resolve) => setTimeout(resolve, 0));
  return !!signal?.aborted;
}

// free lets go of held bytes at once: nobody else has them, and as garbage
// they could stay until the isolate is over its limit.
function free(held) {
  if (held.gone && held.uses === 0 && held.bytes.buffer.byteLength) held.bytes.buffer.transfer(0);
}

function concat(chunks, size) {
  if (chunks.length === 1) return chunks[0];
  const all = new Uint8Array(size);
  let at = 0;
  for (const c of chunks) {
    all.set(c, at);
    at += c.byteLength;
  }
  return all;
}
