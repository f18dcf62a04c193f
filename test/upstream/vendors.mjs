// The shapes of vendors that have their own: Gemini, Cohere, Voyage, Jina.
import { base64, countTokens, inputs, pieces, vector } from "./openai.mjs";

const textOf = (content) => (content?.parts ?? []).map((p) => p.text ?? "").join("");

// gemini answers /v1beta/models…; a path names the model and the method.
export function gemini(path, body, fault) {
  const [, model, method] = /\/models\/([^:/]+):(\w+)$/.exec(path) ?? [];
  switch (method) {
    case "embedContent":
      return { json: { embedding: { values: [...vector(textOf(body.content), body.outputDimensionality)] } } };
    case "batchEmbedContents":
      return {
        json: {
          embeddings: body.requests.map((r) => ({ values: [...vector(textOf(r.content), r.outputDimensionality)] })),
        },
      };
    case "countTokens":
      return { json: { totalTokens: countTokens(JSON.stringify(body.contents ?? [])) } };
    case "generateContent":
    case "streamGenerateContent": {
      const text = textOf(body.contents?.findLast((c) => c.role !== "model")),
        answer = pieces(text, fault);
      const usageMetadata = {
        promptTokenCount: countTokens(text),
        candidatesTokenCount: answer.length,
        totalTokenCount: countTokens(text) + answer.length,
      };
      const part = (t, finishReason) => ({
        candidates: [
          { content: { role: "model", parts: [{ text: t }] }, index: 0, ...(finishReason ? { finishReason } : {}) },
        ],
        usageMetadata,
        modelVersion: model,
        responseId: "resp-test",
      });
      if (method === "generateContent") return { json: part(answer.join(""), "STOP") };
      return {
        events: answer.map((t, i) => `data: ${JSON.stringify(part(t, i === answer.length - 1 ? "STOP" : ""))}\n\n`),
        terminator: "",
      };
    }
  }
  if (path.endsWith("/models"))
    return {
      json: {
        models: ["gemini-embedding-001", "gemini-test"].map((m) => ({
          name: "models/" + m,
          displayName: m,
          supportedGenerationMethods: ["generateContent"],
        })),
      },
    };
  return null;
}

export const geminiError = (status, message = `the upstream answers ${status}`) => ({
  error: {
    code: status,
    message,
    status:
      {
        400: "INVALID_ARGUMENT",
        401: "UNAUTHENTICATED",
        403: "PERMISSION_DENIED",
        404: "NOT_FOUND",
        429: "RESOURCE_EXHAUSTED",
      }[status] ?? "INTERNAL",
  },
});

// cohere answers POST /v2/embed, which needs an input_type.
export function cohere(body) {
  if (!body.input_type) return { status: 400, json: { message: "input_type is required" } };
  const texts = body.texts ?? (body.inputs ?? []).map((x) => x.content.map((c) => c.text ?? "").join(""));
  const rows = texts.map((t) => vector(t, body.output_dimension)),
    types = body.embedding_types ?? ["float"];
  const embeddings = {};
  if (types.includes("float")) embeddings.float = rows.map((v) => [...v]);
  if (types.includes("base64")) embeddings.base64 = rows.map(base64);
  return {
    json: {
      id: "cohere-test",
      embeddings,
      texts,
      meta: {
        api_version: { version: "2" },
        billed_units: { input_tokens: texts.reduce((n, t) => n + countTokens(t), 0) },
      },
    },
  };
}

// voyage knows output_dimension, and base64 as its only encoding_format.
export function voyage(body, model) {
  for (const name of ["dimensions", "user"])
    if (name in body)
      return { status: 400, json: { detail: `Additional properties are not allowed ('${name}' was unexpected)` } };
  if (body.encoding_format !== undefined && body.encoding_format !== null && body.encoding_format !== "base64")
    return { status: 400, json: { detail: "encoding_format must be base64 or null" } };
  const items = inputs(body.input);
  const data = items.map((x, index) => ({
    object: "embedding",
    index,
    embedding:
      body.encoding_format === "base64"
        ? base64(vector(x, body.output_dimension))
        : [...vector(x, body.output_dimension)],
  }));
  return {
    json: { object: "list", data, model, usage: { total_tokens: items.reduce((n, x) => n + countTokens(x), 0) } },
  };
}

// jina takes arrays only, and embedding_type instead of encoding_format.
export function jina(body, model) {
  if (!Array.isArray(body.input)) return { status: 422, json: { detail: "input must be an array" } };
  if ("encoding_format" in body)
    return { status: 422, json: { detail: "extra inputs are not permitted: encoding_format" } };
  const wanted = [].concat(body.embedding_type ?? "float");
  const data = body.input.map((x, index) => ({
    object: "embedding",
    index,
    embedding: wanted[0] === "base64" ? base64(vector(x, body.dimensions)) : [...vector(x, body.dimensions)],
  }));
  return {
    json: { object: "list", data, model, usage: { total_tokens: body.input.reduce((n, x) => n + countTokens(x), 0) } },
  };
}
