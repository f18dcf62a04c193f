// Streams that Go refers to by number and JavaScript moves: upstream and client
// bodies, prefixes, pipes and push transforms.
import { noMemory, pieceReady, reserver } from "./memory.mjs";
import {
  BODY_IDLE,
  END_OF_BODY,
  ENDED_BY_CLIENT,
  ENDED_CLEANLY,
  ENDED_FULL,
  ENDED_IDLE,
  ENDED_RESET,
  MAX_LAG,
  MIN_RATE,
  NETWORK,
  NOT_READY,
  NO_MEMORY,
  OK,
  TIMEOUT,
  TOO_LARGE,
} from "./contract.mjs";
import { watch } from "./watch.mjs";

// Bytes of a read that may wait for an upstream, of one while little flows, and
// otherwise.
export const waitingRead = 1 << 10;
export const smallRead = 4 << 10;
export const largeRead = 64 << 10;
const aheadRead = 1 << 10; // of a client's body while its call may wait
const maxUnsent = 4; // small writes to a client that are not waited for
const pieceBytes = 32 << 10; // of a read where the length is unknown
const oneReadMax = 64 << 10; // a body of up to this declared length is read in one step
const mostMore = 4 << 20; // bytes by which a large body of unknown length grows
// A large answer is sent in pieces, each of which the client must take in time.
const wholePiece = 1 << 20; // bytes
const writeStallMs = 120_000;
// A client that is there takes the first bytes of a stream within this time: they fit
// the buffers between. The platform does not report one that left before, ms.
const firstWriteMs = 20_000;
const uploadAfterMs = 120_000; // that an upload may last after its call, ms
const shortIdle = 60_000; // ms; a shorter limit is measured between single chunks
const noHeaders = { get: () => null, has: () => false }; // of a body that was partly read

// inOneStep reports whether a body is read in one step. length is the declared one, -1
// if that is unknown or the body is encoded.
export function inOneStep(length, maxBytes, idleMs) {
  return length >= 0 && length <= Math.min(maxBytes, oneReadMax) && !(idleMs < shortIdle && idleMs > 0);
}

// readAll returns the body of a request or response, or null if it is over
// maxBytes, counted as it arrives (decompressed). idleMs limits the silence within
// the body. A caller that measures the time itself passes onChunk, which is called
// for each chunk. A body that is read in one step must arrive within idleMs. onOpen
// is called with the reader of a body that is not.
// reserve is asked for memory before a large body grows, see reserve in memory.mjs.
export async function readAll(message, maxBytes, idleMs, onChunk = null, onOpen = () => {}, reserve = null) {
  const { body, headers } = message;
  if (!body) return new Uint8Array(0);
  const declared = headers.get("content-length");
  const length = declared === null || headers.has("content-encoding") ? -1 : +declared;
  if (inOneStep(length, maxBytes, idleMs)) {
    return new Uint8Array(await (onChunk ? message.arrayBuffer() : until(message.arrayBuffer(), idleMs)));
  }
  // One buffer grows in place: chunks, and the bytes they are joined in, would exist
  // twice until garbage is collected. One byte more than expected shows the end, or that
  // there is more.
  let size = 0;
  const expected = Math.min(length < 0 ? pieceBytes : length, maxBytes);
  let buffer = new ArrayBuffer((reserve ? Math.min(expected, oneReadMax) : expected) + 1);
  const reader = body.getReader({ mode: "byob" });
  onOpen(reader);
  let large = !(idleMs > 0); // waits for large pieces, which is right only while chunks arrive fast
  for (;;) {
    if (size === buffer.byteLength) {
      // Memory that is reserved grows by less. A short body needs none.
      const short = size <= oneReadMax;
      const more = short ? oneReadMax + 1 : size + Math.min(Math.max(oneReadMax, size >> 1), mostMore);
      let next = Math.min(reserve ? more : 2 * size, maxBytes + 1);
      if (reserve && length > size) next = Math.min(next, length + 1);
      if (reserve && !short && !(await reserve(next, length < 0 ? -1 : Math.min(length, maxBytes) + 1, onChunk))) {
        reader.cancel().catch(() => {});
        buffer.transfer(0);
        throw noMemory;
      }
      buffer = buffer.transfer(next);
    }
    const rest = new Uint8Array(buffer, size);
    const { value, done } = await until(
      large ? reader.readAtLeast(Math.min(pieceBytes, rest.byteLength), rest) : reader.read(rest),
      onChunk ? 0 : idleMs,
    );
    if (value) {
      buffer = value.buffer;
      size += value.byteLength;
    }
    if (onChunk) {
      onChunk();
      large = value?.byteLength >= smallRead && idleMs >= shortIdle;
    }
    if (size > maxBytes) {
      reader.cancel().catch(() => {});
      buffer.transfer(0);
      return null;
    }
    if (done) break;
  }
  // Go gets the whole body next. A known length was reserved with the last bytes.
  if (reserve && length < 0 && size > oneReadMax && !(await reserve(size, size, onChunk))) {
    buffer.transfer(0);
    throw noMemory;
  }
  return new Uint8Array(buffer, 0, size);
}

