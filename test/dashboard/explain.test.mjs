// The page that explains a request before it is sent.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { pasted, routingHeaders, shellWords } from "../../worker/dashboard/src/pages/explain/curl.ts";
import { compatible } from "../e2e/gateway.mjs";
import { becomes, bench, canary, looks, open, settled } from "./browser.mjs";

let b;
before(async () => {
  b = await bench();
});
after(() => b?.close());

async function explain(t, connections, options = {}) {
  const { machineId, apiKey } = await b.operator.machine({ name: "Test" });
  const made = [];
  for (const c of connections) made.push(await b.operator.connect(machineId, c));
  const page = await open(t, b, { at: `#/m/${machineId}/explain`, ...options });
  await page.getByRole("heading", { level: 1, name: "Explain" }).waitFor();
  await settled(page);
  return { page, machineId, apiKey, made };
}

test("accounts are listed in the order of attempts, and skipped ones with the reason", async (t) => {
  const accounts = ["First", "Second", "Third"].map((name, i) =>
    compatible(b.upstream, { name, prefix: "up", suffix: "cafe0001", apiKey: `key-${name}-0123456789`, priority: i }),
  );
  const { page, apiKey, machineId } = await explain(t, accounts);
  // The second one is limited: it cools down.
  b.upstream.script = (got) =>
    got.headers.authorization?.includes("First") || got.headers.authorization?.includes("Second")
      ? { status: 429, headers: { "retry-after": "300" }, body: `{"error":{"message":"slow down"}}` }
      : null;
  t.after(() => {
    b.upstream.script = null;
  });
  const res = await b.gateway.fetch("/v1/chat/completions", {
    method: "POST",
    headers: { authorization: `Bearer ${apiKey}`, "content-type": "application/json" },
    body: JSON.stringify({ model: "up/test-chat", messages: [{ role: "user", content: "hi" }] }),
  });
  await res.text();
  assert.equal(res.status, 200);
  b.upstream.script = null;
  // The cooldowns are reported after the answer.
  const left = async () =>
    (
      await b.operator.call("POST", `/${machineId}/api/explain`, {
        path: "/v1/chat/completions",
        body: { model: "up/test-chat", messages: [{ role: "user", content: "hi" }] },
      })
    ).plan.filter((s) => s.skipped).length;
  await becomes(left, 2);
  const calls = b.upstream.seen.length;
  await page
    .getByLabel("Body")
    .fill(JSON.stringify({ model: "up/test-chat", messages: [{ role: "user", content: "hi" }] }));
  await page.getByRole("button", { name: "Explain" }).click();
  const out = page.getByRole("list", { name: "Skipped accounts" });
  await out.getByText(/First as up\/test-chat: rate limited by the provider, ready in [45] min/).waitFor();
  await out.getByText(/Second as/).waitFor();
  const attempts = page.getByRole("list", { name: "Attempts" }).getByRole("listitem");
  assert.equal(await attempts.count(), 1);
  assert.match(await attempts.innerText(), /Third as up\/test-chat/);
  assert.match(await attempts.innerText(), /POST http:\/\/127\.0\.0\.1:\d+\/v1\/chat\/completions$/m);
  await looks(page, "explain");
  assert.equal(b.upstream.seen.length, calls, "no provider was called");

  await page.getByRole("combobox", { name: "Account" }).selectOption({ label: "First" });
  await page.getByRole("button", { name: "Explain" }).click();
  await page.getByText("the request names another account").first().waitFor();
  await page.getByText(/No account is available/).waitFor();
});

test("the account of the session is marked", async (t) => {
  const { page } = await explain(
    t,
    ["First", "Second"].map((name) => compatible(b.upstream, { name, prefix: "up", suffix: "cafe0002" })),
  );
  const body = { model: "up/test-chat", messages: [{ role: "user", content: "hi" }] };
  await page.getByLabel("Body").fill(JSON.stringify(body));
  await page.getByRole("button", { name: "Explain" }).click();
  await page.getByText("Sticky session, recognized by its first messages").waitFor();
  const steps = page.getByRole("list", { name: "Attempts" }).getByRole("listitem");
  assert.equal(await steps.filter({ hasText: "Account of the session" }).count(), 1);
  assert.match(await steps.first().innerText(), /Account of the session/);
  await looks(page, "explain-session");
});

