package videos

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
)

// In any answer of a provider a job has one of the known states and is shown as JSON,
// and its name never leaves its place in a path.
func FuzzAnswers(f *testing.F) {
	files, _ := filepath.Glob("testdata/vendors/*.json")
	for _, name := range files {
		if b, err := os.ReadFile(name); err == nil && !strings.HasSuffix(name, ".golden.json") {
			f.Add(string(b), uint8(0))
		}
	}
	f.Add(`{"id":12345678901234567890,"status":"SUCCEEDED","output":[{"url":null}],"progress":1e300}`, uint8(0))
	f.Add(`{"name":"../../x?y#z%2f","done":true,"error":"e","response":{"generateVideoResponse":[]}}`, uint8(1))
	f.Add(`{"video":{"url":"https://a.example/v","duration":1e999}}`, uint8(1)) // once an empty answer
	f.Fuzz(func(t *testing.T, body string, step uint8) {
		if len(body) > 1<<16 || !gjson.Valid(body) {
			return
		}
		for _, s := range shapes {
			if s.refusal != nil {
				s.refusal([]byte(body))
			}
			name := "job"
			if s.name != nil {
				if n := s.name([]byte(body), "model"); n != "" {
					name = n
				}
			}
			if s.poll != nil {
				s.poll(name, int(step%2), []byte(body))
			}
			if s.read == nil {
				continue
			}
			got, _ := s.read(name, int(step%2), []byte(body))
			if !slices.Contains([]string{"", "pending", "done", "failed", "expired"}, got.Status) || got.Progress < -1 || got.Progress > 100 || !gjson.ValidBytes(got.json()) {
				t.Fatalf("%v: %+v %s", s.providers, got, got.json())
			}
		}
	})
}

// Any request of a client is refused or read.
func FuzzParse(f *testing.F) {
	f.Add(`{"model":"a/b","prompt":"p","seconds":"8","size":"1280x720"}`)
	f.Add(`{"model":"\"x\"","seconds":1e99,"duration":null}`)
	f.Fuzz(func(t *testing.T, body string) {
		if r, err := parse([]byte(body)); (r == nil) == (err == nil) {
			t.Errorf("%v, %v", r, err)
		}
	})
}
