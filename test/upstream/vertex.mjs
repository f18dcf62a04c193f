// Google Vertex AI with its token endpoint: an assertion's signature, audience,
// scope and times are checked, then its tokens admit.
import { createPublicKey, generateKeyPairSync, randomBytes, verify } from "node:crypto";
import { countTokens, vector } from "./openai.mjs";
import { talk } from "./talk.mjs";

const json = (body, status = 200) => ({
  status,
  headers: { "content-type": "application/json; charset=UTF-8" },
  body: JSON.stringify(body),
});
const names = {
  400: "INVALID_ARGUMENT",
  401: "UNAUTHENTICATED",
  403: "PERMISSION_DENIED",
  404: "NOT_FOUND",
  429: "RESOURCE_EXHAUSTED",
};
const error = (status, message) =>
  json({ error: { code: status, message, status: names[status] ?? "INTERNAL" } }, status);
const halves = (s) => [s.slice(0, s.length >> 1), s.slice(s.length >> 1)];
const sse = (list) => ({
  status: 200,
  headers: { "content-type": "text/event-stream" },
  frames: list.map((x) => Buffer.from(`data: ${JSON.stringify(x)}\r\n\r\n`)),
});
const usageMetadata = {
  promptTokenCount: 11,
  cachedContentTokenCount: 3,
  candidatesTokenCount: 5,
  thoughtsTokenCount: 2,
  totalTokenCount: 18,
};

// serviceAccount creates a key file, and the public key that checks it.
export function serviceAccount(project) {
  const { publicKey, privateKey } = generateKeyPairSync("rsa", {
    modulusLength: 2048,
    publicKeyEncoding: { type: "spki", format: "pem" },
    privateKeyEncoding: { type: "pkcs8", format: "pem" },
  });
  const email = `weir@${project}.iam.gserviceaccount.com`,
    kid = randomBytes(20).toString("hex");
  const file = {
    type: "service_account",
    project_id: project,
    private_key_id: kid,
    private_key: privateKey,
    client_email: email,
    client_id: "123456789012345678901",
    auth_uri: "https://accounts.google.com/o/oauth2/auth",
    token_uri: "https://evil.example.com/token",
    universe_domain: "googleapis.com",
  };
  return { file, email, kid, publicKey, project };
}

function gemini(got, model, method) {
  const b = got.json,
    last = b.contents?.at(-1);
  const extra = Object.keys(b).find(
    (k) =>
      ![
        "contents",
        "systemInstruction",
        "tools",
        "toolConfig",
        "generationConfig",
        "safetySettings",
        "cachedContent",
        "labels",
      ].includes(k),
  );
  if (extra) return error(400, `Invalid JSON payload received. Unknown name "${extra}": Cannot find field.`);
  if (!last?.parts?.length) return error(400, "contents is not specified");
  const say = `You said: ${last.parts.map((p) => p.text ?? "").join("")}`;
  const part = (text, finishReason) => ({
    candidates: [
      { content: { role: "model", parts: [{ text }] }, index: 0, ...(finishReason ? { finishReason } : {}) },
    ],
    usageMetadata,
    modelVersion: model,
    responseId: "resp-vertex",
  });
  if (method === "generateContent") return json(part(say, "STOP"));
  return sse([part(halves(say)[0]), part(halves(say)[1], "STOP")]);
}

function predict(b) {
  if (!Array.isArray(b.instances) || b.instances.some((x) => typeof x.content !== "string"))
    return error(400, "instances");
  return json({
    predictions: b.instances.map((x) => ({
      embeddings: {
        values: [...vector(x.content, b.parameters?.outputDimensionality)],
        statistics: { token_count: countTokens(x.content), truncated: false },
      },
    })),
  });
}

const chat = talk();

function claude(got, stream) {
  const b = got.json;
  if (b.anthropic_version !== "vertex-2023-10-16") return error(400, "anthropic_version: Field required");
  if ("model" in b) return error(400, "model: Extra inputs are not permitted");
  if (!!b.stream !== stream) return error(400, "stream");
  const reply = chat({ ...got, path: "/v1/messages", json: { ...b, model: "claude-at-vertex" } });
  return stream ? { ...reply, frames: reply.body.match(/[^]*?\n\n/g).map((x) => Buffer.from(x)) } : reply;
}

