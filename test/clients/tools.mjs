// The tools whose conversations are played, with the facts of docs/reference/clients.md
// that a gateway sees: paths, headers, fields, the tool for commands, and how the tool
// recognizes that a conversation is too long. Nothing of them is copied.
//
//	id, name    id is that of pkg/setup/tools.go
//	read        the version whose documentation or source was read, or the day of that
//	driver      of drivers.mjs
//	headers(at), body(at), query   what it sends besides; at has key, model, think
//	tools       its tools, the one for commands first
//	keeps       of drivers.mjs: fields of an answer that go back
//	full(e)     reports whether it takes a refusal for a conversation that is too long
//	compacts    what it does then: "summary" asks for a summary in its own words,
//	            "trigger" sends a compaction_trigger, "counts" counts tokens beforehand
//	shows       it shows thoughts
//	lists       its request for the list of models: {path, headers(at), ids(body)}

const schema = (properties, required = Object.keys(properties)) => ({
  type: "object",
  properties,
  required,
  additionalProperties: false,
});
const text = { type: "string" };
const shell = (name, properties = { command: text }, required) => ({
  name,
  description: "Runs a command in a shell.",
  schema: schema(properties, required),
});
const reader = (name, field = "path") => ({
  name,
  description: "Reads a file.",
  schema: schema({ [field]: text }),
});
const bearer = (at) => ({ authorization: `Bearer ${at.key}` });
const ids = (body) => body.data.map((m) => m.id);
const list = { path: "/v1/models", headers: bearer, ids };
const coded = (e) => e.status === 400 && e.body.error.code === "context_length_exceeded";
const worded = (pattern) => (e) => [400, 413, 422].includes(e.status) && pattern.test(e.text);
const effort = (at) => (at.think ? { reasoning_effort: "medium" } : {});

const codex = {
  id: "codex",
  name: "Codex CLI",
  read: "0.162",
  headers: (at) => ({
    session_id: "01a204a5-0000-7000-8000-000000000000",
    originator: "codex_exec",
    "user-agent": `codex_exec/0.162 (${at.model})`,
  }),
  body: (at) => ({
    instructions: "You are Codex.",
    store: false,
    include: ["reasoning.encrypted_content"],
    prompt_cache_key: "01a204a5-0000-7000-8000-000000000000",
    tool_choice: "auto",
    parallel_tool_calls: true,
    ...(at.think ? { reasoning: { effort: "medium", summary: "auto" } } : {}),
  }),
  tools: [
    shell("exec_command", { cmd: text, workdir: text, yield_time_ms: { type: "number" } }, ["cmd"]),
    { name: "update_plan", description: "Updates the plan.", schema: schema({ plan: { type: "array", items: text } }) },
  ],
  otherTools: [
    {
      type: "custom",
      name: "apply_patch",
      description: "Edits files.",
      format: { type: "grammar", syntax: "lark", definition: 'start: "x"' },
    },
    { type: "web_search" },
  ],
  full: (e) => e.code === "context_length_exceeded",
  shows: true,
  lists: {
    path: "/v1/models?client_version=0.162.0",
    headers: bearer,
    ids: (body) => body.models.map((m) => m.slug),
  },
};

