// The playground, which calls the gateway as a client does.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import { events } from "../../worker/dashboard/src/pages/playground/events.ts";
import { snippet } from "../../worker/dashboard/src/pages/playground/snippets.ts";
import { compatible, secrets } from "../e2e/gateway.mjs";
import { talk } from "../upstream/talk.mjs";
import { becomes, bench, canary, holds, looks, open, settled, signIn } from "./browser.mjs";

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
  assert.equal(await page.getByRole("row", { name: /^access-control-/ }).count(), 0);
  const curl = await code(page, "curl");
  assert.ok(curl.startsWith(`curl '${b.url}${path}'`) && curl.includes("$WEIR_KEY") && curl.includes("-d '{"), curl);
}

// code returns the call as code.
async function code(page, language) {
  const languages = page.getByRole("group", { name: "Language" });
  if (!(await languages.isVisible())) await page.getByText("Copy as code").click();
  await languages.getByRole("radio", { name: language, exact: true }).check();
  return page.getByRole("region", { name: `${language} code` }).innerText();
}

const said = (page) => page.getByRole("log").locator(".turn.assistant .md");

// answers makes the upstream stream these texts as answers to chats, the same to all.
function answers(...pieces) {
  const chunk = (delta) => `data: ${JSON.stringify({ choices: [{ index: 0, delta }] })}\n\n`;
  const usage = `data: ${JSON.stringify({ choices: [], usage: { prompt_tokens: 1000, completion_tokens: 500 } })}\n\n`;
  b.upstream.script = (got) =>
    got.path.endsWith("/chat/completions")
      ? {
          headers: { "content-type": "text/event-stream" },
          body: pieces.map((content) => chunk({ content })).join("") + usage + "data: [DONE]\n\n",
        }
      : null;
}

async function say(page, text) {
  await page.getByLabel("Message").fill(text);
  await page.getByRole("button", { name: "Send" }).click();
}
const asked = () => b.upstream.seen.filter((r) => r.path.endsWith("/chat/completions"));

test("answers are streamed, and neither they nor messages run as HTML", async (t) => {
  const { page, keys, machineId } = await playground(t);
  await looks(page, "playground");
  await page.getByText("Parameters", { exact: true }).click();
  await page.getByLabel("Max output tokens").fill("500");
  await page.getByText("Parameters (1 set)").click();
  await page.getByLabel("Message").fill(canary);
  await page.keyboard.press("Enter");
  await page.getByText(/^\d+ tokens in, \d+ out · [\d,]+ ms \(first token after [\d,]+ ms\)/).waitFor();
  assert.ok((await said(page).innerText()).includes(canary), await said(page).innerText());
  await page.getByText(/^200 · up\/test-chat · 1 attempt$/).waitFor();
  await say(page, "**bold** [link](javascript:canary())");
  await page
    .getByText(/tokens in/)
    .nth(1)
    .waitFor();
  assert.ok((await said(page).nth(1).innerText()).includes("bold [link](javascript:canary())"));
  assert.equal(await said(page).nth(1).locator("strong").innerText(), "bold");
  assert.equal(await page.locator(".said, .md").locator("a, img, svg, script").count(), 0);

  await page.getByText("Response headers").click();
  await page.getByRole("row", { name: "x-weir-model up/test-chat" }).waitFor();
  const curl = await code(page, "curl");
  assert.ok(curl.startsWith(`curl '${b.url}/v1/chat/completions'`) && curl.includes("$WEIR_KEY"));
  await looks(page, "playground-details");

  // The key lasts an hour, and is nowhere but in the page's memory.
  const key = (await keys()).find((k) => k.name === "Dashboard playground");
  assert.ok(key.expiresAt > Date.now() && key.expiresAt <= Date.now() + 3_600_000);
  const sent = asked().at(-1);
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
  await signIn(page, secrets.ADMIN_TOKEN);
  await page.goto(`${b.url}/#/m/${machineId}/playground`);
  await page.getByText("Send a message to begin.").waitFor(); // a conversation ends with its session
});

