// Spellings of URLs: those of the tests of this repository, those that parsers are
// known to disagree on, and generated ones. The list is the same in every run.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

const literal = /"(?:[^"\\\n]|\\.)*"/g;

// literals returns the string literals of a source that JSON can read.
function literals(text) {
  const list = [];
  for (const [quoted] of text.matchAll(literal)) {
    try {
      list.push(JSON.parse(quoted));
    } catch {
      /* an escape of another language */
    }
  }
  return list;
}

// written returns what tests of the repository use: the table of base addresses,
// the hosts of POST /v1/web/fetch, and every address in a Go test of those packages.
function written(root) {
  const read = (path) => readFileSync(join(root, path), "utf8");
  const list = [];
  for (const line of read("pkg/provider/testdata/hosts.txt").split("\n"))
    if (line.startsWith('"')) list.push(literals(line)[0]);
  for (const dir of ["pkg/provider", "pkg/v1/web", "pkg/endpoint", "pkg/api", "pkg/credentials/oauth", "pkg/gateway"])
    for (const f of readdirSync(join(root, dir)).filter((f) => f.endsWith("_test.go")))
      list.push(...literals(read(join(dir, f))).filter((s) => s.includes("://")));
  for (const f of ["endpoints/webfetch", "security/outgoing", "security/upstream", "security/input"]) {
    const all = literals(read(`test/e2e/${f}.test.mjs`));
    list.push(...all.filter((s) => s.includes(":")));
    list.push(...all.filter((s) => /^[^\s/]{1,64}$/.test(s)).map((s) => `http://${s}/`));
  }
  return list;
}

