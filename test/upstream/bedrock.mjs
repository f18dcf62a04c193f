// Amazon Bedrock: every request must be signed, or carry an API key. Its
// models follow the rules of talk.mjs.
import { event } from "./eventstream.mjs";
import { countTokens, vector } from "./openai.mjs";
import { check } from "./sigv4.mjs";
import { talk } from "./talk.mjs";

const eventStream = "application/vnd.amazon.eventstream";
const json = (body, status = 200) => ({
  status,
  headers: { "content-type": "application/json" },
  body: JSON.stringify(body),
});
const failure = (status, type, message) => ({
  status,
  headers: {
    "content-type": "application/json",
    "x-amzn-errortype": `${type}:http://internal.amazon.com/coral/com.amazon.bedrock/`,
  },
  body: JSON.stringify({ message }),
});
const invalid = (message) => failure(400, "ValidationException", message);
const halves = (s) => [s.slice(0, s.length >> 1), s.slice(s.length >> 1)];
const usage = { inputTokens: 8, outputTokens: 7, totalTokens: 18, cacheReadInputTokens: 3, cacheWriteInputTokens: 0 };

// extra names the first member that is not one of the names.
const extra = (object, names) => Object.keys(object).find((k) => !names.includes(k));
const contentNames = [
  "text",
  "image",
  "document",
  "toolUse",
  "toolResult",
  "reasoningContent",
  "cachePoint",
  "video",
  "guardContent",
];

function wrong(b) {
  const more = extra(b, [
    "messages",
    "system",
    "inferenceConfig",
    "toolConfig",
    "guardrailConfig",
    "additionalModelRequestFields",
    "additionalModelResponseFieldPaths",
    "performanceConfig",
    "requestMetadata",
    "outputConfig",
    "serviceTier",
  ]);
  if (more) return `extraneous key [${more}] is not permitted`;
  if (!Array.isArray(b.messages) || !b.messages.length || b.messages[0].role !== "user")
    return "A conversation must start with a user message.";
  for (const m of b.messages) {
    for (const c of m.content) {
      const keys = Object.keys(c);
      if (keys.length !== 1 || !contentNames.includes(keys[0])) return `content block with ${keys}`;
      if (
        c.image &&
        (!["png", "jpeg", "gif", "webp"].includes(c.image.format) || typeof c.image.source?.bytes !== "string")
      )
        return "The image is not valid";
      if (c.toolUse && (typeof c.toolUse.input !== "object" || !/^[\w-]{1,64}$/.test(c.toolUse.toolUseId)))
        return "toolUse is not valid";
      if (c.toolResult && !Array.isArray(c.toolResult.content)) return "toolResult is not valid";
    }
  }
  for (const t of b.toolConfig?.tools ?? [])
    if (t.toolSpec && typeof t.toolSpec.inputSchema?.json !== "object") return "toolSpec is not valid";
  return "";
}

const said = (b) =>
  `You said: ${b.messages
    .at(-1)
    .content.map((c) => c.text ?? "")
    .join("")}`;

const converse = (b) =>
  json({
    output: { message: { role: "assistant", content: [{ text: said(b) }] } },
    stopReason: "end_turn",
    usage,
    metrics: { latencyMs: 12 },
  });

const converseStream = (b) => ({
  status: 200,
  headers: { "content-type": eventStream },
  frames: [
    event("messageStart", { role: "assistant", p: "abcd" }),
    ...halves(said(b)).map((text) =>
      event("contentBlockDelta", { contentBlockIndex: 0, delta: { text }, p: "abcdefgh" }),
    ),
    event("contentBlockStop", { contentBlockIndex: 0, p: "ab" }),
    event("messageStop", { stopReason: "end_turn" }),
    event("metadata", { usage, metrics: { latencyMs: 12 } }),
  ],
});

const claude = talk();

