// The bridge under load: calls that are answered, aborted, reset, slow and
// streamed, all mixed. No answer may be wrong, crossed or missing, and nothing
// may be left behind.
import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { start as startUpstream } from "../../upstream/server.mjs";
import { start } from "../gateway.mjs";
import { only } from "../platforms.mjs";
import { until } from "../wait.mjs";

const { after, before, test } = only("workerd", "bridge");

const requests = process.env.SOAK ? 12_000 : 4_000,
  concurrency = 100;
let gw, up;
before(async () => {
  up = await startUpstream({ keep: false });
  gw = await start({ dir: fileURLToPath(new URL("../../out/bridge", import.meta.url)) });
});
after(async () => {
  await gw?.close();
  await up?.close();
});

const json = { "content-type": "application/json" };
const broken = "<end stream: upstream broke off>";

// A shape makes one request with a token of its own and judges the answer.
const shapes = {
  async call(token, signal) {
    const body = JSON.stringify({ model: "m", messages: [{ role: "user", content: token }] });
    const res = await gw.fetch(`/post?${up.url}/v1/chat/completions`, { method: "POST", headers: json, body, signal });
    assert.equal((await res.json()).choices[0].message.content, "You said: " + token);
  },
  async slowCall(token, signal) {
    const body = JSON.stringify({ model: "m", messages: [{ role: "user", content: token }] });
    const res = await gw.fetch(`/post?${up.url}/!delay=150/v1/chat/completions`, {
      method: "POST",
      headers: json,
      body,
      signal,
    });
    assert.equal((await res.json()).choices[0].message.content, "You said: " + token);
  },
  async reset(token, signal) {
    const res = await gw.fetch(`/call?${up.url}/!delay=20!reset/v1/models?${token}`, { signal });
    assert.equal(res.status, 502);
    assert.match(await res.text(), /unreachable/);
  },
  async splice(token, signal) {
    await streamed("splice", "slow=5", token, signal, (t) => t);
  },
  async prefix(token, signal) {
    await streamed("prefix", "slow=5", token, signal, (t) => t);
  },
  async watch(token, signal) {
    await streamed("watch", "slow=5", token, signal, (t) => t);
  },
  async through(token, signal) {
    await streamed("through", "slow=5", token, signal, (t) => t.toUpperCase() + "<end <nil>>");
  },
  async resetWatch(token, signal) {
    const got = await (await gw.fetch(`/watch?${up.url}/!slow=5!reset-after=2/events?${token}`, { signal })).text();
    assert.ok("data: You \n\ndata: said: \n\n".startsWith(got.replace(broken, "")) && got.endsWith(broken), got);
  },
};

async function streamed(kind, fault, token, signal, change) {
  const res = await gw.fetch(`/${kind}?${up.url}/!${fault}/events?${token}`, { signal });
  assert.equal(res.status, 200);
  assert.equal(await res.text(), change(`data: You \n\ndata: said: \n\ndata: ${token}\n\ndata: [DONE]\n\n`));
}

// Of each twenty: two are reset by the upstream, four are aborted by the client.
const mix = [
  "call",
  "call",
  "call",
  "call",
  "call",
  "slowCall",
  "slowCall",
  "splice",
  "prefix",
  "watch",
  "watch",
  "through",
  "through",
  "call",
  "reset",
  "resetWatch",
  "call",
  "slowCall",
  "watch",
  "through",
];
const aborted = new Set([16, 17, 18, 19]);

test(`of ${requests} mixed requests at concurrency ${concurrency} none is wrong, crossed or missing`, {
  timeout: 240_000,
}, async () => {
  await (await gw.fetch("/health")).text();
  const before = JSON.parse(await (await gw.fetch("/stats")).text());
  const wrong = [],
    count = {};
  let next = 0,
    answered = 0,
    left = 0;
  async function client() {
    for (let n = next++; n < requests; n = next++) {
      const kind = mix[n % mix.length],
        token = `token-${n}-${((n * 2654435761) >>> 0).toString(36)}`;
      const leaves = aborted.has(n % mix.length);
      const ctl = new AbortController();
      if (leaves) setTimeout(() => ctl.abort(), (n * 7) % 40);
      else setTimeout(() => ctl.abort(new Error("no answer in 90 s")), 90_000).unref();
      count[kind] = (count[kind] ?? 0) + 1;
      try {
        await shapes[kind](token, ctl.signal);
        answered++;
      } catch (e) {
        if (leaves && ctl.signal.aborted) left++;
        else wrong.push(`${kind} ${n}: ${e.cause ?? e}`);
      }
    }
  }
  await Promise.all(Array.from({ length: concurrency }, client));
  assert.deepEqual(wrong.slice(0, 5), [], `${wrong.length} wrong answers`);
  assert.equal(answered + left, requests);
  assert.ok(left > requests * 0.05, `only ${left} were really aborted`);

  // The work of aborted calls ends by itself.
  const s = await until("the end of all other calls", async () => {
    const s = JSON.parse(await (await gw.fetch("/stats")).text());
    return s.calls === 1 && !s.ops && !s.streams && s.goroutines <= before.goroutines && s;
  });
  assert.ok(s.sys < 48 << 20, `linear memory is at ${s.sys} bytes`);
});
