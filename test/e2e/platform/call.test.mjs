// When a call is taken for lost: the platform ends events without a word, and in a busy
// isolate a live one hears of its timers late.
import assert from "node:assert/strict";
import { Call, listenAfter } from "../../../worker/js/call.mjs";
import { only } from "../platforms.mjs";

const { test } = only("workerd", "bridge");

// An instance with calls of requests whose own timers never come, and what keeps their
// events alive.
function instance(t) {
  t.mock.timers.enable({ apis: ["Date"], now: 1_000_000 });
  const inst = { timersUntil: 0, asksTimer: false, cancel() {} };
  const timers = [];
  t.mock.method(globalThis, "setTimeout", (run, ms) => timers.push({ run, at: Date.now() + ms }));
  const open = () => {
    const call = new Call(1, {}, () => {}, inst);
    call.serve({ signal: null }, { waitUntil() {} });
    return call;
  };
  const after = (ms) => t.mock.timers.tick(ms);
  const lost = (call) => call.lost(Date.now());
  return { inst, timers, open, after, lost };
}

test("a call without its timer is not lost while all timers are late", (t) => {
  const { inst, open, after, lost } = instance(t);
  const call = open();
  for (let i = 0; i < 20; i++) {
    after(1000);
    assert.equal(lost(call), false, `after ${i + 1} s`);
  }
  assert.equal(inst.asksTimer, true);
});

test("a call is lost once timers come that were due later than its own", (t) => {
  const { inst, timers, open, after, lost } = instance(t);
  const call = open();
  after(2 * listenAfter);
  assert.equal(lost(call), false);
  const other = open();
  timers.length = 0;
  other.probe();
  assert.equal(inst.asksTimer, false);
  assert.equal(lost(call), false, "the timer of the other has not come");
  timers[0].run();
  const seen = [1, 2, 3].map(() => lost(call));
  assert.deepEqual(seen, [false, false, true]);
  assert.equal(lost(other), false);
});

test("a late timer says that its call lives", (t) => {
  const { timers, open, after, lost } = instance(t);
  const call = open();
  after(5 * listenAfter);
  const other = open();
  other.probe();
  timers.at(-1).run();
  assert.deepEqual([lost(call), lost(call)], [false, false]);
  timers[0].run();
  assert.deepEqual([lost(call), lost(call), lost(call)], [false, false, false]);
});

test("a call that is silent for a minute is lost without any timer", (t) => {
  const { open, after, lost } = instance(t);
  const call = open();
  after(60_000);
  assert.deepEqual([lost(call), lost(call), lost(call)], [false, false, true]);
});
