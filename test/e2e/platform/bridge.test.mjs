// The bridge in real workerd, driven through worker/bridgetest: every kind of
// answer, streams event by event, and failures of Go.
import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { start as startUpstream } from "../../upstream/server.mjs";
import { start } from "../gateway.mjs";
import { only } from "../platforms.mjs";
import { open } from "../raw.mjs";
import { until } from "../wait.mjs";

const { after, before, test } = only("workerd", "bridge");

const dir = fileURLToPath(new URL("../../out/bridge", import.meta.url));
let gw, up;
before(async () => {
  up = await startUpstream();
  gw = await start({ dir, env: { TEXT: "é ☃", EMPTY: "", LONG: "x".repeat(100_000) } });
});
after(async () => {
  await gw?.close();
  await up?.close();
});

const text = async (path, init) => (await gw.fetch(path, init)).text();
const stats = async () => JSON.parse(await text("/stats"));

// arrivals reads a body and notes when each chunk came, in ms after the first.
async function arrivals(res) {
  const at = [];
  let all = "";
  const decoder = new TextDecoder();
  for await (const chunk of res.body) {
    at.push(performance.now());
    all += decoder.decode(chunk, { stream: true });
  }
  return { all, at: at.map((t) => t - at[0]) };
}

const expected = (n) => Array.from({ length: n }, (_, i) => `data: w${i} \n\n`).join("");

test("a body is returned as it was sent", async () => {
  const body = Buffer.alloc(1 << 20, "0123456789é");
  const res = await gw.fetch("/echo", { method: "POST", body });
  assert.deepEqual(Buffer.from(await res.arrayBuffer()), body);
});

test("an answer has the fields of its template and its own", async () => {
  for (const query of ["one", "two", "three"]) {
    const res = await gw.fetch(`/template?${query}`);
    assert.equal(await res.text(), "{}");
    const got = ["content-type", "x-constant", "x-query", "x-two"].map((name) => res.headers.get(name));
    assert.deepEqual(got, ["application/json", "1", query, "a, b"]);
  }
});

test("a body without a length is read whole", async () => {
  const parts = new ReadableStream({
    start(c) {
      for (let i = 0; i < 50; i++) c.enqueue(new TextEncoder().encode(`part ${i};`));
      c.close();
    },
  });
  const got = await text("/echo", { method: "POST", body: parts, duplex: "half" });
  assert.equal(got, Array.from({ length: 50 }, (_, i) => `part ${i};`).join(""));
});

test("several calls run concurrently", async () => {
  up.clear();
  const got = await text(`/fan?${up.url}/!delay=300!chunks=1/events?`);
  assert.equal(got.split(",").length, 5);
  const begun = Math.max(...up.seen.map((r) => r.at)),
    ended = Math.min(...up.seen.map((r) => r.ended));
  assert.ok(begun < ended, "the five calls did not overlap");
});

for (const [kind, tail] of [
  ["splice", ""],
  ["prefix", ""],
  ["watch", ""],
  ["watchprefix", ""],
  ["through", ""],
]) {
  test(`a stream through ${kind} arrives chunk by chunk`, async () => {
    const { all, at } = await arrivals(await gw.fetch(`/${kind}?${up.url}/!slow=100!chunks=12/events`));
    const want = expected(12) + "data: [DONE]\n\n" + tail;
    assert.equal(all, kind === "through" ? want.toUpperCase() + "<end <nil>>" : want);
    assert.ok(at.length >= 8, `came in ${at.length} pieces`);
    assert.ok(at.at(-1) > 700, `all came within ${Math.round(at.at(-1))} ms`);
  });
}

test("the sampled tee reports the whole text of a clean stream", async () => {
  const got = await text(`/watch?${up.url}/!slow=20!chunks=100/events`);
  const seen = await until("the whole text", async () => {
    const s = await text("/watched");
    return Number(s.split(" ")[0]) === got.length && s;
  });
  assert.match(seen, /^\d+ <nil> data: w0/);
});

test("the sampled tee reports a stream that the upstream reset", async () => {
  const got = await text(`/watch?${up.url}/!slow=20!chunks=50!reset-after=10/events`);
  assert.ok(got.startsWith(expected(5)));
  assert.match(got, /<end stream: upstream broke off>$/);
});