// detach frees a large body that Go has copied.
export function detach(bytes) {
  if (bytes?.byteLength > oneReadMax) bytes.buffer.transfer(0);
}

// until settles as promise does, or rejects after ms with timedOut.
const timedOut = Symbol("timed out");
function until(promise, ms) {
  if (!(ms > 0)) return promise;
  let timer;
  const limit = new Promise((_, reject) => {
    timer = setTimeout(reject, ms, timedOut);
  });
  return Promise.race([promise, limit]).finally(() => clearTimeout(timer));
}

// watchdog calls expire once a wait has taken ms, and beat after each beatMs of one: one
// timer for a stream instead of one for each of its chunks. Zero is no limit, and no
// beats. begin and end surround a wait; stop ends the watchdog.
export function watchdog(ms, expire, beatMs = 0, beat = null) {
  let since = 0;
  let beaten = 0;
  let timer = 0;
  const check = () => {
    const now = Date.now();
    if (since && ms > 0 && now >= since + ms) return expire();
    if (since && beatMs > 0 && now >= Math.max(since, beaten) + beatMs) {
      beaten = now;
      beat();
    }
    arm(now);
  };
  const arm = (now) => {
    const from = since || now;
    const expires = ms > 0 ? from + ms : Infinity;
    const beats = beatMs > 0 ? Math.max(from, beaten) + beatMs : Infinity;
    timer = setTimeout(check, Math.max(1, Math.min(expires, beats) - now));
  };
  if (ms > 0 || beatMs > 0) arm(Date.now());
  return {
    begin(from = Date.now()) {
      since = from;
    },
    end() {
      since = 0;
    },
    stop() {
      clearTimeout(timer);
    },
  };
}

// Sending is the body of an upstream call while it is sent. The platform reports nothing
// of that: a large body goes up as a stream, whose writes end when they are taken.
export class Sending {
  constructor() {
    this.sent = 0; // bytes that the upstream has taken
    this.progress = null; // called with true for each piece taken, false before the source is waited for
    this.writer = null;
  }

  // of returns what the platform is to send for bytes. Large ones are freed at the end,
  // if they have no owner.
  of(bytes, owner = null) {
    if (bytes.byteLength <= wholePiece) return bytes;
    const { readable, writable } = new FixedLengthStream(bytes.byteLength);
    this.writer = writable.getWriter();
    if (owner) owner.uses++;
    (async () => {
      for (let at = 0; at < bytes.byteLength; at += oneReadMax) {
        await this.writer.write(bytes.subarray(at, at + oneReadMax));
        this.took(Math.min(oneReadMax, bytes.byteLength - at));
      }
      await this.writer.close();
    })()
      .catch(() => {}) // the call has failed
      .finally(() => {
        if (owner) owner.uses--;
        if (owner) free(owner);
        else detach(bytes);
      });
    return readable;
  }

  waits() {
    this.progress?.(false);
  }

  took(n) {
    this.sent += n;
    this.progress?.(true);
  }

  // cut reports whether much had been sent of a body that was cut.
  get cut() {
    return this.sent > wholePiece;
  }

  // stop ends the sending with its call.
  stop() {
    this.progress = null;
    this.writer?.abort(new Error("over")).catch(() => {});
  }
}

export class Streams {
  constructor(inst) {
    this.inst = inst;
    this.table = new Map(); // number → { kind, … }, see the functions that add one
    this.flowing = new Map(); // number → { call, readable }, of the streams under way that Go watches or transforms
    this.next = 1;
  }

  get size() {
    return this.table.size + this.flowing.size;
  }

