// An S3-compatible store that runs on this machine. It verifies signatures and digests
// with arithmetic of its own and answers errors as S3 does.
//
//	const store = createStore({ buckets: ["logs"], keys: { AKIA…: { secret } }, region: "auto" });
//	up.script = store.script
//
// `objects` are the objects by bucket/key: {body, headers, puts}. `fault` is what the next
// calls meet: "denied", "slow", "redirect", "garbage", "stall", "reset" (before anything is
// stored), "lost" (the object is stored and its answer lost), or null.
import { createHash } from "node:crypto";
import { gunzipSync } from "node:zlib";
import { check } from "./sigv4.mjs";

const xml = (status, code, message, headers = {}) => ({
  status,
  headers: { "content-type": "application/xml", ...headers },
  body: `<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>${code}</Code><Message>${message}</Message><RequestId>0A49CE4060975EAC</RequestId></Error>`,
});

const faults = {
  denied: () => xml(403, "AccessDenied", "Access Denied"),
  slow: () => xml(503, "SlowDown", "Please reduce your request rate.", { "retry-after": "1" }),
  redirect: () =>
    xml(301, "PermanentRedirect", "The bucket you are attempting to access must be addressed using the endpoint.", {
      location: "http://127.0.0.1:1/",
      "x-amz-bucket-region": "eu-central-1",
    }),
  garbage: () => ({ status: 200, headers: { "content-type": "text/html" }, body: "<html>Welcome</html>" }),
  stall: () => "stall",
  reset: () => "reset",
};

// createStore returns a store. Buckets are named in the path, or in the host if virtual is
// set: BUCKET.ANYTHING.
export function createStore({ buckets, keys, region = "us-east-1", virtual = false, now }) {
  const store = { objects: new Map(), puts: [], fault: null };

  function put(got) {
    const path = decodeURIComponent(got.path.slice(1));
    const bucket = virtual ? got.host.split(".")[0] : path.split("/")[0];
    const key = virtual ? path : path.slice(bucket.length + 1);
    const digest = createHash("sha256").update(got.body).digest("hex");
    const claims = { ...got.headers, host: got.host };
    if (got.method !== "PUT") return xml(405, "MethodNotAllowed", "The specified method is not allowed.");
    if (!claims["x-amz-content-sha256"]) return xml(400, "InvalidRequest", "Missing x-amz-content-sha256");
    const id = /Credential=([^/]+)\//.exec(claims.authorization ?? "")?.[1];
    if (!keys[id]) return xml(403, "InvalidAccessKeyId", "The AWS Access Key Id you provided does not exist.");
    const wrong = check(got, { keys, region, service: "s3", now: now?.() ?? Date.now() });
    if (wrong) return xml(403, "SignatureDoesNotMatch", wrong[1]);
    if (claims["x-amz-content-sha256"] !== digest)
      return xml(400, "XAmzContentSHA256Mismatch", "The provided header does not match what was computed.");
    const md5 = createHash("md5").update(got.body).digest("base64");
    if (claims["content-md5"] && claims["content-md5"] !== md5)
      return xml(400, "BadDigest", "The Content-MD5 you specified did not match what we received.");
    if (!buckets.includes(bucket)) return xml(404, "NoSuchBucket", "The specified bucket does not exist");
    const name = `${bucket}/${key}`;
    const before = store.objects.get(name);
    store.objects.set(name, { body: got.body, headers: got.headers, puts: (before?.puts ?? 0) + 1 });
    return { status: 200, headers: { etag: `"${createHash("md5").update(got.body).digest("hex")}"` }, body: "" };
  }

  store.script = (got) => {
    if (got.method !== "PUT") return undefined; // the provider's
    store.puts.push(got.path);
    const { fault } = store;
    if (fault && fault !== "lost") return faults[fault]();
    const answer = put(got);
    return fault === "lost" && answer.status === 200 ? "reset" : answer;
  };

  // lines returns the lines of all objects of the log, in the order of their names.
  store.lines = () =>
    [...store.objects]
      .filter(([name]) => name.endsWith(".jsonl.gz"))
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .flatMap(([, o]) => gunzipSync(o.body).toString().trimEnd().split("\n").map(JSON.parse));
  return store;
}