function invokeClaude(got, b, stream) {
  if (b.anthropic_version !== "bedrock-2023-05-31") return invalid("anthropic_version: Field required");
  const more = extra(b, [
    "anthropic_version",
    "anthropic_beta",
    "max_tokens",
    "messages",
    "system",
    "temperature",
    "top_p",
    "top_k",
    "stop_sequences",
    "tools",
    "tool_choice",
    "thinking",
    "output_config",
  ]);
  if (more) return invalid(`${more}: Extra inputs are not permitted`);
  if (!(b.max_tokens > 0)) return invalid("max_tokens: Field required");
  const reply = claude({
    method: "POST",
    path: "/v1/messages",
    headers: got.headers,
    json: { ...b, model: "claude-at-bedrock", stream },
  });
  if (!stream) return reply;
  const frames = reply.body
    .split("\n")
    .filter((l) => l.startsWith("data: "))
    .map((l) => event("chunk", { bytes: Buffer.from(l.slice(6)).toString("base64"), p: "abcdef" }));
  return { status: 200, headers: { "content-type": eventStream }, frames };
}

function titan(b) {
  const more = extra(b, ["inputText", "dimensions", "normalize", "embeddingTypes"]);
  if (more || typeof b.inputText !== "string")
    return invalid(`Malformed input request: extraneous key [${more}] is not permitted`);
  return json({ embedding: [...vector(b.inputText, b.dimensions)], inputTextTokenCount: countTokens(b.inputText) });
}

const models = [
  ["anthropic.claude-sonnet-4-5-20250929-v1:0", ["TEXT"], ["INFERENCE_PROFILE"]],
  ["amazon.nova-lite-v1:0", ["TEXT"], ["ON_DEMAND", "INFERENCE_PROFILE"]],
  ["amazon.titan-embed-text-v2:0", ["EMBEDDING"], ["ON_DEMAND"]],
  ["cohere.embed-v4:0", ["EMBEDDING"], ["ON_DEMAND"]],
  ["stability.sd3-5-large-v1:0", ["IMAGE"], ["ON_DEMAND"]],
].map(([modelId, outputModalities, inferenceTypesSupported]) => ({
  modelArn: `arn:aws:bedrock:us-east-1::foundation-model/${modelId}`,
  modelId,
  modelName: modelId,
  providerName: modelId.split(".")[0],
  inputModalities: ["TEXT"],
  outputModalities,
  responseStreamingSupported: true,
  inferenceTypesSupported,
  modelLifecycle: { status: "ACTIVE" },
}));
const profiles = ["us.anthropic.claude-sonnet-4-5-20250929-v1:0", "us.amazon.nova-lite-v1:0"].map((id) => ({
  inferenceProfileId: id,
  inferenceProfileName: id,
  status: "ACTIVE",
  type: "SYSTEM_DEFINED",
  models: [],
}));

// bedrock answers for Amazon's hosts: {status, headers, body}, or frames.
//
//	keys  what admits a signed call, as in sigv4.mjs
export function bedrock({ keys = {} } = {}) {
  return (got) => {
    // A host of this machine stands for a proxy before all of them.
    const m = /^127\.0\.0\.1:/.test(got.host)
      ? ["", got.method === "GET" ? "bedrock" : "bedrock-runtime", "eu-central-1"]
      : /^(bedrock|bedrock-runtime)\.([a-z0-9-]+)\.amazonaws\.com$/.exec(got.host);
    if (!m) return failure(404, "UnknownOperationException", `no such host: ${got.host}`);
    const refused = check(got, { keys, region: m[2], service: "bedrock" });
    if (refused) return failure(403, ...refused);
    const path = got.path.split("?")[0];
    if (m[1] === "bedrock") {
      if (got.method !== "GET" || got.body.length) return invalid("GET");
      if (path === "/foundation-models") return json({ modelSummaries: models });
      if (path === "/inference-profiles") return json({ inferenceProfileSummaries: profiles });
    }
    const [, encoded, op] =
      /^\/model\/([^/]+)\/(converse|converse-stream|invoke|invoke-with-response-stream)$/.exec(path) ?? [];
    if (!encoded || got.method !== "POST") return failure(404, "UnknownOperationException", path);
    const model = decodeURIComponent(encoded),
      b = got.json;
    if (!b || !(got.headers["content-type"] ?? "").startsWith("application/json")) return invalid("not JSON");
    if (op.startsWith("converse")) {
      const why = wrong(b);
      if (why) return invalid(why);
      return op === "converse" ? converse(b) : converseStream(b);
    }
    if (model.includes("claude")) return invokeClaude(got, b, op !== "invoke");
    if (model.includes("titan-embed")) return titan(b);
    return failure(
      404,
      "ResourceNotFoundException",
      `Could not resolve the foundation model from the model identifier: ${model}`,
    );
  };
}