  // #put adds a stream of a call, and returns its number. call.streams counts them, with
  // those that flow, so that the end of the call knows whether it has any.
  #put(stream, call, id = this.next++) {
    stream.call = call ?? null;
    if (call) call.streams++;
    this.table.set(id, stream);
    return id;
  }

  // #take removes a stream from the table.
  #take(id) {
    const s = this.table.get(id);
    if (s?.call) s.call.streams--;
    this.table.delete(id);
    return s;
  }

  // add adds the body of a request or response. inflight is the call that it
  // answers, or null; client is the call whose request it is.
  add(message, inflight, length, client = null) {
    const body = { kind: "body", message, body: message.body, inflight, length, client, reader: null };
    return this.#put(body, client ?? inflight?.call);
  }

  prefix(head, src) {
    return this.#put({ kind: "prefix", head, src }, this.table.get(src)?.call);
  }

  // parts adds bytes of linear memory, from pairs of address and length. Nothing else
  // has the copy.
  parts(memory, list) {
    let size = 0;
    for (let i = 1; i < list.length; i += 2) size += list[i];
    const bytes = new Uint8Array(size);
    for (let i = 0, at = 0; i < list.length; i += 2) {
      bytes.set(memory.subarray(list[i], list[i] + list[i + 1]), at);
      at += list[i + 1];
    }
    return this.#put({ kind: "bytes", bytes, owner: null }, null);
  }

  // owns reports whether a stream consists of bytes that nothing else has.
  owns(id) {
    return this.table.get(id)?.owner === null;
  }

  derived(kind, src, idle, length, beatMs = 0) {
    return this.#put({ kind, src, idle, length, beatMs }, this.table.get(src)?.call);
  }

  // remove removes a stream and returns it, ready to be read from where it is.
  remove(id) {
    const s = this.#take(id);
    if (s?.reader) {
      s.reader.releaseLock();
      s.reader = null;
      s.message = { body: s.body, headers: noHeaders };
    }
    return s;
  }

  // discard cancels a stream that is not read any more. A reader with a pending
  // read cannot be released, only canceled.
  discard(id) {
    const reading = this.table.get(id);
    if (reading?.reader) {
      reading.reader.cancel().catch(() => {});
      reading.reader = null;
    }
    const s = this.remove(id);
    if (!s) return;
    if (s.kind === "held") {
      s.released = true;
      free(s);
    }
    if (s.buffer?.byteLength) s.buffer.transfer(0);
    if (s.src) this.discard(s.src);
    s.body?.cancel().catch(() => {});
    s.inflight?.abort();
    s.inflight?.finish();
  }

  // abandon is called when the Go program has ended. Streams that flow without it
  // continue; the others belong to other requests, which alone may use them.
  abandon() {
    this.table.clear();
  }

  // source removes a stream and returns its first bytes and the stream after them.
  source(id) {
    const s = this.remove(id);
    if (s.kind === "body")
      return { head: null, body: s.body, inflight: s.inflight, length: s.length, client: s.client };
    if (s.kind === "bytes")
      return { head: s.bytes, body: null, inflight: null, length: s.bytes.byteLength, owner: s.owner };
    if (s.kind === "prefix") {
      const rest = s.src ? this.source(s.src) : { head: null, body: null, inflight: null, length: 0 };
      const head = rest.head ? concat([s.head, rest.head], s.head.byteLength + rest.head.byteLength) : s.head;
      if (rest.head && !rest.owner) detach(rest.head);
      return { ...rest, head, length: rest.length < 0 ? -1 : rest.length + s.head.byteLength };
    }
    throw new Error("a transformed stream cannot be transformed again");
  }

  // flows reports whether JavaScript moves the stream, so that the event of its call
  // must last until Go has received its end.
  flows(id) {
    const kind = this.table.get(id)?.kind;
    return kind === "through" || kind === "watch" || kind === "pipe" || kind === "prefix";
  }

  // open returns a ReadableStream, or bytes, for the platform to send. sending is that of
  // an upstream call, null for an answer.
  open(id, call, sending = null) {
    const s = this.table.get(id);
    if (s.kind === "through") return this.through(id, call, sending);
    if (s.kind === "watch") return watch(this, id, call);
    if (s.kind === "pipe") return this.pipe(id, call);
    if (s.kind === "bytes") {
      this.remove(id);
      return sending?.of(s.bytes, s.owner) ?? s.bytes;
    }
    const { head, body, inflight } = this.source(id);
    if (!head) return body;
    if (!body) return head; // its length is known then
    const { readable, writable } = new IdentityTransformStream();
    (async () => {
      const w = writable.getWriter();
      await w.write(head);
      w.releaseLock();
      return body.pipeTo(writable);
    })().catch(() => inflight?.abort());
    return readable;
  }

  async read(op, id, ms) {
    const s = this.table.get(id);
    if (!s) return void queueMicrotask(() => this.inst.emit(op, NETWORK));
    if (s.kind === "bytes") {
      // a copy of a held body, piece by piece
      const piece = s.bytes.subarray(0, oneReadMax);
      s.bytes = s.bytes.subarray(piece.byteLength);
      if (!piece.byteLength) this.remove(id);
      return void queueMicrotask(() => this.inst.emit(op, piece.byteLength ? OK : END_OF_BODY, 0, "", piece));
    }
    try {
      s.reader ??= s.body.getReader();
      const { value, done } = await until(s.reader.read(), ms);
      if (done) this.remove(id);
      this.inst.emit(op, done ? END_OF_BODY : OK, 0, "", value);
    } catch (e) {
      this.discard(id);
      this.inst.emit(op, e === timedOut ? TIMEOUT : NETWORK);
    }
  }

  // readAll reads the rest of a stream and passes it to Go.
  async readAll(op, call, id, maxBytes, idleMs, totalMs) {
    const s = this.remove(id);
    if (!s) return void queueMicrotask(() => this.inst.emit(op, NETWORK));
    let late = false;
    const expire = () => {
      late = true;
      this.inst.emit(op, TIMEOUT);
    };
    const deadline = totalMs > 0 ? call.addDeadline(totalMs, expire) : null;
    let outcome = OK;
    let body = null;
    let idle = null;
    let onChunk = null;
    if (s.inflight && idleMs > 0) {
      // The silence of an upstream is measured by its call's own timer.
      idle = call.addDeadline(idleMs, () => {
        outcome = BODY_IDLE;
        s.inflight.abort();
      });
      onChunk = () => {
        idle.at = Date.now() + idleMs;
      };
    }
    try {
      body = await readAll(s.message, maxBytes, idleMs, onChunk, undefined, reserver(this.inst, op));
      if (body === null) outcome = TOO_LARGE;
    } catch (e) {
      if (outcome === OK) outcome = e === timedOut ? BODY_IDLE : e === noMemory ? NO_MEMORY : NETWORK;
    }
    if (deadline) call.removeDeadline(deadline);
    if (idle) call.removeDeadline(idle);
    if (outcome !== OK) s.inflight?.abort();
    s.inflight?.finish();
    if (!late) this.inst.emit(op, outcome, 0, "", body);
    else detach(body);
  }

  // gather reads a client's body into memory of JavaScript until it has upTo bytes;
  // another call continues. At the end of the body its bytes are passed to Go, or
  // are held under the same id if hold is set.
  async gather(op, id, upTo, totalMs, hold) {
    let s = this.table.get(id);
    if (!s) return void queueMicrotask(() => this.inst.emit(op, NETWORK));
    if (s.kind !== "gathered") {
      const { head, body, client } = this.source(id);
      s = {
        kind: "gathered",
        body,
        client,
        ahead: null,
        reader: body?.getReader({ mode: "byob" }),
        buffer: head ? head.slice().buffer : new ArrayBuffer(0),
        size: head?.byteLength ?? 0,
        lag: MAX_LAG, // ms that the client may still fall behind
        left: totalMs,
      };
      this.#put(s, client, id);
    }
    let done = !s.reader;
    try {
      while (!done && s.size < upTo) {
        if (s.buffer.byteLength < upTo) s.buffer = s.buffer.transfer(upTo);
        const asked = Date.now();
        const { ahead } = s;
        s.ahead = null;
        const got = await until(
          ahead ?? s.reader.read(new Uint8Array(s.buffer, s.size)),
          Math.max(1, Math.min(s.lag, s.left)),
        );
        if (!this.table.has(id)) return; // discarded during the read
        const took = Date.now() - asked;
        const n = got.value?.byteLength ?? 0;
        if (got.value && ahead) {
          if (s.buffer.byteLength < s.size + n) s.buffer = s.buffer.transfer(s.size + n);
          new Uint8Array(s.buffer).set(got.value, s.size);
        } else if (got.value) s.buffer = got.value.buffer;
        s.size += n;
        s.left -= took;
        s.lag = Math.min(MAX_LAG, s.lag - took + (n * 1000) / MIN_RATE);
        done = got.done;
      }
    } catch (e) {
      this.discard(id);
      return this.inst.emit(op, e === timedOut ? TIMEOUT : NETWORK);
    }
    if (!done) {
      // The call may wait for memory now. A read that fails is the only sign of a
      // client that leaves meanwhile.
      s.ahead = s.reader.read(new Uint8Array(aheadRead));
      s.ahead.catch(() => s.client && this.inst.cancel(s.client));
      return void queueMicrotask(() => this.inst.emit(op, OK, s.size));
    }
    const bytes = new Uint8Array(s.buffer.byteLength > s.size + 1 ? s.buffer.transfer(s.size) : s.buffer, 0, s.size);
    this.#take(id);
    if (hold) this.#put(heldBody(bytes), s.client, id);
    queueMicrotask(() => this.inst.emit(op, END_OF_BODY, s.size, "", hold ? null : bytes));
  }

  // reopen adds a body with the bytes of a held one.
  reopen(held) {
    const owner = this.table.get(held);
    return this.#put({ kind: "bytes", bytes: owner.bytes, owner }, owner.call);
  }

  held(id) {
    return this.table.get(id).bytes;
  }

  // push passes a chunk to Go and returns the transformed bytes, or null. Large ones
  // are in out.buffer until the next push: copies would be garbage of the size of
  // an upload. It sets out.stopped if Go needs no more of the source.
  push(id, chunk, out) {
    return this.inst.enter(() => {
      const at = this.inst.x.weir_chunk(chunk.byteLength) >>> 0;
      this.inst.u8().set(chunk, at);
      let n = this.inst.x.weir_push(id, chunk.byteLength);
      if (n === NOT_READY) {
        out.waits = true;
        return null;
      }
      if (n < 0) {
        n = ~n;
        out.stopped = true;
      }
      if (!n) return null;
      const from = this.inst.x.weir_out() >>> 0;
      if (n < smallRead || n > oneReadMax) return this.inst.bytes(from, n);
      if (!(out.buffer?.byteLength >= n)) out.buffer = new Uint8Array(n + (n >> 2));
      const bytes = out.buffer.subarray(0, n);
      bytes.set(this.inst.u8().subarray(from, from + n));
      return bytes;
    });
  }

  // beat returns a heartbeat for the client, or null within an event.
  beat(id) {
    return this.inst.enter(() => {
      const n = this.inst.x.weir_beat(id);
      return n ? this.inst.bytes(this.inst.x.weir_out() >>> 0, n) : null;
    });
  }

  // end tells Go how a stream ended and returns the last bytes for the client, or
  // null.
  end(id, ending) {
    return this.inst.enter(() => {
      const n = this.inst.x.weir_end(id, ending);
      return n ? this.inst.bytes(this.inst.x.weir_out() >>> 0, n) : null;
    });
  }

  // through moves a stream chunk by chunk through a transform in Go.
  through(id, call, sending) {
    const { src, idle, length, beatMs } = this.remove(id);
    const { head, body, inflight, owner } = this.source(src);
    const { readable, writable } = streamOf(length);
    this.flow(id, call, readable, sending);
    if (owner) owner.uses++;
    (async () => {
      // A stream is read into one buffer that is used again: large for an upload,
      // because the platform's chunks have 4 KiB, small for an event stream, which
      // waits most of the time.
      const upload = !inflight;
      const writer = writable.getWriter();
      if (sending) sending.writer = writer;
      const reader = body?.getReader({ mode: "byob" });
      const out = { buffer: null, stopped: false };
      let ending = ENDED_CLEANLY;
      let clientGone = false;
      let buffer = body ? new ArrayBuffer(upload ? oneReadMax : waitingRead) : null;
      let unsent = 0; // writes that the client's stream has not taken
      let sent = null; // the last write
      const expire = () => {
        ending = ENDED_IDLE;
        reader?.cancel().catch(() => {});
      };
      const idleDog = watchdog(idle, expire, sending ? 0 : beatMs, () => unsent || send(this.beat(id)));
      // send writes to the client. While it takes what it gets, the next chunk is read
      // meanwhile; bytes that the next push overwrites are waited for.
      let limit = upload ? 0 : firstWriteMs; // of the next write
      const taken = () => {
        unsent--;
      };
      const gone = (e) => {
        clientGone = true;
        if (e === timedOut) writer.abort(new Error("not taken")).catch(() => {});
        reader?.cancel().catch(() => {});
      };
      const send = (bytes) => {
        if (!bytes) return null;
        unsent++;
        sent = until(writer.write(bytes), limit).then(taken, gone);
        limit = 0;
        return unsent < maxUnsent && bytes.byteLength < smallRead ? null : sent;
      };
      // pass sends what came of a chunk. Its memory, if that is large, is freed at once.
      const pass = async (bytes) => {
        await send(bytes);
        if (!clientGone) detach(bytes);
      };
      const more = () => !out.stopped && !clientGone && !this.inst.dead;
      for (let at = 0; head && at < head.byteLength && more(); at += oneReadMax) {
        const piece = head.subarray(at, at + oneReadMax);
        const bytes = this.push(id, piece, out);
        await pass(out.waits ? await pieceReady(this, id, piece, out) : bytes);
        sending?.took(piece.byteLength);
      }
      while (reader && more()) {
        let chunk;
        try {
          idleDog.begin();
          sending?.waits();
          const { value, done } = await reader.read(new Uint8Array(buffer));
          idleDog.end();
          sending?.took(value?.byteLength ?? 0);
          if (done) break;
          chunk = value;
          buffer = value.buffer;
          if (!upload) buffer = fitting(buffer, chunk.byteLength);
        } catch {
          ending ||= ENDED_RESET;
          break;
        }
        let bytes = this.push(id, chunk, out);
        if (out.waits) bytes = await pieceReady(this, id, chunk, out);
        if (out.waits) {
          ending = ENDED_FULL;
          break;
        }
        await pass(bytes);
      }
      idleDog.stop();
      await sent;
      if (clientGone || (ending === ENDED_RESET && (await clientLeft(call)))) ending = ENDED_BY_CLIENT;
      if (ending || out.stopped) {
        reader?.cancel().catch(() => {});
        inflight?.abort();
      }
      inflight?.finish();
      if (this.inst.dead) return writer.abort(new Error("restarted")).catch(() => {});
      const tail = this.end(id, ending);
      if (!clientGone) await send(tail);
      await (this.inst.dead ? writer.abort(new Error("restarted")) : writer.close()).catch(() => {});
      return ending;
    })()
      .finally(() => {
        if (owner) {
          owner.uses--;
          free(owner);
        }
      })
      .then(
        () => this.ended(id),
        () => this.ended(id),
      );
    return readable;
  }

  // pipe passes a stream to the client without Go, which learns only how it ended: until
  // then bytes in memory take some. If it breaks off, so does the client's.
  pipe(id, call) {
    const { src, idle, length } = this.remove(id);
    const { head, body, inflight } = this.source(src);
    const { readable, writable } = streamOf(length);
    this.flow(id, call, readable);
    (async () => {
      let ending = await headFirst(head, writable);
      if (ending) body?.cancel().catch(() => {});
      else if (body) ending = await piecewise(body, writable, idle);
      if (ending === ENDED_RESET && (await clientLeft(call))) ending = ENDED_BY_CLIENT;
      if (ending === ENDED_BY_CLIENT || ending === ENDED_IDLE) inflight?.abort();
      inflight?.finish();
      const writer = writable.getWriter();
      this.end(id, ending);
      await (ending ? writer.abort(new Error("cut")) : writer.close()).catch(() => {});
      detach(head);
    })().finally(() => this.ended(id));
    return readable;
  }

  // flow notes a stream that begins to flow to readable. sending is that of an upload.
  flow(id, call, readable, sending = null) {
    const flow = { call, readable, sending };
    call.streams++;
    this.flowing.set(id, flow);
    if (call.canceled) queueMicrotask(() => drop(flow));
  }

  // leave ends the streams of a call whose client has left. The platform does it only
  // for one that has begun to read.
  leave(call) {
    for (const flow of this.flowing.values()) if (flow.call === call) drop(flow);
  }

  // sweep forgets the streams under way of a call whose event is over.
  sweep(call) {
    for (const [id, flow] of this.flowing) {
      if (flow.call !== call) continue;
      this.flowing.delete(id);
      call.streams--;
    }
  }

  // release discards what a call has left in the table when it ends, and reports whether
  // none of its streams is under way: an upload whose answer came early may be, which has
  // some time to end.
  release(call) {
    if (call.streams === 0) return true;
    for (const [id, s] of this.table) if (s.call === call) this.discard(id);
    if (call.streams === 0) return true;
    call.addDeadline(uploadAfterMs, () => {
      for (const flow of this.flowing.values()) if (flow.call === call) flow.sending?.stop();
    });
    return false;
  }

  ended(id) {
    const flow = this.flowing.get(id);
    if (!flow) return; // its call was swept, or has ended
    this.flowing.delete(id);
    const { call } = flow;
    if (--call.streams === 0 && call.over) this.inst.forget(call);
    this.inst.enter(() => this.inst.run(this.inst.x.weir_ended(id)));
  }
}

