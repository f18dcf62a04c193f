// A pipe that Go watches: the platform passes the stream on, and Go sees it through a
// sampled tee. It costs 58 to 61 % of what moving such a stream through a transform
// costs, in CPU of a chat, Messages or Responses stream of 200 chunks (2026-11-27,
// test/bench/compare.mjs); docs/decisions/0076-watched-streams.md says how.
import { ENDED_BY_CLIENT, ENDED_CLEANLY, ENDED_IDLE, ENDED_RESET } from "./contract.mjs";
import { clientLeft, headFirst, largeRead, smallRead, waitingRead, watchdog } from "./streams.mjs";

// The sampled tee: ms between two samples, at most and at first, and the bytes
// wanted between two: the tee of a stream holds about as much at most.
const sampleEvery = 1000;
const firstSample = 50;
const sampleTarget = 1 << 20;
const lastRead = 32 << 10; // bytes of the last read of a stream
// The bytes that a pipe has passed on when it may be ended for a heartbeat: they fit the
// buffers between the platform and a client, so none is lost with the pipe.
const maxPiped = 64 << 10;
const maxTimer = 60_000; // ms

// watch passes a stream natively and shows it to Go: it reads the second branch
// of a tee once a second while the first flows slowly (a pending read would slow
// the first down), more often for a fast stream so that little is buffered in
// between, and the rest when the first has ended.
export function watch(streams, id, call) {
  const { inst } = streams;
  const { src, idle, beatMs } = streams.remove(id);
  const { head, body, inflight } = streams.source(src);
  const { readable, writable } = new IdentityTransformStream();
  streams.flow(id, call, readable);
  const w = {
    writable,
    idle,
    beatMs,
    inflight,
    beat: () => streams.beat(id),
    // sample passes a piece of the stream to Go, which returns the same bytes.
    sample: (piece) =>
      inst.enter(() => {
        const at = inst.x.weir_chunk(piece.byteLength) >>> 0;
        inst.u8().set(piece, at);
        inst.x.weir_push(id, piece.byteLength);
      }),
  };
  (async () => {
    if (head) w.sample(head);
    let ending = await headFirst(head, writable);
    if (ending) body?.cancel().catch(() => {});
    else if (body) ending = await watched(w, body);
    if (ending === ENDED_RESET && (await clientLeft(call))) ending = ENDED_BY_CLIENT;
    if (ending === ENDED_BY_CLIENT || ending === ENDED_IDLE) inflight?.abort();
    inflight?.finish();
    const writer = writable.getWriter();
    const tail = streams.end(id, ending);
    if (inst.dead && ending) return writer.abort(new Error("cut")).catch(() => {});
    if (tail && ending !== ENDED_BY_CLIENT) await writer.write(tail).catch(() => {});
    await writer.close().catch(() => {});
  })().then(
    () => streams.ended(id),
    () => streams.ended(id),
  );
  return readable;
}

// watched passes body to the client by sampled tees, with heartbeats between them
// while it is silent, and returns how it ended.
async function watched(w, body) {
  for (;;) {
    const part = await sampledTee(w, body);
    if (!part.silence) return part.ending;
    const ending = await beats(w, part.silence);
    if (ending !== ENDED_CLEANLY) return ending;
    body = part.silence.rest;
  }
}

// beats sends heartbeats until the upstream continues, then what it has sent. It
// returns ENDED_CLEANLY if the stream goes on, or may have ended.
async function beats(w, silence) {
  const { writable, idle, beatMs, inflight } = w;
  const writer = writable.getWriter();
  let ending = ENDED_CLEANLY;
  let unsent = false; // a heartbeat that the client has not taken
  const beat = (bytes) => {
    if (!bytes || unsent) return;
    unsent = true;
    writer.write(bytes).then(
      () => {
        unsent = false;
      },
      () => {
        ending ||= ENDED_RESET;
        inflight.abort();
      },
    );
  };
  const expire = () => {
    ending = ENDED_IDLE;
    inflight.abort();
  };
  beat(silence.first);
  const dog = watchdog(idle, expire, beatMs, () => beat(w.beat()));
  dog.begin(silence.since);
  await silence.over;
  dog.stop();
  for (const bytes of silence.bytes) {
    if (ending) break;
    await writer.write(bytes).catch(() => {
      ending ||= ENDED_RESET;
    });
  }
  silence.reader.releaseLock();
  writer.releaseLock();
  if (ending) await drain(w, silence.rest);
  return ending;
}

