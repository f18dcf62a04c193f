// Animated PNGs (PNG, third edition, 11.3.6), made of pictures of the same size and colour type.
import { crc32 } from "node:zlib";

const signature = Buffer.from([137, 80, 78, 71, 13, 10, 26, 10]);

// chunksOf returns the chunks of a PNG: [type, data].
export function chunksOf(png) {
  const chunks = [];
  for (let at = signature.length; at < png.length; ) {
    const size = png.readUInt32BE(at);
    chunks.push([png.toString("latin1", at + 4, at + 8), png.subarray(at + 8, at + 8 + size)]);
    at += size + 12;
  }
  return chunks;
}

const numbers = (...values) => {
  const out = Buffer.alloc(4 * values.length);
  values.forEach((n, i) => void out.writeUInt32BE(n, 4 * i));
  return out;
};

function chunk(type, data) {
  const body = Buffer.concat([Buffer.from(type, "latin1"), data]);
  return Buffer.concat([numbers(data.length), body, numbers(crc32(body))]);
}

// animated returns the animation of [png, ms] frames, which is repeated for ever.
export function animated(frames) {
  const header = chunksOf(frames[0][0])[0][1],
    size = header.subarray(0, 8);
  let sequence = 0;
  const out = [signature, chunk("IHDR", header), chunk("acTL", numbers(frames.length, 0))];
  frames.forEach(([png, ms], i) => {
    const chunks = chunksOf(png);
    if (!chunks[0][1].equals(header)) throw new Error(`frame ${i} has another size or colour type`);
    const delay = Buffer.alloc(6); // numerator, denominator, and two bytes of how it replaces the frame before
    delay.writeUInt16BE(ms, 0);
    delay.writeUInt16BE(1000, 2);
    out.push(chunk("fcTL", Buffer.concat([numbers(sequence++), size, numbers(0, 0), delay])));
    for (const [, data] of chunks.filter(([type]) => type === "IDAT"))
      out.push(i ? chunk("fdAT", Buffer.concat([numbers(sequence++), data])) : chunk("IDAT", data));
  });
  return Buffer.concat([...out, chunk("IEND", Buffer.alloc(0))]);
}
