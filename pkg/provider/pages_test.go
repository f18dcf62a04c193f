package provider

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"weir/pkg/catalog"
	"weir/pkg/llm"
)

// pagesDir has a page for each provider.
const pagesDir = "../../docs/providers/"

const pageNote = "<!-- Written by go test ./pkg/provider from the table and the catalogue: GOLDEN=update. -->\n\n"

// kindUses are the kinds of models, as the dashboard names them, with the routes that
// call them.
var kindUses = []struct {
	kind        catalog.Kind
	name, route string
}{
	{catalog.LLM, "Chat", "`POST /v1/chat/completions`, `/v1/messages`, `/v1/responses`, the Gemini API"},
	{catalog.Embedding, "Embeddings", "`POST /v1/embeddings`"},
	{catalog.Image, "Images", "`POST /v1/images/generations`"},
	{catalog.TTS, "Speech", "`POST /v1/audio/speech`"},
	{catalog.STT, "Transcription", "`POST /v1/audio/transcriptions`"},
	{catalog.ImageToText, "Image to text", "`POST /v1/chat/completions` with images"},
	{catalog.Video, "Video", "`POST /v1/videos/generations`"},
	{catalog.Music, "Music", "listed only"},
	{catalog.Rerank, "Rerank", "`POST /v1/rerank`"},
	{catalog.WebSearch, "Web search", "`POST /v1/search`"},
	{catalog.WebFetch, "Web fetch", "`POST /v1/web/fetch`"},
}

// chatAPI returns the name of the API of a provider's chat models, "" without chat.
func chatAPI(d *Descriptor) string {
	if !d.Serves(d.Dialect.Endpoint()) {
		return ""
	}
	name := map[llm.Dialect]string{
		llm.Chat: "OpenAI Chat Completions", llm.Messages: "Anthropic Messages", llm.Gemini: "Gemini", llm.Cohere: "Cohere Chat",
		llm.Converse: "Amazon Bedrock Converse",
	}[d.Dialect]
	switch d.Cloud {
	case Azure:
		name += " at Azure"
	case Vertex:
		name = "Vertex AI"
	}
	return name
}

// maxListed is the number of models of a kind that a page names.
const maxListed = 12

func credentialOf(d *Descriptor) string {
	text := "an API key"
	switch d.Auth.Scheme {
	case None:
		text = "none"
	case SigV4:
		text = "an access key ID with its secret access key, or an API key"
	case GoogleSA:
		text = "the key file of a service account, or an API key"
	}
	if d.KeyURL != "" {
		text += ", [from the provider](" + d.KeyURL + ")"
	}
	if d.Auth.Optional {
		text += " (optional)"
	}
	return text
}

// command connects an account in a terminal.
func command(d *Descriptor, id string) string {
	text := "weir accounts add " + strings.TrimSuffix(id, "-0123abcd")
	switch d.Auth.Scheme {
	case SigV4:
		text += " --access-key-id env:AWS_ACCESS_KEY_ID --secret-access-key env:AWS_SECRET_ACCESS_KEY"
	case GoogleSA:
		text += " --service-account file:key.json"
	}
	if d.Compatible {
		text += " --base-url http://127.0.0.1:8000/v1 --prefix mine"
	}
	for _, name := range d.Vars {
		if d.Cloud != Vertex { // the key file has the project
			text += " --var " + name + "=…"
		}
	}
	return text
}

// connection returns the body that creates a connection.
func connection(d *Descriptor, id string) string {
	fields := []string{fmt.Sprintf(`"provider": %q`, id)}
	switch d.Auth.Scheme {
	case None:
	case SigV4:
		fields = append(fields, `"accessKeyId": "…"`, `"secretAccessKey": "…"`)
	case GoogleSA:
		fields = append(fields, `"serviceAccount": {…}`)
	default:
		if !d.Auth.Optional {
			fields = append(fields, `"apiKey": "…"`)
		}
	}
	var vars []string
	if d.Compatible {
		vars = append(vars, `"baseUrl": "http://127.0.0.1:8000/v1"`, `"prefix": "mine"`)
	}
	for _, name := range d.Vars {
		if d.Cloud != Vertex { // the key file has the project
			vars = append(vars, fmt.Sprintf(`%q: "…"`, name))
		}
	}
	if len(vars) > 0 {
		fields = append(fields, `"providerSpecificData": {`+strings.Join(vars, ", ")+`}`)
	}
	return "{" + strings.Join(fields, ", ") + "}"
}

