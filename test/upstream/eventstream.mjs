// Writes application/vnd.amazon.eventstream messages.
import { crc32 } from "node:zlib";

const u32 = (n) => {
  const b = Buffer.alloc(4);
  b.writeUInt32BE(n >>> 0);
  return b;
};

// message frames a payload; headers are strings.
export function message(headers, payload) {
  const head = Buffer.concat(
    Object.entries(headers).flatMap(([name, value]) => {
      const size = Buffer.alloc(2);
      size.writeUInt16BE(Buffer.byteLength(value));
      return [Buffer.from([Buffer.byteLength(name)]), Buffer.from(name), Buffer.from([7]), size, Buffer.from(value)];
    }),
  );
  const body = Buffer.from(payload),
    prelude = Buffer.concat([u32(16 + head.length + body.length), u32(head.length)]);
  const all = Buffer.concat([prelude, u32(crc32(prelude)), head, body]);
  return Buffer.concat([all, u32(crc32(all))]);
}

const json = { ":content-type": "application/json" };
export const event = (name, data) =>
  message({ ":event-type": name, ...json, ":message-type": "event" }, JSON.stringify(data));
