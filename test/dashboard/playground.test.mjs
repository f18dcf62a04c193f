// The playground, which calls the gateway as a client does.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { events } from "../../worker/dashboard/src/pages/playground/events.ts";
import { compatible } from "../e2e/gateway.mjs";
import { becomes, bench, canary, looks, open, settled } from "./browser.mjs";

let b;
before(async () => {
  b = await bench();
});
after(() => b?.close());

async function playground(t, kind = "chat", options = {}) {
  const { machineId } = await b.operator.machine({ name: "Test" });
  await b.operator.connect(machineId, compatible(b.upstream, { name: "Mine" }));
  for (const c of options.connections ?? []) await b.operator.connect(machineId, c);
  t.after(() => {
    b.upstream.script = null;
  });
  const page = await open(t, b, { at: `#/m/${machineId}/playground/${kind}`, ...options });
  await page.getByRole("heading", { level: 1, name: "Playground" }).waitFor();
  await settled(page);
  const keys = async () => (await b.operator.call("GET", `/${machineId}/api/keys`)).data;
  return { page, machineId, keys };
}

// detailed checks the details of a call: the response headers and the curl command.
async function detailed(page, path) {
  await page.getByText("Response headers").click();
  await page.getByRole("row", { name: /^x-request-id / }).waitFor();
  await page.getByText("Copy as curl").first().click();
  const curl = await page.getByRole("region", { name: "curl command" }).innerText();
  assert.ok(curl.startsWith(`curl '${b.url}${path}'`) && curl.includes("$WEIR_KEY") && curl.includes("-d '{"), curl);
}

const said = (page) => page.getByRole("log").locator(".turn.assistant .said");

test("answers are streamed and shown as plain text", async (t) => {
  const { page, keys, machineId } = await playground(t);
  await looks(page, "playground");
  await page.getByLabel("Max output tokens").fill("500");
  await page.getByLabel("Message").fill(canary);
  await page.keyboard.press("Enter");
  await page.getByText(/^\d+ tokens in, \d+ out, \d+ ms$/).waitFor();
  assert.ok((await said(page).innerText()).includes(canary), await said(page).innerText());
  await page.getByLabel("Message").fill("**bold** [link](javascript:canary())");
  await page.getByRole("button", { name: "Send" }).click();
  await page
    .getByText(/tokens in/)
    .nth(1)
    .waitFor();
  assert.ok((await said(page).nth(1).innerText()).includes("**bold** [link](javascript:canary())"));
  assert.equal(await page.getByRole("log").locator("a, img, svg, script, b, strong").count(), 0);

  await page.getByText("Response headers").click();
  await page.getByRole("row", { name: "x-weir-model up/test-chat" }).waitFor();
  await page.getByText("Copy as curl").first().click();
  const curl = await page.getByRole("region", { name: "curl command" }).innerText();
  assert.ok(curl.startsWith(`curl '${b.url}/v1/chat/completions'`) && curl.includes("$WEIR_KEY"));
  await looks(page, "playground-details");

  // The key lasts an hour, and is nowhere but in the page's memory.
  const key = (await keys()).find((k) => k.name === "Dashboard playground");
  assert.ok(key.expiresAt > Date.now() && key.expiresAt <= Date.now() + 3_600_000);
  const sent = b.upstream.seen.findLast((r) => r.path.endsWith("/chat/completions"));
  assert.deepEqual(
    sent.json.messages.map((m) => m.role),
    ["user", "assistant", "user"],
  );
  assert.equal(sent.json.max_completion_tokens, 500, "a compatible server gets the client’s bytes");
  const stored = await page.evaluate(async () =>
    JSON.stringify([
      { ...localStorage },
      { ...sessionStorage },
      document.cookie,
      document.documentElement.outerHTML,
      await indexedDB.databases(),
    ]),
  );
  assert.equal(stored.includes(`sk-${machineId}`), false);
  await page.getByRole("button", { name: "Sign out", exact: true }).click();
  await page.getByRole("dialog", { name: "Sign out?" }).getByRole("button", { name: "Discard and sign out" }).click();
  await page.getByText("You have been signed out.").waitFor();
  assert.equal(
    (await keys()).some((k) => k.id === key.id),
    false,
    "the key is revoked",
  );
});

