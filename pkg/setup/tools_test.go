package setup

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// scripted lists the ids of the tools that have a script.
func scripted() []string {
	var ids []string
	for i := range Tools {
		if len(Tools[i].Files) > 0 {
			ids = append(ids, Tools[i].ID)
		}
	}
	return ids
}

func TestTableIsComplete(t *testing.T) {
	id := regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
	seen := map[string]bool{}
	for i := range Tools {
		tool := &Tools[i]
		if !id.MatchString(tool.ID) || seen[tool.ID] || tool.Name == "" || tool.Kind == "" {
			t.Errorf("%q: id, name or kind", tool.ID)
		}
		seen[tool.ID] = true
		if len(tool.Files) > 0 == (len(tool.Texts) > 0) {
			t.Errorf("%s needs files or texts", tool.ID)
		}
		all := ""
		for _, text := range tool.AllTexts() {
			all += text.Text
			if text.Where == "" || text.Language == "" {
				t.Errorf("%s: a text has no place or language", tool.ID)
			}
			if text.Language == "json" && !json.Valid([]byte(text.Text)) {
				t.Errorf("%s: %s is not JSON", tool.ID, text.Where)
			}
		}
		for _, mark := range []string{urlMark, keyMark} {
			if !strings.Contains(all, mark) {
				t.Errorf("%s has no %s", tool.ID, mark)
			}
		}
		if tool.ID != "open-webui" && tool.ID != "n8n" && !strings.Contains(all, modelMark) { // these list the models themselves
			t.Errorf("%s has no %s", tool.ID, modelMark)
		}
		for j := range tool.Files {
			f := &tool.Files[j]
			for k := range f.Edits {
				e := &f.Edits[k]
				// The scripts separate with tabs, and quote with single quotes.
				if text := e.Path + e.Match + e.Value; strings.ContainsAny(text, "\t\\'`") || f.Format != YAML && strings.Contains(text, "\n") {
					t.Errorf("%s: %q has a character that scripts cannot take", tool.ID, text)
				}
				if f.Format != JSON && f.Format != YAML && e.Op != Set || f.Format == JSON && (e.Op == Item) != (e.Match != "") {
					t.Errorf("%s: %s is not an edit of its format", tool.ID, e.Path)
				}
			}
		}
	}
}

func TestScriptsAreStatic(t *testing.T) {
	left := regexp.MustCompile(`@[A-Z]+@`)
	for _, id := range scripted() {
		for _, name := range []string{id + ".sh", id + ".ps1"} {
			text := Script(name)
			if text == "" || left.MatchString(text) || strings.Contains(text, "%!") || !strings.HasSuffix(text, "\n") || strings.ContainsAny(text, "\r") {
				t.Errorf("%s is not rendered: %s", name, left.FindString(text))
			}
			if i := strings.IndexFunc(text, func(r rune) bool { return r > 0x7e }); i >= 0 { // a script is read in any encoding
				t.Errorf("%s has %q", name, text[i:i+8])
			}
		}
	}
	for _, name := range []string{"", "codex", "codex.bat", "codex.sh.ps1", "CODEX.sh", "curl.sh", ".sh", "../codex.sh"} {
		if Script(name) != "" {
			t.Errorf("%q is a script", name)
		}
	}
}

// A script that arrives in part does nothing: its only statement that acts is the
// last line.
func TestShellScriptActsInItsLastLine(t *testing.T) {
	for _, id := range scripted() {
		text := Script(id + ".sh")
		if !strings.HasSuffix(text, "\n}\n\nmain \"$@\"\n") || strings.Count(text, "\nmain ") != 1 {
			t.Errorf("%s.sh does not end with its call", id)
		}
		for _, quoted := range []string{editsProgram, jsonProgram, tomlProgram, yamlProgram, envProgram} {
			if strings.Contains(quoted, "'") {
				t.Errorf("an awk program has a single quote: %q", quoted[max(0, strings.IndexByte(quoted, '\'')-40):])
			}
		}
	}
}