const hosts = [
  ...[
    "a.example",
    "A.EXAMPLE",
    "a.example.",
    "a.example..",
    ".a.example",
    "a..example",
    ".",
    "..",
    "",
    "a",
    "a b.example",
  ],
  ...[
    "a_b.example",
    "-a.example",
    "a-.example",
    "ab--cd.example",
    "*.example",
    "a.example%",
    "a.example%2",
    "%61.example",
  ],
  ...["a%2eexample", "a%2Eexample", "a%00.example", "a%20.example", "a%2f.example", "a%5c.example", "a%3a80", "a%40b"],
  ...[
    "%ff.example",
    "%c3%bc.example",
    "%C3%9F.example",
    "%e3%80%82",
    "a%e3%80%82example",
    "%EF%BC%8E",
    "a%ef%bc%8eexample",
  ],
  ...[
    "a<b",
    "a>b",
    "a^b",
    "a|b",
    "a{b}",
    "a`b",
    'a"b',
    "a'b",
    "a!b",
    "a$b",
    "a&b",
    "a(b)",
    "a;b",
    "a,b",
    "a=b",
    "a+b",
    "a~b",
  ],
  // IPv4 in every notation
  ...[
    "127.0.0.1",
    "127.1",
    "127.0.1",
    "127",
    "2130706433",
    "0x7f000001",
    "0x7f.1",
    "0X7F.1",
    "0177.0.0.1",
    "017700000001",
  ],
  ...[
    "00000177.0.0.1",
    "0x00000007f.1",
    "0x",
    "0x.0x.0x.0x",
    "0x.1",
    "1.0x",
    "0",
    "00",
    "0.0.0.0",
    "0.0.0.0.",
    "0.0.0.0..",
    "1..2",
  ],
  ...[
    "256.0.0.1",
    "1.256.0.1",
    "1.2.3.256",
    "1.2.65536",
    "1.2.65535",
    "1.16777216",
    "1.16777215",
    "4294967295",
    "4294967296",
  ],
  ...[
    "0xffffffff",
    "0x100000000",
    "0xffffffffffffffffffff",
    "99999999999999999999",
    "037777777777",
    "040000000000",
    "1.2.3.4.5",
  ],
  ...[
    "08",
    "09.0.0.1",
    "1.2.3.08",
    "1.2.3.0x",
    "1.2.3.0xg",
    "a.0x",
    "a.1",
    "a.0x1",
    "a.09",
    "a.1a",
    "a.0b1",
    "1.2.3.4a",
    "a.1.",
    "1.2.3.a",
  ],
  ...[
    "1e3",
    "1_0",
    "+1",
    "-1",
    "1.-1",
    ...[
      "1.-1.1",
      "-1.1",
      "+1.1",
      "1.+2.3.4",
      "0x-1",
      "0x+1",
      "0x_1",
      "0-1",
      "0x1.-0x1",
      "1.0x-1.1",
      "a.+1",
      "a.-0x1",
      "-0",
      "1.2.3.+4.",
    ],
    "%31%32%37.0.0.1",
    "127.0.0.1%2e",
    "127%2e1",
    "①②⑦.⓪.⓪.①",
    "１２７.0.0.1",
    "127。0。0。1",
    "127．1",
  ],
  ...[
    "127｡1",
    "0ｘ7f.1",
    "０x7f.1",
    "𝟏𝟐𝟕.1",
    "169.254.169.254",
    "0xa9fea9fe",
    "2852039166",
    "0251.0376.0251.0376",
    "010.0.0.1",
    "0x0a.1",
  ],
  // IPv6
  ...[
    "[::]",
    "[::1]",
    "[0:0:0:0:0:0:0:1]",
    "[0000::0001]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[::FFFF:127.0.0.1]",
    "[::127.0.0.1]",
  ],
  ...[
    "[1:2:3:4:5:6:7:8]",
    "[1:2:3:4:5:6:7::]",
    "[::2:3:4:5:6:7:8]",
    "[1::8]",
    "[1:0:0:4:0:0:0:8]",
    "[1:0:0:0:5:0:0:8]",
    "[1:0:3:0:5:0:7:0]",
  ],
  ...[
    "[0:0:3:0:0:0:7:8]",
    "[2001:db8::1]",
    "[2001:DB8::1]",
    "[64:ff9b::7f00:1]",
    "[64:ff9b::127.0.0.1]",
    "[2002:7f00:1::]",
    "[fe80::1]",
  ],
  ...[
    "[fe80::1%25eth0]",
    "[fe80::1%eth0]",
    "[fc00::1]",
    "[fd00:ec2::254]",
    "[2606:4700:4700::1111]",
    "[1:2:3:4:5:6:7:8:9]",
    "[1:2:3]",
    "[1::2::3]",
  ],
  ...[
    "[:1]",
    "[1:]",
    "[:::]",
    "[::1",
    "::1]",
    "[]",
    "[",
    "]",
    "[::1]]",
    "[[::1]]",
    "[[::1]",
    "[::g]",
    "[12345::]",
    "[::1.2.3]",
    "[::1.2.3.4.5]",
  ],
  ...[
    "[::1.2.3.256]",
    "[::01.2.3.4]",
    "[::1.2.3.04]",
    "[1.2.3.4]",
    "[::1.2.3.4:1]",
    "[1:2:3:4:5:6:7:1.2.3.4]",
    "[1:2:3:4:5:6:1.2.3.4]",
    "[v1.x]",
  ],
  ...[
    "[::１]",
    "[%3a%3a1]",
    "[::1%5d",
    "x[::1]",
    "[::1]x",
    "[::1].",
    "[::.1.2.3]",
    "[::1..2.3]",
    "[::1.2.3.]",
    "[ ::1]",
  ],
  // IDNA
  ...[
    "bücher.example",
    "BÜCHER.example",
    "faß.example",
    "FAß.example",
    "FAẞ.example",
    "ẞ.example",
    "xn--fa-hia.example",
    "xn--bcher-kva.example",
    "XN--BCHER-KVA.example",
  ],
  ...[
    "xn--.example",
    "xn---.example",
    "xn--a.example",
    "xn--a-.example",
    "xn--ascii-.example",
    "xn--zzzzzzzz.example",
    "xn--ls8h.example",
    "💩.example",
  ],
  ...[
    "xn--bücher.example",
    "bücher.xn--bcher-kva",
    "ａ.example",
    "ａｐｉ.example",
    "a。example",
    "a．example",
    "a｡example",
    "a\u00adb.example",
    "\u00ad",
    "\u00ad.example",
  ],
  ...[
    "a\u200bb.example",
    "a\u200cb.example",
    "a\u200db.example",
    "क्\u200dष.example",
    "a\u2060b.example",
    "a\ufeffb.example",
    "\ufeffa.example",
  ],
  ...[
    "≠.example",
    "a≮b.example",
    "\u2260",
    "a\u0338=.example",
    "℡.example",
    "㍿.example",
    "Ⅷ.example",
    "ﬁ.example",
    "\u2024.example",
    "a\u2024b",
    "a…b",
  ],
  ...[
    "א.example",
    "1א.example",
    "א1.example",
    "א.1",
    "aא.example",
    "\u0640.example",
    "۰.example",
    "٠.example",
    "०.example",
    "ς.example",
    "Σ.example",
  ],
  ...[
    "İ.example",
    "I\u0307.example",
    "ı.example",
    "K.example",
    "Å.example",
    "\u0300a.example",
    "e\u0301.example",
    "é.example",
    "\ud7a4.example",
  ],
  ...[
    "\ue000.example",
    "\u{e0001}.example",
    "\u{10ffff}.example",
    "\ufffd.example",
    "\ufdd0.example",
    "\u2f868.example",
    "\u3000.example",
    "a\u3000b",
  ],
  ...[
    "a\u00a0b.example",
    "ⓛⓞⓒⓐⓛⓗⓞⓢⓣ",
    "localhoſt",
    "ｌocalhost",
    "LOCALHOST",
    "metadata。google。internal",
    "%6d%65%74%61data",
    "loc\tal\nhost",
  ],
  ...[
    "x".repeat(63) + ".example",
    "x".repeat(64) + ".example",
    "x".repeat(300),
    Array(60).fill("abc").join("."),
    "ü".repeat(70) + ".example",
  ],
];