// drop cancels what a client reads, unless the platform reads it: that notices a
// client that has left.
function drop({ readable }) {
  try {
    readable.cancel().catch(() => {});
  } catch {
    /* of an event that is over */
  }
}

// streamOf returns a stream of length bytes, or of any number if that is negative.
function streamOf(length) {
  return length >= 0 ? new FixedLengthStream(length) : new IdentityTransformStream();
}

// headFirst writes the bytes of a stream that are in memory, if it has any, to the
// client, and returns how it ended if that does not take them.
export async function headFirst(head, writable) {
  if (!head) return ENDED_CLEANLY;
  const writer = writable.getWriter();
  const ms = head.byteLength > oneReadMax ? writeStallMs : firstWriteMs;
  let ending = ENDED_CLEANLY;
  try {
    for (let at = 0; at < head.byteLength; at += wholePiece)
      await until(writer.write(head.subarray(at, at + wholePiece)), ms);
  } catch {
    writer.abort(new Error("not taken")).catch(() => {});
    ending = ENDED_BY_CLIENT;
  }
  writer.releaseLock();
  return ending;
}

// piecewise passes body to the client chunk by chunk, so that silence is noticed,
// and returns how it ended.
async function piecewise(body, writable, idle) {
  const reader = body.getReader({ mode: "byob" });
  const writer = writable.getWriter();
  let ending = ENDED_CLEANLY;
  let clientGone = false;
  let buffer = null;
  let size = smallRead;
  writer.closed.catch(() => {
    clientGone = true;
    reader.cancel().catch(() => {});
  });
  const idleDog = watchdog(idle, () => {
    ending = ENDED_IDLE;
    reader.cancel().catch(() => {});
  });
  while (!clientGone && !ending) {
    let piece;
    try {
      idleDog.begin();
      const { value, done } = await reader.read(new Uint8Array(buffer?.byteLength === size ? buffer : size));
      idleDog.end();
      if (done) break;
      piece = value;
    } catch {
      ending ||= ENDED_RESET;
      break;
    }
    const full = piece.byteLength === size;
    try {
      await writer.write(piece);
    } catch {
      clientGone = true;
    }
    // A read that waits for a slow upstream holds a small buffer.
    buffer = full ? piece.buffer : null;
    size = full || piece.byteLength >= smallRead ? largeRead : smallRead;
  }
  idleDog.stop();
  if (clientGone) ending = ENDED_BY_CLIENT;
  writer.releaseLock();
  return ending;
}

