package program

import (
	"bytes"
	"os/exec"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"
)

func TestCompletionScriptsParse(t *testing.T) {
	for shell, parse := range map[string][]string{
		"bash": {"bash", "-n"}, "zsh": {"zsh", "-n"}, "fish": {"fish", "--no-execute"}, "powershell": nil,
	} {
		var out, failed bytes.Buffer
		code := (Options{}).Main([]string{"completion", shell}, environment(""), nil, &out, &failed)
		if code != 0 || !strings.Contains(out.String(), "weir") {
			t.Errorf("%s: exit %d, %s", shell, code, &failed)
		}
		if parse == nil {
			continue
		}
		if _, err := exec.LookPath(parse[0]); err != nil {
			continue // the shell is not installed
		}
		cmd := exec.Command(parse[0], parse[1:]...)
		cmd.Stdin = &out
		if text, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v, %s", shell, err, text)
		}
	}
}

func TestCompletionOfAnUnknownShellIsAMistake(t *testing.T) {
	for _, args := range [][]string{{"completion"}, {"completion", "tcsh"}} {
		var failed bytes.Buffer
		if code := (Options{}).Main(args, environment(""), nil, new(bytes.Buffer), &failed); code != 2 || !strings.Contains(failed.String(), "fish") {
			t.Errorf("%v: exit %d, %s", args, code, &failed)
		}
	}
}

func TestHelpHasNoEmptySections(t *testing.T) {
	var out bytes.Buffer
	(Options{}).Main([]string{"help", "destinations", "deliveries"}, environment(""), nil, &out, new(bytes.Buffer))
	if strings.Contains(out.String(), "\nFlags:\n") || !strings.Contains(out.String(), "--gateway") {
		t.Errorf("%s", &out)
	}
}

// A command to copy is the one thing that is longer than a line; no word is cut.
func TestHelpFitsItsWidth(t *testing.T) {
	root := (Options{}).run(environment(""), nil, new(bytes.Buffer), new(bytes.Buffer)).root()
	texts := map[int]string{}
	var visit func(c *cobra.Command)
	visit = func(c *cobra.Command) {
		c.InheritedFlags() // adds them
		for _, width := range []int{60, 80, 1000} {
			var out bytes.Buffer
			printHelp(&out, c, width)
			texts[width] += out.String()
			for line := range strings.Lines(out.String()) {
				if n := utf8.RuneCountInString(line) - 1; n > width && line[0] != '\t' && !strings.HasPrefix(line, "  '[{") && !strings.HasPrefix(line, "  weir ") {
					t.Errorf("%s: %d characters of %d: %s", c.CommandPath(), n, width, line)
				}
			}
		}
		for _, one := range c.Commands() {
			visit(one)
		}
	}
	visit(root)
	for _, width := range []int{60, 80} {
		got, want := strings.Fields(texts[width]), strings.Fields(texts[1000])
		for i := range want {
			if i >= len(got) || got[i] != want[i] {
				t.Errorf("at %d characters %s is cut: %q", width, want[i], got[max(0, i-4):min(len(got), i+3)])
				break
			}
		}
	}
}

func TestCompletionNamesCommandsAndFlags(t *testing.T) {
	for _, tt := range []struct{ line, want string }{{"ser", "serve\t"}, {"serve --lis", "--listen"}, {"help ", ":"}} {
		var out bytes.Buffer
		(Options{}).Main(append([]string{"__complete"}, strings.Split(tt.line, " ")...), environment(""), nil, &out, new(bytes.Buffer))
		if !strings.Contains(out.String(), tt.want) {
			t.Errorf("%s: %q", tt.line, &out)
		}
	}
}

func TestFlagsMayHaveOneDash(t *testing.T) {
	for _, args := range [][]string{{"backup", "-data=/none", "x"}, {"backup", "-data", "/none", "x"}, {"backup", "x", "--data", "/none"}} {
		var failed bytes.Buffer
		code := (Options{}).Main(args, environment(""), nil, new(bytes.Buffer), &failed)
		if code != 1 || !strings.Contains(failed.String(), "/none") {
			t.Errorf("%v: exit %d, %s", args, code, &failed)
		}
	}
}
