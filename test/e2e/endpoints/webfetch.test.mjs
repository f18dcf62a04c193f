// Web fetch: by every provider, and by the gateway itself.
// docs/reference/spec-gaps.md, 5; docs/reference/reliability.md, T15–T19, T43.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { after, before, beforeEach, test } from "node:test";
import { moved, page, start as startUpstream } from "../../upstream/web.mjs";
import { admin, secrets, start } from "../gateway.mjs";

const secret = "secret-key-0123456789abcdef"; // as in the golden files
const read = (name) => readFileSync(new URL(`../../../pkg/v1/web/testdata/vendors/${name}`, import.meta.url), "utf8");

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
  gw = await start({ vendors: up, env: { ALLOW_PRIVATE_UPSTREAMS: "" }, inspect: true });
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

for (const id of "tavily exa firecrawl jina-reader linkup you ollama-cloud zai serper".split(" ")) {
  test(`${id}: request and answer equal the golden files`, async () => {
    const me = await machine(id);
    for (const [variant, more] of [
      ["", {}],
      ["_text", { format: "text" }],
      ["_html", { format: "html" }],
    ]) {
      up.clear();
      const want = JSON.parse(read(`${id}${variant}.golden.json`));
      // As in the golden files: what the vendors that have HTML give when asked for it.
      let body = read(`${id}.json`);
      if (variant) {
        body = body
          .replace(
            '"markdown":"# Tea\\n\\nBoil water.","metadata":{"title":"Tea guide","language"',
            '"html":"<h1>Tea</h1><p>Boil <b>water</b>.","metadata":{"title":"Tea guide","language"',
          )
          .replace('"html":null', '"html":"<h1>Tea</h1><p>Boil <b>water</b>."');
      }
      up.answer = () => ({ body });
      const got = await me.fetchPage({
        provider: id,
        url: "https://tea.example.com/guide",
        max_characters: 500,
        ...more,
      });
      assert.equal(got.status, 200, got.text);
      assert.equal(up.seen.length, 1);
      const [sent] = up.seen,
        url = new URL(want.URL);
      assert.deepEqual([sent.method, sent.host, sent.path], [want.Method, url.host, url.pathname + url.search]);
      for (const { Name, Value } of want.Header) assert.equal(sent.headers[Name], Value, Name);
      const known = new Set([
        ...want.Header.map((h) => h.Name),
        "host",
        "connection",
        "content-length",
        "transfer-encoding",
        "cf-worker",
      ]);
      assert.deepEqual(
        Object.keys(sent.headers).filter((h) => !known.has(h)),
        [],
      ); // nothing of the client's
      assert.deepEqual(sent.json, want.Body);
      got.body.metrics = want.Answer.metrics;
      assert.deepEqual(got.body, want.Answer);
      assert.equal(got.headers.get("x-weir-dropped"), want.Dropped?.join(",") ?? null);
    }
  });
}

