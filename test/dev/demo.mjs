// The endpoints of the demo's provider beside chat, embeddings and model lists:
// a tone for speech, a picture, the length of a recording, moderation, rerank,
// and a search service of SearXNG's shape. All of it is made from the request
// alone.
import { createHash } from "node:crypto";
import { crc32, deflateSync } from "node:zlib";

const json = (value, status = 200) => ({
  status,
  headers: { "content-type": "application/json" },
  body: JSON.stringify(value),
});
const words = (text) =>
  new Set(
    String(text)
      .toLowerCase()
      .match(/[\p{L}\p{N}]+/gu) ?? [],
  );
const textOf = (x) => (typeof x === "string" ? x : (x?.text ?? ""));

// demo answers what the test upstream does not; it is its `script`.
export function demo(req) {
  const { pathname, searchParams } = new URL(req.path, "http://demo");
  const body = req.json ?? {},
    ends = (s) => pathname.endsWith(s);
  if (ends("/audio/speech")) return { headers: { "content-type": "audio/wav" }, body: tones(String(body.input)) };
  if (ends("/audio/transcriptions") || ends("/audio/translations"))
    return json({ text: `A recording of ${req.bytes} bytes, which the demo cannot hear.` });
  if (ends("/images/generations") || ends("/images/edits")) {
    const data = Array.from({ length: Math.min(Math.max(body.n ?? 1, 1), 4) }, (_, i) => ({
      b64_json: picture(`${i}${body.prompt}`).toString("base64"),
    }));
    return json({ created: Math.floor(Date.now() / 1000), data });
  }
  if (ends("/moderations"))
    return json({
      id: "modr-demo",
      model: body.model,
      results: [].concat(body.input).map(() => ({ flagged: false, categories: {}, category_scores: {} })),
    });
  if (ends("/rerank")) return json({ model: body.model, results: ranked(body) });
  if (pathname === "/search") return json(found(searchParams.get("q") ?? ""));
  return null;
}

// tones is a WAV file of a short tone for each word of a text.
function tones(text) {
  const rate = 16_000,
    each = rate * 0.14,
    list = [...words(text)].slice(0, 60);
  const pcm = Buffer.alloc(2 * each * Math.max(list.length, 1));
  list.forEach((word, i) => {
    const hz = 220 * 2 ** ((createHash("sha256").update(word).digest()[0] % 18) / 12);
    for (let t = 0; t < each; t++) {
      const fade = Math.min(t, each - t) / (each / 2);
      pcm.writeInt16LE(Math.round(9000 * fade * Math.sin((2 * Math.PI * hz * t) / rate)), 2 * (i * each + t));
    }
  });
  const head = Buffer.alloc(44);
  head.write("RIFF", 0);
  head.writeUInt32LE(36 + pcm.length, 4);
  head.write("WAVEfmt ", 8);
  head.writeUInt32LE(16, 16);
  head.writeUInt16LE(1, 20);
  head.writeUInt16LE(1, 22);
  head.writeUInt32LE(rate, 24);
  head.writeUInt32LE(2 * rate, 28);
  head.writeUInt16LE(2, 32);
  head.writeUInt16LE(16, 34);
  head.write("data", 36);
  head.writeUInt32LE(pcm.length, 40);
  return Buffer.concat([head, pcm]);
}

// picture is a PNG of waves in the colours of a prompt.
function picture(prompt) {
  const size = 256,
    h = createHash("sha256").update(prompt).digest();
  const rows = Buffer.alloc(size * (1 + 3 * size));
  for (let y = 0; y < size; y++) {
    for (let x = 0; x < size; x++) {
      for (let c = 0; c < 3; c++) {
        const wave =
          Math.sin((x * (1 + (h[c] & 7))) / 60 + h[c + 3]) + Math.cos((y * (1 + (h[c + 6] & 7))) / 60 + h[c + 9]);
        rows[y * (1 + 3 * size) + 1 + 3 * x + c] = 128 + 60 * wave;
      }
    }
  }
  const chunk = (name, data) => {
    const out = Buffer.alloc(12 + data.length);
    out.writeUInt32BE(data.length, 0);
    out.write(name, 4);
    data.copy(out, 8);
    out.writeUInt32BE(crc32(out.subarray(4, 8 + data.length)), 8 + data.length);
    return out;
  };
  const head = Buffer.from([0, 0, 0, 0, 0, 0, 0, 0, 8, 2, 0, 0, 0]);
  head.writeUInt32BE(size, 0);
  head.writeUInt32BE(size, 4);
  return Buffer.concat([
    Buffer.from("\x89PNG\r\n\x1a\n", "latin1"),
    chunk("IHDR", head),
    chunk("IDAT", deflateSync(rows)),
    chunk("IEND", Buffer.alloc(0)),
  ]);
}

// ranked orders documents by the share of the query's words that they have.
function ranked({ query, documents = [], top_n: most = documents.length }) {
  const asked = words(query);
  return documents
    .map((d, index) => ({
      index,
      relevance_score: [...words(textOf(d))].filter((w) => asked.has(w)).length / Math.max(asked.size, 1),
    }))
    .sort((a, b) => b.relevance_score - a.relevance_score)
    .slice(0, most);
}

const found = (q) => ({
  query: q,
  number_of_results: 3,
  results: ["What it is", "How it works", "Where to read more"].map((title, i) => ({
    title: `${title}: ${q}`,
    url: `https://example.com/${i + 1}?about=${encodeURIComponent(q)}`,
    content: `The demo's search made this up for "${q}".`,
    score: 1 - i / 4,
    engine: "demo",
  })),
});
