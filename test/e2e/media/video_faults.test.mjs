// A thousand creations of videos over the faults of an upstream. The upstream
// counts what it accepts: a video is billed then, whether or not the gateway gets
// the answer. docs/reference/spec.md, 4.4; docs/reference/reliability.md, N2,
// F4–F44 for class V.
// workerd: soak
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { after, before, test } from "node:test";
import { raw } from "../../upstream/faults.mjs";
import { placed, start } from "../gateway.mjs";
import { sleep, until } from "../wait.mjs";

const creations = 1000,
  perMachine = 4; // few, so that what fails does not set all its accounts aside
let gw, up;

// Faults by name. Each gets the response, the id that the job would have and
// the creation, {accepted, given, leave}. A creation that is not accepted was
// refused before it started; given is an id that was complete in an answer.
const json = (res, status, value, headers = {}) =>
  res.writeHead(status, { "content-type": "application/json", ...headers }).end(JSON.stringify(value));
const refused =
  (status, headers, code = null) =>
  (res) =>
    json(res, status, { error: { message: "no", type: "x", param: null, code } }, headers);
const accepted =
  (answer, given = false) =>
  (res, id, c) => {
    c.accepted++;
    if (given) c.given = id;
    return answer(res, id, c);
  };
const broken = (text, length) => (res, id) => {
  res.socket.write(`HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${length}\r\n\r\n${text(id)}`);
  setTimeout(() => res.socket?.destroy(), 10);
};
const written = (name) => (res) => {
  res.socket.write(raw[name]);
  setTimeout(() => res.socket?.destroy(), 10);
};
const faults = {
  none: accepted((res, id) => json(res, 200, { request_id: id }), true),
  slow: accepted(async (res, id) => {
    await sleep(150);
    json(res, 200, { request_id: id });
  }, true),
  drip: accepted(async (res, id) => {
    res.writeHead(200, { "content-type": "application/json" });
    for (const b of JSON.stringify({ request_id: id })) {
      res.write(b);
      await sleep(1);
    }
    res.end();
  }, true),
  cut_after_the_id: accepted(
    broken((id) => `{"request_id":"${id}"}`, 500),
    true,
  ),
  no_last_chunk: accepted((res, id) => {
    const text = `{"request_id":"${id}"}`;
    res.socket.write(
      `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n${text.length.toString(16)}\r\n${text}\r\n`,
    );
    setTimeout(() => res.socket?.destroy(), 10);
  }, true),
  client_leaves: accepted(async (res, id, c) => {
    c.leave();
    await sleep(40);
    json(res, 200, { request_id: id });
  }, true),
  400: refused(400),
  401: refused(401),
  402: refused(402),
  403: refused(403),
  404: refused(404),
  413: refused(413),
  422: refused(422),
  429: refused(429, { "retry-after": "1" }),
  quota: refused(429, {}, "insufficient_quota"),
  reset_then_made: accepted((res) => res.socket.resetAndDestroy()),
  closed_then_made: accepted((res) => res.socket.destroy()),
  reset_within_the_head: accepted((res) => {
    res.socket.write("HTTP/1.1 200 OK\r\ncontent-");
    setTimeout(() => res.socket?.resetAndDestroy(), 10);
  }),
  cut_within_the_id: accepted(broken((id) => `{"request_id":"${id.slice(0, 6)}`, 500)),
  500: accepted(refused(500)),
  503: accepted(refused(503, { "retry-after": "1" })),
  529: accepted(refused(529)),
  html_502: accepted((res) => res.writeHead(502, { "content-type": "text/html" }).end("<html>bad gateway</html>")),
  204: accepted((res) => res.writeHead(204).end()),
  redirect: accepted((res) => res.writeHead(307, { location: "/v1/videos/generations" }).end()),
  html: accepted((res) => res.writeHead(200, { "content-type": "text/html" }).end("<html>sign in</html>")),
  null: accepted((res) => json(res, 200, null)),
  array: accepted((res) => json(res, 200, [])),
  no_id: accepted((res) => json(res, 200, { error: "x" })),
  empty: accepted((res) => res.writeHead(200, { "content-type": "application/json" }).end()),
  ...Object.fromEntries(
    ["short-length", "truncated-chunk", "bad-chunk", "two-lengths", "status-999", "garbage", "early-hints"].map(
      (name) => [name, accepted(written(name))],
    ),
  ),
};

// upstream is the provider: creations has the outcome of each creation by the
// number in its request.
async function upstream() {
  const up = { creations: new Map(), jobs: new Map(), polls: [], open: 0, made: 0, total: 0 };
  const server = createServer(async (req, res) => {
    up.open++;
    res.on("close", () => {
      up.open--;
    });
    try {
      const parts = [];
      for await (const p of req) parts.push(p);
      const by = req.headers.authorization;
      if (req.method === "GET") {
        const id = req.url.split("/").at(-1);
        up.polls.push({ id, by });
        return void json(res, up.jobs.has(id) ? 200 : 404, { status: "pending", progress: 1 });
      }
      up.total++;
      const c = up.creations.get(JSON.parse(Buffer.concat(parts)).seed),
        id = `job-${++up.made}-x`;
      // Another account is asked only after a refusal: it has no fault of its own.
      const fault = c.calls++ === 0 ? c.fault : "none";
      await faults[fault](res, id, c);
      if (c.given === id) up.jobs.set(id, by);
    } catch {
      res.destroy();
    }
  });
  server.on("clientError", (_, socket) => socket.destroy());
  server.keepAliveTimeout = 120_000;
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  up.url = `http://127.0.0.1:${server.address().port}`;
  up.close = () =>
    new Promise((r) => {
      server.close(r);
      server.closeAllConnections();
    });
  return up;
}

