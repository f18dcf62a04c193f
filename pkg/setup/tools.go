// Package setup has what tools and libraries need to use the gateway: one table, from
// which the set-up scripts, the texts of the dashboard and docs/guides are rendered.
//
// The facts of each tool are those of docs/reference/clients.md.
package setup

// Placeholders in the values, paths and texts of a Tool.
const (
	urlMark   = "__URL__"   // scheme and host of the gateway
	keyMark   = "__KEY__"   // API key
	modelMark = "__MODEL__" // default model
	smallMark = "__SMALL__" // model of background work: titles, summaries
)

// Kind groups the tools in lists.
type Kind string

// The kinds of tools.
const (
	Coding  Kind = "coding"  // coding agents and editors
	App     Kind = "app"     // chat front ends and automation
	Library Kind = "library" // SDKs and frameworks
)

// Tool is a program or a library that calls the gateway. It has Files, which the
// set-up script writes, or Texts, which its user copies.
type Tool struct {
	ID, Name string
	Kind     Kind
	Files    []File
	Texts    []Text
	Notes    []string // sentences that its user must know
	// Public: servers of the tool's vendor make the calls, so the gateway needs an address of
	// the internet.
	Public bool
	// Unset are environment variables that take the place of what the script writes.
	Unset []string
}

// Text is a text to copy, and where it belongs.
type Text struct {
	Where    string `json:"where"`
	Language string `json:"language"` // of the fence in Markdown
	Text     string `json:"text"`
}

// File is a configuration file of a tool. Its path is NAME in the folder that the
// environment variable Root names, or else in the folder Home of the user's.
type File struct {
	Root, Home, Name string
	Or               string // the name of a file that is edited instead if it exists
	Format           Format
	Edits            []Edit
}

// Path returns the path as people write it.
func (f *File) Path() string {
	if f.Home == "" {
		return "~/" + f.Name
	}
	return "~/" + f.Home + "/" + f.Name
}

// Format is how a configuration file is written.
type Format string

// The formats. YAML files are edited at their top level only.
const (
	JSON Format = "json" // with comments and trailing commas
	TOML Format = "toml"
	YAML Format = "yaml"
	Env  Format = "env" // NAME=value lines
)

// Edit is a change of a configuration file.
type Edit struct {
	Op Op
	// Path is the names on the way to the value, with dots between. Placeholders in it
	// are replaced after it has been split.
	Path string
	// Value is written as the format has it, on one line. With Item and YAML it is the
	// lines of a mapping.
	Value string
	// Match is the member that identifies an item of a JSON list. Items of a YAML list
	// are identified by their first line.
	Match string
}

// Op is the kind of an Edit.
type Op string

// The kinds of edits.
const (
	Set     Op = "set"     // replaces the value, or adds it
	Default Op = "default" // adds the value unless there is one
	Item    Op = "item"    // replaces the item of a list, or adds it
)

func set(path, value string) Edit { return Edit{Op: Set, Path: path, Value: value} }

// openCode are the settings of OpenCode and of tools that took over its format.
func openCode(schema string) []Edit {
	return []Edit{
		{Op: Default, Path: "$schema", Value: `"` + schema + `"`},
		set("model", `"weir/__MODEL__"`),
		set("small_model", `"weir/__SMALL__"`),
		set("provider.weir.npm", `"@ai-sdk/openai-compatible"`),
		set("provider.weir.name", `"weir"`),
		set("provider.weir.options.baseURL", `"__URL__/v1"`),
		set("provider.weir.options.apiKey", `"__KEY__"`),
		{Op: Default, Path: "provider.weir.models.__MODEL__", Value: `{}`},
		{Op: Default, Path: "provider.weir.models.__SMALL__", Value: `{}`},
	}
}