test("the sampled tee reports a stream that stalled", async () => {
  const got = await text(`/watch?${up.url}/!chunks=50!stall-after=10/events`);
  assert.ok(got.startsWith(expected(10)));
  assert.match(got, /<end stream: upstream fell silent>$/);
});

test("a transform learns of a reset and of silence", async () => {
  assert.match(
    await text(`/through?${up.url}/!slow=20!chunks=50!reset-after=10/events`),
    /<end stream: upstream broke off>$/,
  );
  assert.match(
    await text(`/through?${up.url}/!chunks=50!stall-after=10/events`),
    /<end stream: upstream fell silent>$/,
  );
});

test("a client that disconnects ends the upstream call", async () => {
  for (const kind of ["splice", "watch", "through"]) {
    up.clear();
    const ctl = new AbortController();
    const res = await gw.fetch(`/${kind}?${up.url}/!slow=50!chunks=2000/events`, { signal: ctl.signal });
    await res.body.getReader().read();
    ctl.abort();
    await until(`${kind}: the end of the upstream's call`, () => up.seen[0].aborted);
  }
});

// workerd notices the departure of a client that resets its connection; one that
// only closes it may still read.
test("calls that their clients have left end at a later event, and call nothing more", async () => {
  up.clear();
  const had = (await stats()).aborted,
    n = 50,
    clients = Array.from({ length: n }, () => open(gw.url));
  for (const [i, c] of clients.entries())
    c.send(`GET /again?${up.url}/!delay=300000/events?${i} HTTP/1.1\r\nhost: weir.example\r\n\r\n`);
  await until("all calls at the upstream", () => up.seen.length === n, 60_000, 5);
  for (const c of clients) c.reset();
  await until("their end", async () => {
    const s = await stats(); // each is such an event
    return s.calls === 1 && !s.ops && !s.streams;
  });
  assert.equal((await stats()).aborted - had, n);
  assert.equal(up.seen.length, n);
});

test("an upstream that cannot be reached or breaks off is a network failure", async () => {
  for (const fault of ["reset", "raw=garbage", "raw=short-length", "raw=truncated-chunk", "gzip=bad"]) {
    const res = await gw.fetch(`/call?${up.url}/!${fault}/v1/models`);
    assert.equal(res.status, 502, fault);
    await res.text();
  }
  assert.equal((await gw.fetch("/call?http://127.0.0.1:1/")).status, 502);
});

test("a missing response head ends with the time limit", async () => {
  const got = await text(`/call?${up.url}/!stall/v1/models`);
  assert.match(got, /in time/);
});

test("an answer over the limit is refused, counted inflated", async () => {
  const got = await text(`/call?${up.url}/!gzip=50000000/v1/models`);
  assert.match(got, /limit/);
});

test("redirects are not followed", async () => {
  up.clear();
  const res = await gw.fetch(`/call?${up.url}/!redirect=${encodeURIComponent(up.url + "/v1/secret")}/v1/models`, {
    redirect: "manual",
  });
  assert.equal(res.status, 302);
  assert.equal(up.seen.length, 1);
  assert.equal(up.seen[0].path.endsWith("/v1/models"), true);
});

test("work after the answer continues without the client", async () => {
  const had = (await stats()).after;
  assert.equal(await text(`/after?${up.url}/!delay=200/v1/models`), "answered");
  await until("the work after the answer", async () => (await stats()).after > had);
  assert.equal((await stats()).after, had + 1);
});

test("variables are read at any length, and only text", async () => {
  assert.equal(await text("/variable?TEXT"), "é ☃");
  assert.equal((await text("/variable?LONG")).length, 100_000);
  for (const name of ["EMPTY", "MISSING", "KV", "toString"]) assert.equal(await text(`/variable?${name}`), "", name);
});

test("an alarm that has failed runs again", async () => {
  const had = Number(await text("/alarm"));
  assert.equal(await text("/alarm?alarms"), "set");
  await until("the second run", async () => Number(await text("/alarm")) === had + 2);
});