test("a bad request is refused with the field's name, and nothing is called", async () => {
  const me = await machine("brave");
  for (const [body, param] of [
    ["{", null],
    ["[]", null],
    [{}, "url"],
    [{ url: 1 }, "url"],
    [{ url: " " }, "url"],
    [{ url: "/x" }, "url"],
    [{ url: "ftp://a.example.com/" }, "url"],
    [{ url: `https://a.example.com/${"a".repeat(9000)}` }, "url"],
    ['{"url":"https://a.example.com/","url":"https://b.example.com/"}', "url"],
    [{ url: "https://a.example.com/", format: "pdf" }, "format"],
    [{ url: "https://a.example.com/", max_characters: 0 }, "max_characters"],
    [{ url: "https://a.example.com/", model: "web", provider: "exa" }, "provider"],
    [{ url: "https://a.example.com/", provider: "unknown" }, "model"],
    [{ url: "https://a.example.com/", provider: "brave" }, "model"],
    [{ url: "https://a.example.com/", provider: "exa" }, "model"], // without the service; without an account
  ]) {
    const got = await me.fetchPage(body);
    assert.equal(got.status, 400, JSON.stringify(body).slice(0, 100));
    assert.equal(got.body.error.param, param, JSON.stringify(body).slice(0, 100));
  }
  assert.equal((await gw.fetch("/v1/web/fetch", { method: "POST", body: "{}" })).status, 401);
  assert.equal(up.seen.length, 0);
});

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
// a user.
function pageable(typed) {
  let url;
  try {
    url = new URL(typed);
  } catch {
    return false;
  }
  return /^https?:$/.test(url.protocol) && !url.username && !url.password && !url.port && isPublic(url.hostname);
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

test("chains of redirects are limited", async () => {
  const me = await machine();
  const chain = async (first, hops) => {
    up.clear();
    up.answer = (got) => {
      const to = hops(`http${got.host.startsWith("s.") ? "s" : ""}://${got.host}${got.path}`, got);
      return to ? moved(...[].concat(to)) : page("<p>end");
    };
    const got = await me.fetchPage({ url: first });
    return [got.status, up.seen.length, got.body.content?.text ?? got.body.error.code];
  };
  const at = (path) => `https://s.example.com${path}`;
  assert.deepEqual(await chain(at("/0"), (_, g) => (g.path === "/3" ? null : `/${+g.path.slice(1) + 1}`)), [
    200,
    4,
    "end",
  ]);
  assert.deepEqual(await chain(at("/0"), (_, g) => `/${+g.path.slice(1) + 1}`), [502, 6, "page_unavailable"]); // 20 hops and more end at 5
  assert.deepEqual(await chain(at("/loop"), () => "/loop"), [502, 6, "page_unavailable"]);
  assert.deepEqual(await chain(at("/a"), (_, g) => (g.path === "/a" ? "/b" : "/a")), [502, 6, "page_unavailable"]);
  assert.deepEqual(await chain(at("/"), (_, g) => (g.host === "s.example.com" ? "http://plain.example.com/" : null)), [
    200,
    2,
    "end",
  ]);
  for (const to of [
    `http://127.0.0.1:${canary.port}/`,
    "http://localhost/",
    "https://169.254.169.254/latest/meta-data/",
    "file:///etc/passwd",
    "data:text/html,x",
    "ftp://a.example.com/",
    "javascript:alert(1)",
    "https://u:p@a.example.com/",
    `${gw.url}/health`,
    "https://",
    "http://[",
    "",
  ]) {
    assert.deepEqual(
      await chain(at("/"), (_, g) => (g.path === "/" ? "/two" : [to, 307])),
      [502, 2, "page_unavailable"],
      to,
    );
  }
  for (const status of [301, 302, 303, 307, 308])
    assert.deepEqual(await chain(at("/"), (_, g) => (g.path === "/" ? ["/x", status] : null)), [200, 2, "end"]);
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

test("pages built to cost more than their size are read or refused in bounded memory", async () => {
  const me = await machine();
  const fill = (s, size = 1 << 20) => s.repeat(size / s.length);
  for (const [name, body] of [
    ["deep nesting", "<div>".repeat(100_000) + "x" + "</div>".repeat(100_000)],
    ["lists without an end", fill("<ul><li>x", 5 << 20)],
    ["a page of the largest size", fill("<p>a word or two</p>\n", 5 << 20)],
    ["tables in tables", fill("<table><tr><td>x")],
    ["inline elements without an end", fill("<b><i><a href=/>x")],
    ["one huge attribute", `<a href="${fill("a")}">x</a>`],
    ["many attributes", `<p ${fill("a=b ")}>x`],
    ["a comment without an end", `<p>x<!--${fill("-")}`],
    ["a script without an end", `<p>x<script>${fill("<!--<script>")}`],
    ["open brackets", fill("<")],
    ["character references", fill("&CounterClockwiseContourIntegral")],
    ["a long base", `<base href="https://a.example.com/${"b".repeat(2000)}/">${fill("<a href=c>x</a>")}`],
    ["a cut tag", "<p>x<a href='y"],
    ["nothing", ""],
    ["stray ends", fill("</li></div></td>")],
    ["no text", "\0\x01\x02\x7f".repeat(1000)],
  ]) {
    up.clear();
    up.answer = () => page(body);
    const got = await me.fetchPage({ url: "https://hostile.example.com/" });
    assert.equal(got.status, 200, `${name}: ${got.text.slice(0, 200)}`);
    assert.ok(got.text.length < 16 << 20, name);
  }
  const { memory } = await gw.stats();
  assert.ok(memory <= 64 << 20, `linear memory is at ${memory} bytes`);
});

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

test("files that are not pages and missing pages are errors", async () => {
  const me = await machine();
  for (const [answer, status, code] of [
    [{ status: 404, headers: {} }, 404, "page_not_found"],
    [{ status: 410, headers: {} }, 404, "page_not_found"],
    [{ status: 403, headers: {}, body: "secret wall" }, 502, "page_unavailable"],
    [{ status: 500, headers: {} }, 502, "page_unavailable"],
    [{ status: 304, headers: {} }, 502, "page_unavailable"],
    [{ headers: { "content-type": "application/pdf" }, body: "%PDF" }, 422, "unsupported_content"],
    [{ headers: { "content-type": "image/png" }, body: "x" }, 422, "unsupported_content"],
  ]) {
    up.answer = () => answer;
    const got = await me.fetchPage({ url: "https://a.example.com/" });
    assert.deepEqual([got.status, got.body.error.code], [status, code], got.text);
    assert.ok(!got.text.includes("secret wall"));
  }
  for (const [type, body, format] of [
    ["application/json", '{"a":"<b>"}', "text"],
    ["text/markdown", "# a", "markdown"],
    ["text/plain", "a <b>", "text"],
  ]) {
    up.answer = () => ({ headers: { "content-type": type }, body });
    assert.deepEqual((await me.fetchPage({ url: "https://a.example.com/" })).body.content, {
      format,
      text: body,
      length: body.length,
    });
  }
  up.answer = () => page("<title>t</title><p>Hello <b>you</b>");
  assert.deepEqual(
    (await me.fetchPage({ url: "https://a.example.com/", format: "text", max_characters: 7 })).body.content,
    { format: "text", text: "Hello y", length: 7 },
  );
  assert.equal(
    (await me.fetchPage({ url: "https://a.example.com/", format: "html" })).body.content.text,
    "<title>t</title><p>Hello <b>you</b>",
  );
});

test("combos fall back between providers and the gateway itself", async () => {
  for (const [name, models, vendor, site, want, calls] of [
    ["the first that can", ["exa/fetch", "web/fetch"], { body: { results: [{ text: "x" }] } }, page("<p>y"), "exa", 1],
    ["after a limit", ["exa/fetch", "web/fetch"], { status: 429 }, page("<p>y"), "web", 2],
    ["after a server error", ["exa", "builtin"], { status: 500 }, page("<p>y"), "web", 2],
    [
      "after a page that the provider cannot read",
      ["exa/fetch", "web/fetch"],
      { body: { results: [], statuses: [] } },
      page("<p>y"),
      "web",
      2,
    ],
    [
      "from the gateway to a provider",
      ["web/fetch", "exa/fetch"],
      { body: { results: [{ text: "x" }] } },
      { status: 403, headers: {} },
      "exa",
      2,
    ],
    ["not after a refused request", ["exa/fetch", "web/fetch"], { status: 400 }, page("<p>y"), 400, 1],
    ["members without an account are left out", ["tavily/fetch", "web"], {}, page("<p>y"), "web", 1],
    [
      "the page's own failure is what is told",
      ["exa/fetch", "web/fetch"],
      { status: 503 },
      { status: 404, headers: {} },
      404,
      2,
    ],
  ]) {
    const me = await machine("exa");
    await me.call("POST", "/api/combos", { name: "reader", kind: "webFetch", models });
    up.clear();
    up.answer = (got) => (got.host === "api.exa.ai" ? vendor : site);
    const got = await me.fetchPage({ model: "reader", url: "https://page.example.com/" });
    assert.equal(got.status === 200 ? got.body.provider : got.status, want, `${name}: ${got.text}`);
    assert.equal(up.seen.length, calls, name);
  }
});

test("a nested combo keeps the gateway's own fetch", async () => {
  const me = await machine("exa");
  await me.call("POST", "/api/combos", { name: "inner", kind: "webFetch", models: ["exa/fetch", "web"] });
  await me.call("POST", "/api/combos", { name: "outer", kind: "webFetch", models: ["tavily/fetch", "inner"] });
  await me.call("POST", "/api/combos", { name: "chats", models: ["openai/gpt-5", "outer"] });
  for (const model of ["inner", "outer", "chats"]) {
    up.clear();
    up.answer = (got) => (got.host === "api.exa.ai" ? { body: { results: [], statuses: [] } } : page("<p>y"));
    const got = await me.fetchPage({ model, url: "https://page.example.com/" });
    assert.deepEqual(
      [got.status, got.body.provider, up.seen.map((s) => s.host)],
      [200, "web", ["api.exa.ai", "page.example.com"]],
      got.text,
    );
  }
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
