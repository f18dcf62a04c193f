package setup

import "strings"

// Tools that a request comes from, besides those of Tools, and classes of them.
const (
	OtherTool = "other"   // an unknown user agent, or none
	Browser   = "browser" // a page
)

// userAgents are beginnings of the field User-Agent, in lower case, and the tools that send them.
// Of two beginnings that match, the first one counts. The source is the tool's own code, or what
// gateways have seen of it.
var userAgents = [...]struct{ begins, tool string }{
	{"claude-cli/", "claude-code"},
	{"claude-code/", "claude-code"},
	{"codex_", "codex"}, // codex_cli_rs, codex_exec, codex_vscode, codex_sdk_ts, codex_app
	{"codex-", "codex"}, // codex-tui
	{"codex/", "codex"},
	{"codex ", "codex"}, // Codex Desktop
	{"geminicli/", "gemini-cli"},
	{"geminicli-", "gemini-cli"}, // GeminiCLI-client
	{"opencode/", "opencode"},
	{"qwencode/", "qwen-code"},
	{"kilo-code/", "kilo"},
	{"kilo/", "kilo"},
	{"charm-crush/", "crush"},
	{"crush/", "crush"},
	{"factory-cli/", "droid"},
	{"cline/", "cline"},
	{"roocode/", "roo-code"},
	{"roo-code", "roo-code"},
	{"continue/", "continue"},
	{"aider/", "aider"},
	{"cursor/", "cursor"},
	{"zed/", "zed"},
	{"goose/", "goose"},
	{"githubcopilotchat/", "copilot-vscode"},
	{"copilot/", "copilot-cli"}, // copilot/1.0 (client/cli …)
	{"github-copilot", "copilot-cli"},
	{"kimi", "kimi-cli"}, // kimi-code-cli, KimiCLI
	{"pi/", "pi"},
	{"raycast/", "raycast"},
	{"cherrystudio/", "cherry-studio"},
	{"n8n", "n8n"},
	{"librechat/", "librechat"},
	{"open-webui", "open-webui"},
	{"openai/python", "openai-python"},
	{"asyncopenai/python", "openai-python"},
	{"azureopenai/python", "openai-python"},
	{"asyncazureopenai/python", "openai-python"},
	{"openai/js", "openai-node"},
	{"azureopenai/js", "openai-node"},
	{"openai/go", "openai-go"},
	{"openai/java", "openai-java"},
	{"openai/ruby", "openai-ruby"},
	{"openai/", "openai-dotnet"}, // OpenAI/2.1.0 (.NET 8.0.10; Linux)
	{"anthropic/python", "anthropic-python"},
	{"asyncanthropic/python", "anthropic-python"},
	{"anthropic/js", "anthropic-node"},
	{"anthropic/go", "anthropic-go"},
	{"anthropic/java", "anthropic-java"},
	{"anthropic/ruby", "anthropic-ruby"},
	{"google-genai-sdk/", "google-genai"},
	{"langchain", "langchain"}, // langchainjs-openai
	{"llama-index", "llamaindex"},
	{"llamaindex", "llamaindex"},
	{"litellm/", "litellm"},
	{"ai-sdk/", "ai-sdk"},
	{"ai/", "ai-sdk"}, // ai/5.0.44 ai-sdk/openai/2.0.24
	{"curl/", "curl"},
	{"python", "python"}, // python-requests, python-httpx, Python/3.12 aiohttp
	{"axios/", "node"},
	{"node", "node"}, // node-fetch, or node alone
	{"undici", "node"},
	{"bun/", "node"},
	{"deno/", "node"},
	{"go-http-client/", "go"},
	{"okhttp/", "java"},
	{"java", "java"},
	{"apache-httpclient/", "java"},
	{"postmanruntime/", "postman"},
}

// apps are names within the user agent of an application that is made of a browser.
var apps = [...]struct{ has, tool string }{
	{"Cursor/", "cursor"}, {"CherryStudio/", "cherry-studio"}, {"Raycast", "raycast"}, {"Electron/", "desktop-app"},
}

// ToolOf returns the tool that a request comes from, by its field User-Agent: an id of Tools, that
// of another library, or a class. It returns one of a fixed number of texts.
func ToolOf(userAgent string) string {
	if userAgent == "" {
		return OtherTool
	}
	first := userAgent[0] | 0x20 // of a letter, in lower case
	for i := range userAgents {
		u := &userAgents[i]
		if u.begins[0] == first && len(userAgent) >= len(u.begins) && strings.EqualFold(userAgent[:len(u.begins)], u.begins) {
			return u.tool
		}
	}
	if !strings.HasPrefix(userAgent, "Mozilla/") {
		return OtherTool
	}
	for _, a := range apps {
		if strings.Contains(userAgent[:min(len(userAgent), maxUserAgent)], a.has) {
			return a.tool
		}
	}
	return Browser
}

// maxUserAgent is how much of a user agent is searched, in bytes.
const maxUserAgent = 512

// IsTool reports whether ToolOf can return a text.
func IsTool(tool string) bool {
	for i := range userAgents {
		if userAgents[i].tool == tool {
			return true
		}
	}
	for _, a := range apps {
		if a.tool == tool {
			return true
		}
	}
	return tool == OtherTool || tool == Browser
}