before(async () => {
  up = await upstream();
  gw = await start({ vendors: up, inspect: true });
});
after(async () => {
  await gw?.close();
  await up?.close();
});

const accounts = (tag) => ["a", "b", "c"].map((name) => ({ provider: "xai", name, apiKey: `xai-${tag}-${name}` }));

// seeded is a machine with three accounts.
async function seeded(n) {
  const { machineId, apiKey } = await placed(gw, accounts(String(n).padStart(16, "m")));
  return { apiKey, path: `/${machineId}` };
}

const poll = (me, c) =>
  gw.fetch(`${me.path}/v1/videos/${c.given}`, { headers: { authorization: `Bearer ${me.apiKey}` } });

// create sends one creation, as a client does, and once more with the same
// idempotency key when it has one and was not told to stop.
async function create(me, c) {
  const ctl = new AbortController();
  c.leave = () => ctl.abort();
  const headers = {
    authorization: `Bearer ${me.apiKey}`,
    "content-type": "application/json",
    ...(c.key ? { "idempotency-key": c.key } : {}),
  };
  const send = async (signal) => {
    const res = await gw.fetch(`${me.path}/v1/videos/generations`, {
      method: "POST",
      headers,
      signal,
      body: JSON.stringify({ model: "xai/m", prompt: "p", seed: c.seed }),
    });
    c.answers.push({ status: res.status, text: await res.text(), retry: res.headers.get("x-should-retry") });
  };
  await send(ctl.signal).catch((e) => {
    if (!ctl.signal.aborted) throw e;
  });
  if (ctl.signal.aborted)
    for (let i = 0; i < 300 && !(c.given && (await poll(me, c)).status === 200); i++) await sleep(10);
  if (c.key) await send();
}

// inTurns runs what is given for each, some at once.
async function inTurns(list, n, run) {
  let next = 0;
  await Promise.all(
    Array.from({ length: n }, async () => {
      while (next < list.length) await run(list[next++]);
    }),
  );
}

test(`of ${creations} creations over ${Object.keys(faults).length} faults none is sent twice and no id is lost`, {
  timeout: 240_000,
}, async (t) => {
  const names = Object.keys(faults),
    all = [];
  for (let seed = 0; seed < creations; seed++) {
    const c = {
      seed,
      fault: names[(seed * 17) % names.length],
      key: seed % 3 === 0 ? `key-${seed}` : null,
      accepted: 0,
      calls: 0,
      given: null,
      answers: [],
    };
    up.creations.set(seed, c);
    all.push(c);
  }
  const groups = Array.from({ length: creations / perMachine }, (_, i) =>
    all.slice(i * perMachine, (i + 1) * perMachine),
  );
  await inTurns(groups, 12, async (group) => {
    const me = await seeded(group[0].seed);
    for (const c of group) await create(me, c);
    for (const c of group.filter((c) => c.given)) {
      // Later faults may have set its account aside: no other one is asked then.
      const res = await poll(me, c),
        text = await res.text();
      assert.ok(
        res.status === 200 || (res.status === 503 && text.includes("account_cooling_down")),
        `the job of ${c.fault} is known: ${text}`,
      );
    }
  });
  assert.deepEqual(
    all.filter((c) => c.accepted > 1).map((c) => [c.fault, c.key, c.accepted]),
    [],
    "made twice",
  );
  let given = 0,
    lost = 0;
  for (const c of all) {
    if (c.given) {
      given++;
      if (c.answers.length) assert.match(c.answers.at(-1).text, new RegExp(`"${c.given}"`), c.fault);
      else assert.equal(c.fault, "client_leaves");
    } else if (c.accepted) {
      // It may have been made: the client hears so and is told not to try again.
      for (const a of c.answers)
        assert.deepEqual([a.status >= 500, a.retry], [true, "false"], `${c.fault}: ${a.status} ${a.text}`);
    } else {
      for (const a of c.answers) {
        // The upstream may close a kept connection just when the creation goes
        // out on it. Whether it arrived is unknown then.
        if (a.status === 502 && a.retry === "false") {
          lost++;
          continue;
        }
        assert.ok(a.status >= 400 && a.status < 500, `${c.fault}: ${a.status} ${a.text}`);
      }
    }
  }
  assert.ok(lost <= creations / 50, `${lost} creations were lost on the way`);
  for (const p of up.polls) assert.equal(p.by, up.jobs.get(p.id), "a job is polled by its own account only");
  t.diagnostic(`${up.total} calls, ${all.filter((c) => c.accepted).length} accepted, ${given} ids given`);
  assert.ok(given > creations / 10 && up.polls.length > given / 2);
  assert.doesNotMatch(gw.logs.join("\n"), /xai-[0-9a-z]{16}-/);
  const left = await until("the end of all calls", async () => {
    const s = await gw.stats();
    return !s.calls && !s.streams && !up.open && s;
  });
  assert.equal(left.dead, false);
});