test("an object's storage calls do not interleave", async () => {
  const answers = await Promise.all(Array.from({ length: 200 }, (_, i) => text(`/object?o${i % 3}`)));
  for (let o = 0; o < 3; o++) {
    const mine = answers
      .filter((_, i) => i % 3 === o)
      .map(Number)
      .sort((a, b) => a - b);
    assert.deepEqual(
      mine,
      mine.map((_, i) => i + 1),
    );
  }
});

test("random numbers differ and are not those of the boot", async () => {
  const seen = new Set(await Promise.all(Array.from({ length: 20 }, () => text("/random"))));
  assert.equal(seen.size, 20);
});

test("a panic fails its own request only, and its value is not shown", async () => {
  up.clear();
  const slow = Array.from({ length: 20 }, () => text(`/call?${up.url}/!delay=2000!chunks=1/events`));
  await until("20 calls in flight", () => up.seen.length === 20, 60_000, 5);
  for (let i = 0; i < 10; i++) {
    const res = await gw.fetch(i % 2 ? "/panic?x" : "/panicvalue?x");
    assert.equal(res.status, 500);
    assert.ok(!(await res.text()).includes("sk-secret"));
  }
  for (const got of await Promise.all(slow)) assert.equal(got, "call:data: w0 \n\ndata: [DONE]\n\n");
  assert.ok(!gw.logs.join("\n").includes("sk-secret"), "the panic's value is in the log");
});

test("after a trap the next request is served, and native streams continue", async () => {
  up.clear();
  const stream = arrivals(await gw.fetch(`/splice?${up.url}/!slow=100!chunks=20/events`));
  const inside = gw.fetch(`/call?${up.url}/!stall/v1/models`);
  await until("both calls in flight", () => up.seen.length === 2, 60_000, 5);
  const res = await gw.fetch("/trap");
  assert.equal(res.status, 503);
  await res.text();
  assert.equal((await gw.fetch("/template")).status, 200);
  assert.equal((await inside).status, 503);
  assert.equal((await stream).all, expected(20) + "data: [DONE]\n\n");
  assert.deepEqual(
    { ...(await stats()), heap: 0, sys: 0, goroutines: 0 },
    { ...(await stats()), heap: 0, sys: 0, goroutines: 0, streams: 0, ops: 0 },
  );
});

test("an instance over 64 MiB is replaced when nothing is in flight", async () => {
  await text("/hold?80");
  assert.ok((await stats()).sys < 64 << 20, "the memory is still held");
});

test("an instance that is replaced gets requests until it has reported what it used", async () => {
  await text("/owe?3");
  await text("/hold?80");
  const { sys, owed } = await stats();
  assert.ok(sys > 64 << 20, "what it has not reported is lost");
  assert.equal(owed, 2);
  await until("the successor", async () => (await stats()).sys < 64 << 20, 60_000, 0);
});

test("an instance that never reports what it used does not stay", async () => {
  await text("/owe?1000");
  await text("/hold?80");
  let asked = 0;
  while ((await stats()).sys > 64 << 20) asked++;
  assert.equal(asked, 64);
});

test("100 MB are downloaded and uploaded without memory growth", async () => {
  await text("/random");
  const before = (await stats()).sys;
  const size = 100 << 20;
  let got = 0;
  for await (const chunk of (await gw.fetch(`/splice?${up.url}/!size=${size}/file`)).body) got += chunk.length;
  assert.equal(got, size);
  const block = Buffer.alloc(1 << 20, "abcdefgh");
  let left = 100;
  const body = new ReadableStream({
    pull(c) {
      if (left-- > 0) c.enqueue(block);
      else c.close();
    },
  });
  const echo = await (await gw.fetch(`/upload?${up.url}/echo`, { method: "POST", body, duplex: "half" })).json();
  assert.equal(echo.bytes, size);
  const grown = (await stats()).sys - before;
  assert.ok(grown < 8 << 20, `memory grew by ${grown} bytes`);
});

test("at the end the bridge holds nothing", async () => {
  await until("the end of all other calls", async () => {
    const s = await stats();
    return s.calls === 1 && s.ops === 0 && s.streams === 0 && s.goroutines <= 4;
  });
});