// Tools are the tools, in the order of lists.
var Tools = [...]Tool{
	{
		ID: "claude-code", Name: "Claude Code", Kind: Coding,
		Files: []File{{Root: "CLAUDE_CONFIG_DIR", Home: ".claude", Name: "settings.json", Format: JSON, Edits: []Edit{
			set("env.ANTHROPIC_BASE_URL", `"__URL__"`),
			set("env.ANTHROPIC_AUTH_TOKEN", `"__KEY__"`),
			set("env.ANTHROPIC_MODEL", `"__MODEL__"`),
			set("env.ANTHROPIC_DEFAULT_HAIKU_MODEL", `"__SMALL__"`),
			set("env.CLAUDE_CODE_ENABLE_GATEWAY_MODEL_DISCOVERY", `"1"`),
		}}},
		Unset: []string{"ANTHROPIC_API_KEY"},
		Notes: []string{
			"The base URL does not end with /v1.",
		},
	},
	{
		ID: "codex", Name: "Codex CLI", Kind: Coding,
		Files: []File{{Root: "CODEX_HOME", Home: ".codex", Name: "config.toml", Format: TOML, Edits: []Edit{
			set("model", `"__MODEL__"`),
			set("model_provider", `"weir"`),
			set("model_providers.weir.name", `"weir"`),
			set("model_providers.weir.base_url", `"__URL__/v1"`),
			set("model_providers.weir.experimental_bearer_token", `"__KEY__"`),
			set("model_providers.weir.wire_api", `"responses"`),
		}}},
		Notes: []string{
			"The file contains the key. To take it from the environment instead, replace experimental_bearer_token with env_key = \"WEIR_KEY\".",
			"Codex 0.156 and newer read the context windows of the models if the table model_providers.weir also has model_catalog_url: the base_url with /models at its end.",
		},
	},
	{
		ID: "gemini-cli", Name: "Gemini CLI", Kind: Coding,
		Files: []File{
			{Home: ".gemini", Name: ".env", Format: Env, Edits: []Edit{
				set("GOOGLE_GEMINI_BASE_URL", `__URL__`),
				set("GEMINI_API_KEY", `__KEY__`),
				set("GEMINI_MODEL", `__MODEL__`),
			}},
			{Home: ".gemini", Name: "settings.json", Format: JSON, Edits: []Edit{
				set("security.auth.selectedType", `"gemini-api-key"`),
			}},
		},
		Unset: []string{"GOOGLE_API_KEY"},
		Notes: []string{
			"The base URL does not end with /v1beta, and must begin with https:// unless the host is localhost, 127.0.0.1 or [::1].",
			"A file .env in the project's folder takes the place of ~/.gemini/.env.",
			"Gemini CLI reads ~/.gemini/.env only in folders that you trust: it asks at its first start in a folder; without a terminal pass --skip-trust.",
		},
	},
	{
		ID: "opencode", Name: "OpenCode", Kind: Coding,
		Files: []File{{Root: "XDG_CONFIG_HOME", Home: ".config", Name: "opencode/opencode.json",
			Or: "opencode/opencode.jsonc", Format: JSON, Edits: openCode("https://opencode.ai/config.json")}},
		Notes: []string{
			"OpenCode compacts long sessions only for models with a limit: add \"limit\": {\"context\": …, \"output\": …} to each.",
			"It sends pictures only to models that are marked: add \"attachment\": true and \"modalities\": {\"input\": [\"text\", \"image\"], \"output\": [\"text\"]} to each that accepts them.",
		},
	},
	{
		ID: "kilo", Name: "Kilo CLI", Kind: Coding,
		Files: []File{{Root: "XDG_CONFIG_HOME", Home: ".config", Name: "kilo/config.json", Format: JSON,
			Edits: openCode("https://kilo.ai/config.json")}},
	},
	{
		ID: "crush", Name: "Crush", Kind: Coding,
		Files: []File{{Root: "XDG_CONFIG_HOME", Home: ".config", Name: "crush/crush.json", Format: JSON, Edits: []Edit{
			set("providers.weir.name", `"weir"`),
			set("providers.weir.type", `"openai-compat"`),
			set("providers.weir.base_url", `"__URL__/v1"`),
			set("providers.weir.api_key", `"__KEY__"`),
			{Op: Item, Path: "providers.weir.models", Match: "id",
				Value: `{"id": "__MODEL__", "name": "__MODEL__", "context_window": 200000, "default_max_tokens": 8192}`},
			{Op: Item, Path: "providers.weir.models", Match: "id",
				Value: `{"id": "__SMALL__", "name": "__SMALL__", "context_window": 200000, "default_max_tokens": 8192}`},
			set("models.large.provider", `"weir"`),
			set("models.large.model", `"__MODEL__"`),
			set("models.small.provider", `"weir"`),
			set("models.small.model", `"__SMALL__"`),
		}}},
		Notes: []string{"Set context_window and default_max_tokens to those of your model. A file crushrc has precedence over crush.json."},
	},
	{
		ID: "droid", Name: "Droid", Kind: Coding,
		Files: []File{{Home: ".factory", Name: "settings.json", Format: JSON, Edits: []Edit{
			{Op: Item, Path: "customModels", Match: "displayName",
				Value: `{"model": "__MODEL__", "displayName": "__MODEL__ (weir)", "baseUrl": "__URL__/v1", "apiKey": "__KEY__", "provider": "generic-chat-completion-api", "maxOutputTokens": 16384}`},
			{Op: Item, Path: "customModels", Match: "displayName",
				Value: `{"model": "__SMALL__", "displayName": "__SMALL__ (weir)", "baseUrl": "__URL__/v1", "apiKey": "__KEY__", "provider": "generic-chat-completion-api", "maxOutputTokens": 16384}`},
		}}},
		Notes: []string{"Select the model with /model."},
	},
	{
		ID: "qwen-code", Name: "Qwen Code", Kind: Coding,
		Files: []File{{Home: ".qwen", Name: "settings.json", Format: JSON, Edits: []Edit{
			set("env.WEIR_KEY", `"__KEY__"`),
			{Op: Item, Path: "modelProviders.openai", Match: "name",
				Value: `{"id": "__MODEL__", "name": "__MODEL__ (weir)", "envKey": "WEIR_KEY", "baseUrl": "__URL__/v1"}`},
			{Op: Item, Path: "modelProviders.openai", Match: "name",
				Value: `{"id": "__SMALL__", "name": "__SMALL__ (weir)", "envKey": "WEIR_KEY", "baseUrl": "__URL__/v1"}`},
			set("security.auth.selectedType", `"openai"`),
			set("model.name", `"__MODEL__"`),
		}}},
		Notes: []string{"Qwen Code guesses from a model's name whether it accepts pictures and how long its context is. To say so, add \"generationConfig\": {\"modalities\": {\"image\": true}, \"contextWindowSize\": …} to its entry."},
	},
	{
		ID: "aider", Name: "Aider", Kind: Coding,
		Files: []File{{Name: ".aider.conf.yml", Format: YAML, Edits: []Edit{
			set("model", `"openai/__MODEL__"`),
			set("weak-model", `"openai/__SMALL__"`),
			set("openai-api-base", `"__URL__/v1"`),
			set("openai-api-key", `"__KEY__"`),
		}}},
		Notes: []string{"The prefix openai/ chooses Aider's OpenAI client; the rest is the gateway's model name."},
	},
	{
		ID: "continue", Name: "Continue", Kind: Coding,
		Files: []File{{Home: ".continue", Name: "config.yaml", Format: YAML, Edits: []Edit{
			{Op: Default, Path: "name", Value: `weir`},
			{Op: Default, Path: "version", Value: `1.0.0`},
			{Op: Default, Path: "schema", Value: `v1`},
			{Op: Item, Path: "models", Value: "name: \"__MODEL__ (weir)\"\nprovider: openai\nmodel: \"__MODEL__\"\napiBase: \"__URL__/v1\"\napiKey: \"__KEY__\"\nroles: [chat, edit, apply]"},
		}}},
	},
	{
		ID: "raycast", Name: "Raycast", Kind: App,
		Files: []File{{Home: ".config", Name: "raycast/ai/providers.yaml", Format: YAML, Edits: []Edit{
			{Op: Item, Path: "providers", Value: "id: weir\nname: weir\nbase_url: \"__URL__/v1\"\napi_keys:\n  weir: \"__KEY__\"\nmodels:\n  - id: \"__MODEL__\"\n    name: \"__MODEL__\"\n    provider: weir\n    context: 200000\n    abilities:\n      tools:\n        supported: true"},
		}}},
		Notes: []string{"Set context to that of your model."},
	},
	{
		ID: "cline", Name: "Cline, Roo Code, Kilo for VS Code", Kind: Coding,
		Texts: []Text{{"In the settings of the extension", "text",
			"API Provider: OpenAI Compatible\nBase URL: __URL__/v1\nAPI Key: __KEY__\nModel ID: __MODEL__"}},
	},
	{
		ID: "cursor", Name: "Cursor", Kind: Coding,
		Texts: []Text{{"In Settings → Models", "text",
			"OpenAI API Key: __KEY__\nOverride OpenAI Base URL: __URL__/v1\nModel: __MODEL__"}},
		Public: true,
		Notes: []string{
			"Cursor's servers make the calls: the gateway needs a public https:// address.",
			"A gateway on your computer gets one by a tunnel: cloudflared tunnel --url http://127.0.0.1:8787 prints it. Open the dashboard there, and use that address here.",
			"Whoever knows the address of a tunnel can call it, but not without a key: give the key a limit, and end the tunnel when you are done.",
		},
	},
	{
		ID: "zed", Name: "Zed", Kind: Coding,
		Texts: []Text{
			{"In settings.json (command “zed: open settings”)", "json", `{
  "language_models": {
    "openai_compatible": {
      "weir": {
        "api_url": "__URL__/v1",
        "available_models": [
          { "name": "__MODEL__", "display_name": "__MODEL__", "max_tokens": 200000, "max_output_tokens": 8192 }
        ]
      }
    }
  }
}`},
			{"In the shell that starts Zed, or as the key in its agent settings", "sh", "export WEIR_API_KEY='__KEY__'"},
		},
		Notes: []string{"Set max_tokens to the context window of your model."},
	},
	{
		ID: "copilot-cli", Name: "GitHub Copilot CLI", Kind: Coding,
		Texts: []Text{{"In a shell", "sh", "export COPILOT_PROVIDER_BASE_URL='__URL__/v1'\nexport COPILOT_PROVIDER_API_KEY='__KEY__'\nexport COPILOT_MODEL='__MODEL__'\ncopilot"}},
		Notes: []string{"The model needs tools and streaming; a context window of 128,000 tokens or more is advised."},
	},
	{
		ID: "copilot-vscode", Name: "GitHub Copilot in VS Code", Kind: Coding,
		Texts: []Text{{"In chatLanguageModels.json (command “Chat: Manage Language Models”, Custom Endpoint)", "json", `[
  {
    "vendor": "customendpoint",
    "name": "weir",
    "apiKey": "__KEY__",
    "apiType": "chat-completions",
    "models": [
      {
        "id": "__MODEL__",
        "name": "__MODEL__",
        "url": "__URL__/v1/chat/completions",
        "toolCalling": true,
        "vision": true,
        "maxInputTokens": 128000,
        "maxOutputTokens": 8192
      }
    ]
  }
]`}},
		Notes: []string{"Set the numbers of tokens to those of your model."},
	},
	{
		ID: "goose", Name: "Goose", Kind: Coding,
		Texts: []Text{{"In a shell", "sh", "export GOOSE_PROVIDER=openai\nexport GOOSE_MODEL='__MODEL__'\nexport OPENAI_HOST='__URL__'\nexport OPENAI_API_KEY='__KEY__'\ngoose"}},
		Notes: []string{"The base URL does not end with /v1."},
	},
	{
		ID: "open-webui", Name: "Open WebUI", Kind: App,
		Texts: []Text{{"In the environment of its server, or in Admin Settings → Connections", "text",
			"OPENAI_API_BASE_URLS=__URL__/v1\nOPENAI_API_KEYS=__KEY__"}},
	},
	{
		ID: "librechat", Name: "LibreChat", Kind: App,
		Texts: []Text{
			{"In librechat.yaml", "yaml", `endpoints:
  custom:
    - name: "weir"
      apiKey: "${WEIR_KEY}"
      baseURL: "__URL__/v1"
      models:
        default: ["__MODEL__"]
        fetch: true
      titleConvo: true
      titleModel: "__SMALL__"`},
			{"In .env", "text", "WEIR_KEY=__KEY__"},
		},
	},
	{
		ID: "n8n", Name: "n8n", Kind: App,
		Texts: []Text{{"In a credential of type OpenAI", "text", "API Key: __KEY__\nBase URL: __URL__/v1"}},
	},
	{
		ID: "curl", Name: "curl", Kind: Library,
		Texts: []Text{{"In a shell", "sh", `curl '__URL__/v1/chat/completions' \
  -H 'Authorization: Bearer __KEY__' \
  -H 'Content-Type: application/json' \
  -d '{"model":"__MODEL__","max_completion_tokens":1000,"messages":[{"role":"user","content":"Hello"}]}'`}},
	},
	{
		ID: "openai-python", Name: "OpenAI, Python", Kind: Library,
		Texts: []Text{{"pip install openai", "python", `from openai import OpenAI

client = OpenAI(base_url="__URL__/v1", api_key="__KEY__")
answer = client.chat.completions.create(
    model="__MODEL__",
    messages=[{"role": "user", "content": "Hello"}],
)
print(answer.choices[0].message.content)`}},
	},
	{
		ID: "openai-node", Name: "OpenAI, Node", Kind: Library,
		Texts: []Text{{"npm install openai", "js", `import OpenAI from "openai";

const client = new OpenAI({ baseURL: "__URL__/v1", apiKey: "__KEY__" });
const answer = await client.chat.completions.create({
  model: "__MODEL__",
  messages: [{ role: "user", content: "Hello" }],
});
console.log(answer.choices[0].message.content);`}},
	},
	{
		ID: "anthropic-python", Name: "Anthropic, Python", Kind: Library,
		Texts: []Text{{"pip install anthropic", "python", `from anthropic import Anthropic

client = Anthropic(base_url="__URL__", api_key="__KEY__")
answer = client.messages.create(
    model="__MODEL__",
    max_tokens=1024,
    messages=[{"role": "user", "content": "Hello"}],
)
print(answer.content[0].text)`}},
	},
	{
		ID: "anthropic-node", Name: "Anthropic, Node", Kind: Library,
		Texts: []Text{{"npm install @anthropic-ai/sdk", "js", `import Anthropic from "@anthropic-ai/sdk";

const client = new Anthropic({ baseURL: "__URL__", apiKey: "__KEY__" });
const answer = await client.messages.create({
  model: "__MODEL__",
  max_tokens: 1024,
  messages: [{ role: "user", content: "Hello" }],
});
console.log(answer.content[0].text);`}},
	},
	{
		ID: "google-genai", Name: "Google Gen AI, Node", Kind: Library,
		Texts: []Text{{"npm install @google/genai", "js", `import { GoogleGenAI } from "@google/genai";

const client = new GoogleGenAI({ apiKey: "__KEY__", httpOptions: { baseUrl: "__URL__" } });
const answer = await client.models.generateContent({ model: "__MODEL__", contents: "Hello" });
console.log(answer.text);`}},
		Notes: []string{"The base URL does not end with /v1beta."},
	},
	{
		ID: "ai-sdk", Name: "AI SDK", Kind: Library,
		Texts: []Text{{"npm install ai @ai-sdk/openai-compatible", "js", `import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText } from "ai";

const weir = createOpenAICompatible({ name: "weir", baseURL: "__URL__/v1", apiKey: "__KEY__" });
const { text } = await generateText({ model: weir("__MODEL__"), prompt: "Hello" });
console.log(text);`}},
		Notes: []string{"With @ai-sdk/openai use .chat(model) for models of other providers: a translated answer is not stored. @ai-sdk/anthropic takes a base URL that ends with /v1."},
	},
	{
		ID: "langchain", Name: "LangChain, Python", Kind: Library,
		Texts: []Text{{"pip install langchain-openai", "python", `from langchain_openai import ChatOpenAI

model = ChatOpenAI(base_url="__URL__/v1", api_key="__KEY__", model="__MODEL__")
print(model.invoke("Hello").content)`}},
	},
	{
		ID: "llamaindex", Name: "LlamaIndex", Kind: Library,
		Texts: []Text{{"pip install llama-index-llms-openai-like", "python", `from llama_index.llms.openai_like import OpenAILike

model = OpenAILike(
    api_base="__URL__/v1",
    api_key="__KEY__",
    model="__MODEL__",
    is_chat_model=True,
    is_function_calling_model=True,
    context_window=128000,
)
print(model.complete("Hello"))`}},
		Notes: []string{"Set context_window to that of your model."},
	},
	{
		ID: "litellm", Name: "LiteLLM, Python", Kind: Library,
		Texts: []Text{{"pip install litellm", "python", `from litellm import completion

answer = completion(
    model="openai/__MODEL__",
    api_base="__URL__/v1",
    api_key="__KEY__",
    messages=[{"role": "user", "content": "Hello"}],
)
print(answer.choices[0].message.content)`}},
		Notes: []string{"The prefix openai/ chooses LiteLLM's OpenAI client; the rest is the gateway's model name."},
	},
}

// Lookup returns a tool by its id, or nil.
func Lookup(id string) *Tool {
	for i := range Tools {
		if Tools[i].ID == id {
			return &Tools[i]
		}
	}
	return nil
}