const ports = [
  "",
  ":",
  ":443",
  ":80",
  ":0",
  ":1",
  ":00443",
  ":65535",
  ":65536",
  ":99999999999",
  ":8a",
  ":-1",
  ":+1",
  ": 80",
  ":80 ",
  ":８0",
  ":443:443",
  ":%38",
];
const users = [
  "u@",
  "u:p@",
  ":@",
  "@",
  ":p@",
  "u:p:q@",
  "u@v@",
  "a.example@",
  "a:80@",
  "u%40v@",
  "ü:ß@",
  "u|v^w:{}@",
  "u;v=w:'@",
  "@@",
  "[u]@",
  "%zz@",
  "\\@",
  "u\\@",
  "?@",
  "#@",
];
const paths = [
  ...[
    "",
    "/",
    "//",
    "///",
    "/.",
    "/..",
    "/./",
    "/../",
    "/../..",
    "/a/..",
    "/a/../b",
    "/a/./b",
    "/a/b/../../../c",
    "/a//../b",
    "//..",
    "//../a",
    "/..//a",
  ],
  ...[
    "/%2e",
    "/%2E",
    "/%2e%2e",
    "/%2E.",
    "/.%2e/a",
    "/a/%2e%2e/b",
    "/a/%2e/b",
    "/a/..%2f",
    "/..%5c",
    "/%252e",
    "/a/...",
    "/a/.b",
    "/..a",
    "/a..",
  ],
  ...[
    "\\",
    "\\a",
    "/\\a",
    "\\\\a",
    "/a\\..\\b",
    "/a\\",
    "/a%5cb",
    "/a%2fb",
    "/a;b=c",
    "/a:b",
    "/a@b",
    "/a,b",
    "/a+b",
    "/a&b",
    "/a=b",
    "/a!$'()*~b",
  ],
  ...[
    "/a b",
    "/ a",
    "/a ",
    "/a\tb",
    "/a\nb",
    "/a\r\nb",
    "/a\u0000b",
    "/a\u0001b",
    "/a\u007fb",
    "/a\u0080b",
    "/ü",
    "/日本",
    "/😀",
    "/\u2028",
    "/\ufeff",
  ],
  ...[
    '/a"b',
    "/a<b>",
    "/a`b",
    "/a{b}",
    "/a|b",
    "/a^b",
    "/a[b]",
    "/%",
    "/%a",
    "/%zz",
    "/%C3%BC",
    "/%c3%bc",
    "/%00",
    "/%ff",
    "/%41",
    "/%7E",
    "/a%",
    "/cdn-cgi/x",
  ],
  ...[
    "?",
    "?a",
    "/?",
    "/?a=b&c",
    "?a?b",
    "/?a#b",
    "/#",
    "#",
    "/#a#b",
    "?#",
    "/?%zz",
    "/? ",
    '/?"<>',
    "/?'",
    "/?`{}|^[]\\",
    "/?ü",
    "/?\u0000",
    "/?a\tb",
    '/#"<>`{}|^',
    "/#ü",
    "/# ",
    "/?a b",
    "/.?a",
    "/..#b",
    "/%2e?a",
    "?/../x",
  ],
];
const starts = [
  ...[
    "https://",
    "http://",
    "HTTPS://",
    "hTTp://",
    "https:",
    "https:/",
    "https:\\\\",
    "https:/\\",
    "https:///",
    "https:////",
    "http:\\/\\/",
    "ht\ttps://",
    "\nhttps://",
  ],
  ...[
    " https://",
    "\u0000https://",
    "\u001fhttps://",
    "\u00a0https://",
    "\ufeffhttps://",
    "https ://",
    "https//",
    "https;//",
    "//",
    "",
    "/",
    "\\\\",
    "ws://",
    "wss://",
  ],
  ...[
    "ftp://",
    "file://",
    "file:",
    "file:///",
    "javascript:",
    "data:",
    "mailto:",
    "about:",
    "blob:https://",
    "x://",
    "x:",
    "x:/",
    "x:///",
    "x-y+z.1://",
    "1x://",
    "-x://",
    "é://",
    "httpS\u200b://",
    "https:\u200b//",
    "ftp:",
    "gopher://",
    "view-source:https://",
  ],
];
const opaque = [
  "x:a b",
  "x:a ",
  "x: a",
  "x:a  ?b",
  "x:a  #b",
  "x:/..",
  "x:/../a",
  "x:a/../b",
  "x:/a/../b",
  "x://a/../b",
  "x:/.//b",
  "x:/..//b",
  "x://A.Example/",
  "x://a%2eb/",
  "x://[::1]/",
  "x://[::01]/",
]
  .concat([
    "x://a b/",
    "x://a<b/",
    "x://a:80/",
    "x://a:/",
    "x://:80/",
    "x://u@/",
    "x://u@a/",
    "x://",
    "x:///",
    "x:////a",
    "x:",
    "x:?",
    "x:#",
    "x:\\a",
    "x://a\\b",
    "x://ü/",
    "x:ü",
    "x:/ü",
    "x:'\"<>`{}|^",
    "x:/'\"<>`{}|^",
  ])
  .concat([
    "file:///C:/a",
    "file:///C|/a",
    "file:c:\\a\\b",
    "file:///C:/..",
    "file:///C:/../..",
    "file://C:/a",
    "file://C|/a",
    "file:/C|",
    "file://localhost/a",
    "file://LOCALHOST/",
    "file://a/b",
    "file://a/C:/b",
  ])
  .concat([
    "file:",
    "file:/",
    "file://",
    "file:?a",
    "file:#a",
    "file:////a",
    "file:\\\\a\\b",
    "file://[::1]/",
    "file://%2e/",
    "file://a:80/",
    "file://u@a/",
    "file:///%43:/",
    "file:///a/../C|/..",
    "blob:",
    "data:,a b#c d",
    "data:text/plain;base64,==",
  ]);
