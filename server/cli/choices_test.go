package cli

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// A mistyped value of any flag or argument with choices is answered with the nearest one, before a call, and the
// help and the completion have the choices.
func TestMistypedValues(t *testing.T) {
	met := map[string]bool{}
	for _, g := range commands() {
		for _, o := range g.ops {
			words := strings.Fields(o.use)
			full := strings.TrimSpace(g.name + " " + words[0])
			params := words[1:]
			for _, f := range o.fields {
				long, _, _ := strings.Cut(f.flag, ",")
				params = append(params, "--"+long)
			}
			for _, param := range params {
				c := choiceOf(full, param)
				if c == nil {
					continue
				}
				values := c.all()
				met[param] = true
				if len(values) < 2 {
					t.Errorf("%s %s has the values %v", full, param, values)
					continue
				}
				for _, v := range values {
					if err := c.check(param, v); err != nil && v != "tag:NAME" {
						t.Errorf("%s: %v", full, err)
					}
				}
				near := values[1] + values[1][len(values[1])-1:]
				err := c.check(param, near)
				if err == nil || !strings.Contains(err.Error(), param+" "+near+": did you mean "+values[1]+"? ") ||
					!strings.Contains(err.Error(), c.see) || c.see == "" && !strings.HasSuffix(err.Error(), "It takes "+or(values)) {
					t.Errorf("%s: %v", full, err)
				}
			}
		}
	}
	for i := range choices {
		name := choices[i].of
		if words := strings.Fields(name); !met[words[len(words)-1]] {
			t.Errorf("%s is of no command", name)
		}
	}
}

func TestChoicesAreInHelpAndCompletion(t *testing.T) {
	for _, c := range Commands(Host{}) {
		if c.Name() != "combos" {
			continue
		}
		add, _, _ := c.Find([]string{"add"})
		if got := add.Flag("split-by").Usage; got != "for weighted, what stays with one model: session or key" {
			t.Errorf("help: %s", got)
		}
		complete, _ := add.GetFlagCompletionFunc("split-by")
		if got, _ := complete(add, nil, ""); len(got) != 2 || got[0] != cobra.Completion("session") {
			t.Errorf("completion: %v", got)
		}
	}
}

func TestClosestValues(t *testing.T) {
	for text, want := range map[string]string{"claud-code": "claude-code", "claude": "claude-code", "c": "", "co": "", "xyz": ""} {
		if got := closest(text, []string{"claude-code", "codex", "cline"}); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}