// page returns the page of a provider in docs/providers.
func page(d *Descriptor, id, alias, name string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %[1]s\n\n%[2]s%[1]s in weir: how to connect it, and what it serves.\n\n", name, pageNote)
	row := func(name, text string) {
		if text != "" {
			fmt.Fprintf(&b, "| %s | %s |\n", name, text)
		}
	}
	b.WriteString("| | |\n|---|---|\n")
	row("Provider", "`"+id+"`")
	row("Model ids", "`"+alias+"/<model>`, or with the `prefix` of the account")
	row("Credential", credentialOf(d))
	switch {
	case d.Compatible:
		row("Base URL", "the server's, as its documentation names it")
	case d.BaseURL != "" && d.Rebase:
		row("Base URL", "`"+d.BaseURL+"`; an account may have another one")
	case d.BaseURL != "":
		row("Base URL", "`"+d.BaseURL+"`")
	}
	row("API of its chat models", chatAPI(d))
	if d.Local {
		row("Where it runs", "on your own network: start weir with `ALLOW_PRIVATE_UPSTREAMS=true weir serve`")
	}
	switch {
	case d.Search || d.Fetch: // a service has none
	case d.Models.None || !d.Serves("models"):
		row("List of models", "the catalogue's")
	default:
		row("List of models", "the provider's own")
	}

	fmt.Fprintf(&b, "\n## Connect\n\nIn the dashboard, on the page *Providers*, or in a terminal:\n\n```sh\n%s\n```\n\nOver HTTP, with a key of scope `manage`:\n\n", command(d, id))
	fmt.Fprintf(&b, "```sh\ncurl https://weir.example.com/api/providers -H \"Authorization: Bearer $MANAGE_KEY\" \\\n  -H 'content-type: application/json' -d '%s'\n```\n", connection(d, id))
	if d.Compatible {
		b.WriteString("\nThe digits at the end of the provider are any eight or more hexadecimal digits: each server has its own. A server that asks for no key needs none here: leave `apiKey` out.\n")
	}
	var vars [][2]string
	for _, v := range d.Vars {
		need := "required"
		if d.Cloud == Vertex {
			need = "required with an access token; a key file has it"
		}
		vars = append(vars, [2]string{v, need})
	}
	for _, v := range d.OptVars {
		vars = append(vars, [2]string{v, "optional"})
	}
	for _, h := range d.OptHeader {
		vars = append(vars, [2]string{h[1], "optional, sent as `" + h[0] + "`"})
	}
	if len(vars) > 0 {
		b.WriteString("\n| Field of `providerSpecificData` | |\n|---|---|\n")
		for _, v := range vars {
			row("`"+v[0]+"`", v[1])
		}
	}
	b.WriteString("\nThe other fields of an account are in [Accounts](../connections.md).\n")

	models := catalog.Models(alias)
	kinds := d.Kinds
	if len(kinds) == 0 {
		kinds = []catalog.Kind{catalog.LLM}
	}
	b.WriteString("\n## What it serves\n\n| Kind | Route | Models of the catalogue |\n|---|---|---|\n")
	for _, use := range kindUses {
		if !slices.Contains(kinds, use.kind) {
			continue
		}
		var ids []string
		n := 0
		for i := range models {
			if models[i].Kind == use.kind && models[i].Deprecated == "" {
				if n++; n <= maxListed {
					ids = append(ids, "`"+alias+"/"+models[i].ID+"`")
				}
			}
		}
		list := strings.Join(ids, ", ")
		if n > maxListed {
			list += fmt.Sprintf(", and %d more", n-maxListed)
		}
		if n == 0 {
			list = "–"
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", use.name, use.route, list)
	}
	also := ""
	if slices.ContainsFunc(models, func(m catalog.Model) bool { return m.Deprecated != "" }) {
		also = ", also models that their vendor ends, which are left out here"
	}
	fmt.Fprintf(&b, "\n`GET /v1/models` lists what your accounts offer%s. [Prices](../prices.md) explains where prices come from.\n", also)
	return b.String()
}

func TestProviderPagesAreThoseOfTheTable(t *testing.T) {
	files := map[string]string{}
	index := "# Providers\n\n" + pageNote + "Every provider that weir knows, with a page for each: how to connect it, and what it serves. [Accounts](../connections.md) describes what all of them share.\n\n| Provider | Model ids | Kinds |\n|---|---|---|\n"
	add := func(d *Descriptor, id, alias, name, file string) {
		files[file+".md"] = page(d, id, alias, name)
		var kinds []string
		for _, use := range kindUses {
			if slices.Contains(d.Kinds, use.kind) || use.kind == catalog.LLM && len(d.Kinds) == 0 {
				kinds = append(kinds, strings.ToLower(use.name))
			}
		}
		index += fmt.Sprintf("| [%s](%s.md) | `%s/…` | %s |\n", name, file, alias, strings.Join(kinds, ", "))
	}
	for _, d := range All() {
		add(d, d.ID, d.Alias, d.Name, d.ID)
	}
	add(&openAILike, openAICompatible+"-0123abcd", "mine", "OpenAI-compatible server", openAICompatible)
	add(&anthropicLike, anthropicCompatible+"-0123abcd", "mine", "Anthropic-compatible server", anthropicCompatible)
	files["README.md"] = index
	if os.Getenv("GOLDEN") == "update" {
		if err := os.MkdirAll(pagesDir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range files {
		if os.Getenv("GOLDEN") == "update" {
			if err := os.WriteFile(pagesDir+name, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
		} else if got, err := os.ReadFile(pagesDir + name); err != nil || string(got) != want {
			t.Errorf("docs/providers/%s is not what the table says (%v): run GOLDEN=update go test ./pkg/provider", name, err)
		}
	}
	stored, err := filepath.Glob(pagesDir + "*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range stored {
		if files[filepath.Base(path)] == "" {
			t.Errorf("docs/providers/%s is of no provider: delete it", filepath.Base(path))
		}
	}
}
