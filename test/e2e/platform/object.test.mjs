// The parts of a machine's object outside the program. Nothing is pending longer
// than the work, because pending timers and calls keep an object alive and billed.
import assert from "node:assert/strict";
import { healthOf } from "../../../worker/js/health.mjs";
import { REFRESH_MS } from "../../../worker/js/contract.mjs";
import { Confirmations, hintOf, Refreshes } from "../../../worker/js/object.mjs";
import { start } from "../gateway.mjs";
import { only } from "../platforms.mjs";

const { test } = only("workerd", "bridge");

const bytes = (text) => new TextEncoder().encode(text);
const turns = async () => {
  for (let i = 0; i < 20; i++) await null;
};

// Pending counts what is pending in an object: its timers, which fire by tick, and
// the promises that it was asked to stay alive for.
class Pending {
  timers = new Set();
  promises = 0;

  constructor() {
    globalThis.scheduler = {
      wait: (ms, { signal } = {}) =>
        new Promise((resolve, reject) => {
          const over = (end) => {
            this.timers.delete(timer);
            end();
          };
          const timer = { ms, fire: () => over(resolve) };
          this.timers.add(timer);
          signal?.addEventListener("abort", () => over(() => reject(signal.reason)));
        }),
    };
  }

  keep = (promise) => {
    this.promises++;
    promise.finally(() => this.promises--);
  };

  get all() {
    return this.timers.size + this.promises;
  }
}

// later returns a promise with its resolve and reject.
function later() {
  const made = {};
  made.promise = new Promise((resolve, reject) => Object.assign(made, { resolve, reject }));
  return made;
}

test("a refresh leaves nothing pending", async () => {
  for (const end of ["resolve", "reject"]) {
    const pending = new Pending(),
      refreshes = new Refreshes(),
      work = later();
    let begun = 0;
    const begin = () => {
      begun++;
      return work.promise;
    };
    const join = () => refreshes.join(bytes('{"a":1}'), begin, pending.keep);
    const callers = [join(), join()];
    assert.equal(begun, 1);
    assert.equal(pending.all, 2); // the refresh, and the timer of those who wait for it
    work[end]({ status: 200 });
    const got = await Promise.allSettled(callers);
    assert.deepEqual(new Set(got.map((g) => g.status)), new Set([end === "resolve" ? "fulfilled" : "rejected"]));
    await turns();
    assert.equal(pending.all, 0, `after ${end}`);
  }
});

test("after the time limit of its callers only the refresh is pending", async () => {
  const pending = new Pending(),
    refreshes = new Refreshes(),
    work = later();
  const join = () => refreshes.join(bytes("{}"), () => work.promise, pending.keep);
  const first = join();
  const [timer] = pending.timers;
  assert.equal(timer.ms, REFRESH_MS);
  timer.fire();
  const answer = await first;
  assert.equal(answer.status, 503);
  assert.match(new TextDecoder().decode(answer.body), /refresh_in_progress/);
  assert.equal(pending.all, 1);
  assert.equal((await join()).status, 503); // of the same refresh
  assert.equal(pending.all, 1);
  work.resolve({ status: 200 });
  await turns();
  assert.equal(pending.all, 0);
  assert.equal((await join()).status, 200); // of the next one
});

test("a snapshot is confirmed without the program until something changes", async () => {
  const object = new Confirmations();
  let entered = 0;
  const ask = (text, answer = '{"same":true}') =>
    object.ask(bytes(text), async () => {
      entered++;
      return { status: 200, body: bytes(answer) };
    });
  await ask("a");
  await ask("a");
  await ask("b");
  await ask("b");
  assert.equal(entered, 2);
  await object.around(async () => {});
  await ask("a");
  assert.equal(entered, 3);
  await assert.rejects(object.around(async () => Promise.reject(new Error("failed"))));
  await ask("a");
  assert.equal(entered, 4);
  // An answer from before a change, or beside one, is not repeated.
  const change = later(),
    changing = object.around(() => change.promise);
  await ask("a");
  await ask("a");
  assert.equal(entered, 6);
  change.resolve();
  await changing;
  const slow = later(),
    asking = object.ask(bytes("a"), () => slow.promise);
  await object.around(async () => {});
  slow.resolve({ status: 200, body: bytes("old") });
  await asking;
  await ask("a");
  assert.equal(entered, 7);
  // Only confirmations are.
  await ask("whole", "x".repeat(1000));
  await ask("whole", "x".repeat(1000));
  assert.equal(entered, 9);
});

test("an object is placed near the request that creates it", () => {
  for (const [cf, want] of [
    [undefined, undefined],
    [{}, undefined],
    [{ continent: "AN" }, undefined],
    [{ continent: "NA", longitude: "-122.33" }, "wnam"],
    [{ continent: "NA", longitude: "-74.00" }, "enam"],
    [{ continent: "NA" }, "enam"],
    [{ continent: "EU", longitude: "2.35" }, "weur"],
    [{ continent: "EU", longitude: "21.01" }, "eeur"],
    [{ continent: "AS", country: "JP" }, "apac"],
    [{ continent: "AS", country: "AE" }, "me"],
    [{ continent: "SA" }, "sam"],
    [{ continent: "AF" }, "afr"],
    [{ continent: "OC" }, "oc"],
  ])
    assert.equal(hintOf(cf), want, JSON.stringify(cf));
});

test("/health is answered without the program, as the program answers", async (t) => {
  for (const [method, path] of [
    ["POST", "/health"],
    ["GET", "/health?a=b"],
    ["GET", "/health/"],
    ["GET", "/x/health"],
    ["GET", "/healthy"],
    ["GET", "/"],
  ])
    assert.equal(healthOf(new Request("https://weir.example" + path, { method })), null, `${method} ${path}`);
  const upgrade = new Request("https://weir.example/health", { headers: { upgrade: "websocket" } });
  assert.equal(healthOf(upgrade), null);
  assert.equal((await healthOf(new Request("https://weir.example/health")).json()).status, "ok");
  const gw = await start();
  t.after(() => gw.close());
  const fields = async (path) => {
    const res = await gw.fetch(path);
    const { date, "x-request-id": id, ...rest } = Object.fromEntries(res.headers);
    assert.ok(id, path);
    return { status: res.status, body: await res.text(), ...rest };
  };
  assert.deepEqual(await fields("/health"), await fields("/health?program"));
});