// vertex returns the fake: `answer` for a cloud, `issued` (a row for each
// token: claims, token, project), `refused` (why assertions were).
//
//	accounts  of serviceAccount()
//	apiKeys   of express mode: good without a project
export function vertex({ accounts = [], apiKeys = [] }) {
  const google = { issued: [], refused: [] };
  const deny = (why) => {
    google.refused.push(why);
    return json({ error: "invalid_grant", error_description: why }, 400);
  };

  function token(got) {
    const form = new URLSearchParams(got.body.toString());
    if (
      got.method !== "POST" ||
      !got.headers["content-type"]?.startsWith("application/x-www-form-urlencoded") ||
      form.get("grant_type") !== "urn:ietf:params:oauth:grant-type:jwt-bearer"
    )
      return deny("grant_type");
    const [head, body, signature] = form.get("assertion").split("."),
      now = Date.now() / 1000;
    const { alg, typ, kid } = JSON.parse(Buffer.from(head, "base64url")),
      claims = JSON.parse(Buffer.from(body, "base64url"));
    const account = accounts.find((a) => a.email === claims.iss);
    if (!account) return deny("Invalid grant: account not found");
    if (alg !== "RS256" || typ !== "JWT" || kid !== account.kid) return deny("header");
    if (
      !verify(
        "sha256",
        Buffer.from(`${head}.${body}`),
        createPublicKey(account.publicKey),
        Buffer.from(signature, "base64url"),
      )
    )
      return deny("Invalid JWT Signature.");
    if (claims.aud !== "https://oauth2.googleapis.com/token") return deny("aud");
    if (claims.scope !== "https://www.googleapis.com/auth/cloud-platform") return deny("scope");
    if (!(claims.iat <= now && claims.exp > now && claims.exp - claims.iat <= 3600))
      return deny("Invalid JWT: Token must be a short-lived token (60 minutes)");
    const access = `ya29.canary-${randomBytes(24).toString("base64url")}`;
    google.issued.push({ token: access, claims, project: account.project });
    return json({ access_token: access, expires_in: 3599, token_type: "Bearer" });
  }

  google.answer = (got) => {
    if (got.host === "oauth2.googleapis.com") return got.path === "/token" ? token(got) : error(404, "not found");
    const m = /^(?:([a-z0-9-]+)-)?aiplatform(?:\.(us|eu)\.rep)?\.googleapis\.com$/.exec(got.host);
    if (!m) return error(404, `no such host: ${got.host}`);
    const url = new URL(got.path, "http://vertex"),
      key = got.headers["x-goog-api-key"],
      place = m[1] ?? m[2] ?? "global";
    const [, project, location, rest] = /^\/v1\/projects\/([^/]+)\/locations\/([^/]+)\/(.+)$/.exec(url.pathname) ?? [];
    const express = /^\/v1\/(publishers\/google\/models\/.+)$/.exec(url.pathname)?.[1];
    if (express ? place !== "global" : location !== place) return error(404, `no such path: ${got.path}`);
    const good =
      key !== undefined
        ? got.headers.authorization === undefined && !!express && apiKeys.includes(key)
        : google.issued.some((t) => t.project === project && got.headers.authorization === `Bearer ${t.token}`);
    if (!good) return error(401, "Request had invalid authentication credentials.");
    const [, publisher, model, method] =
      /^publishers\/(google|anthropic)\/models\/([^/:]+):(\w+)$/.exec(express ?? rest) ?? [];
    if (publisher === "google" && method === "predict") return predict(got.json);
    if (
      publisher === "google" &&
      (method === "generateContent" || (method === "streamGenerateContent" && url.searchParams.get("alt") === "sse"))
    )
      return gemini(got, model, method);
    if (publisher === "anthropic" && model === "count-tokens")
      return got.json.model ? json({ input_tokens: 42 }) : error(400, "model");
    if (publisher === "anthropic" && ["rawPredict", "streamRawPredict"].includes(method))
      return claude(got, method === "streamRawPredict");
    if (rest === "endpoints/openapi/chat/completions")
      return got.json.model.startsWith("google/")
        ? chat({ ...got, path: "/v1/chat/completions" })
        : error(404, "publisher");
    return error(404, `no such path: ${got.path}`);
  };
  return google;
}