test("translated and dropped fields are listed", async (t) => {
  const { page, machineId } = await explain(t, [
    { provider: "anthropic", name: "Claude", apiKey: "sk-ant-test-0123456789abcdef" },
  ]);
  const budget = { name: "Monthly", unit: "usd", limit: 1, window: "month" };
  await b.operator.call("POST", `/${machineId}/api/budgets`, budget);
  await page.getByLabel("Body").fill(
    JSON.stringify({
      model: "anthropic/claude-haiku-4-5",
      messages: [{ role: "user", content: "hi" }],
      stop: "x",
      seed: 7,
      logit_bias: { 1: 2 },
    }),
  );
  await page.getByLabel("Body").focus();
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  const step = page.getByRole("list", { name: "Attempts" }).getByRole("listitem");
  await step.waitFor();
  const told = await step.innerText();
  assert.match(told, /POST https:\/\/api\.anthropic\.com\/v1\/messages$/m);
  assert.match(told, /^Translated fields: messages, stop$/m);
  // Calls under way and those of unknown cost are not in it.
  assert.match(told, /Monthly \(reserves \$[0-9.]+ of at most \$1\.00 left\)/);
  const [, names] = /^Fields not sent: (.*)$/m.exec(told);
  assert.deepEqual(names.split(", ").sort(), ["logit_bias", "seed"]);
  assert.match(told, /^Set by weir: max_completion_tokens=[0-9]+$/m); // the budget's share
  await looks(page, "explain-translated");
});

test("a request that cannot be planned shows an error", async (t) => {
  const { page } = await explain(t, [], { failures: ["POST /* 400"] });
  await looks(page, "explain-empty");
  await page.getByLabel("Body").fill("{not json");
  await page.getByRole("button", { name: "Explain" }).click();
  await page.getByRole("alert").getByText("The body is not valid JSON").waitFor();
  await page
    .getByLabel("Body")
    .fill(JSON.stringify({ model: `nothing/${canary}`, messages: [{ role: "user", content: canary }] }));
  await page.getByRole("button", { name: "Explain" }).click();
  await page.getByRole("alert").getByText(/model/i).waitFor();
});

