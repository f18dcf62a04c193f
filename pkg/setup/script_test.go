package setup

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

var values = Values{URL: "https://weir.example.com", Key: "sk-abcdefghijklmnop-qrstuvwxyzabcdefghijklmnop-01234567", Model: "openai/gpt-5", Small: "fast"}

const lease = "setup-abcdefghijklmnop-x1-0a"

// home is a home folder in which scripts run, with a curl that answers as the gateway
// does.
type home struct {
	*testing.T
	dir, bin string
	env      []string
}

// newHome returns an empty home folder. The answer of its gateway has a status.
func newHome(t *testing.T, status, answer string) *home {
	t.Helper()
	h := &home{T: t, dir: t.TempDir(), bin: t.TempDir()}
	curl := "#!/bin/sh\ncat >>\"$CURL_LOG\"\nprintf '%s\\n' \"\" \"$*\" >>\"$CURL_LOG\"\nprintf '%s\\n%s' '" + answer + "' '" + status + "'\n"
	if err := os.WriteFile(filepath.Join(h.bin, "curl"), []byte(curl), 0o700); err != nil {
		t.Fatal(err)
	}
	return h
}

// serving returns a home folder whose gateway accepts the lease.
func serving(t *testing.T) *home {
	t.Helper()
	answer, err := json.Marshal(map[string]string{"apiKey": values.Key, "model": values.Model, "smallModel": values.Small})
	if err != nil {
		t.Fatal(err)
	}
	return newHome(t, "200", string(answer))
}

// run runs the script of a tool and returns what it prints. A second argument is the
// lease, which is no argument of the script.
func (h *home) run(id string, args ...string) (string, error) {
	h.Helper()
	env := h.env
	if len(args) > 1 {
		env = append([]string{"WEIR_LEASE=" + args[1]}, env...)
		args = append(args[:1:1], args[2:]...)
	}
	cmd := exec.Command("sh", append([]string{"-s", "--"}, args...)...)
	cmd.Dir = h.dir
	cmd.Env = append([]string{"PATH=" + h.bin + ":" + os.Getenv("PATH"), "HOME=" + h.dir, "CURL_LOG=" + filepath.Join(h.bin, "log")}, env...)
	cmd.Stdin = strings.NewReader(Script(id + ".sh"))
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// install runs the script of a tool, which must succeed.
func (h *home) install(id string) string {
	h.Helper()
	out, err := h.run(id, values.URL, lease)
	if err != nil {
		h.Fatalf("%s: %v\n%s", id, err, out)
	}
	return out
}

func (h *home) path(f *File) string {
	return filepath.Join(h.dir, strings.TrimPrefix(f.Path(), "~/"))
}

func (h *home) write(path, text string) {
	h.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		h.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		h.Fatal(err)
	}
}

func (h *home) read(path string) string {
	h.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		h.Fatal(err)
	}
	return string(text)
}

func (h *home) mode(path string) os.FileMode {
	h.Helper()
	info, err := os.Stat(path)
	if err != nil {
		h.Fatal(err)
	}
	return info.Mode().Perm()
}

// tree lists the files of the home folder with their contents.
func (h *home) tree() map[string]string {
	h.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(h.dir, func(name string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			out[strings.TrimPrefix(name, h.dir)] = h.read(name)
		}
		return err
	})
	if err != nil {
		h.Fatal(err)
	}
	return out
}

