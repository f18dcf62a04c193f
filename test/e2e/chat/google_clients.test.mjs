// Google's client for the Gemini API and LangChain's, unmodified, over each API that
// upstreams have: the forms of the path, functions, token counts and errors.
// gemini.test.mjs has what answers consist of. See docs/reference/dialects.md, a.
// workerd: soak
import assert from "node:assert/strict";
import { after, before, beforeEach, describe, test } from "node:test";
import { GoogleGenAI, Type } from "@google/genai";
import { HumanMessage, ToolMessage } from "@langchain/core/messages";
import { ChatGoogleGenerativeAI } from "@langchain/google-genai";
import { z } from "zod";
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

// The models are of a Gemini upstream, OpenAI's Responses, a compatible server's chat
// completions, and Messages of a compatible server and of Anthropic.
const models = ["gemini/gemini-test", "openai/talk", "up/talk", "an/talk", "anthropic/talk"];
const client = (base = "") => new GoogleGenAI({ apiKey: me.apiKey, httpOptions: { baseUrl: gw.url + base } });
const langchain = (model, more = {}) =>
  new ChatGoogleGenerativeAI({ model, apiKey: me.apiKey, baseUrl: gw.url, maxRetries: 0, ...more });
const weather = {
  functionDeclarations: [
    {
      name: "weather",
      description: "Returns the weather of a city.",
      parameters: { type: Type.OBJECT, properties: { city: { type: Type.STRING } }, required: ["city"] },
    },
  ],
};

for (const model of models)
  describe(`Google's client over ${model}:`, () => {
    for (const base of ["", "/{machineId}"])
      test(`an answer and a stream under "${base}"`, async () => {
        const ai = client(base.replace("{machineId}", me.machineId));
        const request = { model, contents: "Hello", config: { systemInstruction: "Be brief.", maxOutputTokens: 50 } };
        const got = await ai.models.generateContent(request);
        assert.equal(got.text, "You said: Hello");
        assert.equal(got.candidates[0].finishReason, "STOP");
        assert.equal(got.candidates[0].content.role, "model");
        assert.ok(got.usageMetadata.promptTokenCount > 0 && got.usageMetadata.totalTokenCount > 0);
        assert.ok(got.modelVersion && got.responseId);
        const chunks = [];
        for await (const c of await ai.models.generateContentStream(request)) chunks.push(c);
        assert.ok(chunks.length > 1);
        assert.equal(chunks.map((c) => c.text ?? "").join(""), "You said: Hello");
        assert.equal(chunks.at(-1).candidates[0].finishReason, "STOP");
        assert.ok(chunks.at(-1).usageMetadata.totalTokenCount > 0);
      });

    for (const streamed of [false, true])
      test(`a function is called and answered${streamed ? ", as a stream" : ""}`, async () => {
        const chat = client().chats.create({ model, config: { tools: [weather] } });
        const send = async (message) => {
          if (!streamed) return chat.sendMessage({ message });
          const all = [];
          for await (const c of await chat.sendMessageStream({ message })) all.push(c);
          return {
            text: all.map((c) => c.text ?? "").join(""),
            functionCalls: all.flatMap((c) => c.functionCalls ?? []),
          };
        };
        const first = await send("How warm is it?");
        assert.deepEqual(
          first.functionCalls.map(({ name, args }) => [name, args]),
          [["weather", { city: "Paris" }]],
        );
        const [{ id, name }] = first.functionCalls;
        const last = await send([{ functionResponse: { ...(id ? { id } : {}), name, response: { output: "21 °C" } } }]);
        assert.equal(last.text, "It is 21 °C");
      });

    test("tokens are counted", async () => {
      const { totalTokens } = await client().models.countTokens({ model, contents: "Hello, how are you?" });
      assert.ok(totalTokens > 0 && totalTokens < 100, String(totalTokens));
    });
  });

test("Google's client learns from errors what it knows", async () => {
  const ask = (model, more = {}) => client().models.generateContent({ model, contents: "Hello", ...more });
  await assert.rejects(ask("up/talk!status=429!header=retry-after:2"), (e) => {
    assert.equal(e.status, 429);
    assert.match(e.message, /RESOURCE_EXHAUSTED/);
    assert.match(e.message, /retryDelay/);
    return true;
  });
  await assert.rejects(ask("nothing/at-all"), { status: 404 });
  await assert.rejects(ask("openai/talk", { config: { cachedContent: "cachedContents/x" } }), { status: 400 });
  await assert.rejects(client().models.generateContentStream({ model: "nothing/at-all", contents: "Hello" }), {
    status: 404,
  });
});

for (const model of models)
  test(`LangChain over ${model}: a function is called and answered`, async () => {
    const lang = langchain(model).bindTools([
      { name: "weather", description: "Returns the weather of a city.", schema: z.object({ city: z.string() }) },
    ]);
    const question = new HumanMessage("How warm is it?");
    const call = await lang.invoke([question]);
    assert.deepEqual(
      call.tool_calls.map(({ name, args }) => [name, args]),
      [["weather", { city: "Paris" }]],
    );
    const result = new ToolMessage({ content: "21 °C", tool_call_id: call.tool_calls[0].id, name: "weather" });
    assert.equal((await lang.invoke([question, call, result])).text, "It is 21 °C");
  });

// npm:@ai-sdk/google reads the event of the error alone; npm:@google/generative-ai, which
// rejects a promise that LangChain does not wait for, the object behind it.
for (const model of models.slice(1)) {
  test(`a stream over ${model} that breaks off is an error`, async () => {
    const broken = `${model}!cut=finish`;
    const chunks = [];
    await assert.rejects(async () => {
      for await (const c of await client().models.generateContentStream({ model: broken, contents: "Hello" }))
        chunks.push(c.text);
    });
    assert.ok(chunks.length > 0, "it broke off before its first event");
    const res = await gw.fetch(`/v1beta/models/${encodeURIComponent(broken)}:streamGenerateContent?alt=sse`, {
      method: "POST",
      headers: { "x-goog-api-key": me.apiKey, "content-type": "application/json" },
      body: JSON.stringify({ contents: [{ role: "user", parts: [{ text: "Hello" }] }] }),
    });
    const parts = (await res.text()).split("\n\n");
    const event = parts.filter((e) => e.startsWith("data: ")).at(-1);
    assert.ok(JSON.parse(event.slice(6)).error.code >= 500);
    assert.deepEqual(JSON.parse(parts.at(-1)), JSON.parse(event.slice(6)));
  });

  test(`line separators in a stream over ${model} reach each client`, async () => {
    const text = "one\u2028two\u2029three";
    let got = "";
    for await (const c of await client().models.generateContentStream({ model, contents: text })) got += c.text ?? "";
    assert.equal(got, `You said: ${text}`);
    got = "";
    for await (const c of await langchain(model).stream([new HumanMessage(text)])) got += c.text;
    assert.equal(got, `You said: ${text}`);
  });
}
