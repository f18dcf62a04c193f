// Set-up commands: the scripts of every tool run against the gateway, and leases that
// may not be used. See docs/clients.md.
// workerd: soak
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp, readdir, readFile, rm, stat } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import { start as startUpstream } from "../../upstream/server.mjs";
import { admin, compatible, secrets, start } from "../gateway.mjs";

const run = promisify(execFile);
let gw, up, operator, machineId, manage;
before(async () => {
  up = await startUpstream();
  gw = await start();
  operator = admin(gw);
  ({ machineId } = await operator.machine());
  await operator.connect(machineId, compatible(up));
  manage = (await api("POST", "/keys", { name: "manager", scopes: ["manage"] })).apiKey;
});
after(async () => {
  await gw?.close();
  await up?.close();
});

// PowerShell scripts use, beside their own functions, cmdlets of Windows PowerShell 5 by their
// full names, and variables that every script has.
const cmdlets = new Set(
  `Add-Member ConvertFrom-Json ConvertTo-Json Copy-Item ForEach-Object Get-ChildItem Get-Item Invoke-RestMethod Join-Path
   New-Item New-Object Out-Null Remove-Item Select-Object Set-StrictMode Split-Path Test-Path Where-Object Write-Host`.split(
    /\s+/,
  ),
);
const automatic = new Set(["$_", "$null", "$true", "$false", "$home", "$matches"]);

// problems returns what is wrong with a PowerShell script: syntax, commands that are not
// defined, and variables that are read and never set, which strict mode refuses.
async function problems(text) {
  const { Language, Parser } = createRequire(import.meta.url)("@vscode/tree-sitter-wasm");
  await Parser.init();
  const grammar = createRequire(import.meta.url).resolve("@vscode/tree-sitter-wasm/wasm/tree-sitter-powershell.wasm");
  const parser = new Parser();
  parser.setLanguage(await Language.load(grammar));
  const wrong = [];
  const set = new Set(automatic);
  const used = new Map();
  const functions = new Set();
  const called = [];
  const name = (n) => n.text.toLowerCase().replace(/^\$\{(.*)\}$/, "$$$1");
  const at = (n) => `line ${n.startPosition.row + 1}: ${n.text.slice(0, 60)}`;
  const visit = (n, setting) => {
    if (n.isError || n.isMissing) wrong.push(`syntax, ${at(n)}`);
    if (n.type === "pipeline_chain_tail" || n.text === "??") wrong.push(`not in PowerShell 5, ${at(n)}`);
    if (n.type === "function_name") functions.add(n.text.toLowerCase());
    if (n.type === "command_name") called.push(n);
    if (n.type === "variable") {
      if (setting) set.add(name(n));
      else if (!used.has(name(n))) used.set(name(n), n);
      return;
    }
    const loop = n.type === "foreach_statement" ? n.children.findIndex((c) => c.type === "variable") : -1;
    const sets = n.type === "left_assignment_expression" && !/[.[]/.test(n.text);
    n.children.forEach((c, i) => {
      visit(c, setting || sets || i === loop || (n.type === "script_parameter" && c.type === "variable"));
    });
  };
  visit(parser.parse(text).rootNode, false);
  for (const [v, n] of used) if (!set.has(v)) wrong.push(`never set, ${at(n)}`);
  for (const n of called)
    if (!functions.has(n.text.toLowerCase()) && !cmdlets.has(n.text)) wrong.push(`not defined, ${at(n)}`);
  return wrong;
}

test("the PowerShell scripts of all tools are free of mistakes that a parser finds", async () => {
  const list = await tools();
  assert.ok(list.length > 5);
  for (const { id } of list) {
    const res = await gw.fetch(`/setup/${id}.ps1`);
    assert.equal(res.status, 200, id);
    assert.deepEqual(await problems(await res.text()), [], id);
  }
  const text = await (await gw.fetch("/setup/codex.ps1")).text();
  for (const [part, mistake, why] of [
    ["function Restore {", "function Restore ", "syntax"],
    ["$hops++", "$hop++", "never set"],
    ["Get-Destination $files", "Get-Destinatoin $files", "not defined"],
    ["{ Restore }", "{ Restore && Install }", "not in PowerShell 5"],
  ])
    assert.match((await problems(text.replace(part, mistake))).join(), new RegExp(why));
});

const api = (method, path, body) => operator.call(method, `/${machineId}/api${path}`, body);
const leased = (tool = "codex", more = {}) => api("POST", "/setup", { tool, model: "up/test-chat", ...more });
const tools = async () => (await api("GET", "/setup")).data.filter((t) => t.script);

async function claim(body) {
  const res = await gw.fetch("/setup/claim", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: typeof body === "string" ? body : JSON.stringify(body),
  });
  const text = await res.text();
  return { status: res.status, headers: res.headers, text, body: JSON.parse(text) };
}