func same(t *testing.T, format Format, got, want string) {
	t.Helper()
	if format != JSON {
		if got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
		return
	}
	var a, b any
	if err := json.Unmarshal([]byte(got), &a); err != nil {
		t.Fatalf("%v in\n%s", err, got)
	}
	if err := json.Unmarshal([]byte(want), &b); err != nil {
		t.Fatalf("%v in\n%s", err, want)
	}
	if !reflect.DeepEqual(a, b) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestScriptWritesWhatIsShown(t *testing.T) {
	for _, id := range scripted() {
		t.Run(id, func(t *testing.T) {
			h := serving(t)
			out := h.install(id)
			tool := Lookup(id)
			for i := range tool.Files {
				f := &tool.Files[i]
				same(t, f.Format, h.read(h.path(f)), values.fill(f.fresh()))
				if mode := h.mode(h.path(f)); mode != 0o600 {
					t.Errorf("%s: others may read a file with the key: %v", f.Path(), mode)
				}
				if !strings.Contains(out, h.path(f)) {
					t.Errorf("the output does not name %s:\n%s", f.Path(), out)
				}
			}
			if strings.Contains(out, values.Key) {
				t.Errorf("the key is printed:\n%s", out)
			}
			log := h.read(filepath.Join(h.bin, "log"))
			body, args, _ := strings.Cut(log, "\n")
			if body != `{"lease":"`+lease+`","tool":"`+id+`"}` || strings.Contains(args, lease) || !strings.Contains(args, values.URL+"/setup/claim") {
				t.Errorf("curl was called with %s", log)
			}
			first := h.tree()
			h.install(id) // again changes nothing
			if again := h.tree(); !reflect.DeepEqual(again, first) {
				t.Errorf("the second run changed the files:\n%s\nto\n%s", first, again)
			}
		})
	}
}

func TestUndoRestoresEveryFile(t *testing.T) {
	existing := map[Format]string{
		JSON: "{\n  // mine\n  \"theme\": \"dark\",\n}\n",
		TOML: "# mine\napproval_policy = \"never\"\n\n[tui]\ntheme = \"x\"\n",
		YAML: "# mine\ndark-mode: true\n",
		Env:  "# mine\nOTHER=1",
	}
	for _, id := range scripted() {
		for _, before := range []bool{false, true} {
			h := serving(t)
			tool := Lookup(id)
			for i := range tool.Files {
				if before {
					h.write(h.path(&tool.Files[i]), existing[tool.Files[i].Format])
				}
			}
			start := h.tree()
			h.install(id)
			h.install(id)
			for i := range tool.Files {
				if text := h.read(h.path(&tool.Files[i])); before && !strings.Contains(text, "mine") {
					t.Errorf("%s lost a comment:\n%s", id, text)
				}
				if mode := h.mode(h.path(&tool.Files[i])); mode != 0o600 {
					t.Errorf("%s: others may read a file with the key: %v", id, mode)
				}
			}
			out, err := h.run(id, "--undo")
			if err != nil {
				t.Fatalf("%s: %v\n%s", id, err, out)
			}
			if end := h.tree(); !reflect.DeepEqual(end, start) {
				t.Errorf("%s: got %q, want %q", id, end, start)
			}
			if before && h.mode(h.path(&tool.Files[0])) != 0o644 {
				t.Errorf("%s: the mode is not restored", id)
			}
			if out, err := h.run(id, "--undo"); err == nil || !strings.Contains(out, "Nothing to undo") {
				t.Errorf("%s: a second undo: %v\n%s", id, err, out)
			}
		}
	}
}

func TestUndoKeepsLaterChanges(t *testing.T) {
	h := serving(t)
	f := &Lookup("codex").Files[0]
	h.write(h.path(f), "model = \"old\"\n")
	h.install("codex")
	later := h.read(h.path(f)) + "\n[mcp_servers.x]\ncommand = \"y\"\n"
	h.write(h.path(f), later)
	if out, err := h.run("codex", "--undo"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if got := h.read(h.path(f)); got != "model = \"old\"\n" {
		t.Errorf("got %q", got)
	}
	if got := h.read(h.path(f) + ".before-undo"); got != later {
		t.Errorf("got %q", got)
	}
}

// A regression: undo removed a link that led to no file, and left the file that the
// set-up had written through it, with the key.
func TestUndoRemovesTheFileBehindALink(t *testing.T) {
	h := serving(t)
	f := &Lookup("codex").Files[0]
	h.write(filepath.Join(h.dir, "dotfiles/README"), "mine\n")
	if err := os.MkdirAll(filepath.Dir(h.path(f)), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../dotfiles/config.toml", h.path(f)); err != nil {
		t.Fatal(err)
	}
	h.install("codex")
	if text := h.read(filepath.Join(h.dir, "dotfiles/config.toml")); !strings.Contains(text, values.URL) {
		t.Errorf("got %q", text)
	}
	if out, err := h.run("codex", "--undo"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if to, err := os.Readlink(h.path(f)); err != nil || to != "../dotfiles/config.toml" {
		t.Errorf("the link leads to %q: %v", to, err)
	}
	if files := h.tree(); len(files) != 1 {
		t.Errorf("left %v", files)
	}
}

// A regression: a second set-up under another folder was not recorded, so undo left its
// file with the key.
func TestUndoRestoresTheFilesOfEverySetup(t *testing.T) {
	h := serving(t)
	f := &Lookup("codex").Files[0]
	h.write(h.path(f), "model = \"old\"\n")
	start := h.tree()
	h.install("codex")
	h.env = []string{"CODEX_HOME=" + filepath.Join(h.dir, "other")}
	h.install("codex")
	h.install("codex")
	h.env = nil
	h.install("codex")
	if out, err := h.run("codex", "--undo"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if end := h.tree(); !reflect.DeepEqual(end, start) {
		t.Errorf("got %v, want %v", end, start)
	}
}

func TestRefusedLeaseChangesNothing(t *testing.T) {
	for _, id := range scripted() {
		h := newHome(t, "403", `{"error":{"message":"This set-up command was used. Create a new one.","type":"permission_error"}}`)
		out, err := h.run(id, values.URL, lease)
		if err == nil || !strings.Contains(out, "weir: This set-up command was used. Create a new one. Nothing was changed.") {
			t.Errorf("%s: %v\n%s", id, err, out)
		}
		if files := h.tree(); len(files) > 0 {
			t.Errorf("%s wrote %q", id, files)
		}
	}
}

func TestUnreadableFileIsFoundBeforeTheClaim(t *testing.T) {
	broken := map[Format][]string{
		JSON: {`{"env": `, `{"env": {}} x`, `{"env" 1}`, `[]`, `{"a": "b`, `{"a": /* b`, `{"a": }`, `nonsense"`},
		TOML: {"model = \"\"\"\na\n\"\"\"\n", "model_providers = { weir = { name = \"x\" } }\n"},
		YAML: {"\tmodel: x\n", "{model: x}\n"},
	}
	for _, id := range scripted() {
		tool := Lookup(id)
		for i := range tool.Files {
			f := &tool.Files[i]
			for _, text := range broken[f.Format] {
				h := serving(t)
				h.write(h.path(f), text)
				start := h.tree()
				out, err := h.run(id, values.URL, lease)
				if err == nil || !strings.Contains(out, "cannot be edited: ") || !strings.Contains(out, "Nothing was changed") {
					t.Errorf("%s with %q: %v\n%s", id, text, err, out)
				}
				if end := h.tree(); !reflect.DeepEqual(end, start) {
					t.Errorf("%s with %q: changed to %q", id, text, end)
				}
				if _, err := os.Stat(filepath.Join(h.bin, "log")); err == nil {
					t.Errorf("%s with %q: the lease was used", id, text)
				}
			}
		}
	}
}

// A native server on the same computer has its data in ~/.local/state/weir by
// default, and does not start if that folder has other files.
func TestStateIsNotInTheServersFolder(t *testing.T) {
	h := serving(t)
	h.install("codex")
	if _, err := os.Stat(filepath.Join(h.dir, ".local/state/weir")); err == nil {
		t.Errorf("the set-up has files in the server's folder: %v", h.tree())
	}
	if script := Script("codex.ps1"); !strings.Contains(script, `".local/state/weir-setup/`) {
		t.Error("the PowerShell script has another folder")
	}
}

func TestUnwritableFileIsFoundBeforeTheClaim(t *testing.T) {
	for _, blocked := range []string{".codex/config.toml/x", ".codex", ".local/state", ".local/state/weir-setup/codex"} {
		h := serving(t)
		h.write(filepath.Join(h.dir, blocked), "")
		out, err := h.run("codex", values.URL, lease)
		if err == nil || !strings.Contains(out, "cannot be written. Nothing was changed.") {
			t.Errorf("%s: %v\n%s", blocked, err, out)
		}
		if _, err := os.Stat(filepath.Join(h.bin, "log")); err == nil || len(h.tree()) != 1 {
			t.Errorf("%s: the lease was used, or a file written: %q", blocked, h.tree())
		}
	}
}

func TestScriptRefusesArguments(t *testing.T) {
	for _, args := range [][]string{
		{}, {values.URL}, {values.URL, lease, "x"}, {"weir.example.com", lease}, {"https://weir.example.com/v1", lease},
		{"https://$(touch x)", lease}, {"file:///etc/passwd", lease}, {"https://", lease}, {values.URL, `"}'`}, {values.URL, ""}, {"-o", lease},
	} {
		h := serving(t)
		if out, err := h.run("codex", args...); err == nil || !strings.HasPrefix(out, "weir: ") {
			t.Errorf("%q: %v\n%s", args, err, out)
		}
		if files := h.tree(); len(files) > 0 {
			t.Errorf("%q wrote %q", args, files)
		}
	}
}

func TestScriptRefusesStrangeAnswers(t *testing.T) {
	for _, answer := range []string{
		`{}`, ``, `<html>`, `{"apiKey":"sk-a b","model":"m","smallModel":"m"}`, `{"apiKey":"sk-ab","model":"m$(x)","smallModel":"m"}`,
		`{"apiKey":"sk-ab","model":"","smallModel":""}`,
	} {
		h := newHome(t, "200", answer)
		if out, err := h.run("claude-code", values.URL, lease); err == nil || !strings.Contains(out, "Nothing was changed") {
			t.Errorf("%s: %v\n%s", answer, err, out)
		}
		if files := h.tree(); len(files) > 0 {
			t.Errorf("%s wrote %q", answer, files)
		}
	}
}

func TestEditsKeepTheRestOfAFile(t *testing.T) {
	tests := []struct {
		name, id, file, before, after string
	}{
		{"jsonc", "claude-code", ".claude/settings.json", `{
  // keep
  "env": {
    "A": "1", // one
    "ANTHROPIC_MODEL": "old",
  },
  /* both */ "permissions": {"allow": ["Bash(\"x\")", "//not a comment"]}
}
`, `{
  // keep
  "env": {
    "A": "1", // one
    "ANTHROPIC_MODEL": "openai/gpt-5",
    "ANTHROPIC_BASE_URL": "https://weir.example.com",
    "ANTHROPIC_AUTH_TOKEN": "KEY",
    "ANTHROPIC_DEFAULT_HAIKU_MODEL": "fast",
    "CLAUDE_CODE_ENABLE_GATEWAY_MODEL_DISCOVERY": "1"
  },
  /* both */ "permissions": {"allow": ["Bash(\"x\")", "//not a comment"]}
}
`},
		{"empty object", "gemini-cli", ".gemini/settings.json", "{}", `{
  "security": {
    "auth": {
      "selectedType": "gemini-api-key"
    }
  }
}
`},
		{"empty file", "gemini-cli", ".gemini/settings.json", "", `{
  "security": {
    "auth": {
      "selectedType": "gemini-api-key"
    }
  }
}
`},
		{"list of another tool", "droid", ".factory/settings.json", `{"customModels": [{"model": "a", "displayName": "A"}, {"model": "old", "displayName": "openai/gpt-5 (weir)"}]}
`, `{"customModels": [{"model": "a", "displayName": "A"}, {"model": "openai/gpt-5", "displayName": "openai/gpt-5 (weir)", "baseUrl": "https://weir.example.com/v1", "apiKey": "KEY", "provider": "generic-chat-completion-api", "maxOutputTokens": 16384},
    {"model": "fast", "displayName": "fast (weir)", "baseUrl": "https://weir.example.com/v1", "apiKey": "KEY", "provider": "generic-chat-completion-api", "maxOutputTokens": 16384}]}
`},
		{"toml", "codex", ".codex/config.toml", `# mine
model = "old" # was
sandbox_mode = "workspace-write"

[model_providers.weir]
name = "weir"
env_key = "WEIR_KEY"
# about the next
[model_providers.other]
base_url = "x"
model = "not top level"

[mcp_servers."a.b"]
args = ["--x", "y"]
`, `model_provider = "weir"

# mine
model = "openai/gpt-5"
sandbox_mode = "workspace-write"

# about the next
[model_providers.other]
base_url = "x"
model = "not top level"

[mcp_servers."a.b"]
args = ["--x", "y"]

[model_providers.weir]
name = "weir"
base_url = "https://weir.example.com/v1"
experimental_bearer_token = "KEY"
wire_api = "responses"
`},
		{"toml with a text of several lines", "codex", ".codex/config.toml", "notes = \"\"\"\nmodel = 1\n[model_providers.weir]\n\"\"\"\n", `model = "openai/gpt-5"
model_provider = "weir"

notes = """
model = 1
[model_providers.weir]
"""

[model_providers.weir]
name = "weir"
base_url = "https://weir.example.com/v1"
experimental_bearer_token = "KEY"
wire_api = "responses"
`},
		{"yaml", "aider", ".aider.conf.yml", "model: old # was\n# keep\nread:\n  - CONVENTIONS.md\nopenai-api-key: >-\n  folded\n\nmodel-x: 1\n", `model: "openai/openai/gpt-5"
# keep
read:
  - CONVENTIONS.md
openai-api-key: "KEY"

model-x: 1
weak-model: "openai/fast"
openai-api-base: "https://weir.example.com/v1"
`},
		{"yaml list", "continue", ".continue/config.yaml", `name: Mine
version: 0.0.1
schema: v1
models:
- name: A
  provider: ollama
- name: "openai/gpt-5 (weir)"
  provider: openai

  apiKey: old
rules: []
`, `name: Mine
version: 0.0.1
schema: v1
models:
- name: A
  provider: ollama
- name: "openai/gpt-5 (weir)"
  provider: openai
  model: "openai/gpt-5"
  apiBase: "https://weir.example.com/v1"
  apiKey: "KEY"
  roles: [chat, edit, apply]
rules: []
`},
		{"empty yaml list", "continue", ".continue/config.yaml", "name: Mine\nmodels: []\nversion: 1\nschema: v1\n", `name: Mine
models:
  - name: "openai/gpt-5 (weir)"
    provider: openai
    model: "openai/gpt-5"
    apiBase: "https://weir.example.com/v1"
    apiKey: "KEY"
    roles: [chat, edit, apply]
version: 1
schema: v1
`},
		{"lines of Windows", "gemini-cli", ".gemini/settings.json", "{\r\n  \"a\": 1\r\n}\r\n",
			"{\r\n  \"a\": 1,\r\n  \"security\": {\r\n    \"auth\": {\r\n      \"selectedType\": \"gemini-api-key\"\r\n    }\r\n  }\r\n}\r\n"},
		{"env", "gemini-cli", ".gemini/.env", "export GEMINI_API_KEY=a\n# GEMINI_MODEL=x\nOTHER=$(b)\nGEMINI_API_KEY = c", `GEMINI_API_KEY=KEY
# GEMINI_MODEL=x
OTHER=$(b)
GEMINI_API_KEY=KEY
GOOGLE_GEMINI_BASE_URL=https://weir.example.com
GEMINI_MODEL=openai/gpt-5
`},
	}
	for _, tt := range tests {
		h := serving(t)
		path := filepath.Join(h.dir, tt.file)
		h.write(path, tt.before)
		h.install(tt.id)
		if got := strings.ReplaceAll(h.read(path), values.Key, "KEY"); got != tt.after {
			t.Errorf("%s: got\n%s\nwant\n%s", tt.name, got, tt.after)
		}
	}
}

func TestVariablesMoveFolders(t *testing.T) {
	h := serving(t)
	other := t.TempDir()
	h.env = []string{"CODEX_HOME=" + other, "XDG_CONFIG_HOME=" + other, "XDG_STATE_HOME=" + other, "ANTHROPIC_API_KEY=x"}
	h.install("codex")
	h.write(filepath.Join(other, "opencode/opencode.jsonc"), "{} // mine\n")
	h.install("opencode")
	if text := h.read(filepath.Join(other, "opencode/opencode.jsonc")); !strings.Contains(text, "// mine") || !strings.Contains(text, values.Key) {
		t.Errorf("got %s", text)
	}
	if out := h.install("claude-code"); !strings.Contains(out, "Unset the environment variable ANTHROPIC_API_KEY") {
		t.Errorf("got %s", out)
	}
	h.read(filepath.Join(other, "config.toml"))
	h.read(filepath.Join(other, "weir-setup/codex/1.after"))
	if _, err := os.Stat(filepath.Join(other, "opencode/opencode.json")); err == nil {
		t.Error("a second file was written")
	}
}

// A file behind a symbolic link stays there.
func TestLinksStay(t *testing.T) {
	h := serving(t)
	target := filepath.Join(h.dir, "dotfiles/config.toml")
	h.write(target, "a = 1\n")
	link := filepath.Join(h.dir, ".codex/config.toml")
	if err := os.MkdirAll(filepath.Dir(link), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, link); err != nil {
		t.Fatal(err)
	}
	h.install("codex")
	if !strings.Contains(h.read(target), values.Key) {
		t.Error("the target has no key")
	}
	if out, err := h.run("codex", "--undo"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 || h.read(target) != "a = 1\n" {
		t.Errorf("got %v, %v, %q", info, err, h.read(target))
	}
}
