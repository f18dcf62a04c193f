// Writes the golden files of server/webapi: what workerd's URL, TextDecoder
// and WebCrypto return, and how it splits the target of a request.
//
//	node test/webapi/golden.mjs
//
// The worker has the compatibility date of wrangler.toml, and reads texts as
// worker/js/bridge.mjs does.
import { generateKeyPairSync } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Miniflare, convertV4MiniflareOptions } from "miniflare";
import { decodings, targets } from "./texts.mjs";
import { spellings } from "./spellings.mjs";

const root = fileURLToPath(new URL("../../", import.meta.url));
const out = join(root, "server/webapi/testdata");
const compatibilityDate = /^compatibility_date = "(.+)"$/m.exec(readFileSync(join(root, "wrangler.toml"), "utf8"))[1];

const script = `
const bytes = (hex) => Uint8Array.from(hex.match(/../g) ?? [], (b) => parseInt(b, 16));
const hex = (b) => [...new Uint8Array(b)].map((x) => x.toString(16).padStart(2, "0")).join("");
const decoder = new TextDecoder();
const tasks = {
  urls: (list) => list.map((raw) => {
    try { return new URL(decoder.decode(bytes(raw))).href; } catch { return null; }
  }),
  decodings: (list) => list.map(([label, raw]) => {
    try { return new TextDecoder(label).decode(bytes(raw)); } catch { return null; }
  }),
  signed: (list) => Promise.all(list.map(async ([key, data]) => {
    const algorithm = { name: "RSASSA-PKCS1-v1_5", hash: "SHA-256" };
    try {
      const k = await crypto.subtle.importKey("pkcs8", bytes(key), algorithm, false, ["sign"]);
      return hex(await crypto.subtle.sign(algorithm, k, bytes(data)));
    } catch { return null; }
  })),
};
export default {
  async fetch(request) {
    if (request.method !== "POST") return new Response(request.url);
    const [task, list] = await request.json();
    return Response.json(await tasks[task](list));
  },
};`;

const mf = new Miniflare(
  convertV4MiniflareOptions({
    workers: [
      {
        name: "platform",
        modulesRoot: root,
        modules: [{ type: "ESModule", path: join(root, "platform.mjs"), contents: script }],
        compatibilityDate,
        unsafeDirectSockets: [{ host: "127.0.0.1", port: 0 }],
      },
    ],
  }),
);
await mf.ready;
const url = await mf.unsafeGetDirectURL("platform");

async function ask(task, list) {
  const res = await fetch(url, { method: "POST", body: JSON.stringify([task, list]) });
  if (!res.ok) throw new Error(`${task}: ${await res.text()}`);
  return res.json();
}

// targetOf sends a request with a target of any bytes and returns what workerd
// makes of it, without the origin; null for a refusal.
function targetOf(target) {
  return new Promise((resolve, reject) => {
    const socket = connect(+url.port, url.hostname);
    const parts = [];
    socket.on("error", reject);
    socket.on("data", (d) => parts.push(d));
    socket.on("end", () => {
      const text = Buffer.concat(parts).toString();
      const [head, body] = text.split("\r\n\r\n");
      resolve(/^HTTP\/1.1 200/.test(head) ? body.replace("http://weir.example", "") : null);
    });
    socket.write(
      Buffer.concat([
        Buffer.from("GET "),
        target,
        Buffer.from(" HTTP/1.1\r\nhost: weir.example\r\nconnection: close\r\n\r\n"),
      ]),
    );
  });
}

const hex = (v) => Buffer.from(v).toString("hex");
// row writes bytes as a JSON string, or as {"hex"} if they are not UTF-8.
const row = (raw, ...rest) => {
  const text = raw.toString();
  return JSON.stringify([Buffer.from(text).equals(raw) ? text : { hex: hex(raw) }, ...rest]);
};
const write = (name, rows) => writeFileSync(join(out, name), rows.join("\n") + "\n");

const urls = spellings(root);
const hrefs = await ask("urls", urls.map(hex));
write(
  "urls.jsonl",
  urls.map((u, i) => row(u, hrefs[i])),
);

const sent = [];
for (const t of targets) sent.push(row(t, await targetOf(t)));
write("targets.jsonl", sent);

const decoded = await ask(
  "decodings",
  decodings.map(([label, raw]) => [label, hex(raw)]),
);
write(
  "decodings.jsonl",
  decodings.map(([label, raw], i) => JSON.stringify([label, hex(raw), decoded[i]])),
);

const pkcs8 = (type, options) =>
  hex(generateKeyPairSync(type, { ...options, privateKeyEncoding: { type: "pkcs8", format: "der" } }).privateKey);
const rsa = pkcs8("rsa", { modulusLength: 2048 });
const signing = [
  [rsa, ""],
  [rsa, hex("header.claims")],
  [rsa.slice(0, -20), hex("a")],
  [pkcs8("ec", { namedCurve: "P-256" }), hex("a")],
  ["", hex("a")],
];
const signatures = await ask("signed", signing);
write(
  "signed.jsonl",
  signing.map((s, i) => JSON.stringify([...s, signatures[i]])),
);

console.log(`${urls.length} URLs, ${targets.length} targets, ${decodings.length} decodings`);
await mf.dispose();