test("Markdown is shown formatted, with nothing loaded and no HTML", async (t) => {
  const { page } = await playground(t);
  const answer = [
    "## Results",
    "# Bigger",
    "Some *text* with `code` and <b>no HTML</b> &amp; an entity.",
    "- one",
    "- two",
    "  1. inner",
    "",
    "3. third",
    "",
    "> said",
    "",
    "| Name | Size |",
    "|---|--:|",
    `| ${canary.replaceAll("|", "")} | 12 |`,
    "",
    "```python",
    'print("<b>")',
    "```",
    "",
    "[good](https://example.com/a?b=1) [mail](mailto:a@example.com) https://example.com/bare",
    "[bad](javascript:canary()) [bad](data:text/html,<script>canary()</script>) [bad](JaVaScRiPt:canary())",
    "[file](file:///etc/passwd) [relative](/api/session) <javascript:canary()> example.com",
    "",
    "![chart](https://example.com/chart.png) ![made](data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==) ![svg](data:image/svg+xml,<svg onload=canary()>)",
    "",
    "***",
    `[x]: javascript:canary()`,
    "[x] <img src=x onerror=canary()>",
    "<script>canary()</script>",
    "<iframe srcdoc='<script>parent.canary()</script>'></iframe>",
  ].join("\n");
  answers(...answer.match(/[^]{1,7}/g));
  await say(page, "go");
  await page.getByText(/tokens in/).waitFor();
  const md = said(page);
  assert.deepEqual(await md.getByRole("heading").evaluateAll((list) => list.map((h) => [h.tagName, h.textContent])), [
    ["H3", "Results"],
    ["H3", "Bigger"],
  ]);
  await md.getByText("Some text with code and <b>no HTML</b> & an entity.").waitFor();
  assert.deepEqual(await md.locator("em, p code").allInnerTexts(), ["text", "code"]);
  assert.deepEqual(await md.locator("li").allInnerTexts(), ["one", "two\ninner", "inner", "third"]);
  assert.equal(await md.locator("ol").last().getAttribute("start"), "3");
  assert.equal(await md.locator("blockquote").innerText(), "said");
  assert.equal(await md.getByRole("columnheader", { name: "Size" }).getAttribute("class"), "num");
  assert.ok((await md.getByRole("cell").first().innerText()).includes("<img src=x"));
  assert.equal(await md.getByRole("group", { name: "Code, python" }).innerText(), 'print("<b>")');
  assert.deepEqual(
    await md.locator("a").evaluateAll((list) => list.map((a) => [a.textContent, a.href, a.rel, a.target])),
    [
      ["good", "https://example.com/a?b=1"],
      ["mail", "mailto:a@example.com"],
      ["https://example.com/bare", "https://example.com/bare"],
      ["Image: chart", "https://example.com/chart.png"],
    ].map((a) => [...a, "noopener noreferrer", "_blank"]),
  );
  assert.deepEqual(await md.locator("img").evaluateAll((list) => list.map((i) => [i.alt, i.src.slice(0, 15)])), [
    ["made", "data:image/png;"],
  ]);
  assert.equal(await md.locator("script, iframe, svg.x, b, style, object").count(), 0);
  assert.deepEqual(
    await md.evaluate((e) =>
      [...e.querySelectorAll("*")].flatMap((n) => [...n.attributes]).filter((a) => a.name.startsWith("on")),
    ),
    [],
  );
  await md
    .getByRole("group", { name: "Code, python" })
    .locator("xpath=..")
    .getByRole("button", { name: "Copy" })
    .click();
  await becomes(() => page.evaluate(() => navigator.clipboard.readText()), 'print("<b>")');
  await page.getByRole("button", { name: "Copy answer" }).click();
  await becomes(() => page.evaluate(() => navigator.clipboard.readText()), answer);
  await looks(page, "playground-markdown");

  // Texts that are hard to parse are shown, and the page lives on.
  for (const hard of ["[".repeat(50_000), ">".repeat(50_000), "a**".repeat(20_000), "x".repeat(300_000)]) {
    answers(`${hard}\n\nthe end`);
    await page.getByRole("button", { name: "New chat" }).click();
    await say(page, "hard");
    await page.getByText(/tokens in/).waitFor();
    assert.ok((await page.locator(".turn.assistant").innerText()).includes("the end"));
  }
});