const chat = (key, model) =>
  gw.fetch("/v1/chat/completions", {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({ model, messages: [{ role: "user", content: "hi" }] }),
  });

// firstCall makes a call as a tool does, at the base URL of its configuration.
function firstCall(id, text, key) {
  const [base] = /http:\/\/[\d.:]+(\/v1)?/.exec(text),
    headers = { authorization: `Bearer ${key}`, "content-type": "application/json" },
    post = (path, body) =>
      fetch(base + path, { method: "POST", headers, body: JSON.stringify({ model: "up/test-chat", ...body }) });
  const messages = [{ role: "user", content: "hi" }];
  switch (id) {
    case "claude-code":
      return post("/v1/messages?beta=true", { max_tokens: 10, messages });
    case "codex":
      return post("/responses", { input: "hi", store: false });
    case "gemini-cli":
      return fetch(`${base}/v1beta/models`, { headers: { "x-goog-api-key": key } });
  }
  return post("/chat/completions", { messages });
}

// shell runs a command line with a home folder of its own.
const shell = (command, home) =>
  run("sh", ["-c", command], { env: { PATH: process.env.PATH, HOME: home, no_proxy: "*" } });

// filesOf lists the files in a folder, by their path in it.
async function filesOf(folder) {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  return entries.filter((e) => e.isFile()).map((e) => join(e.parentPath, e.name).slice(folder.length + 1));
}

test("the command of every tool writes its configuration with a key that works, and --undo removes it", async () => {
  const all = await tools();
  assert.ok(all.length >= 10);
  await Promise.all(
    all.map(async (tool) => {
      const home = await mkdtemp(join(tmpdir(), "weir-setup-"));
      try {
        const { command, lease, model, smallModel } = await leased(tool.id, { smallModel: "up/vendor/nested-model" });
        assert.deepEqual([model, smallModel], ["up/test-chat", "up/vendor/nested-model"]);
        assert.equal(
          command.sh,
          `curl -fsSL '${gw.url}/setup/${tool.id}.sh' | WEIR_LEASE='${lease}' sh -s -- '${gw.url}'`,
        );
        const { stdout } = await shell(command.sh, home);
        const written = tool.files.map((f) => f.replace("~/", ""));
        for (const file of written) assert.ok(stdout.includes(join(home, file)), `${tool.id}: ${stdout}`);
        const texts = await Promise.all(written.map((f) => readFile(join(home, f), "utf8")));
        const keys = new Set(texts.join("\n").match(/sk-[a-z0-9]{16}-[a-z0-9]+-[0-9a-f]{8}/g));
        assert.equal(keys.size, 1, `${tool.id}: ${texts}`);
        const [key] = keys;
        assert.ok(!stdout.includes(key), "the key is not printed");
        assert.ok(texts.join("\n").includes(gw.url) && texts.join("\n").includes("up/test-chat"), tool.id);
        for (const f of written) assert.equal((await stat(join(home, f))).mode & 0o77, 0, `${tool.id}: ${f}`);
        const res = await firstCall(tool.id, texts.join("\n"), key);
        assert.equal(res.status, 200, `${tool.id}: ${await res.text()}`);
        const row = (await api("GET", "/keys")).data.find((k) => k.last4 === key.slice(-4) && k.name === tool.name);
        assert.deepEqual(row?.scopes, ["data"]);

        // The texts of the list are those files.
        const shown = tool.texts.map((t) =>
          t.text
            .replaceAll("__URL__", gw.url)
            .replaceAll("__KEY__", key)
            .replaceAll("__MODEL__", model)
            .replaceAll("__SMALL__", smallModel),
        );
        for (const [i, text] of texts.entries())
          if (tool.texts[i].language === "json") assert.deepEqual(JSON.parse(text), JSON.parse(shown[i]));
          else assert.equal(text, `${shown[i]}\n`);

        const again = await shell(command.sh, home).catch((e) => e);
        assert.match(again.stderr, /^weir: This set-up command was used already, or has expired\./);
        await shell(`curl -fsSL '${gw.url}/setup/${tool.id}.sh' | sh -s -- --undo`, home);
        assert.deepEqual(await filesOf(home), []);
      } finally {
        await rm(home, { recursive: true, force: true });
      }
    }),
  );
});

test("a lease becomes one key, whoever asks at the same time", async () => {
  const before = (await api("GET", "/keys")).data.length;
  const { lease } = await leased();
  const got = await Promise.all(Array.from({ length: 10 }, () => claim({ lease, tool: "codex" })));
  assert.deepEqual(got.map((r) => r.status).sort(), [200, ...Array(9).fill(403)]);
  const ok = got.find((r) => r.status === 200);
  assert.equal(ok.headers.get("cache-control"), "no-store");
  assert.deepEqual(Object.keys(ok.body), ["apiKey", "model", "smallModel"]);
  assert.equal((await api("GET", "/keys")).data.length, before + 1);
  assert.equal((await chat(ok.body.apiKey, "up/test-chat")).status, 200);
});

