// Web fetch: by a provider, and by the gateway itself.
// docs/reference/spec.md, 4.8; docs/reference/reliability.md, T15–T19, T43.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { after, before, beforeEach, test } from "node:test";
import { moved, page, start as startUpstream } from "../../upstream/web.mjs";
import { admin, secrets, start } from "../gateway.mjs";

const secret = "secret-key-0123456789abcdef";

let gw, up, canary, operator;
before(async () => {
  up = await startUpstream();
  // No call may reach the canary: it listens at a private address.
  canary = createServer((req, res) => {
    canary.hits.push(req.url);
    res.end("canary");
  });
  canary.hits = [];
  await new Promise((r) => canary.listen(0, "127.0.0.1", r));
  canary.port = canary.address().port;
  gw = await start({ vendors: up, env: { ALLOW_PRIVATE_UPSTREAMS: "" } });
  operator = admin(gw);
});
after(async () => {
  await gw?.close();
  await up?.close();
  canary?.close();
});
beforeEach(() => {
  up.clear();
  canary.hits.length = 0;
});

async function machine(...providers) {
  const me = await operator.machine();
  for (const p of providers)
    await operator.connect(me.machineId, { apiKey: secret, ...(typeof p === "string" ? { provider: p } : p) });
  const fetchPage = async (body, headers = {}, path = "/v1/web/fetch") => {
    const res = await gw.fetch(path, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${me.apiKey}`, ...headers },
      body: typeof body === "string" ? body : JSON.stringify(body),
    });
    const text = await res.text();
    return { status: res.status, headers: res.headers, text, body: JSON.parse(text) };
  };
  const call = (method, path, body) => operator.call(method, `/${me.machineId}${path}`, body);
  return { ...me, fetchPage, call };
}

test("the gateway fetches a page itself without a connection, and forwards nothing of the client", async () => {
  const me = await machine();
  up.answer = (got) => {
    if (got.path === "/start?x=1") return moved("../next/page");
    if (got.path === "/next/page") return moved("//b.example.com/final#part", 308);
    return page(
      '<html lang=de><title>Tee &amp; Wasser</title><meta name=author content="A. B."><nav>weg</nav><main><h1>Tee</h1><p>Wasser <a href="../x">kochen</a>.</main>',
    );
  };
  const got = await me.fetchPage(
    { url: "http://a.example.com/start?x=1#part" },
    {
      cookie: "a=b",
      "x-api-key": "client-key",
      referer: "https://app.example.org/",
      origin: "https://app.example.org",
      "x-forwarded-for": "10.0.0.1",
      "accept-language": "de",
      "anthropic-beta": "x",
      "idempotency-key": "k",
      "x-connection-id": "",
    },
  );
  assert.equal(got.status, 200, got.text);
  assert.deepEqual(
    { ...got.body, metrics: null },
    {
      provider: "web",
      url: "http://b.example.com/final",
      title: "Tee & Wasser",
      content: { format: "markdown", text: "# Tee\n\nWasser [kochen](http://b.example.com/x).", length: 47 },
      metadata: { author: "A. B.", published_at: null, language: "de" },
      usage: { fetch_cost_usd: 0 },
      metrics: null,
    },
  );
  assert.equal(got.headers.get("x-weir-model"), "web/fetch");
  assert.equal(got.headers.get("x-weir-attempts"), "3");
  assert.deepEqual(
    up.seen.map((s) => s.host),
    ["a.example.com", "a.example.com", "b.example.com"],
  );
  for (const s of up.seen) {
    assert.equal(s.method, "GET");
    assert.equal(s.body, "");
    assert.equal(s.headers["x-weir-hop"], "1"); // ends loops through the gateway itself
    const own = new Set(["accept", "accept-encoding", "user-agent", "host", "connection", "x-weir-hop", "cf-worker"]); // cf-worker is the platform's own mark
    assert.deepEqual(
      Object.keys(s.headers).filter((h) => !own.has(h)),
      [],
      JSON.stringify(s.headers),
    );
    for (const word of [me.apiKey, secret, "client-key", secrets.ADMIN_TOKEN, "a=b", "app.example.org"])
      assert.ok(!JSON.stringify(s.headers).includes(word), word);
  }
  for (const name of ["web", "web/fetch", "builtin"])
    assert.equal((await me.fetchPage({ model: name, url: "https://a.example.com/" })).body.provider, "web");
});

// pageable judges an address independently of the program, by the purpose of
// the policy: a name of the public internet, on the scheme's own port, without
// a user, and written so that every program reads that name.
function pageable(typed) {
  let url;
  try {
    url = new URL(typed);
  } catch {
    return false;
  }
  return (
    /^https?:$/.test(url.protocol) &&
    !url.username &&
    !url.password &&
    !url.port &&
    isPublic(url.hostname) &&
    plain(typed, url)
  );
}
function plain(typed, url) {
  const [, host] = /^ *https?:\/\/(?:[^/?#@]*@)?([^:/?#]+)[^\\\n\r\t]*$/i.exec(typed.trimEnd()) ?? [];
  const labels = host?.toLowerCase().split(".") ?? [];
  const same = (l, i) => l === labels[i] || (/[^\x00-\x7f]/.test(labels[i]) && l.startsWith("xn--"));
  return url.hostname.split(".").every(same);
}
const isPublic = (host) =>
  host.length <= 253 &&
  /^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z0-9-]{1,63}$/.test(host) &&
  !/(^|\.)(\d+|0x[0-9a-f]*|localhost|local|localdomain|internal|intranet|lan|home|corp|arpa|test|invalid|onion)$/.test(
    host,
  ) &&
  !["metadata.goog", "metadata.tencentyun.com"].includes(host);

// spellings are the table of base addresses, and the canary's own address in
// every notation.
function spellings() {
  const list = [];
  for (const line of readFileSync(new URL("../../../pkg/provider/testdata/hosts.txt", import.meta.url), "utf8").split(
    "\n",
  )) {
    if (line.startsWith('"')) list.push(JSON.parse(line.slice(0, line.lastIndexOf('"|') + 1)));
  }
  const p = canary.port;
  for (const host of [
    "127.0.0.1",
    "localhost",
    "LOCALHOST",
    "localhost.",
    "127.0.0.1.",
    "127.1",
    "127.0.1",
    "2130706433",
    "0x7f000001",
    "0x7f.1",
    "0177.0.0.1",
    "017700000001",
    "0x7f.0x0.0x0.0x1",
    "127.0.0.1%2e",
    "%31%32%37.0.0.1",
    "①②⑦.⓪.⓪.①",
    "127。0。0。1",
    "0",
    "0.0.0.0",
    "[::1]",
    "[::]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[0:0:0:0:0:ffff:7f00:0001]",
    "[::127.0.0.1]",
    "[64:ff9b::7f00:1]",
    "[2002:7f00:1::]",
    "[fe80::1]",
    "[fc00::1]",
    "user@127.0.0.1",
    "a.example.com@127.0.0.1",
    "user:pass@a.example.com",
    "169.254.169.254",
    "0xa9fea9fe",
    "2852039166",
    "metadata",
    "metadata.google.internal",
    "instance-data.ec2.internal",
    "100.100.100.200",
    "[fd00:ec2::254]",
    "10.0.0.1",
    "172.16.0.1",
    "192.168.0.1",
    "100.64.0.1",
    "198.18.0.1",
    "224.0.0.1",
    "255.255.255.255",
    "foo.localhost",
    "printer.local",
    "db.internal",
    "intranet",
    "router.lan",
    "x.home.arpa",
    "a.test",
    "1.1.1.1",
    "8.8.8.8",
    "[2606:4700:4700::1111]",
  ]) {
    list.push(`http://${host}:${p}/`, `http://${host}/`, `https://${host}/`);
  }
  list.push(
    `http://a.example.com:${p}/`,
    "https://a.example.com:443/",
    "https://a.example.com:80/",
    "http://a.example.com:443/",
    "http://a.example.com:80/",
    "https://a.example.com:22/",
    "file:///etc/passwd",
    "data:text/html,x",
    "javascript:alert(1)",
    "blob:https://a.example.com/x",
    "gopher://a.example.com/",
    "ws://a.example.com/",
    "about:blank",
    `\\\\127.0.0.1:${p}\\x`,
    `//127.0.0.1:${p}/`,
    "https:///127.0.0.1/",
    `http:/\\127.0.0.1:${p}/`,
    `http:127.0.0.1:${p}`,
    `ht\ntp://127.0.0.1:${p}/`,
    "https://a.example.com./",
    `${gw.url}/v1/models`,
    "https://a.example.com/?u=http://127.0.0.1/#x",
  );
  return list;
}

test("an address that is not public is never called, in any spelling", async () => {
  const me = await machine();
  const list = spellings();
  assert.ok(list.length > 300);
  up.answer = () => page("<p>ok");
  let refused = 0;
  for (const typed of list) {
    up.seen.length = 0;
    const got = await me.fetchPage({ url: typed });
    if (pageable(typed)) {
      assert.equal(got.status, 200, `${typed}: ${got.text}`);
      assert.equal(up.seen.length, 1);
    } else {
      assert.equal(got.status, 400, `${typed}: ${got.text}`);
      assert.equal(got.body.error.param, "url");
      assert.equal(up.seen.length, 0, typed);
      refused++;
    }
    for (const s of up.seen) assert.ok(isPublic(s.host), `${typed}: ${s.host} was called`);
  }
  assert.ok(refused > 200);
  assert.deepEqual(canary.hits, []);
});

test("no redirect leads to an address that is not public", async () => {
  const me = await machine();
  const list = spellings();
  let refused = 0;
  for (const typed of list) {
    if (/[\r\n\0]/.test(typed) || /[^\x00-\xff]/.test(typed)) continue; // cannot stand in a header
    up.clear();
    up.answer = (got) => (got.host === "start.example.com" && got.path === "/" ? moved(typed.trim()) : page("<p>ok"));
    const got = await me.fetchPage({ url: "https://start.example.com/" });
    if (got.status !== 200) {
      assert.equal(got.status, 502, `${typed}: ${got.text}`);
      assert.doesNotMatch(got.body.error.message, /public|private|metadata|127/); // which address it was, and why not, is not told
      refused++;
    }
    for (const s of up.seen) assert.ok(isPublic(s.host), `${typed}: ${s.host} was called`);
  }
  assert.ok(refused > 150, `${refused}`);
  assert.deepEqual(canary.hits, []);
});

// Each row has a page's behaviour and the longest time that it may take. No row
// waits for the real limits: the client's own deadline stands for them.
for (const [name, status, code, deadline] of [
  ["huge", 422, "unsupported_content"],
  ["endless", 422, "unsupported_content"],
  ["bomb", 422, "unsupported_content"],
  ["slow", 504, "upstream_timeout", 0.4],
  ["silent", 504, "upstream_timeout", 0.3],
  ["stalled", 504, "upstream_timeout", 0.3],
  ["reset", 502, "page_unavailable"],
  ["broken", 502, "page_unavailable"],
  ["badgzip", 502, "page_unavailable"],
]) {
  test(`a page that is ${name} is ${status}, and the call to it ends`, async () => {
    const me = await machine();
    up.answer = () => name;
    let got,
      limit = deadline;
    do {
      // a deadline that ends before the call starts shows nothing: a slow
      // machine gets a longer one
      up.seen.length = 0;
      got = await me.fetchPage(
        { url: "https://hostile.example.com/" },
        deadline ? { "x-stainless-timeout": String(limit) } : {},
      );
      assert.deepEqual([got.status, got.body.error.code], [status, code], got.text);
      limit *= 2;
    } while (deadline && !up.seen.length);
    await up.seen[0].closed;
    assert.ok(!(up.seen[0].sent > 80e6), `${up.seen[0].sent} bytes were taken`); // the system's own buffers hold up to forty million
  });
}

test("pages in other encodings are decoded by the platform", async () => {
  const me = await machine();
  for (const [type, bytes, want] of [
    ["text/html; charset=utf-8", Buffer.from("<p>Tée ☕"), "Tée ☕"],
    ["text/html", Buffer.from("<p>T\xe9e \x80", "latin1"), "Tée €"],
    ["text/html; charset=iso-8859-15", Buffer.from("<p>T\xe9e \xa4", "latin1"), "Tée €"],
    ["text/html; charset=Shift_JIS", Buffer.from([0x3c, 0x70, 0x3e, 0x83, 0x65, 0x83, 0x42]), "ティ"],
    ["text/html", Buffer.concat([Buffer.from("<meta charset=koi8-r><p>"), Buffer.from([0xfe, 0xc1, 0xca])]), "Чай"],
    ["text/html; charset=gb2312", Buffer.from([0x3c, 0x70, 0x3e, 0xb2, 0xe8]), "茶"],
    ["text/html; charset=big5", Buffer.from([0x3c, 0x70, 0x3e, 0xaf, 0xf9]), "茶"],
    ["text/html; charset=euc-kr", Buffer.from([0x3c, 0x70, 0x3e, 0xc2, 0xf7]), "차"],
    ["text/html", Buffer.concat([Buffer.from([0xff, 0xfe]), Buffer.from("<p>茶", "utf16le")]), "茶"],
    ["text/html; charset=utf-8", Buffer.from([0x3c, 0x70, 0x3e, 0x61, 0xff, 0x62]), "a\ufffdb"],
    ["text/plain; charset=windows-1251", Buffer.from([0xd7, 0xe0, 0xe9]), "Чай"],
  ]) {
    up.answer = () => ({ headers: { "content-type": type }, body: bytes });
    const got = await me.fetchPage({ url: "https://tea.example.com/" });
    assert.equal(got.body.content?.text, want, `${type}: ${got.text}`);
  }
  up.answer = () => ({ headers: { "content-type": "text/html; charset=klingon" }, body: Buffer.from([0xd7]) });
  assert.equal((await me.fetchPage({ url: "https://tea.example.com/" })).body.error.code, "unsupported_content");
});

test("a machine's providers fetch first, the gateway in their absence; key limits and the disabled list apply", async () => {
  const me = await machine("exa");
  up.answer = (got) =>
    got.host === "api.exa.ai" ? { body: { results: [{ text: "x" }], costDollars: { total: 0.001 } } } : page("<p>y");
  assert.equal((await me.fetchPage({ url: "https://page.example.com/" })).body.provider, "exa");
  assert.equal(
    (await me.fetchPage({ url: "https://page.example.com/" }, {}, `/${me.machineId}/v1/web/fetch`)).body.usage
      .fetch_cost_usd,
    0.001,
  );
  const made = await me.call("POST", "/api/keys", { name: "exa only", models: ["exa/*"] });
  const headers = { authorization: `Bearer ${made.apiKey ?? made.key}` };
  assert.equal((await me.fetchPage({ model: "web/fetch", url: "https://page.example.com/" }, headers)).status, 403);
  await me.call("POST", "/api/models/disabled", { providerAlias: "web", ids: ["fetch"] });
  const own = await me.fetchPage({ model: "web/fetch", url: "https://page.example.com/" });
  assert.equal(own.status, 404);
  assert.equal(own.body.error.code, "model_not_found");
});