test("each answer has its time, tokens and cost", async (t) => {
  const { page, machineId } = await playground(t);
  await b.operator.call("PATCH", `/${machineId}/api/settings`, { modelPrices: { "up/test-chat": "2/10" } });
  answers("done");
  await say(page, "go");
  await page.getByText(/^1,000 tokens in, 500 out · [\d,]+ ms \(first token after [\d,]+ ms\) · \$0\.007$/).waitFor();
  await page.getByLabel("Model", { exact: true }).fill("up/vendor/nested-model");
  await say(page, "and this");
  await page.getByText(/^1,000 tokens in, 500 out · .* · price unknown$/).waitFor();
  // Each leads to its request, and the conversation is still there on the way back.
  await page.getByRole("link", { name: "Request", exact: true }).first().click();
  await page.getByRole("dialog").getByText("up/test-chat").first().waitFor();
  await page.goBack();
  await page.getByText(/^1,000 tokens in, 500 out · .* · price unknown$/).waitFor();
});

test("two models answer side by side, each with its own conversation", async (t) => {
  const { page, machineId } = await playground(t, "chat", { failures: ["POST /v1/chat/completions 400"] });
  await say(page, "first");
  await page.getByText(/tokens in/).waitFor();
  await page.getByRole("button", { name: "Compare models" }).click();
  await page.getByLabel("Second model", { exact: true }).fill("up/vendor/nested-model");
  const one = page.getByRole("log", { name: "Conversation", exact: true }),
    two = page.getByRole("log", { name: "Second conversation" });
  await two.getByText("first").first().waitFor(); // both go on from the same conversation
  b.upstream.seen.length = 0;
  await say(page, "second");
  for (const log of [one, two])
    await log
      .getByText(/tokens in/)
      .nth(1)
      .waitFor();
  assert.deepEqual(
    asked()
      .map((r) => [r.json.model, r.json.messages.length])
      .sort(),
    [
      ["test-chat", 3],
      ["vendor/nested-model", 3],
    ],
  );
  await two.getByText("up/vendor/nested-model").waitFor();
  await looks(page, "playground-compare");
  assert.ok(page.url().includes("with=up%2Fvendor%2Fnested-model"), page.url());

  // One fails: the other answers, and the failed one is tried again.
  await page.getByLabel("Second model", { exact: true }).fill("nothing/there");
  await say(page, "third");
  await one
    .getByText(/tokens in/)
    .nth(2)
    .waitFor();
  await page.getByRole("alert").waitFor();
  await page.getByLabel("Second model", { exact: true }).fill("up/test-chat");
  await page.getByRole("button", { name: "Try again" }).click();
  await two
    .getByText(/tokens in/)
    .nth(2)
    .waitFor();
  assert.equal(await page.getByRole("alert").count(), 0);

  // The answer arrives although another page is open.
  await page.getByLabel("Second model", { exact: true }).fill("up/test-chat!slow=100!chunks=20");
  await say(page, "a long story");
  await two.locator(".turn.assistant").nth(3).waitFor();
  await page.getByRole("link", { name: "Keys" }).click();
  await page.getByRole("heading", { level: 1, name: "Keys" }).waitFor();
  await page.goBack();
  await two
    .getByText(/tokens in/)
    .nth(3)
    .waitFor();
  await one
    .getByText(/tokens in/)
    .nth(3)
    .waitFor();
  await page.getByRole("button", { name: "Stop comparing" }).click();
  await two.waitFor({ state: "detached" });
  assert.equal(await one.locator(".turn.user").count(), 4);
  assert.ok(!page.url().includes("with="), page.url());

  // The models to compare are in the address.
  await page.goto(`${b.url}/#/m/${machineId}/keys`);
  await page.getByRole("heading", { level: 1, name: "Keys" }).waitFor();
  await page.goto(`${b.url}/#/m/${machineId}/playground?model=up%2Ftest-chat&with=up%2Ftest-embed`);
  await becomes(() => page.getByLabel("Second model", { exact: true }).inputValue(), "up/test-embed");
  // Also if the page is open already.
  await page.evaluate(() => (location.hash = location.hash.replace("up%2Ftest-embed", "up%2Fvendor%2Fnested-model")));
  await becomes(() => page.getByLabel("Second model", { exact: true }).inputValue(), "up/vendor/nested-model");
  await page.getByRole("button", { name: "Stop comparing" }).click();
  await page.evaluate(() => (location.hash += "&with=up%2Ftest-embed"));
  await becomes(() => page.getByLabel("Second model", { exact: true }).inputValue(), "up/test-embed");
});