test("a pasted curl command sets the path and the body", async (t) => {
  const { page } = await explain(t, [compatible(b.upstream)]);
  await page.getByRole("button", { name: "Insert example" }).click();
  assert.match(JSON.parse(await page.getByLabel("Body").inputValue()).model, /^\w+\/./);
  const sample = page.getByText("An example. Without the request’s own token limit");
  await sample.waitFor();
  await page
    .getByLabel("Body")
    .fill(
      `curl '${b.url}/v1/embeddings' \\\n  -H "Authorization: Bearer $WEIR_KEY" \\\n  -d '{"model":"up/test-embed","input":"It'\\''s a test"}'`,
    );
  await sample.waitFor({ state: "detached" });
  await page.getByRole("button", { name: "Explain" }).click();
  const step = page.getByRole("list", { name: "Attempts" }).getByRole("listitem");
  await step.getByText("up/test-embed").waitFor();
  assert.match(await step.innerText(), /POST http:\/\/127\.0\.0\.1:\d+\/v1\/embeddings/);
  assert.equal(await page.getByLabel("Path").inputValue(), "/v1/embeddings");
  // Another page and back: nothing is lost.
  await page.getByRole("link", { name: "Usage" }).click();
  await page.getByRole("heading", { level: 1, name: "Usage" }).waitFor();
  await page.getByRole("link", { name: "Explain", exact: true }).click();
  await page.getByRole("heading", { level: 1, name: "Explain" }).waitFor();
  assert.match(await page.getByLabel("Body").inputValue(), /It'\\''s a test/);
  assert.equal(await page.getByLabel("Path").inputValue(), "/v1/embeddings");
});

test("the fields of a pasted command that decide on its route are explained", async (t) => {
  const accounts = ["First", "Second"].map((name) =>
    compatible(b.upstream, { name, prefix: "up", suffix: "cafe0003" }),
  );
  const { page, machineId, made } = await explain(t, accounts);
  const body = { model: "up/test-chat", messages: [{ role: "user", content: "hi" }] };
  for (const name of routingHeaders) {
    const headers = { [name]: name === "x-connection-id" ? made[0].id : "up" };
    await b.operator.call("POST", `/${machineId}/api/explain`, { path: "/v1/chat/completions", body, headers });
  }
  await page
    .getByLabel("Body")
    .fill(`curl ${b.url}/v1/chat/completions -H 'x-session-id: one' -d '${JSON.stringify(body)}'`);
  await page.getByRole("button", { name: "Explain" }).click();
  await page.getByText("Sticky session, recognized by x-session-id").waitFor();
});

test("a request of the list is explained with its session and its account", async (t) => {
  const accounts = ["First", "Second"].map((name) =>
    compatible(b.upstream, { name, prefix: "up", suffix: "cafe0004", priority: 0 }),
  );
  const { page, machineId, apiKey, made } = await explain(t, accounts);
  const call = async (content, headers = {}) => {
    const res = await b.gateway.fetch("/v1/chat/completions", {
      method: "POST",
      headers: { authorization: `Bearer ${apiKey}`, "content-type": "application/json", ...headers },
      body: JSON.stringify({ model: "up/test-chat", messages: [{ role: "user", content }] }),
    });
    await res.text();
    return { id: res.headers.get("x-request-id"), account: res.headers.get("x-weir-connection-id") };
  };
  // Two sessions, of which the example of the page can belong to one account only.
  const served = new Map();
  for (let i = 0; served.size < 2 && i < 40; i++) {
    const { id, account } = await call(`text ${i}`);
    served.set(account, id);
  }
  assert.equal(served.size, 2);
  const { id } = await call("pinned", { "x-connection-id": made[1].id });
  const explained = async (id) => {
    await page.goto(`${b.url}/#/m/${machineId}/requests/${id}`);
    await page.reload();
    await page.getByRole("link", { name: "Explain this request" }).click();
    const steps = page.getByRole("list", { name: "Attempts" }).getByRole("listitem");
    await steps.first().waitFor();
    return steps.first().innerText();
  };
  const listed = async () => (await b.operator.call("GET", `/${machineId}/api/requests`)).data.some((r) => r.id === id);
  await becomes(listed, true);
  for (const [account, id] of served) {
    const name = account === made[0].id ? "First" : "Second";
    assert.match(await explained(id), new RegExp(`^${name} `, "m"));
    await page.getByText("Session of the request in the list").waitFor();
  }
  assert.match(await explained(id), /^Second /m);
  await page.getByText("the request names another account").first().waitFor();
});

test("commands are split into words as a shell does", () => {
  for (const [text, want] of [
    [`a 'b c' "d e" f\\ g`, ["a", "b c", "d e", "f g"]],
    [`'it'\\''s' ""`, ["it's", ""]],
    ["a \\\n  b", ["a", "b"]],
    [`"a \\"b\\" \\$c \\n"`, [`a "b" $c \\n`]],
  ])
    assert.deepEqual(shellWords(text), want, text);
  const body = { model: "m" };
  for (const [text, path] of [
    [`{"model":"m"}`, undefined],
    [`curl https://host/v1/messages -d '{"model":"m"}'`, "/v1/messages"],
    [`$ curl -X POST --data-raw='{"model":"m"}' https://host/abc/v1/rerank?x=1`, "/abc/v1/rerank"],
    [`curl --json '{"model":"m"}' -H 'a: b' "https://host/v1/search"`, "/v1/search"],
    [`curl -d'{"model":"m"}' http://host/v1/responses`, "/v1/responses"],
    [`curl -H'Authorization: Bearer x' -d '{"model":"m"}' http://host/v1/responses`, "/v1/responses"],
  ])
    assert.deepEqual(pasted(text), path === undefined ? { body } : { path, body }, text);
  for (const field of ["-H 'X-Session-Id: a:b'", "--header=x-session-id:a:b", `-H "x-session-id: a:b" -H x:1`])
    assert.deepEqual(pasted(`curl ${field} -d '{"model":"m"}' https://host/v1/messages`), {
      path: "/v1/messages",
      body,
      headers: { "x-session-id": "a:b" },
    });
  for (const [text, why] of [
    ["curl https://host/v1/search", /no body/],
    ["curl -d @body.json https://host/", /in a file/],
    ["curl -d '{' https://host/", /not valid JSON/],
    ["{", /not valid JSON/],
  ]) {
    assert.throws(() => pasted(text), why, text);
  }
});