// Bytes that are no UTF-8: text of the host is read with TextDecoder.
const bytes = [
  "\xff",
  "\xc3",
  "\xe2\x82",
  "\xf0\x9f\x98",
  "\xed\xa0\x80",
  "\xed\xbf\xbf",
  "\xc0\xaf",
  "\xf4\x90\x80\x80",
  "\xf8\x88\x80\x80\x80",
  "\xe2\x28\xa1",
  "\xf0\x28\x8c\xbc",
  "\xef\xbb\xbf",
  "\xfe\xff",
  "a\xffb\xffc",
  "\x80\x80",
];

// random returns a generator of numbers below n that starts the same every time.
function random(seed) {
  let x = seed;
  return (n) => {
    x = (Math.imul(x, 1664525) + 1013904223) >>> 0;
    return Math.floor((x / 2 ** 32) * n);
  };
}

const odd = [
  ..."%/\\?#@:[]. \t\n|^{}<>`'\"0127xXaAfFzZ-_~!$&()*+,;=é。．％／＠：１ｘß\u0000\u007f\u00a0\u00ad\u200d\u2028\ufeff😀",
].concat([
  "%2e",
  "%2F",
  "%5c",
  "%40",
  "%3a",
  "%00",
  "%C3%BC",
  "%ff",
  "xn--",
  "0x",
  "..",
  "//",
  "://",
  "::",
  "[::1]",
  "127.",
  ".1",
  "@b.example",
  ":443",
]);