test("images are sent, pasted and dropped", async (t) => {
  const { page } = await playground(t);
  const png = Buffer.from(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==",
    "base64",
  );
  const input = page.locator('input[type="file"]');
  await input.setInputFiles([
    { name: "red.png", mimeType: "image/png", buffer: png },
    { name: "notes.txt", mimeType: "text/plain", buffer: Buffer.from("x") },
  ]);
  await page.getByRole("alert").getByText("notes.txt is not a PNG, JPEG, WebP or GIF image.").waitFor();
  await page.getByRole("img", { name: "red.png" }).waitFor();
  await input.setInputFiles({ name: "big.png", mimeType: "image/png", buffer: Buffer.alloc((8 << 20) + 1) });
  await page.getByRole("alert").getByText("big.png is larger than 8 MiB.").waitFor();
  for (const [kind, name] of [
    ["paste", "pasted.png"],
    ["drop", "dropped.png"],
  ]) {
    await page.getByLabel("Message").evaluate(
      (e, [kind, name, bytes]) => {
        const data = new DataTransfer();
        data.items.add(new File([Uint8Array.from(bytes)], name, { type: "image/png" }));
        e.dispatchEvent(
          kind === "paste"
            ? new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true })
            : new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true }),
        );
      },
      [kind, name, [...png]],
    );
    await page.getByRole("img", { name }).waitFor();
  }
  await page.getByRole("button", { name: "Remove dropped.png" }).click();
  await looks(page, "playground-images");
  await page.getByRole("link", { name: "Keys" }).click();
  await page.getByRole("heading", { level: 1, name: "Keys" }).waitFor();
  await page.goBack();
  await page.getByRole("img", { name: "pasted.png" }).waitFor();
  await say(page, "what is this?");
  await page.getByText(/tokens in/).waitFor();
  const url = `data:image/png;base64,${png.toString("base64")}`;
  assert.deepEqual(asked().at(-1).json.messages, [
    {
      role: "user",
      content: [
        { type: "text", text: "what is this?" },
        { type: "image_url", image_url: { url } },
        { type: "image_url", image_url: { url } },
      ],
    },
  ]);
  await page.getByRole("log").getByRole("img", { name: "red.png" }).waitFor();
});

