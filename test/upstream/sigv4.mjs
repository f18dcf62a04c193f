// Checks AWS Signature Version 4 as AWS does, from the request as it came in.
// Written from the IAM User Guide ("Create a signed AWS API request"), apart
// from the program's own signer.
import { createHash, createHmac } from "node:crypto";

const sha256 = (data) => createHash("sha256").update(data).digest("hex");
const hmac = (key, text) => createHmac("sha256", key).update(text).digest();
const encode = (s) =>
  encodeURIComponent(s).replace(/[!'()*]/g, (c) => "%" + c.charCodeAt(0).toString(16).toUpperCase());
const order = (a, b) => (a < b ? -1 : a > b ? 1 : 0);

function query(text) {
  if (!text) return "";
  return text
    .split("&")
    .map((p) => {
      const at = p.indexOf("="),
        name = at < 0 ? p : p.slice(0, at),
        value = at < 0 ? "" : p.slice(at + 1);
      return [encode(decodeURIComponent(name)), encode(decodeURIComponent(value))];
    })
    .sort((a, b) => order(a[0], b[0]) || order(a[1], b[1]))
    .map((p) => p.join("="))
    .join("&");
}

// canonical returns the canonical request. The path is encoded once more than
// it came; S3 encodes what the path stands for.
export function canonical({ method, path, host, headers, body }, signed, service) {
  const segment = service === "s3" ? (s) => encode(decodeURIComponent(s)) : encode;
  const at = path.indexOf("?"),
    uri = at < 0 ? path : path.slice(0, at);
  const value = (name) => (name === "host" ? host : String(headers[name] ?? "")).trim().replace(/ +/g, " ");
  return [
    method,
    uri.split("/").map(segment).join("/"),
    query(at < 0 ? "" : path.slice(at + 1)),
    ...signed.map((n) => `${n}:${value(n)}`),
    "",
    signed.join(";"),
    sha256(body ?? ""),
  ].join("\n");
}

// check returns null for a request that is signed properly, else [type,
// message] as AWS answers with 403.
//
//	keys     by access key id: {secret, token}; token where they are temporary
//	region, service, now (milliseconds)
export function check(req, { keys, region, service, now = Date.now() }) {
  const m =
    /^AWS4-HMAC-SHA256 Credential=([^,/]+)\/(\d{8})\/([^,/]+)\/([^,/]+)\/aws4_request, ?SignedHeaders=([^,]+), ?Signature=([0-9a-f]{64})$/.exec(
      req.headers.authorization ?? "",
    );
  if (!m) return ["MissingAuthenticationTokenException", "Missing Authentication Token"];
  const [, id, day, inRegion, inService, names, signature] = m,
    key = keys[id],
    date = req.headers["x-amz-date"] ?? "";
  if (!key || (req.headers["x-amz-security-token"] ?? "") !== (key.token ?? ""))
    return ["UnrecognizedClientException", "The security token included in the request is invalid."];
  const signed = names.split(";");
  const must = ["host", ...Object.keys(req.headers).filter((n) => n.startsWith("x-amz-"))];
  if (signed.join() !== [...signed].sort(order).join() || must.some((n) => !signed.includes(n)))
    return ["InvalidSignatureException", "SignedHeaders do not cover the request"];
  if (inRegion !== region || inService !== service)
    return ["InvalidSignatureException", `Credential should be scoped to '${region}' and '${service}'`];
  const at = Date.parse(date.replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/, "$1-$2-$3T$4:$5:$6Z"));
  if (!date.startsWith(day) || !(Math.abs(now - at) <= 5 * 60_000))
    return ["InvalidSignatureException", `Signature expired: ${date}`];
  const text = [
    "AWS4-HMAC-SHA256",
    date,
    `${day}/${region}/${service}/aws4_request`,
    sha256(canonical(req, signed, service)),
  ].join("\n");
  const secret = [day, region, service, "aws4_request"].reduce(hmac, "AWS4" + key.secret);
  if (hmac(secret, text).toString("hex") !== signature)
    return [
      "InvalidSignatureException",
      "The request signature we calculated does not match the signature you provided.",
    ];
  return null;
}