test("a stream is stopped", async (t) => {
  const { page } = await playground(t);
  await page.getByLabel("Model", { exact: true }).fill("up/test-chat!slow=100!chunks=300");
  await page.getByLabel("Message").fill("a long story");
  await page.getByRole("button", { name: "Send" }).click();
  await page.waitForFunction(() => (document.querySelector(".turn.assistant .said")?.textContent.length ?? 0) > 0);
  await looks(page, "playground-streaming");
  await page.getByRole("button", { name: "Stop" }).click();
  await page.getByText("Stopped", { exact: true }).waitFor();
  await page.getByRole("button", { name: "Send" }).waitFor();
  const length = (await said(page).innerText()).length;
  await page.getByLabel("Message").fill("next");
  assert.equal((await said(page).innerText()).length, length);
  await page.getByRole("button", { name: "New chat" }).click();
  await page.getByText("Send a message to begin.").waitFor();
});

test("refusals and interrupted streams show an error", async (t) => {
  const { page } = await playground(t, "chat", {
    failures: ["POST /v1/chat/completions 400", "POST /v1/chat/completions 404"],
  });
  await page.getByLabel("Model", { exact: true }).fill("nothing/there");
  await page.getByLabel("Message").fill("hello");
  await page.keyboard.press("Enter");
  await page.getByRole("alert").waitFor();
  assert.equal(await page.getByLabel("Message").inputValue(), "hello", "what was written is not lost");
  await looks(page, "playground-refused");
  await page.getByLabel("Model", { exact: true }).fill("up/test-chat!chunks=5!reset-after=3");
  await page.getByRole("button", { name: "Send" }).click();
  await page
    .getByRole("alert")
    .getByText(/ended|broke|interrupted/i)
    .waitFor();
  assert.ok((await said(page).innerText()).length > 0, "what came stays");
});

test("texts are compared by their embeddings", async (t) => {
  const { page } = await playground(t, "embeddings");
  await page.getByLabel("Texts").fill(`one\none\n${canary}`);
  await page.getByRole("button", { name: "Compare" }).click();
  const table = page.getByRole("region", { name: "Similarity of the texts" });
  await table.waitFor();
  const cells = await table.getByRole("cell").allInnerTexts();
  assert.equal(cells.length, 9);
  for (const i of [0, 1, 3, 4, 8]) assert.equal(cells[i], "1.00");
  assert.notEqual(cells[2], "1.00");
  assert.equal(cells[2], cells[6]);
  await table.getByText(canary).waitFor();
  await looks(page, "playground-embeddings");
  await detailed(page, "/v1/embeddings");
});

test("speech plays", async (t) => {
  const { page } = await playground(t, "speech");
  // A second of silence, so that a browser can play it.
  const wav = Buffer.alloc(44 + 8000, 128);
  wav.write("RIFF", 0);
  wav.writeUInt32LE(36 + 8000, 4);
  wav.write("WAVEfmt ", 8);
  wav.writeUInt32LE(16, 16);
  wav.writeUInt16LE(1, 20);
  wav.writeUInt16LE(1, 22);
  wav.writeUInt32LE(8000, 24);
  wav.writeUInt32LE(8000, 28);
  wav.writeUInt16LE(1, 32);
  wav.writeUInt16LE(8, 34);
  wav.write("data", 36);
  wav.writeUInt32LE(8000, 40);
  b.upstream.script = (got) =>
    got.path.endsWith("/audio/speech") ? { headers: { "content-type": "audio/wav" }, body: wav } : null;
  await page.getByLabel("Format").selectOption("flac"); // the provider returns its own format
  await page.getByLabel("Text", { exact: true }).fill("Hello");
  await page.getByRole("button", { name: "Generate speech" }).click();
  await page.locator("audio").waitFor();
  assert.match(await page.locator("audio").getAttribute("src"), /^blob:/);
  await page.waitForFunction(() => document.querySelector("audio").readyState >= 2);
  assert.equal(
    Math.round(
      await page.evaluate(async () => {
        const a = document.querySelector("audio");
        await a.play();
        a.pause();
        return a.duration;
      }),
    ),
    1,
  );
  await page.getByText("1.0 s, 8 kB, audio/wav").waitFor();
  assert.equal(await page.getByRole("link", { name: "Download" }).getAttribute("download"), "speech.wav");
  await looks(page, "playground-speech");
  await detailed(page, "/v1/audio/speech");
  const sent = b.upstream.seen.findLast((r) => r.path.endsWith("/audio/speech"));
  assert.deepEqual([sent.json.input, sent.json.voice, sent.json.response_format], ["Hello", "alloy", "flac"]);
});

