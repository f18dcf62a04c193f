package program

import (
	"bytes"
	"os/exec"
	"strings"
	"testing"
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
