// Package nulls puts null into recorded JSON documents, to show that it is
// taken for what is absent.
package nulls

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Known is which members the objects of some documents have, by where the
// objects stand and what their type is.
type Known struct {
	opaque []string
	shapes map[string]map[string]bool
}

// Of reads documents. The values of the opaque members are not looked into:
// what null means in a schema, or in a tool's arguments, is for others to say.
// Of members that are lists the name ends with [].
// Documents that are not JSON are left out.
func Of(opaque []string, documents ...[]byte) *Known {
	k := &Known{opaque, map[string]map[string]bool{}}
	for _, d := range documents {
		var doc any
		if json.Unmarshal(d, &doc) != nil {
			continue
		}
		k.objects(nil, doc, func(path []any, v map[string]any) {
			at := shape(path, v)
			if k.shapes[at] == nil {
				k.shapes[at] = map[string]bool{}
			}
			for name := range v {
				k.shapes[at][name] = true
			}
		})
	}
	return k
}

// Each calls f with a document once for each member of its objects, and for
// each that objects of the same shape have elsewhere: with the member null, and
// without it.
func (k *Known) Each(t testing.TB, document []byte, f func(member string, null, absent []byte)) {
	t.Helper()
	var doc any
	if json.Unmarshal(document, &doc) != nil {
		return
	}
	write := func() []byte {
		b, err := json.Marshal(doc)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	k.objects(nil, doc, func(path []any, v map[string]any) {
		for _, name := range slices.Sorted(maps.Keys(k.shapes[shape(path, v)])) {
			old, had := v[name]
			v[name] = nil
			null := write()
			delete(v, name)
			absent := write()
			if had {
				v[name] = old
			}
			f(fmt.Sprint(path, " ", name), null, absent)
		}
	})
}

// Compare calls outcome with a document once with each member null and once
// without it, as Each does, and reports the members for which the two differ.
// Members in except are left out. It returns the number of members compared.
func (k *Known) Compare(t testing.TB, what string, document []byte, outcome func(document []byte) string,
	except ...string) (n int) {
	t.Helper()
	k.Each(t, document, func(member string, null, absent []byte) {
		if slices.Contains(except, member) {
			return
		}
		n++
		if got, want := outcome(null), outcome(absent); got != want {
			t.Errorf("%s, member %s\nnull:\n%.2000s\nabsent:\n%.2000s", what, member, got, want)
		}
	})
	return n
}

// Records reads the JSON files that match pattern, by their names. Golden files
// are left out.
func Records[T any](t testing.TB, pattern string) map[string]T {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	records := map[string]T{}
	for _, f := range files {
		if strings.HasSuffix(f, ".golden.json") {
			continue
		}
		raw, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		var r T
		if err := json.Unmarshal(raw, &r); err != nil {
			t.Fatalf("%s: %v", f, err)
		}
		records[filepath.Base(f)] = r
	}
	return records
}

// objects calls f for each object that is not within an opaque member.
func (k *Known) objects(path []any, v any, f func(path []any, v map[string]any)) {
	switch v := v.(type) {
	case map[string]any:
		f(path, v)
		for _, name := range slices.Sorted(maps.Keys(v)) {
			kind := name
			if _, list := v[name].([]any); list {
				kind += "[]"
			}
			if !slices.Contains(k.opaque, kind) {
				k.objects(append(slices.Clone(path), name), v[name], f)
			}
		}
	case []any:
		for i, x := range v {
			k.objects(append(slices.Clone(path), i), x, f)
		}
	}
}

// shape is the way to an object without its indexes, with the object's type or
// role.
func shape(path []any, v map[string]any) string {
	var b strings.Builder
	for _, p := range path {
		if name, ok := p.(string); ok {
			b.WriteString(name + ".")
		}
	}
	for _, name := range []string{"type", "role"} {
		if kind, ok := v[name].(string); ok {
			return b.String() + kind
		}
	}
	return b.String()
}

// Without returns a JSON document without its members that are null, for what
// passes unchanged. A text that is not JSON is returned unchanged.
func Without(document []byte) string {
	var doc any
	if json.Unmarshal(document, &doc) != nil {
		return string(document)
	}
	b, err := json.Marshal(without(doc))
	if err != nil {
		return err.Error()
	}
	return string(b)
}

func without(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name, x := range v {
			if x == nil {
				delete(v, name)
			} else {
				v[name] = without(x)
			}
		}
	case []any:
		for i, x := range v {
			v[i] = without(x)
		}
	}
	return v
}