// drain shows the rest of a stream that was given up to Go: it is usage.
async function drain(w, body) {
  w.inflight.abort();
  try {
    for await (const bytes of body) w.sample(bytes);
  } catch {
    /* it has been aborted */
  }
}

// sampledTee pipes body to the client, shows all of it to Go, and returns how it
// ended. The tee holds what the client has received and Go has not seen.
//
// A timer begins each sample. One that waits for the upstream shows how long that
// has been silent. After beatMs the pipe is ended, unless Go says that an event has
// begun or the pipe may hold bytes that the client has not taken: then silence has
// the branch that Go reads, which is the rest of the stream.
async function sampledTee(w, body) {
  const { writable, idle, beatMs, inflight } = w;
  const [toClient, toGo] = body.tee();
  const reader = toGo.getReader({ mode: "byob" });
  const pipe = new AbortController();
  let silence = null;
  let piped = 0; // bytes
  let ending = ENDED_CLEANLY;
  let piping = true;
  let more = true;
  let sampling = null;
  let since = 0; // when the sample began, or read its last bytes
  let quiet = 0; // times that beatMs has passed since
  let waiting = new ArrayBuffer(waitingRead); // of a read that waits
  let wait = firstSample;
  let longest = sampleEvery;
  let timer = 0;
  let timerAt = 0;
  // read shows the next bytes to Go, waits for at least atLeast of them unless the
  // stream ends, and returns their number.
  const read = async (buffer, atLeast) => {
    const { value, done } = await reader.readAtLeast(atLeast, new Uint8Array(buffer));
    more = !done;
    if (value?.byteLength) {
      since = Date.now();
      quiet = 0;
      w.sample(value);
      piped += value.byteLength;
      silence?.bytes.push(value.slice());
    }
    if (value?.buffer.byteLength === waitingRead) waiting = value.buffer;
    return value?.byteLength ?? 0;
  };
  const sample = async () => {
    let seen = 0;
    // A full read means that there is more. The buffer of a read that waits is small.
    for (
      let size = waitingRead, full = true;
      full && more && piping;
      size = size === waitingRead ? smallRead : largeRead
    ) {
      const n = await read(size === waitingRead ? waiting : new ArrayBuffer(size), 1);
      seen += n;
      full = n === size;
    }
    if (seen > sampleTarget / 2) longest = firstSample; // it was fast, and may be again after a pause
    wait = Math.max(1, Math.min(longest, (wait * sampleTarget) / Math.max(seen, 1)));
    sampling = null;
    if (!piping || !more || timerAt <= Date.now() + wait) return;
    clearTimeout(timer);
    arm(wait);
  };
  const arm = (ms) => {
    timerAt = Date.now() + ms;
    timer = setTimeout(tick, ms);
  };
  const every = beatMs > 0 ? beatMs : Infinity;
  const tick = () => {
    const now = Date.now();
    if (!sampling) {
      since = now;
      quiet = 0;
      sampling = sample().catch(() => {
        more = false;
      });
      return arm(sampleEvery);
    }
    if (idle > 0 && now >= since + idle) {
      ending = ENDED_IDLE;
      inflight.abort();
      return;
    }
    if (now >= since + (quiet + 1) * every) {
      quiet++;
      const first = piped <= maxPiped ? w.beat() : null;
      if (first) {
        piping = false;
        silence = { first, since, reader, rest: toGo, over: sampling, bytes: [] };
        pipe.abort();
        return;
      }
    }
    arm(Math.min(idle > 0 ? since + idle : Infinity, since + (quiet + 1) * every, now + maxTimer) - now);
  };
  arm(wait);
  try {
    await toClient.pipeTo(writable, { preventClose: true, preventAbort: true, signal: pipe.signal });
  } catch {
    if (silence) return { ending, silence };
    ending ||= ENDED_RESET;
    inflight.abort(); // bytes that have arrived are usage, even if the client has left
  }
  piping = false;
  clearTimeout(timer);
  await sampling;
  try {
    // After a complete stream, a read that does not fill its buffer was the last.
    while (more) {
      const n = await read(new ArrayBuffer(lastRead), ending ? 1 : lastRead);
      more &&= ending || n === lastRead;
    }
  } catch {
    ending ||= ENDED_RESET;
  }
  return { ending, silence: null };
}
