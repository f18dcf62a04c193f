// Traces and logs reach a collector from the platform's own alarm, and a collector that
// misbehaves costs nothing but its telemetry. See docs/guides/opentelemetry.md.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { after, before, test } from "node:test";
import { gunzipSync } from "node:zlib";
import { start as startUpstream } from "../../upstream/server.mjs";
import { admin, compatible, start } from "../gateway.mjs";
import { until } from "../wait.mjs";

const secret = "s3cret-of-the-collector";
const traceId = "0af7651916cd43dd8448eb211c80319c";
const traceparent = `00-${traceId}-b7ad6b7169203331-01`;

let gw, up, operator;
before(async () => {
  up = await startUpstream();
  gw = await start();
  operator = admin(gw);
});
after(async () => {
  await gw?.close();
  await up?.close();
});

// collector is a server that keeps what it receives, and answers as answer says.
async function collector(answer = (_, res) => res.end("{}")) {
  const got = [];
  const server = createServer((req, res) => {
    const parts = [];
    req.on("data", (d) => parts.push(d));
    req.on("end", () => {
      const raw = Buffer.concat(parts);
      const body = req.headers["content-encoding"] === "gzip" ? gunzipSync(raw) : raw;
      got.push({ path: req.url, headers: req.headers, body });
      answer(req, res);
    });
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  return {
    got,
    url: `http://127.0.0.1:${server.address().port}/otlp`,
    spans: () =>
      got
        .filter((g) => g.path === "/otlp/v1/traces")
        .flatMap((g) => JSON.parse(g.body).resourceSpans[0].scopeSpans[0].spans),
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

// machine creates a machine with an account and a collector.
async function machine(to, settings = {}) {
  const me = await operator.machine();
  await operator.connect(me.machineId, compatible(up));
  const api = (method, path, body) => operator.call(method, `/${me.machineId}/api${path}`, body);
  const made = await api("POST", "/destinations", {
    kind: "otlp",
    settings: { endpoint: to.url, headers: `x-token=${secret}`, protocol: "http/json", ...settings },
  });
  const send = (fields = {}, headers = {}) =>
    gw.fetch("/v1/chat/completions", {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${me.apiKey}`, ...headers },
      body: JSON.stringify({
        model: "up/test-chat",
        messages: [{ role: "user", content: "canary of the prompt" }],
        ...fields,
      }),
    });
  return { ...me, api, made, send, shown: () => api("GET", `/destinations/${made.id}`) };
}

const attribute = (span, key) => span.attributes.find((a) => a.key === key)?.value;

test("the first trace arrives within a minute of the setting, in the caller's trace", async (t) => {
  const to = await collector();
  try {
    const from = performance.now();
    const me = await machine(to);
    const res = await me.send({}, { traceparent });
    assert.equal(res.status, 200, await res.text());
    await until("the trace", () => to.spans().length === 2);
    t.diagnostic(`the first trace came ${((performance.now() - from) / 1000).toFixed(1)} s after the setting`);
    const [server, client] = to.spans();
    assert.deepEqual(
      [server.traceId, server.parentSpanId, server.kind, server.name],
      [traceId, traceparent.slice(36, 52), 2, "POST /v1/chat/completions"],
    );
    assert.deepEqual(
      [client.traceId, client.parentSpanId, client.kind, client.name],
      [traceId, server.spanId, 3, "chat test-chat"],
    );
    assert.equal(attribute(server, "weir.request.id").stringValue, res.headers.get("x-request-id"));
    assert.equal(attribute(client, "server.address").stringValue, new URL(up.url).hostname);
    assert.ok(Number(attribute(client, "gen_ai.usage.input_tokens").intValue) > 0);
    assert.equal(up.seen.at(-1).headers.traceparent, undefined, "a provider gets the context only if it is named");

    await until("the metrics", () => to.got.some((g) => g.path === "/otlp/v1/metrics"));
    t.diagnostic(`the first metrics came ${((performance.now() - from) / 1000).toFixed(1)} s after the setting`);
    const { metrics } = JSON.parse(to.got.find((g) => g.path === "/otlp/v1/metrics").body).resourceMetrics[0]
      .scopeMetrics[0];
    const [point] = metrics.find((m) => m.name === "weir.requests").sum.dataPoints;
    assert.equal(point.asDouble, 1);
    assert.equal(attribute(point, "machine").stringValue, me.machineId);

    const next = await me.send({ model: "none-such" });
    assert.ok(next.status >= 400, await next.text());
    await until("the line of the failure", () => to.got.some((g) => g.path === "/otlp/v1/logs"));
    for (const { headers, body } of to.got) {
      assert.equal(headers["x-token"], secret);
      assert.ok(!/canary|s3cret|weir_/.test(body), `a text or a secret is exported: ${body}`);
    }
    assert.ok(!JSON.stringify(await me.shown()).includes(secret), "the address or the headers are shown");
  } finally {
    to.close();
  }
});

test("a named provider gets the context of the attempt", async () => {
  const to = await collector();
  try {
    const me = await machine(to);
    await me.api("PATCH", "/settings", { traceUpstream: [new URL(up.url).host] });
    await until("the setting", async () => {
      await (await me.send({}, { traceparent, tracestate: "a=1" })).text();
      return up.seen.at(-1).headers.traceparent;
    });
    const { headers } = up.seen.at(-1);
    assert.equal(headers.tracestate, "a=1");
    const [, trace, parent] = headers.traceparent.split("-");
    assert.equal(trace, traceId);
    await until("its span", () => to.spans().some((s) => s.kind === 3 && s.spanId === parent));
  } finally {
    to.close();
  }
});

const megabytes = "x".repeat(10 << 20);
const answers = {
  garbage: (_, res) => res.end("<html>\u0000"),
  "10 MB": (_, res) => res.end(megabytes),
  "partial success": (_, res) => res.end('{"partialSuccess":{"rejectedSpans":"1","errorMessage":"old"}}'),
  413: (_, res) => res.writeHead(413).end(),
  redirect: (_, res) => res.writeHead(302, { location: "http://127.0.0.1:1/" }).end(),
  reset: (req) => req.socket.destroy(),
  stall: () => {},
};
const dropped = { "partial success": 1, 413: 2 };

test("no call waits for a collector that misbehaves, and what it does not take is counted", async () => {
  await Promise.all(
    Object.entries(answers).map(async ([name, answer]) => {
      const to = await collector(answer);
      try {
        const me = await machine(to, { signals: "traces" });
        assert.equal((await me.send()).status, 200);
        await until(`the call of ${name}`, () => to.got.length > 0);
        const from = performance.now();
        assert.equal((await me.send()).status, 200, name);
        assert.ok(performance.now() - from < 9_000, `${name}: a call waited for the collector`);
        await until(
          `the state of ${name}`,
          async () => {
            const d = await me.shown();
            const known = d.lastSuccessAt || d.lastErrorAt;
            return known && d.dropped >= (dropped[name] ?? 0);
          },
          90_000,
        );
        assert.ok(to.got.every((g) => g.path === "/otlp/v1/traces"));
      } finally {
        to.close();
      }
    }),
  );
});
