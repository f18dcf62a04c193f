// Nothing of a call stays counted when it ends, whatever the
// platform says of its event. Six streams once did, and kept an instance for ever.
import assert from "node:assert/strict";
import { Call } from "../../../worker/js/call.mjs";
import { imports } from "../../../worker/js/imports.mjs";
import { Sending, Streams } from "../../../worker/js/streams.mjs";
import { only } from "../platforms.mjs";

const { test } = only("workerd", "bridge");

// world is an instance with one call, whose program passes uploads as they are.
function world(t) {
  t.mock.timers.enable({ apis: ["Date", "setTimeout"], now: 1_000_000 });
  const before = globalThis.IdentityTransformStream;
  globalThis.IdentityTransformStream = TransformStream;
  t.after(() => {
    globalThis.IdentityTransformStream = before;
  });
  const memory = new Uint8Array(1 << 20);
  const inst = {
    calls: new Map(),
    ended: [],
    emit: () => true,
    enter: (run) => run(),
    run() {},
    u8: () => memory,
    bytes: (at, n) => memory.slice(at, at + n),
    forget(call) {
      this.calls.delete(call.id);
      call.end();
    },
    x: {
      weir_chunk: () => 0,
      weir_push: (_, n) => n,
      weir_out: () => 0,
      weir_end: () => 0,
      weir_ended: (id) => inst.ended.push(id),
    },
  };
  inst.streams = new Streams(inst);
  const call = new Call(1, {}, () => {}, inst);
  inst.calls.set(1, call);
  const aborted = [];
  const inflight = { call, abort: () => aborted.push(1), finish() {} };
  const body = () => new ReadableStream({ type: "bytes", pull: (c) => c.enqueue(new Uint8Array(4096)) });
  const message = () => ({ body: body(), headers: new Headers() });
  return { inst, call, inflight, aborted, message, streams: inst.streams, host: imports(inst) };
}

const turns = async (n) => {
  for (let i = 0; i < n; i++) await Promise.resolve();
};

const left = {
  "the body of an answer": ({ streams, inflight, message }) => streams.add(message(), inflight, -1),
  "the body of a request": ({ streams, call, message }) => streams.add(message(), null, -1, call),
  "a body with a prefix, watched": ({ streams, inflight, message }) =>
    streams.derived("watch", streams.prefix(new Uint8Array(3), streams.add(message(), inflight, -1)), 0, -1),
  "a held body and a copy of it": async ({ streams, call }) => {
    const id = streams.add({ body: new Blob(["abc"]).stream(), headers: new Headers() }, null, 3, call);
    await streams.gather(1, id, 1 << 10, 1000, true);
    streams.reopen(id);
  },
  "a body that is gathered": async ({ streams, call, message }) => {
    await streams.gather(1, streams.add(message(), null, -1, call), 8192, 1000, false);
    await turns(5);
  },
};

for (const [what, leave] of Object.entries(left))
  test(`${what} is gone with its call`, async (t) => {
    const w = world(t);
    await leave(w);
    assert.ok(w.streams.size > 0 && w.call.streams === w.streams.size);
    w.host.done(1);
    assert.deepEqual([w.streams.size, w.call.streams, w.inst.calls.size], [0, 0, 0]);
  });

test("an upload that outlives its call counts as a call until it ends", async (t) => {
  const w = world(t);
  const sending = new Sending();
  const id = w.streams.derived("through", w.streams.add(w.message(), null, -1, w.call), 0, -1);
  const readable = w.streams.open(id, w.call, sending);
  assert.equal(w.call.streams, 1);
  w.host.done(1);
  assert.deepEqual([w.streams.size, w.inst.calls.size], [1, 1]);
  const reader = readable.getReader();
  assert.equal((await reader.read()).value.byteLength > 0, true, "it goes on");
  reader.releaseLock();

  // Nothing takes the rest.
  t.mock.timers.tick(121_000);
  await turns(50);
  assert.deepEqual([w.streams.size, w.call.streams, w.inst.calls.size], [0, 0, 0]);
  assert.deepEqual(w.inst.ended, [id]);
});

test("a stream whose event is over without a word is swept with its call", async (t) => {
  const w = world(t);
  const id = w.streams.derived("through", w.streams.add(w.message(), null, -1, w.call), 0, -1);
  w.streams.open(id, w.call, new Sending());
  w.host.done(1);
  w.streams.sweep(w.call);
  assert.deepEqual([w.streams.size, w.call.streams], [0, 0]);
});