test("voices are offered if the provider lists them, with a default where one is known", async (t) => {
  const { page } = await playground(t, "speech", {
    connections: [
      { provider: "elevenlabs", apiKey: "el-test-key-0123456789" },
      { provider: "openai", apiKey: "sk-test-key-0123456789" },
      { provider: "groq", apiKey: "gsk-test-key-0123456789" },
    ],
    failures: ["GET /v1/audio/voices 400"],
  });
  b.upstream.script = (got) =>
    got.host === "api.elevenlabs.io" && got.path.startsWith("/v2/voices")
      ? {
          body: JSON.stringify({
            has_more: false,
            voices: [
              { voice_id: "abc123", name: `Rachel ${canary}`, labels: { language: "en", gender: "female" } },
              { voice_id: "def456", name: "Adam" },
            ],
          }),
        }
      : null;
  const model = page.getByLabel("Model", { exact: true }),
    voice = page.getByLabel("Voice");
  const offered = () =>
    page.locator("#try-voices option").evaluateAll((list) => list.map((o) => [o.value, o.textContent]));
  assert.equal(await model.inputValue(), "up/test-tts");
  assert.equal(await voice.inputValue(), "alloy");
  assert.deepEqual(await offered(), []);
  await model.fill("el/eleven_multilingual_v2");
  assert.deepEqual(await offered(), [], "nothing is asked before one wants to");
  const ask = page.getByRole("button", { name: "List voices" });
  await ask.click();
  await page.getByText("2 voices available.").waitFor();
  assert.equal(await voice.inputValue(), "abc123");
  assert.deepEqual(await offered(), [
    ["abc123", `Rachel ${canary}, en, female`],
    ["def456", "Adam"],
  ]);
  await model.fill("openai/gpt-4o-mini-tts");
  await ask.click();
  await page.getByText(/^1\d voices available\.$/).waitFor();
  assert.equal(await voice.inputValue(), "alloy");
  await model.fill("groq/canopylabs/orpheus-v1-english");
  await Promise.all([page.waitForResponse("**/v1/audio/voices*"), ask.click()]);
  await page.getByText(/voices available/).waitFor({ state: "detached" });
  assert.equal(await voice.inputValue(), "", "no voice is known");
  await voice.fill("troy");
  await model.fill("up/test-tts");
  assert.equal(await voice.inputValue(), "troy", "what was typed stays");
});

test("an image is shown", async (t) => {
  const { page } = await playground(t, "image");
  const png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
  b.upstream.script = (got) =>
    got.path.endsWith("/images/generations")
      ? { body: JSON.stringify({ created: 1, data: [{ b64_json: png, revised_prompt: canary }] }) }
      : null;
  await page.getByRole("button", { name: "Generate image" }).click();
  await page.locator("img.made").waitFor();
  await page.waitForFunction(() => document.querySelector("img.made").naturalWidth === 1);
  await page.getByText(canary).waitFor();
  await looks(page, "playground-image");
  await detailed(page, "/v1/images/generations");
  await page.getByLabel("Model", { exact: true }).fill("up/gpt-image-1");
  await Promise.all([
    page.waitForResponse("**/v1/images/generations"),
    page.getByRole("button", { name: "Generate image" }).click(),
  ]);
  const asked = b.upstream.seen.filter((r) => r.path.endsWith("/images/generations")).slice(-2);
  assert.deepEqual(
    asked.map((r) => [r.json.model, r.json.response_format]),
    [
      ["test-image", "b64_json"],
      ["gpt-image-1", undefined],
    ],
  );
});

