package llm

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
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
		}
		need("read or write", d.read != nil || d.write != nil)
		if d.read != nil { // clients speak it
			need("fields", d.fields != nil)
			need("writeAnswer", d.writeAnswer != nil)
			need("sink", d.sink != nil)
			need("failure", d.failure != nil)
		}
		if d.read != nil && d.write != nil {
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
