package setup

import (
	"strconv"
	"strings"
	"testing"
)

func TestToolOfAUserAgent(t *testing.T) {
	for _, c := range []struct{ userAgent, want string }{
		{"claude-cli/2.1.236 (external, cli)", "claude-code"},
		{"claude-cli/2.1.201 (external, sdk-py, agent-sdk/0.1.44)", "claude-code"},
		{"codex_cli_rs/0.38.0 (Ubuntu 24.04.2 LTS; x86_64) WindowsTerminal", "codex"},
		{"codex_vscode/0.128.0-alpha.1 (Windows 10.0.26200; x86_64) unknown (VS Code; 26.429.30905)", "codex"},
		{"codex_exec/0.162 (gpt-5)", "codex"},
		{"codex-tui/0.120.0 (Mac OS 15.1; arm64)", "codex"},
		{"GeminiCLI/0.50.0/gemini-2.5-pro (linux; x64)", "gemini-cli"},
		{"GeminiCLI-vscode/0.50.0/gemini-2.5-pro (linux; x64)", "gemini-cli"},
		{"opencode/1.18.31 ai-sdk/provider-utils/4.0.40 runtime/bun/1.3.14", "opencode"},
		{"QwenCode/0.14.1 (linux; x64)", "qwen-code"},
		{"Kilo-Code/4.99.0", "kilo"},
		{"Charm-Crush/0.4.2 (https://charm.land/crush)", "crush"},
		{"factory-cli/0.60", "droid"},
		{"Cline/3.52.1", "cline"},
		{"RooCode/3.52.1", "roo-code"},
		{"Roo-Code 3.52.1", "roo-code"},
		{"Zed/0.212.6 (macos; aarch64)", "zed"},
		{"GitHubCopilotChat/0.35.0", "copilot-vscode"},
		{"OpenAI/Python 2.20.0", "openai-python"},
		{"AsyncOpenAI/Python 1.68.0", "openai-python"},
		{"OpenAI/JS 6.10.0", "openai-node"},
		{"OpenAI/Go 3.8.1", "openai-go"},
		{"OpenAI/2.1.0 (.NET 8.0.10; Ubuntu 24.04)", "openai-dotnet"},
		{"Anthropic/Python 0.107.1", "anthropic-python"},
		{"AsyncAnthropic/Python 0.107.1", "anthropic-python"},
		{"Anthropic/JS 0.30.0", "anthropic-node"},
		{"Anthropic/Go 0.20.0", "anthropic-go"},
		{"google-genai-sdk/1.41.0 gl-node/v22.19.0", "google-genai"},
		{"google-genai-sdk/1.0.0 gl-python/3.12", "google-genai"},
		{"langchainjs-openai/1.0.0 ((node/v24.16.0; linux; x64))", "langchain"},
		{"ai-sdk/openai-compatible/2.0.47 ai-sdk/provider-utils/4.0.27 runtime/node.js/24", "ai-sdk"},
		{"ai/5.0.44 ai-sdk/openai/2.0.24 runtime/node.js/22", "ai-sdk"},
		{"litellm/1.80.0", "litellm"},
		{"curl/8.7.1", "curl"},
		{"python-requests/2.32.3", "python"},
		{"Python/3.11 aiohttp/3.12.13", "python"},
		{"node", "node"},
		{"Go-http-client/2.0", "go"},
		{"Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36", "browser"},
		{"Mozilla/5.0 (Macintosh) AppleWebKit/537.36 (KHTML, like Gecko) Cursor/2.0.1 Chrome/138 Electron/37.2 Safari/537.36", "cursor"},
		{"Mozilla/5.0 (Macintosh) AppleWebKit/537.36 obsidian/1.9 Chrome/138 Electron/37.2 Safari/537.36", "desktop-app"},
		{"", "other"},
		{"codexa/1.0", "other"},
		{"MyCherryStudio/x", "other"},
		{"sk-proj-0123456789", "other"},
		{"\x00", "other"},
	} {
		if got := ToolOf(c.userAgent); got != c.want {
			t.Errorf("ToolOf(%q) = %q, not %q", c.userAgent, got, c.want)
		}
		if got := ToolOf(strings.ToUpper(c.userAgent)); got != c.want && c.want != Browser && !strings.HasPrefix(c.userAgent, "Mozilla") {
			t.Errorf("in upper case ToolOf(%q) = %q, not %q", c.userAgent, got, c.want)
		}
	}
}

// A client that invents user agents mints no tool.
func TestInventedUserAgentsAreFewTools(t *testing.T) {
	seen := map[string]bool{}
	for i := range 100_000 {
		n := strconv.Itoa(i)
		for _, ua := range []string{n, "tool-" + n, "Mozilla/5.0 " + n, "claude-cli/" + n, "python-" + n} {
			tool := ToolOf(ua)
			if !IsTool(tool) {
				t.Fatalf("ToolOf(%q) = %q is no tool", ua, tool)
			}
			seen[tool] = true
		}
	}
	if len(seen) != 4 {
		t.Errorf("%d tools: %v", len(seen), seen)
	}
}

func TestToolsThatAreSetUpAreRecognized(t *testing.T) {
	for _, tool := range Tools {
		if !IsTool(tool.ID) {
			t.Errorf("no user agent stands for %s", tool.ID)
		}
	}
}

func BenchmarkToolOf(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		ToolOf("Something/1.0 (linux; x64)")
		ToolOf("OpenAI/Python 2.20.0")
	}
}
