package web

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"weir/pkg/endpoint"
	"weir/pkg/wire/stream"
)

// FuzzAnswers checks that any JSON answer of a provider becomes either an error or a
// valid answer of at most the wanted length.
func FuzzAnswers(f *testing.F) {
	files, _ := filepath.Glob("testdata/vendors/*.json")
	for _, name := range files {
		if b, err := os.ReadFile(name); err == nil && !strings.HasSuffix(name, ".golden.json") {
			f.Add(string(b))
		}
	}
	f.Add(`{"html":"<p>a","markdown":"","text":null,"code":1e9,"success":true}`)
	f.Fuzz(func(t *testing.T, body string) {
		if len(body) > 1<<16 || endpoint.ValidJSON([]byte(body)) != nil {
			return
		}
		for _, format := range []string{markdown, text, rawHTML} {
			r := &request{url: "https://a.example.com/\"x", format: format, max: 10}
			for _, s := range services {
				if sent := s.body(r); !gjson.Valid(sent) {
					t.Fatalf("%s: sent %s", s.provider, sent)
				}
				p := &page{provider: s.provider, format: format, now: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)}
				if ok, err := s.read(p, gjson.Parse(body), r); !ok || err != nil {
					continue
				}
				got, err := stream.ReadAll(p.response(r, time.Second).Body, 1<<20)
				if err != nil || !gjson.ValidBytes(got) || len([]rune(gjson.GetBytes(got, "content.text").Str)) > r.max {
					t.Fatalf("%s: %s %v", s.provider, got, err)
				}
			}
		}
	})
}