test("the web is searched, and only http addresses become links", async (t) => {
  const { page } = await playground(t, "search", {
    connections: [{ provider: "tavily", apiKey: "tvly-test-key-0123456789" }],
  });
  b.upstream.script = (got) =>
    got.host === "api.tavily.com"
      ? {
          body: JSON.stringify({
            results: [
              { title: `Weirs ${canary}`, url: "https://example.com/weirs", content: "A low dam", score: 0.9 },
              { title: "Bad", url: "javascript:canary()", content: "x", score: 0.5 },
            ],
          }),
        }
      : null;
  await page.getByLabel("Query").fill("what is a weir");
  await page.getByRole("button", { name: "Search" }).click();
  const results = page.getByRole("list", { name: "Results" });
  await results.getByRole("link", { name: /^Weirs/ }).waitFor();
  assert.deepEqual(await results.getByRole("link").evaluateAll((list) => list.map((a) => [a.href, a.rel])), [
    ["https://example.com/weirs", "noopener noreferrer"],
  ]);
  await looks(page, "playground-search");
  await detailed(page, "/v1/search");
});

test("a management key can use the playground, and a revoked playground key is replaced", async (t) => {
  const { machineId } = await b.operator.machine({ name: "Test" });
  await b.operator.connect(machineId, compatible(b.upstream));
  const { apiKey } = await b.operator.call("POST", `/${machineId}/api/keys`, { name: "Manager", scopes: ["manage"] });
  const page = await open(t, b, {
    as: apiKey,
    at: `#/m/${machineId}/playground`,
    failures: ["POST /v1/chat/completions 401", "DELETE /* 404"],
  });
  await settled(page);
  const send = async (text) => {
    await page.getByLabel("Message").fill(text);
    await page.keyboard.press("Enter");
  };
  const mine = async () =>
    (await b.operator.call("GET", `/${machineId}/api/keys`)).data.filter((k) => k.name === "Dashboard playground");
  await send("hello");
  await page.getByText(/tokens in/).waitFor();
  const [first] = await mine();
  await b.operator.call("DELETE", `/${machineId}/api/keys/${first.id}`);
  await send("again");
  await page.getByRole("alert").waitFor();
  await page.getByRole("button", { name: "Send" }).click();
  await page
    .getByText(/tokens in/)
    .nth(1)
    .waitFor();
  const [second] = await mine();
  assert.notEqual(second.id, first.id);
  await page.reload();
  await settled(page);
  await becomes(async () => (await mine()).length, 0); // a page that is left takes its key along
});

test("events are parsed with any line ending and any chunk size", async () => {
  const want = ['{"a":1}', "two\nlines ☃", "no blank", "[DONE]"];
  for (const end of ["\n", "\r\n", "\r"]) {
    const text = [
      ": a comment",
      "event: x",
      'data: {"a":1}',
      "",
      "data: two",
      "data: lines ☃",
      "id: 7",
      "",
      "",
      "data:no blank",
      "",
      "data: [DONE]",
      "",
      "data: cut off",
    ].join(end);
    const bytes = new TextEncoder().encode(text);
    for (const size of [1, 2, 3, 7, bytes.length]) {
      const body = new ReadableStream({
        start(c) {
          for (let i = 0; i < bytes.length; i += size) c.enqueue(bytes.slice(i, i + size));
          c.close();
        },
      });
      const got = [];
      for await (const data of events(body)) got.push(data);
      assert.deepEqual(got, want, `${JSON.stringify(end)} in pieces of ${size}`);
    }
  }
});

test("without a model the page links to the providers", async (t) => {
  const { machineId } = await b.operator.machine({ name: "Empty" });
  const page = await open(t, b, { at: `#/m/${machineId}/playground` });
  await page.getByText("No chat models yet").waitFor();
  await page.getByRole("radio", { name: "Speech" }).check();
  await page.getByText("No speech models yet").waitFor();
  await looks(page, "playground-empty");
});