test("a lease that was used, changed, or is of another machine or tool is refused", async () => {
  const other = await operator.machine();
  const used = (await leased()).lease;
  assert.equal((await claim({ lease: used, tool: "codex" })).status, 200);
  const { lease } = await leased();
  const last = lease.endsWith("0") ? "1" : "0";
  for (const bad of [
    used,
    lease.slice(0, -1) + last,
    lease.replace(machineId, other.machineId),
    lease.replace(machineId, "neverexisting000"),
    lease.replace("setup-", "sk-"),
    manage,
    secrets.ADMIN_TOKEN,
    "",
  ]) {
    const res = await claim({ lease: bad, tool: "codex" });
    assert.deepEqual([res.status, res.body.error.code], [403, "invalid_lease"], `${bad}: ${res.text}`);
    assert.equal(res.headers.get("access-control-allow-origin"), null);
  }
  for (const [body, status, param] of [
    ["", 400, null],
    ["{", 400, null],
    ["[]", 400, null],
    [{ lease, tool: "opencode" }, 400, "tool"],
    [{ lease: 5, tool: "codex" }, 400, "lease"],
    [{ lease, tool: "codex", key: "x" }, 400, "key"],
    [`{"lease":"${lease}","lease":"${lease}","tool":"codex"}`, 400, "lease"],
    [{ lease: "x".repeat(600), tool: "codex" }, 400, "lease"],
    [{ lease: "x".repeat(5000), tool: "codex" }, 413, null],
  ]) {
    const res = await claim(body);
    assert.equal(res.status, status, `${JSON.stringify(body).slice(0, 100)}: ${res.text}`);
    if (param) assert.equal(res.body.error.param, param, res.text);
  }
  assert.equal((await claim({ lease, tool: "codex" })).status, 200, "none of these used the lease");
  assert.equal((await gw.fetch("/v1/models", { headers: { authorization: `Bearer ${lease}` } })).status, 401);
});

test("a revoked manager's commands end with the manager", async () => {
  const { id, apiKey } = await api("POST", "/keys", { name: "brief", scopes: ["manage"] });
  const res = await gw.fetch("/api/setup", {
    method: "POST",
    headers: { authorization: `Bearer ${apiKey}`, "content-type": "application/json" },
    body: JSON.stringify({ tool: "codex", model: "up/test-chat" }),
  });
  assert.equal(res.status, 201);
  const { lease } = await res.json();
  await api("DELETE", `/keys/${id}`);
  assert.equal((await claim({ lease, tool: "codex" })).status, 403);
});

test("the machine's default models are filled in", async () => {
  const without = await api("POST", "/setup", { tool: "codex" }).catch((e) => e);
  assert.deepEqual([without.status, without.body.error.param], [400, "model"]);
  await api("PATCH", "/settings", { defaultModel: "up/test-chat", smallModel: "up/vendor/nested-model" });
  const got = await api("POST", "/setup", { tool: "codex" });
  assert.deepEqual([got.model, got.smallModel], ["up/test-chat", "up/vendor/nested-model"]);
  const list = await api("GET", "/setup");
  assert.deepEqual([list.model, list.smallModel], ["up/test-chat", "up/vendor/nested-model"]);
  await api("PATCH", "/settings", { defaultModel: null, smallModel: null });
  assert.equal((await api("GET", "/settings")).defaultModel, undefined);
});

test("a script is static, and is neither a page nor readable by other sites", async () => {
  for (const tool of await tools())
    for (const extension of ["sh", "ps1"]) {
      const path = `/setup/${tool.id}.${extension}`,
        res = await gw.fetch(path, { headers: { origin: "https://evil.example" } }),
        text = await res.text();
      assert.equal(res.status, 200);
      assert.equal(res.headers.get("content-type"), "text/plain; charset=utf-8");
      assert.equal(res.headers.get("x-content-type-options"), "nosniff");
      assert.equal(res.headers.get("access-control-allow-origin"), null);
      assert.equal(await (await gw.fetch(path, { headers: { host: "other.example" } })).text(), text);
      assert.ok(!text.includes(gw.url) && !text.includes(machineId));
    }
  for (const path of [
    "/setup/nothing.sh",
    "/setup/codex",
    "/setup/codex.bat",
    "/setup/curl.sh",
    "/setup/..%2fcodex.sh",
    "/setup/",
    "/setup",
  ])
    assert.equal((await gw.fetch(path)).status, 404, path);
  assert.equal((await gw.fetch("/setup/claim")).status, 405);
  assert.equal((await gw.fetch("/setup/codex.sh", { method: "POST" })).status, 405);
});

test("no lease and no key reaches the log", async () => {
  const { lease } = await leased();
  const { body } = await claim({ lease, tool: "codex" });
  const text = gw.logs.join("\n");
  assert.ok(!text.includes(lease) && !text.includes(body.apiKey));
});
