package llm

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func TestDialectsAreComplete(t *testing.T) {
	for i := range dialects {
		d := &dialects[i]
		need := func(part string, ok bool) {
			if !ok {
				t.Errorf("dialect %d (%s) has no %s", i, d.name, part)
			}
		}
		need("name", d.name != "")
		if d.write != nil { // upstreams speak it
			need("tools.MaxName", d.tools.MaxName > 0)
			need("customTools", d.customTools != nil)
			need("readAnswer", d.readAnswer != nil)
			need("source", d.source != nil)
			need("usage", d.usage != nil)
			need("endpoint", d.endpoint != "")
		}
		need("read or write", d.read != nil || d.write != nil)
		if d.read != nil { // clients speak it
			need("fields", d.fields != nil)
			need("writeAnswer", d.writeAnswer != nil)
			need("sink", d.sink != nil)
			need("failure", d.failure != nil)
			needClient(d.client, need)
		}
		if d.read != nil && d.write != nil {
			need("forget", d.forget != nil)
			need("countUsage", d.countUsage != nil)
			need("watch", d.watch != nil)
			need("seenUsage", d.seenUsage != nil)
			for _, dir := range []string{"requests", "answers", "streams"} {
				_, err := os.Stat(filepath.Join("testdata", dir, d.name))
				need("testdata/"+dir, err == nil)
			}
		}
		_, err := os.Stat(d.name)
		need("folder", err == nil)
	}
}

// needClient names what is missing of a dialect's clients.
func needClient(c *Client, need func(part string, ok bool)) {
	if need("client", c != nil); c == nil {
		return
	}
	need("client.Routing", len(c.Routing) > 0)
	need("client.OutputLimits", len(c.OutputLimits) > 0)
	need("client.Choices", len(c.Choices) > 0)
	need("client.Answer and Usage", c.Answer != "" && c.Usage != "")
	need("client.AppendError", c.AppendError != nil)
	need("client.ErrorSchema", c.ErrorSchema != "")
	need("client.TooLong", c.TooLong != nil)
	need("client.Compacts", c.Compacts != nil)
	for _, name := range slices.Concat(c.System, c.Messages, c.Config) {
		need("client.Routing with "+name, slices.Contains(c.Routing, name))
	}
}

func TestDialectsDoNotImportEachOther(t *testing.T) {
	folders := []string{"ir"}
	for i := range dialects {
		folders = append(folders, dialects[i].name)
	}
	for _, folder := range folders {
		files, _ := filepath.Glob(folder + "/*.go")
		if len(files) == 0 {
			t.Errorf("%s has no files", folder)
		}
		for _, name := range files {
			f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
			if err != nil {
				t.Fatal(err)
			}
			for _, i := range f.Imports {
				path, _ := strconv.Unquote(i.Path.Value)
				if strings.HasPrefix(path, "weir/pkg/llm") && (path != "weir/pkg/llm/ir" || folder == "ir") {
					t.Errorf("%s imports %s", name, path)
				}
			}
		}
	}
}
