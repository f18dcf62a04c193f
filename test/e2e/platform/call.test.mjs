// When a call is taken for lost: the platform ends events without a word, and in a busy
// isolate a live one hears of its timers late.
import assert from "node:assert/strict";
import { Call, listenAfter, timers } from "../../../worker/js/call.mjs";
import { only } from "../platforms.mjs";

const { test } = only("workerd", "bridge");

// An instance with calls of requests whose own timers never come, and what keeps their
// events alive.
function instance(t) {
  t.mock.timers.enable({ apis: ["Date"], now: 1_000_000 });
  Object.assign(timers, { until: 0, asked: false });
  const inst = { cancel() {} };
  const set = [];
  t.mock.method(globalThis, "setTimeout", (run, ms) => set.push({ run, at: Date.now() + ms }));
  const open = () => {
    const call = new Call(1, {}, () => {}, inst);
    call.serve({ signal: null }, { waitUntil() {} });
    return call;
  };
  const after = (ms) => t.mock.timers.tick(ms);
  const lost = (call) => call.lost(Date.now());
  return { set, open, after, lost };
}

test("a call without its timer is not lost while all timers are late", (t) => {
  const { open, after, lost } = instance(t);
  const call = open();
  for (let i = 0; i < 200; i++) {
    after(1000);
    assert.equal(lost(call), false, `after ${i + 1} s`);
  }
  assert.equal(timers.asked, true);
});

test("a call is lost once timers come that were due much later than its own", (t) => {
  const { set, open, after, lost } = instance(t);
  const call = open();
  let other;
  for (const wait of [2 * listenAfter, 7000]) {
    after(wait);
    assert.equal(lost(call), false, "timers come out of turn");
    other = open();
    set.length = 0;
    other.probe();
    assert.equal(timers.asked, false);
    assert.equal(lost(call), false, "the timer of the other has not come");
    set[0].run();
    assert.equal(lost(call), false);
  }
  after(2000);
  other = open();
  other.probe();
  set.at(-1).run();
  const seen = [1, 2, 3].map(() => lost(call));
  assert.deepEqual(seen, [false, false, true]);
  assert.equal(lost(other), false);
});

test("a late timer says that its call lives", (t) => {
  const { set, open, after, lost } = instance(t);
  const call = open();
  after(12 * listenAfter);
  const other = open();
  other.probe();
  set.at(-1).run();
  assert.deepEqual([lost(call), lost(call)], [false, false]);
  set[0].run();
  assert.deepEqual([lost(call), lost(call), lost(call)], [false, false, false]);
});