export const tools = [
  {
    id: "claude-code",
    name: "Claude Code",
    read: "2.1.236",
    driver: "messages",
    query: "?beta=true",
    alias: "claude-weir/",
    headers: (at) => ({
      ...bearer(at),
      "anthropic-beta": "claude-code-20250219,interleaved-thinking-2025-05-14",
      "x-claude-code-session-id": "0c1a9f60-0000-4000-8000-000000000000",
      "user-agent": "claude-cli/2.1.236 (external, cli)",
      "x-stainless-lang": "js",
    }),
    body: (at) => ({
      system: [
        { type: "text", text: "x-anthropic-billing-header: cc_version=2.1.236; cc_entrypoint=cli;" },
        { type: "text", text: "You are Claude Code.", cache_control: { type: "ephemeral" } },
      ],
      metadata: {
        user_id: JSON.stringify({ device_id: "d".repeat(64), account_uuid: "", session_id: "s".repeat(36) }),
      },
      ...(at.think ? { thinking: { type: "adaptive" } } : {}),
    }),
    tools: [
      shell("Bash", { command: text, description: text, timeout: { type: "number" } }, ["command"]),
      reader("Read", "file_path"),
      shell(`mcp__plugin_long_server_name__${"tool_".repeat(8)}name`, { query: text }),
    ],
    full: worded(/prompt is too long|Input is too long for requested model|capability_rejected: prompt_too_long/),
    compacts: "summary",
    shows: true,
    lists: { path: "/v1/models?limit=1000", headers: bearer, ids },
  },
  { ...codex, driver: "responses", compacts: "summary" },
  { ...codex, name: "Codex CLI, WebSocket", driver: "socket", compacts: "trigger", lists: undefined },
  {
    id: "gemini-cli",
    name: "Gemini CLI",
    read: "2026-08-21",
    driver: "gemini",
    headers: (at) => ({
      "x-goog-api-client": "google-genai-sdk/2.18.0 gl-node/v24",
      "user-agent": `GeminiCLI/0.50.0/${at.model} (linux; x64)`,
    }),
    body: (at) => ({
      systemInstruction: { role: "user", parts: [{ text: "You are Gemini CLI." }] },
      generationConfig: {
        temperature: 1,
        topP: 0.95,
        ...(at.think ? { thinkingConfig: { includeThoughts: true } } : {}),
      },
    }),
    tools: [
      shell("run_shell_command", { command: text, description: text }, ["command"]),
      reader("read_file", "absolute_path"),
    ],
    full: worded(/exceeds the maximum number of tokens/),
    compacts: "counts",
    shows: true,
  },
  {
    id: "opencode",
    name: "OpenCode",
    read: "1.18",
    driver: "chat",
    headers: (at) => ({ "user-agent": "opencode/1.18", "x-session-affinity": `ses_${at.key.slice(-8)}` }),
    body: effort,
    tools: [
      shell("bash", { command: text, description: text, timeout: { type: "number" } }, ["command", "description"]),
      reader("read", "filePath"),
    ],
    keeps: ["reasoning_content"],
    full: (e) =>
      coded(e) && /prompt is too long|maximum context length is \d+ tokens|exceeds the context window/i.test(e.text),
    compacts: "summary",
    shows: true,
  },
  {
    id: "cline",
    name: "Cline",
    read: "2026-08-22",
    driver: "chat",
    body: effort,
    tools: [shell("execute_command", { command: text, requires_approval: { type: "boolean" } }), reader("read_file")],
    keeps: ["reasoning_content", "reasoning_details"],
    full: coded,
    compacts: "summary",
    shows: true,
    lists: list,
  },
  {
    id: "cline",
    name: "Roo Code",
    read: "2026-04-14",
    driver: "chat",
    // It marks the latest messages for the vendor's prompt cache.
    body: (at) => ({
      ...effort(at),
      parallel_tool_calls: true,
      messages: [
        { role: "system", content: [{ type: "text", text: "You are Roo.", cache_control: { type: "ephemeral" } }] },
        ...at.turns.map((t, i) =>
          t.role === "user" && typeof t.content === "string" && i >= at.turns.length - 2
            ? { ...t, content: [{ type: "text", text: t.content, cache_control: { type: "ephemeral" } }] }
            : t,
        ),
      ],
    }),
    tools: [shell("execute_command", { command: text, cwd: { type: ["string", "null"] } }), reader("read_file")],
    keeps: ["reasoning_content"],
    full: (e) =>
      e.status === 400 && /context (length|window)|maximum context|tokens exceed|too many tokens/i.test(e.text),
    compacts: "summary",
    shows: true,
    lists: list,
  },
  {
    id: "kilo",
    name: "Kilo CLI",
    read: "2026-11",
    driver: "chat",
    body: effort,
    tools: [shell("bash", { command: text, description: text }), reader("read", "filePath")],
    full: coded,
    compacts: "summary",
  },
  {
    id: "continue",
    name: "Continue",
    read: "2026-06-18",
    driver: "chat",
    tools: [shell("builtin_run_terminal_command"), reader("builtin_read_file", "filepath")],
    full: worded(/maximum context length|context_length_exceeded/),
    compacts: "summary",
    lists: list,
  },
  {
    id: "cursor",
    name: "Cursor",
    read: "2026-11",
    driver: "mixed",
    body: (at) => ({
      instructions: "You are an agent in an editor.",
      store: false,
      truncation: "auto",
      ...(at.think ? { reasoning: { effort: "medium", summary: "auto" } } : {}),
    }),
    tools: [shell("run_terminal_cmd", { command: text, is_background: { type: "boolean" } }), reader("read_file")],
    full: coded,
    compacts: "summary",
    lists: list,
  },
  {
    id: "zed",
    name: "Zed",
    read: "2026-11",
    driver: "chat",
    body: (at) => ({ parallel_tool_calls: false, temperature: 1, ...effort(at) }),
    tools: [shell("terminal", { command: text, cd: text }), reader("read_file")],
    full: coded,
    compacts: "summary",
  },
  {
    id: "aider",
    name: "Aider",
    read: "2026-05-22",
    driver: "chat",
    body: () => ({ temperature: 0 }),
    tools: [], // it edits by the text of answers
    full: worded(/maximum context length|prompt is too long/),
    compacts: "summary",
  },
  {
    id: "copilot-cli",
    name: "GitHub Copilot CLI",
    read: "2026-11",
    driver: "chat",
    tools: [shell("bash", { command: text, description: text, sessionId: text }, ["command"]), reader("view")],
    full: coded,
    compacts: "summary",
  },
  {
    id: "droid",
    name: "Droid",
    read: "2026-11",
    driver: "messages",
    headers: (at) => ({ "x-api-key": at.key, "user-agent": "factory-cli/0.60" }),
    body: () => ({ system: [{ type: "text", text: "You are Droid." }] }),
    tools: [
      shell("Execute", { command: text, timeout: { type: "integer" } }, ["command"]),
      reader("Read", "file_path"),
    ],
    full: worded(/prompt is too long|Input is too long for requested model/),
    compacts: "summary",
    shows: true,
  },
  {
    id: "crush",
    name: "Crush",
    read: "2026-08-21",
    driver: "chat",
    body: (at) => ({ max_tokens: 8192, ...effort(at) }),
    tools: [
      shell("bash", { command: text, description: text, working_dir: text }, ["command"]),
      reader("view", "file_path"),
    ],
    keeps: ["reasoning_content"],
    full: coded,
    compacts: "summary",
    shows: true,
    lists: list,
  },
  {
    id: "goose",
    name: "Goose",
    read: "2026-11",
    driver: "chat",
    tools: [shell("developer__shell"), reader("developer__text_editor")],
    full: coded,
    compacts: "summary",
  },
  {
    id: "qwen-code",
    name: "Qwen Code",
    read: "0.24",
    driver: "chat",
    body: effort,
    tools: [
      shell("run_shell_command", { command: text, is_background: { type: "boolean" }, description: text }, [
        "command",
        "is_background",
      ]),
      reader("read_file", "absolute_path"),
    ],
    keeps: ["reasoning_content"],
    full: coded,
    compacts: "summary",
    shows: true,
  },
  {
    id: "open-webui",
    name: "Open WebUI",
    read: "2026-11",
    driver: "chat",
    tools: [],
    full: coded,
    compacts: "summary",
    lists: list,
  },
  {
    id: "librechat",
    name: "LibreChat",
    read: "2026-11",
    driver: "chat",
    body: () => ({ user: "65f000000000000000000000", frequency_penalty: 0, presence_penalty: 0, top_p: 1 }),
    tools: [],
    full: coded,
    compacts: "summary",
    lists: list,
  },
];