test("tools are called and answered, and JSON is asked for by a schema", async (t) => {
  const { page } = await playground(t);
  b.upstream.script = talk();
  await page.getByText("Parameters", { exact: true }).click();
  await page.getByLabel("Tools").fill("[{]");
  await page.getByText(/^Tools are not valid JSON: /).waitFor();
  await say(page, "weather?");
  await page
    .getByRole("alert")
    .getByText(/^Tools are not valid JSON: /)
    .waitFor();
  assert.equal(await page.getByLabel("Message").inputValue(), "weather?", "nothing was sent");
  await page.getByLabel("Tools").fill('[{"type":"function","function":{}}]');
  await page.getByText("Tools must be a JSON array of objects; a function needs a name.").first().waitFor();
  await page.getByLabel("Tools").fill("");
  await page.getByRole("button", { name: "Insert example tool" }).click();
  await page.getByLabel("Tool choice").selectOption("required");
  await page.getByLabel("Reasoning effort").selectOption("low");
  await page.getByLabel("Temperature").fill("3");
  await page.getByText("Temperature must be from 0 to 2.").waitFor();
  await page.getByLabel("Temperature").fill("0.5");
  await page.getByLabel("Top P").fill("0.9");
  await page.getByLabel("Seed").fill("7");
  await page.getByLabel("Stop sequences").fill("END\nSTOP");
  await page.getByLabel("System prompt").fill("Be short.");
  await page.getByRole("button", { name: "Send" }).click();
  const result = page.getByLabel("Result of get_weather");
  await result.waitFor();
  await page.getByRole("log").getByText('"city": "Paris"').waitFor();
  const { messages, tools, ...rest } = asked().at(-1).json;
  assert.deepEqual(
    [messages[0], tools[0].function.name, tools.length],
    [{ role: "system", content: "Be short." }, "get_weather", 1],
  );
  assert.deepEqual(rest, {
    model: "test-chat",
    temperature: 0.5,
    top_p: 0.9,
    seed: 7,
    stop: ["END", "STOP"],
    reasoning_effort: "low",
    tool_choice: "required",
    stream: true,
    stream_options: { include_usage: true },
  });
  await result.fill("21 degrees");
  await looks(page, "playground-tools");
  await page.getByRole("link", { name: "Keys" }).click();
  await page.getByRole("heading", { level: 1, name: "Keys" }).waitFor();
  await page.goBack();
  assert.equal(await result.inputValue(), "21 degrees");
  await page.getByRole("button", { name: "Send results" }).click();
  await said(page)
    .getByText(/21 degrees/)
    .waitFor();
  assert.deepEqual(asked().at(-1).json.messages.slice(-2), [
    {
      role: "assistant",
      content: null,
      tool_calls: [
        { id: "call_talk1", type: "function", function: { name: "get_weather", arguments: '{"city":"Paris"}' } },
      ],
    },
    { role: "tool", tool_call_id: "call_talk1", content: "21 degrees" },
  ]);

  await page.getByText(/^Parameters \(\d set\)$/).click();
  await page.getByRole("button", { name: "Reset parameters" }).click();
  await page.getByRole("button", { name: "New chat" }).click();
  await page.getByLabel("Response format").selectOption("json_schema");
  await page.getByText(/^The JSON schema is not valid JSON/).waitFor();
  await page.getByRole("button", { name: "Insert example schema" }).click();
  await say(page, "weather as JSON");
  await page.getByRole("group", { name: "Code, json" }).waitFor();
  assert.equal(
    await page.getByRole("group", { name: "Code, json" }).innerText(),
    JSON.stringify({ city: "Paris", degrees: 21 }, null, 2),
  );
  const { response_format } = asked().at(-1).json;
  assert.deepEqual(
    [response_format.type, response_format.json_schema.name, response_format.json_schema.schema.required],
    ["json_schema", "answer", ["city", "degrees"]],
  );
  await page.getByRole("button", { name: "Regenerate" }).click();
  await becomes(async () => asked().filter((r) => r.json.response_format).length, 2);
  await page.getByText(/tokens in/).waitFor();
  assert.equal(await page.locator(".turn.assistant").count(), 1);
});

