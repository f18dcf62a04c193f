// Golden files have what workerd makes of URLs, targets of requests, encodings and keys.
// The Go code that does the same is tested with them. GOLDEN=update writes what changed; a
// new row begins with its input alone.
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { Miniflare, convertV4MiniflareOptions } from "miniflare";
import { root } from "../../bench/workerd.mjs";
import { only } from "../platforms.mjs";

const { after, before, test } = only("workerd", "bridge");

// The worker reads texts as worker/js/bridge.mjs does.
const script = `
const bytes = (hex) => Uint8Array.from(hex.match(/../g) ?? [], (b) => parseInt(b, 16));
const hex = (b) => [...new Uint8Array(b)].map((x) => x.toString(16).padStart(2, "0")).join("");
const algorithm = { name: "RSASSA-PKCS1-v1_5", hash: "SHA-256" };
const tasks = {
  href: (raw) => new URL(new TextDecoder().decode(bytes(raw))).href,
  decode: (label, raw) => new TextDecoder(label).decode(bytes(raw)),
  sign: async (key, data) => {
    const k = await crypto.subtle.importKey("pkcs8", bytes(key), algorithm, false, ["sign"]);
    return hex(await crypto.subtle.sign(algorithm, k, bytes(data)));
  },
};
const answer = async (task, input) => {
  try { return await tasks[task](...input); } catch { return null; }
};
export default {
  async fetch(request) {
    if (request.method !== "POST") return new Response(request.url);
    const [task, list] = await request.json();
    return Response.json(await Promise.all(list.map((input) => answer(task, input))));
  },
};`;

let mf, url;
before(async () => {
  const wrangler = readFileSync(join(root, "wrangler.toml"), "utf8");
  mf = new Miniflare(
    convertV4MiniflareOptions({
      workers: [
        {
          name: "platform",
          modulesRoot: root,
          modules: [{ type: "ESModule", path: join(root, "platform.mjs"), contents: script }],
          compatibilityDate: /^compatibility_date = "(.+)"$/m.exec(wrangler)[1],
          unsafeDirectSockets: [{ host: "127.0.0.1", port: 0 }],
        },
      ],
    }),
  );
  await mf.ready;
  url = await mf.unsafeGetDirectURL("platform");
});
after(() => mf.dispose());

async function ask(task, list) {
  const res = await fetch(url, { method: "POST", body: JSON.stringify([task, list]) });
  assert.equal(res.status, 200, task);
  return res.json();
}

// bytes reads what a row has as a JSON string, or as {"hex"} if it is not UTF-8.
const bytes = (v) => (typeof v === "string" ? Buffer.from(v) : Buffer.from(v.hex, "hex"));
const hex = (v) => bytes(v).toString("hex");

// compare asks for the last column of each row of a golden file.
async function compare(path, inputs, outputs) {
  const file = join(root, path);
  const rows = readFileSync(file, "utf8")
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));
  const now = await outputs(rows);
  if (process.env.GOLDEN === "update") {
    const lines = rows.map((row, i) => JSON.stringify([...row.slice(0, inputs), now[i]]));
    writeFileSync(file, lines.join("\n") + "\n");
    return;
  }
  const other = rows.map((row, i) => [...row, now[i]]).filter((row) => row[inputs] !== row[inputs + 1]);
  assert.deepEqual(other.slice(0, 5), [], `${other.length} rows of ${path} differ`);
}

test("URLs are read as the golden file says", () =>
  compare("pkg/wire/weburl/testdata/urls.jsonl", 1, (rows) =>
    ask(
      "href",
      rows.map(([raw]) => [hex(raw)]),
    ),
  ));

test("the hosts of the policy are read as its table says", async () => {
  const lines = readFileSync(join(root, "pkg/provider/testdata/hosts.txt"), "utf8").split("\n");
  const rows = lines.filter((line) => line.startsWith('"')).map((line) => /^("(?:[^"\\]|\\.)*")\|([^|]*)/.exec(line));
  const now = await ask(
    "href",
    rows.map(([, raw]) => [hex(JSON.parse(raw))]),
  );
  assert.ok(rows.length > 100);
  assert.deepEqual(
    now.map((href) => href ?? "-"),
    rows.map(([, , href]) => href),
  );
});

// targetOf sends a request with a target of any bytes and returns what workerd
// makes of it, without the origin; null for a refusal.
function targetOf(target) {
  return new Promise((resolve, reject) => {
    const socket = connect(+url.port, url.hostname);
    const parts = [];
    socket.on("error", reject);
    socket.on("data", (d) => parts.push(d));
    socket.on("end", () => {
      const [head, body] = Buffer.concat(parts).toString().split("\r\n\r\n");
      resolve(/^HTTP\/1.1 200/.test(head) ? body.replace("http://weir.example", "") : null);
    });
    const fields = "host: weir.example\r\nconnection: close";
    socket.write(Buffer.concat([Buffer.from("GET "), target, Buffer.from(` HTTP/1.1\r\n${fields}\r\n\r\n`)]));
  });
}

test("targets of requests are read as the golden file says", () =>
  compare("server/host/testdata/targets.jsonl", 1, async (rows) => {
    const list = [];
    for (const [raw] of rows) list.push(await targetOf(bytes(raw)));
    return list;
  }));

test("encodings are decoded as the golden file says", () =>
  compare("server/host/testdata/decodings.jsonl", 2, (rows) =>
    ask(
      "decode",
      rows.map((row) => row.slice(0, 2)),
    ),
  ));

test("signatures are those of the golden file", () =>
  compare("server/host/testdata/signed.jsonl", 2, (rows) =>
    ask(
      "sign",
      rows.map((row) => row.slice(0, 2)),
    ),
  ));
