// Generation in the Gemini API with Google's client and with LangChain's, over each
// family of upstreams. See docs/reference/dialects.md, a.
// workerd: soak
import assert from "node:assert/strict";
import { after, before, beforeEach, describe, test } from "node:test";
import { FunctionCallingConfigMode, GoogleGenAI, Type } from "@google/genai";
import { HumanMessage } from "@langchain/core/messages";
import { ChatGoogleGenerativeAI } from "@langchain/google-genai";
import { start as startUpstream } from "../../upstream/server.mjs";
import { talk } from "../../upstream/talk.mjs";
import { admin, families, start } from "../gateway.mjs";

let gw, up, me;
before(async () => {
  up = await startUpstream();
  gw = await start({ vendors: up });
  me = await families(admin(gw), up);
});
after(async () => {
  await gw?.close();
  await up?.close();
});
beforeEach(() => {
  up.clear();
  up.script = talk();
});

// The models: of a chat server, of a Messages server, and of Gemini itself.
const models = ["up/some-model", "an/claude-sonnet-4-5", "gemini/gemini-3-pro"];
const google = () => new GoogleGenAI({ apiKey: me.apiKey, httpOptions: { baseUrl: gw.url } });
const post = (path, body) =>
  gw.fetch(path, {
    method: "POST",
    headers: { "content-type": "application/json", "x-goog-api-key": me.apiKey },
    body: JSON.stringify(body),
  });
const weather = {
  name: "weather",
  description: "The weather of a city.",
  parameters: { type: Type.OBJECT, properties: { city: { type: Type.STRING } }, required: ["city"] },
};
const hello = { contents: [{ role: "user", parts: [{ text: "Hello ☃" }] }] };
const usage = { promptTokenCount: 11, cachedContentTokenCount: 3, totalTokenCount: 18 };
const used = ({ promptTokenCount, cachedContentTokenCount, totalTokenCount }) => ({
  promptTokenCount,
  cachedContentTokenCount,
  totalTokenCount,
});

for (const model of models)
  describe(`Google's client, ${model}:`, () => {
    test("an answer", async () => {
      const res = await google().models.generateContent({
        model,
        contents: "Hello ☃",
        config: { systemInstruction: "Be brief.", temperature: 0.5, maxOutputTokens: 300, stopSequences: ["END"] },
      });
      assert.equal(res.text, "You said: Hello ☃");
      assert.equal(res.candidates[0].finishReason, "STOP");
      assert.deepEqual(used(res.usageMetadata), usage);
      assert.ok(res.responseId && res.modelVersion);
    });

    test("a stream", async () => {
      let said = "";
      let last;
      for await (const chunk of await google().models.generateContentStream({ model, contents: "Hello ☃" })) {
        said += chunk.text ?? "";
        last = chunk;
      }
      assert.equal(said, "You said: Hello ☃");
      assert.equal(last.candidates[0].finishReason, "STOP");
      assert.deepEqual(used(last.usageMetadata), usage);
    });

    for (const streamed of [false, true])
      test(`a conversation with a function and thoughts, ${streamed ? "streamed" : "whole"}`, async () => {
        const chat = google().chats.create({
          model,
          config: {
            tools: [{ functionDeclarations: [weather] }],
            toolConfig: { functionCallingConfig: { mode: FunctionCallingConfigMode.AUTO } },
            thinkingConfig: { includeThoughts: true, thinkingBudget: 2048 },
          },
        });
        const send = async (message) => {
          if (!streamed) return (await chat.sendMessage({ message })).candidates[0].content.parts;
          const parts = [];
          for await (const chunk of await chat.sendMessageStream({ message }))
            parts.push(...(chunk.candidates[0].content.parts ?? []));
          return parts;
        };
        const first = await send("The weather in Paris?");
        const { functionCall } = first.find((p) => p.functionCall);
        assert.equal(functionCall.name, "weather");
        assert.deepEqual(functionCall.args, { city: "Paris" });
        const thought = first.filter((p) => p.thought).map((p) => p.text);
        assert.equal(thought.join(""), "Let me see.");
        const second = await send({
          functionResponse: { id: functionCall.id, name: "weather", response: { output: "21 degrees" } },
        });
        const said = second.filter((p) => !p.thought).map((p) => p.text);
        assert.equal(said.join(""), "It is 21 degrees");
        const sent = up.seen.at(-1).json;
        if (model.startsWith("an/")) {
          assert.deepEqual(
            sent.messages[1].content.map((b) => [b.type, b.thinking ?? b.id, b.signature]),
            [
              ["thinking", "Let me see.", "c2lnbmF0dXJl"],
              ["tool_use", "toolu_talk1", undefined],
            ],
          );
          assert.equal(sent.messages[2].content[0].tool_use_id, "toolu_talk1");
          assert.equal(sent.thinking.type, "enabled");
        } else if (model.startsWith("up/")) {
          assert.equal(sent.messages[1].reasoning_content, "Let me see.");
          assert.equal(sent.messages[2].tool_call_id, "call_talk1");
        } else {
          const parts = sent.contents.flatMap((c) => c.parts);
          assert.equal(parts.find((p) => p.functionCall).thoughtSignature, "R0VNSU5J");
        }
      });

    test("an answer by a schema", async () => {
      const res = await google().models.generateContent({
        model,
        contents: "Paris?",
        config: {
          responseMimeType: "application/json",
          responseSchema: {
            type: Type.OBJECT,
            properties: { city: { type: Type.STRING }, degrees: { type: Type.INTEGER, nullable: true } },
            required: ["city", "degrees"],
            propertyOrdering: ["city", "degrees"],
          },
        },
      });
      assert.deepEqual(JSON.parse(res.text), { city: "Paris", degrees: 21 });
    });

    test("a stream as an array", async () => {
      const res = await post(`/v1beta/models/${model}:streamGenerateContent`, hello);
      const text = await res.text();
      const list = JSON.parse(text);
      assert.equal(res.headers.get("content-type"), "application/json");
      assert.equal(list.map((x) => x.candidates[0].content.parts[0].text).join(""), "You said: Hello ☃", text);
      assert.equal(list.at(-1).candidates[0].finishReason, "STOP");
    });

    test("LangChain, with a tool, streamed and whole", async () => {
      const llm = new ChatGoogleGenerativeAI({ apiKey: me.apiKey, baseUrl: gw.url, model, maxRetries: 0 });
      const whole = await llm.invoke([new HumanMessage("Hello ☃")]);
      assert.equal(whole.text, "You said: Hello ☃");
      let said = "";
      for await (const chunk of await llm.stream("Hello ☃")) said += chunk.text;
      assert.equal(said, "You said: Hello ☃");
      const call = await llm
        .bindTools([
          {
            type: "function",
            function: { ...weather, parameters: { type: "object", properties: { city: { type: "string" } } } },
          },
        ])
        .invoke("The weather in Paris?");
      assert.deepEqual([call.tool_calls[0].name, call.tool_calls[0].args], ["weather", { city: "Paris" }]);
    });
  });