test("the code of a call makes the same call", async (t) => {
  const { page, machineId } = await playground(t);
  const { apiKey } = await b.operator.call("POST", `/${machineId}/api/keys`, { name: "Code", scopes: ["data"] });
  const png = Buffer.from("89504e470d0a1a0a", "hex");
  const folder = mkdtempSync(join(import.meta.dirname, "../out/code-"));
  t.after(() => rmSync(folder, { recursive: true }));
  writeFileSync(join(folder, "image-1.png"), png);
  const run = (command, args, env = {}) =>
    promisify(execFile)(command, args, {
      cwd: folder,
      env: { PATH: process.env.PATH, WEIR_KEY: apiKey, ...env },
    }).then((r) => r.stdout);

  await page.getByText("Parameters", { exact: true }).click();
  await page.getByLabel("System prompt").fill(`It’s "odd": \`$(false)\` $HOME \\ 'x' True null`);
  await page.getByRole("button", { name: "Insert example tool" }).click();
  await page.getByLabel("Stop sequences").fill("END");
  await page.getByText("Parameters (3 set)").click();
  for (const pictures of [[], [{ name: "my image.png", mimeType: "image/png", buffer: png }]]) {
    await page.locator('input[type="file"]').setInputFiles(pictures);
    for (const p of pictures) await page.getByRole("img", { name: p.name }).waitFor();
    await page.getByLabel("Message").fill("repeat this");
    const texts = {};
    for (const language of ["curl", "Python", "Node.js"]) {
      texts[language] = await code(page, language);
      assert.ok(!texts[language].includes("sk-"), "no key is in the code");
      assert.equal(texts[language].includes("image-1.png"), pictures.length > 0, texts[language]);
    }
    await page.getByRole("button", { name: "Send" }).click();
    await page.getByText(/tokens in/).waitFor();
    const want = asked().at(-1).json;

    const curled = await run("bash", ["-c", texts.curl]);
    assert.ok(curled.includes("data: [DONE]"), curled);
    assert.deepEqual(asked().at(-1).json, want, "curl");
    writeFileSync(join(folder, "code.mjs"), texts["Node.js"]);
    assert.ok((await run(process.execPath, ["code.mjs"])).includes("repeat this"));
    assert.deepEqual(asked().at(-1).json, want, "Node.js");
    // OpenAI's library for Python is not here: this module writes down what it is called with.
    writeFileSync(
      join(folder, "openai.py"),
      `import json
class OpenAI:
    def __init__(self, base_url, api_key):
        print(json.dumps([base_url, api_key]))
        self.chat = self.completions = self
    def create(self, **body):
        print(json.dumps(body))
        return []
`,
    );
    writeFileSync(join(folder, "code.py"), texts.Python);
    const python = await run("python3", ["code.py"]).catch((e) => {
      if (e.code !== "ENOENT") throw e;
      return "";
    });
    if (python) {
      const [made, body] = python
        .trim()
        .split("\n")
        .map((l) => JSON.parse(l));
      assert.deepEqual(made, [`${b.url}/v1`, apiKey]);
      assert.deepEqual({ ...body, model: want.model }, want, "Python");
    } else t.diagnostic("Python is not installed");
    await page.getByRole("button", { name: "New chat" }).click();
  }
});

test("the other kinds of calls are shown as code", () => {
  for (const [path, body, want] of [
    ["/v1/embeddings", { model: "m", input: ["a"] }, "client.embeddings.create("],
    ["/v1/images/generations", { model: "m", prompt: "p" }, "client.images.generate("],
    ["/v1/audio/speech", { model: "m", input: "i", voice: "v" }, "client.audio.speech.create("],
    ["/v1/search", { model: "m", query: "q" }, 'client.post("/search", '],
  ]) {
    for (const language of ["python", "node"]) {
      const text = snippet(language, "https://gateway.example", path, body);
      assert.ok(text.includes(want) && text.includes("https://gateway.example/v1"), text);
    }
    assert.ok(snippet("curl", "https://gateway.example", path, body).includes(JSON.stringify(body)));
  }
});

test("inputs and results of the other kinds survive leaving the page", async (t) => {
  const { page } = await playground(t, "embeddings");
  await page.getByLabel("Texts").fill("one\ntwo");
  await page.getByRole("button", { name: "Compare" }).click();
  const table = page.getByRole("region", { name: "Similarity of the texts" });
  await table.waitFor();
  await page.getByRole("radio", { name: "Image", exact: true }).check();
  await page.getByLabel("Prompt").fill("A lock");
  await page.getByRole("link", { name: "Keys" }).click();
  await page.getByRole("heading", { level: 1, name: "Keys" }).waitFor();
  await page.goBack();
  await becomes(() => page.getByLabel("Prompt").inputValue(), "A lock");
  await page.getByRole("radio", { name: "Embeddings" }).check();
  await table.waitFor();
  assert.equal(await page.getByLabel("Texts", { exact: true }).inputValue(), "one\ntwo");
});