// fitting returns the buffer for the next read of an event stream after one of n
// bytes: a larger one if it was filled, a smaller one if it was nearly empty.
function fitting(buffer, n) {
  const size = buffer.byteLength;
  if (n === size && size < largeRead) return new ArrayBuffer(4 * size);
  if (size > smallRead && n < size / 16) return new ArrayBuffer(smallRead);
  return buffer;
}

// clientLeft reports whether the client of a call has closed the connection. The
// pipe reports only that one end broke, and may do so before the platform aborts
// the request's signal.
export async function clientLeft(call) {
  const signal = call.request?.signal;
  if (signal && !signal.aborted) await new Promise((resolve) => setTimeout(resolve, 0));
  return !!signal?.aborted;
}

// heldBody returns the entry of bytes that Go may read several times.
function heldBody(bytes) {
  return { kind: "held", bytes, uses: 0, released: false };
}

// free frees held bytes that are not in use any more: as garbage they could stay
// until the isolate is over its limit.
function free(held) {
  if (held.released && held.uses === 0 && held.bytes.buffer.byteLength) held.bytes.buffer.transfer(0);
}

function concat(chunks, size) {
  const all = new Uint8Array(size);
  let at = 0;
  for (const c of chunks) {
    all.set(c, at);
    at += c.byteLength;
  }
  return all;
}
