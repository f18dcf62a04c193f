// Certificates for tests, created on demand: an authority, and the certificates
// that it issues. Elliptic keys (P-256), X.509 version 3, RFC 5280.
import { createSign, generateKeyPairSync, randomBytes } from "node:crypto";

// der writes one value: a tag, a length, the contents.
function der(tag, ...parts) {
  const body = Buffer.concat(parts.map((p) => Buffer.from(p)));
  const n = body.length;
  const length = n < 128 ? [n] : n < 256 ? [0x81, n] : [0x82, n >> 8, n & 255];
  return Buffer.concat([Buffer.from([tag, ...length]), body]);
}
const sequence = (...parts) => der(0x30, ...parts);
const oid = (hex) => der(6, Buffer.from(hex, "hex"));
const ecdsaSHA256 = sequence(oid("2a8648ce3d040302"));
const nameOf = (text) => sequence(der(0x31, sequence(oid("550403"), der(12, text))));
const time = (ms) => der(0x18, new Date(ms).toISOString().replace(/[-:T]|\.\d+/g, ""));
const extension = (id, critical, value) => sequence(oid(id), ...(critical ? [der(1, [255])] : []), der(4, value));
const pem = (bytes) =>
  `-----BEGIN CERTIFICATE-----\n${bytes.toString("base64").replace(/.{64}/g, "$&\n").trimEnd()}\n-----END CERTIFICATE-----\n`;

// issue creates a key and a certificate for it.
//
//	subject   its common name
//	names     DNS names that it is good for; without any it is an authority
//	by        the issuer, a result of issue; absent, it signs itself
//	days      from now; negative for one that has ended
export function issue({ subject, names = [], by = null, days = 30 }) {
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const name = nameOf(subject),
    day = 86_400_000,
    authority = names.length === 0;
  const extensions = authority
    ? [extension("551d13", true, sequence(der(1, [255]))), extension("551d0f", true, der(3, [1, 6]))] // CA; signs certificates
    : [extension("551d13", true, sequence()), extension("551d11", false, sequence(...names.map((n) => der(0x82, n))))];
  const serial = randomBytes(8);
  serial[0] &= 0x7f;
  serial[0] |= 1;
  const body = sequence(
    der(0xa0, der(2, [2])),
    der(2, serial),
    ecdsaSHA256,
    by?.name ?? name,
    sequence(time(Date.now() + (Math.min(days, 0) - 2) * day), time(Date.now() + days * day)),
    name,
    publicKey.export({ type: "spki", format: "der" }),
    der(0xa3, sequence(...extensions)),
  );
  const signature = createSign("sha256")
    .update(body)
    .sign(by?.privateKey ?? privateKey);
  const cert = pem(sequence(body, ecdsaSHA256, der(3, [0], signature)));
  return { name, privateKey, cert, key: privateKey.export({ type: "pkcs8", format: "pem" }) };
}
