package images

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
)

// Any answer of a provider becomes an error, images or a job, and a job that can be
// asked for.
func FuzzAnswers(f *testing.F) {
	files, _ := filepath.Glob("testdata/vendors/*.json")
	for _, name := range files {
		if b, err := os.ReadFile(name); err == nil && !strings.HasSuffix(name, ".golden.json") {
			f.Add(string(b), "application/json", uint8(0))
		}
	}
	f.Add(`{"images":[null,{"url":1}],"data":{"0":{}},"status":"COMPLETED","request_id":"../x?y"}`, "application/json", uint8(1))
	f.Add("\x89PNG", "image/png", uint8(0))
	f.Fuzz(func(t *testing.T, body, contentType string, step uint8) {
		if len(body) > 1<<16 || strings.Contains(contentType, "json") && !gjson.Valid(body) {
			return
		}
		for _, s := range shapes {
			check := func(m *made, err error) {
				if (m == nil) == (err == nil) {
					t.Fatalf("%v: %v, %v", s.providers, m, err)
				}
				if m != nil && m.job != "" && s.poll != nil {
					if p := s.poll(m, "model", int(step%3)); p == nil {
						t.Fatalf("%v: no poll of %q", s.providers, m.job)
					}
				}
			}
			if s.read != nil {
				check(s.read([]byte(body), contentType))
			}
			if s.state != nil {
				check(s.state([]byte(body), int(step%3)))
			}
		}
	})
}

// Any request of a client is refused or has a model and a prompt.
func FuzzParse(f *testing.F) {
	f.Add(`{"model":"a/b","prompt":"p","n":2,"size":"1024x1024","image":["data:image/png;base64,AA=="]}`)
	f.Add(`{"model":"","prompt":null,"n":1e9}`)
	f.Fuzz(func(t *testing.T, body string) {
		if r, err := parse([]byte(body)); (r == nil) == (err == nil) {
			t.Errorf("%v, %v", r, err)
		}
	})
}