// No PowerShell runs here, so its scripts are compared with the table and read for
// balance.
func TestPowerShellHasEveryEdit(t *testing.T) {
	for _, id := range scripted() {
		text := Script(id + ".ps1")
		tool := Lookup(id)
		for i := range tool.Files {
			f := &tool.Files[i]
			want := []string{"    Path = (Under '" + f.Root + "' '" + f.Home + "' '" + f.Name + "' '" + f.Or + "')\n    Format = '" + string(f.Format) + "'\n"}
			for j := range f.Edits {
				want = append(want, "      '"+f.Edits[j].line()+"'")
			}
			for _, w := range want {
				if !strings.Contains(text, w) {
					t.Errorf("%s.ps1 has no %q", id, w)
				}
			}
		}
		for _, w := range []string{
			"param([string]$Gateway = '', [string]$Lease = '', [switch]$Undo)", "$ErrorActionPreference = 'Stop'",
			`"$url/setup/claim"`, "if ($Undo) { Restore } else { Install }\n", "$tool = '" + id + "'",
		} {
			if strings.Count(text, w) != 1 {
				t.Errorf("%s.ps1 has %q %d times", id, w, strings.Count(text, w))
			}
		}
		if bad := unbalanced(text); bad != "" {
			t.Errorf("%s.ps1: %s", id, bad)
		}
	}
}

// unbalanced returns what is wrong with the brackets and quotes of a PowerShell
// script, line by line.
func unbalanced(text string) string {
	var open []byte
	for line := range strings.SplitSeq(text, "\n") {
		quote := byte(0)
		for i := 0; i < len(line); i++ {
			c := line[i]
			switch {
			case quote == 0 && c == '#' && (i == 0 || line[i-1] == ' '):
				i = len(line)
			case quote == '"' && c == '`':
				i++
			case quote != 0:
				if c == quote {
					quote = 0
				}
			case c == '"' || c == '\'':
				quote = c
			case strings.IndexByte("([{", c) >= 0:
				open = append(open, c)
			case strings.IndexByte(")]}", c) >= 0:
				if len(open) == 0 || strings.IndexByte("([{", open[len(open)-1]) != strings.IndexByte(")]}", c) {
					return "line " + line + " closes what is not open"
				}
				open = open[:len(open)-1]
			}
		}
		if quote != 0 {
			return "line " + line + " leaves a quote open"
		}
	}
	if len(open) > 0 {
		return "brackets stay open: " + string(open)
	}
	return ""
}

func TestCommandsNeedNoQuoting(t *testing.T) {
	for _, good := range []string{"https://weir.example.com", "http://127.0.0.1:8787", "http://localhost:1"} {
		if !IsOrigin(good) {
			t.Errorf("%s is refused", good)
		}
	}
	for _, bad := range []string{"", "https://", "weir.example.com", "https://a/b", "https://a'b", "https://a b", "https://a$(x)", "https://[::1]:1", "ftp://a", "https://" + strings.Repeat("a", 300)} {
		if IsOrigin(bad) {
			t.Errorf("%s is accepted", bad)
		}
	}
	for _, good := range []string{"openai/gpt-5", "bedrock/us.anthropic.claude:0", "a", "x/@cf/meta+1~b"} {
		if !IsModel(good) {
			t.Errorf("%s is refused", good)
		}
	}
	for _, bad := range []string{"", "a b", "a'b", `a"b`, "a\\b", "a$b", "a`b", "a\nb", "é", strings.Repeat("a", MaxModel+1)} {
		if IsModel(bad) {
			t.Errorf("%q is accepted", bad)
		}
	}
	c := CommandOf("codex", "https://weir.example.com", "setup-a-b-c")
	if c.Shell != "curl -fsSL 'https://weir.example.com/setup/codex.sh' | WEIR_LEASE='setup-a-b-c' sh -s -- 'https://weir.example.com'" ||
		c.PowerShell != "& ([scriptblock]::Create((irm 'https://weir.example.com/setup/codex.ps1'))) 'https://weir.example.com' 'setup-a-b-c'" {
		t.Errorf("got %+v", c)
	}
	if !slices.Contains(scripted(), "codex") || slices.Contains(scripted(), "curl") {
		t.Errorf("got %q", scripted())
	}
}
