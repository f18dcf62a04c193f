package setup

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// guide returns the page of a tool in docs/guides.
func guide(t *Tool) string {
	example := Values{URL: "http://127.0.0.1:8787", Key: "sk-…", Model: "openai/gpt-6.1-sol", Small: "openai/gpt-6-luna"}
	if t.Public {
		example.URL = "https://weir.example.com"
	}
	name := t.Name
	if t.Kind == Library {
		name = strings.Replace(name, ", ", " for ", 1)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# %[1]s\n\n<!-- Written by go test ./pkg/setup from the table in tools.go: GOLDEN=update. -->\n\n"+
		"How to use %[2]s with your gateway. You need weir [running, with an account](../quick-start.md).\n\n",
		t.Name, name)
	if len(t.Files) > 0 {
		var paths []string
		for i := range t.Files {
			paths = append(paths, "`"+t.Files[i].Path()+"`")
		}
		fmt.Fprintf(&b, `## With one command

On the page *Connect a tool* of the dashboard choose %[1]s, copy the command and run it. If `+"`weir`"+` is installed, a terminal does the same:

`+"```sh\nweir setup %[3]s --model %[4]s | sh\n```"+`

It creates an API key, writes it with the gateway's address and your models to %[2]s, and prints each change. It leaves everything else as it is. To restore the earlier settings:

`+"```sh\ncurl -fsSL '%[5]s/setup/%[3]s.sh' | sh -s -- --undo\n```"+`

In PowerShell:

`+"```powershell\n& ([scriptblock]::Create((irm '%[5]s/setup/%[3]s.ps1'))) -Undo\n```"+`

This does not revoke the key: do that on the page *Keys*.

## By hand

`, t.Name, strings.Join(paths, " and "), t.ID, example.Model, example.URL)
	}
	b.WriteString("Replace `" + example.URL + "` with your gateway's address, `sk-…` with a key of it, and the model with one that `GET /v1/models` lists. The page *Connect a tool* of the dashboard shows these settings with your address and models.\n")
	for _, text := range t.AllTexts() {
		fmt.Fprintf(&b, "\n%s:\n\n```%s\n%s\n```\n", text.Where, text.Language, example.fill(text.Text))
	}
	if len(t.Notes) > 0 {
		b.WriteString("\n## Notes\n\n")
		for _, note := range t.Notes {
			b.WriteString("- " + note + "\n")
		}
	}
	return b.String()
}

func TestGuidesAreThoseOfTheTable(t *testing.T) {
	for i := range Tools {
		name, want := "../../docs/guides/"+Tools[i].ID+".md", guide(&Tools[i])
		if os.Getenv("GOLDEN") == "update" {
			if err := os.WriteFile(name, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if got, err := os.ReadFile(name); err != nil || string(got) != want {
			t.Errorf("%s is not what the table says (%v): run GOLDEN=update go test ./pkg/setup", name, err)
		}
	}
}
