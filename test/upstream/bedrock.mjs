// Amazon Bedrock: every request must be signed, or carry an API key. Its
// models follow the rules of talk.mjs.
import { event } from "./eventstream.mjs";
import { base64, countTokens, vector } from "./openai.mjs";
import { check } from "./sigv4.mjs";
import { talk } from "./talk.mjs";

export const eventStream = "application/vnd.amazon.eventstream";
const json = (body, status = 200) => ({
  status,
  headers: { "content-type": "application/json" },
  body: JSON.stringify(body),
});
export const failure = (status, type, message) => ({
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

const textOf = (content) => content.map((c) => c.text ?? c.json?.toString() ?? "").join("");

function decide(b) {
  const last = b.messages.at(-1).content,
    result = last.find((c) => c.toolResult)?.toolResult,
    image = last.find((c) => c.image)?.image;
  const think = !!(
    b.additionalModelRequestFields?.thinking ??
    b.additionalModelRequestFields?.reasoning_config ??
    b.additionalModelRequestFields?.reasoningConfig
  );
  const tool = b.toolConfig?.tools?.find((t) => t.toolSpec)?.toolSpec;
  if (result) return { think, say: `It is ${textOf(result.content)}` };
  if (image)
    return { think, say: `I see ${Buffer.from(image.source.bytes, "base64").length} bytes of ${image.format}` };
  if (tool) return { think, call: tool.name, input: { city: "Paris" } };
  return { think, say: `You said: ${textOf(last)}` };
}

function converse(b) {
  const t = decide(b),
    content = [];
  if (t.think)
    content.push({ reasoningContent: { reasoningText: { text: "Let me see.", signature: "c2lnbmF0dXJl" } } });
  content.push(t.call ? { toolUse: { toolUseId: "tooluse_talk1", name: t.call, input: t.input } } : { text: t.say });
  return json({
    output: { message: { role: "assistant", content } },
    stopReason: t.call ? "tool_use" : "end_turn",
    usage,
    metrics: { latencyMs: 12 },
  });
}

function converseStream(b) {
  const t = decide(b),
    frames = [event("messageStart", { role: "assistant", p: "abcd" })];
  let i = 0;
  const delta = (d) => frames.push(event("contentBlockDelta", { contentBlockIndex: i, delta: d, p: "abcdefgh" }));
  const stop = () => frames.push(event("contentBlockStop", { contentBlockIndex: i++, p: "ab" }));
  if (t.think) {
    halves("Let me see.").forEach((text) => delta({ reasoningContent: { text } }));
    delta({ reasoningContent: { signature: "c2lnbmF0dXJl" } });
    stop();
  }
  if (t.call) {
    frames.push(
      event("contentBlockStart", {
        contentBlockIndex: i,
        start: { toolUse: { toolUseId: "tooluse_talk1", name: t.call } },
      }),
    );
    halves(JSON.stringify(t.input)).forEach((input) => delta({ toolUse: { input } }));
  } else {
    halves(t.say).forEach((text) => delta({ text }));
  }
  stop();
  frames.push(
    event("messageStop", { stopReason: t.call ? "tool_use" : "end_turn" }),
    event("metadata", { usage, metrics: { latencyMs: 12 } }),
  );
  return { status: 200, headers: { "content-type": eventStream }, frames };
}

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

function cohere(b) {
  const more = extra(b, ["texts", "input_type", "truncate", "embedding_types", "images", "output_dimension"]);
  if (more || !b.input_type || b.texts.length > 96) return invalid(`Malformed input request: ${more ?? "input_type"}`);
  const rows = b.texts.map((t) => vector(t, b.output_dimension));
  return json({
    id: "e",
    texts: b.texts,
    response_type: "embeddings_by_type",
    embeddings: {
      float: rows.map((r) => [...r]),
      ...(b.embedding_types?.includes("base64") ? { base64: rows.map(base64) } : {}),
    },
  });
}

function nova(b) {
  const p = b.singleEmbeddingParams,
    text = p?.text;
  if (
    b.taskType !== "SINGLE_EMBEDDING" ||
    !["GENERIC_INDEX", "GENERIC_RETRIEVAL"].includes(p?.embeddingPurpose) ||
    text?.truncationMode !== "END" ||
    typeof text.value !== "string" ||
    extra(p, ["embeddingPurpose", "embeddingDimension", "text"])
  )
    return invalid("Malformed input request");
  return json({ embeddings: [{ embeddingType: "TEXT", embedding: [...vector(text.value, p.embeddingDimension)] }] });
}

// rerank scores documents by their length.
function rerank(b, region) {
  const c = b.rerankingConfiguration?.bedrockRerankingConfiguration;
  if (c?.modelConfiguration?.modelArn !== `arn:aws:bedrock:${region}::foundation-model/amazon.rerank-v1:0`)
    return invalid("modelArn");
  const all = b.sources
    .map((s, index) => ({ index, relevanceScore: s.inlineDocumentSource.textDocument.text.length / 100 }))
    .sort((x, y) => y.relevanceScore - x.relevanceScore);
  return json({ results: all.slice(0, c.numberOfResults) });
}

export const models = [
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
export const profiles = ["us.anthropic.claude-sonnet-4-5-20250929-v1:0", "us.amazon.nova-lite-v1:0"].map((id) => ({
  inferenceProfileId: id,
  inferenceProfileName: id,
  status: "ACTIVE",
  type: "SYSTEM_DEFINED",
  models: [],
}));

// bedrock answers for Amazon's hosts: {status, headers, body}, or frames.
//
//	keys     what admits a signed call, as in sigv4.mjs
//	apiKeys  what admits one with a bearer token
export function bedrock({ keys = {}, apiKeys = [] } = {}) {
  return (got) => {
    // A host of this machine stands for a proxy before all of them.
    const m = /^127\.0\.0\.1:/.test(got.host)
      ? ["", got.method === "GET" ? "bedrock" : "bedrock-runtime", "eu-central-1"]
      : /^(bedrock|bedrock-runtime|bedrock-agent-runtime)\.([a-z0-9-]+)\.amazonaws\.com$/.exec(got.host);
    if (!m) return failure(404, "UnknownOperationException", `no such host: ${got.host}`);
    const bearer = /^Bearer (.+)$/.exec(got.headers.authorization ?? "");
    if (bearer ? !apiKeys.includes(bearer[1]) : false)
      return failure(403, "AccessDeniedException", "Authentication failed: API Key not valid");
    const refused = bearer ? null : check(got, { keys, region: m[2], service: "bedrock" });
    if (refused) return failure(403, ...refused);
    const path = got.path.split("?")[0];
    if (m[1] === "bedrock") {
      if (got.method !== "GET" || got.body.length) return invalid("GET");
      if (path === "/foundation-models") return json({ modelSummaries: models });
      if (path === "/inference-profiles") return json({ inferenceProfileSummaries: profiles });
    }
    if (m[1] === "bedrock-agent-runtime")
      return path === "/rerank" ? rerank(got.json, m[2]) : failure(404, "UnknownOperationException", path);
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
    if (model.includes("cohere.embed")) return cohere(b);
    if (model.includes("nova-2-multimodal-embed")) return nova(b);
    return failure(
      404,
      "ResourceNotFoundException",
      `Could not resolve the foundation model from the model identifier: ${model}`,
    );
  };
}