// changed returns texts with parts replaced, inserted, removed and exchanged.
function changed(texts, n) {
  const below = random(20261122);
  const list = [];
  while (list.length < n) {
    const text = [...texts[below(texts.length)]];
    if (text.length > 200) continue;
    for (let i = 1 + below(3); i > 0; i--) {
      const at = below(text.length + 1);
      text.splice(at, below(3) === 0 ? 1 : 0, below(4) === 0 ? "" : odd[below(odd.length)]);
      if (below(5) === 0) text.splice(below(text.length + 1), 0, ...[...texts[below(texts.length)]].slice(0, 12));
    }
    list.push(text.join(""));
  }
  return list;
}

// spellings returns all of them as bytes, each once.
export function spellings(root) {
  const list = [...written(root), ...opaque];
  for (const h of hosts)
    list.push(`https://${h}/`, `http://${h}`, `https:\\\\${h}:8443\\v1`, `x://${h}/`, `https://u@${h}/v1`);
  for (const p of ports)
    for (const h of ["a.example", "127.1", "[::1]", ""]) list.push(`https://${h}${p}/`, `http://${h}${p}`);
  for (const u of users)
    for (const h of ["a.example", "127.0.0.1", ""])
      list.push(`https://${u}${h}/v1`, `http://a.example${u}${h}`, `x://${u}${h}`);
  for (const p of paths) list.push(`https://a.example${p}`, `http://127.0.0.1:8080/v1${p}`, `x://a${p}`, `x:a${p}`);
  for (const s of starts) list.push(`${s}a.example/v1`, `${s}a.example`, `${s}127.1:80/x`, s);
  for (let c = 0; c < 0x180; c++) {
    const s = String.fromCodePoint(c);
    list.push(`https://a${s}b.example/`, `https://a.example/${s}?${s}#${s}`);
    if (c < 0x80)
      list.push(
        `https://u${s}v:p${s}q@a.example/`,
        `https://a.example:4${s}43/`,
        `x://a${s}b/${s}?${s}#${s}`,
        `x:a${s}b`,
        `ht${s}tp://a.example/`,
      );
  }
  list.push(
    ...changed(
      list.filter((s) => /^\s*(https?|x):/i.test(s)),
      2500,
    ),
  );
  const raw = list.filter((s) => typeof s === "string" && s.isWellFormed()).map((s) => Buffer.from(s));
  for (const b of bytes)
    for (const s of [
      `https://a${b}b.example/`,
      `https://a.example/${b}`,
      `https://a.example/?${b}`,
      `https://a.example/#${b}x`,
      `${b}https://a.example/`,
      `x:${b}`,
      `https://${b}@a.example/`,
    ])
      raw.push(Buffer.from(s, "latin1"));
  return [...new Map(raw.map((b) => [b.toString("latin1"), b])).values()];
}