test("the machine’s default model is selected, and the address names another", async (t) => {
  const { machineId } = await b.operator.machine({ name: "Test" });
  await b.operator.connect(machineId, compatible(b.upstream));
  await b.operator.call("PATCH", `/${machineId}/api/settings`, { defaultModel: "up/vendor/nested-model" });
  const page = await open(t, b, { at: `#/m/${machineId}/playground` });
  await becomes(() => page.getByLabel("Model", { exact: true }).inputValue(), "up/vendor/nested-model");
  await page.goto(`${b.url}/#/m/${machineId}/keys`);
  await page.getByRole("heading", { level: 1, name: "Keys" }).waitFor();
  await page.goto(`${b.url}/#/m/${machineId}/playground?model=up%2Ftest-chat`);
  await becomes(() => page.getByLabel("Model", { exact: true }).inputValue(), "up/test-chat");
});

test("the first model is one of an account that works", async (t) => {
  const { machineId } = await b.operator.machine({ name: "Test" });
  const first = await b.operator.connect(machineId, compatible(b.upstream, { prefix: "aa" }));
  await b.operator.connect(machineId, compatible(b.upstream, { prefix: "bb", suffix: "beef0001" }));
  const page = await open(t, b, { at: `#/m/${machineId}/keys` });
  await page.route(`**/${machineId}/api/providers`, async (route) => {
    const { data } = await (await route.fetch()).json();
    const refused = data.map((c) => (c.id === first.id ? { ...c, health: "key_refused" } : c));
    await route.fulfill({ json: { data: refused } });
  });
  await page.goto(`${b.url}/#/m/${machineId}/playground`);
  await becomes(async () => (await page.getByLabel("Model", { exact: true }).inputValue()).split("/")[0], "bb");
});

test("a stream is stopped", async (t) => {
  const { page } = await playground(t);
  await page.getByLabel("Model", { exact: true }).fill("up/test-chat!slow=100!chunks=300");
  await page.getByLabel("Message").fill("a long story");
  await page.getByRole("button", { name: "Send" }).click();
  await holds(page, () => (document.querySelector(".turn.assistant .md")?.textContent.length ?? 0) > 0);
  await looks(page, "playground-streaming");
  await page.getByRole("button", { name: "Stop" }).click();
  await page.getByText(/^Stopped · /).waitFor();
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
  await page.locator(".turn.user").getByText("hello").waitFor(); // what was written is not lost
  await looks(page, "playground-refused");
  await page.getByLabel("Model", { exact: true }).fill("up/test-chat!chunks=5!reset-after=3");
  await page.getByRole("button", { name: "Try again" }).click();
  await page
    .getByRole("alert")
    .getByText(/ended|was lost|interrupted/i)
    .waitFor();
  assert.ok((await said(page).innerText()).length > 0, "what came stays");
});

test("a stream of another shape leaves the page usable", async (t) => {
  const { page } = await playground(t);
  const shapes = [
    "null",
    "5",
    '{"choices":null,"usage":{"prompt_tokens":null,"completion_tokens":"7"}}',
    '{"choices":[{"delta":{"content":["x"],"reasoning":{},"tool_calls":{}}}]}',
    '{"choices":[{"delta":{"tool_calls":[{"index":"__proto__"},{"index":1e9,"function":{"name":[],"arguments":{}}}]}}]}',
    '{"error":{"message":{}}}',
    "{",
  ];
  for (const shape of shapes) {
    await page.route("**/v1/chat/completions", (route) =>
      route.fulfill({ contentType: "text/event-stream", body: `data: ${shape}\n\ndata: [DONE]\n\n` }),
    );
    await say(page, "hello");
    await page
      .getByRole("alert")
      .or(page.getByText(/^[\d,]+ ms/))
      .first()
      .waitFor();
    await page.unroute("**/v1/chat/completions");
    await page.getByLabel("Message").waitFor();
    await page.getByRole("button", { name: "New chat" }).click();
    await page.getByText("Send a message to begin.").waitFor();
  }
  answers("still here");
  await say(page, "hello");
  await said(page).getByText("still here").waitFor();
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
  await holds(page, () => document.querySelector("audio").readyState >= 2);
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
  await holds(page, () => document.querySelector("img.made").naturalWidth === 1);
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
  await page.getByRole("button", { name: "Try again" }).click();
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