test("what goes to Gemini and comes from it passes byte for byte", async () => {
  const body = `{ "contents":[{"parts":[{"text":"Hello ☃"}]}], "safetySettings":[{"category":"HARM_CATEGORY_HARASSMENT","threshold":"OFF"}],"x":1.50 }`;
  const answer = `data: {"candidates": [{"content": {"parts": [{"text": "a"}],"role": "model"},"finishReason": "STOP","y":1.50}],"usageMetadata": {"promptTokenCount": 1,"totalTokenCount": 2}}\r\n\r\n`;
  up.script = () => ({ headers: { "content-type": "text/event-stream" }, body: answer });
  const res = await gw.fetch("/v1beta/models/gemini/gemini-3-pro:streamGenerateContent?alt=sse", {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${me.apiKey}` },
    body,
  });
  assert.equal(await res.text(), answer);
  assert.match(res.headers.get("content-type"), /^text\/event-stream/);
  const seen = up.seen.at(-1);
  assert.equal(String(seen.body), body);
  assert.match(seen.path, /\/v1beta\/models\/gemini-3-pro:streamGenerateContent\?alt=sse$/);
  assert.equal(seen.headers["x-goog-api-key"], "gemini-test-key-0123456789");
  assert.equal(seen.headers.authorization, undefined);
});

test("a media part, an unknown one and settings of Gemini reach a chat server as far as it knows them", async () => {
  const res = await post("/v1beta/models/up/some-model:generateContent", {
    contents: [{ parts: [{ text: "Look" }, { inlineData: { mimeType: "image/png", data: "AAAA" } }] }],
    safetySettings: [{ category: "HARM_CATEGORY_HARASSMENT", threshold: "OFF" }],
    tools: [{ codeExecution: {} }],
  });
  assert.equal(res.status, 200);
  assert.equal(res.headers.get("x-weir-dropped"), "safetySettings,tools.codeExecution");
  assert.deepEqual(up.seen.at(-1).json.messages[0].content[1], {
    type: "image_url",
    image_url: { url: "data:image/png;base64,AAAA" },
  });
});

for (const [name, body, message] of [
  ["no contents", { contents: [] }, /contents must have at least one part/],
  ["several candidates", { ...hello, generationConfig: { candidateCount: 2 } }, /candidateCount must be 1/],
  ["a cache of the vendor", { ...hello, cachedContent: "cachedContents/a" }, /has no cachedContents/],
  ["a role of another API", { contents: [{ role: "system", parts: [{ text: "a" }] }] }, /role must be user or model/],
])
  test(`${name} is refused`, async () => {
    for (const query of ["", "?alt=sse"]) {
      const res = await post(`/v1beta/models/up/some-model:streamGenerateContent${query}`, body);
      let e = await res.json();
      if (!query) [e] = e;
      assert.deepEqual([res.status, e.error.code, e.error.status], [400, 400, "INVALID_ARGUMENT"]);
      assert.match(e.error.message, message);
      assert.equal(up.seen.length, 0);
    }
  });

for (const model of models)
  test(`a stream of ${model} that breaks off is an error for Google's client`, async () => {
    const begun = model.startsWith("gemini/")
      ? `data: {"candidates":[{"content":{"parts":[{"text":"Hel"}],"role":"model"},"index":0}],"modelVersion":"m"}\n\n`
      : model.startsWith("an/")
        ? `event: message_start\ndata: {"type":"message_start","message":{"id":"m","usage":{"input_tokens":1}}}\n\nevent: content_block_start\ndata: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":"Hel"}}\n\n`
        : `data: {"choices":[{"index":0,"delta":{"content":"Hel"}}]}\n\n`;
    up.script = () => ({ headers: { "content-type": "text/event-stream" }, body: begun });
    let said = "";
    await assert.rejects(async () => {
      for await (const chunk of await google().models.generateContentStream({ model, contents: "Hello" }))
        said += chunk.text ?? "";
    }, /before the answer was complete|Incomplete JSON segment/);
    assert.equal(said, "Hel");
  });
