package search

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"weir/internal/testgw"
	"weir/pkg/endpoint"
	"weir/pkg/provider"
)

// FuzzAnswers checks that any JSON answer of a provider becomes either an error or a
// valid answer with at most the wanted number of results.
func FuzzAnswers(f *testing.F) {
	files, _ := filepath.Glob("testdata/vendors/*.json")
	for _, name := range files {
		if b, err := os.ReadFile(name); err == nil && !strings.HasSuffix(name, ".golden.json") {
			f.Add(string(b), uint8(3))
		}
	}
	f.Add(`{"results":[{"url":"https://a.example.com/","title":1e999,"score":-0}],"number_of_results":1e30,"code":399}`, uint8(1))
	f.Fuzz(func(t *testing.T, body string, max uint8) {
		if len(body) > 1<<16 || endpoint.ValidJSON([]byte(body)) != nil {
			return
		}
		r, err := parse([]byte(`{"query":"q","domain_filter":["-spam.example.net"],"time_range":"year","content_options":{"full_page":true}}`))
		if err != nil {
			t.Fatal(err)
		}
		r.max = int(max)%20 + 1
		for _, s := range services {
			for _, id := range s.providers {
				to := target(provider.Lookup(id), "search")
				c := newCall(r, s, &to, time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC))
				if sent, _ := c.payload(); !s.get && !gjson.ValidBytes(sent) {
					t.Fatalf("%s: sent %s", id, sent)
				}
				resp := &response{provider: id}
				if ok, err := c.read(resp, gjson.Parse(body)); !ok || err != nil {
					continue
				}
				got := resp.write(c, time.Second)
				if !gjson.ValidBytes(got) || gjson.GetBytes(got, "results.#").Int() > int64(r.max) || strings.Contains(string(got), "https://spam.example.net/") && !strings.Contains(gjson.GetBytes(got, "answer").Str, "spam") {
					t.Fatalf("%s: %s", id, got)
				}
			}
		}
	})
}

func TestFullRequestIsValidForEveryProvider(t *testing.T) {
	w := testgw.Recorded(t)
	for _, body := range []string{`{"query":"say \"hi\" \\ ü"` + all + `}`, `{"query":"q","offset":37,"max_results":7,"search_type":"news","time_range":"day","country":"jp","language":"zh-TW","domain_filter":["-a.example.com","-b.example.com"]}`} {
		r, err := parse([]byte(body))
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range services {
			for _, id := range s.providers {
				to := target(provider.Lookup(id), "search")
				c := newCall(r, s, &to, w.Now())
				sent, query := c.payload()
				if s.get != (query != "") || !s.get && !gjson.ValidBytes(sent) || strings.ContainsAny(query, " \"\\") {
					t.Errorf("%s: %s %s", id, sent, query)
				}
			}
		}
	}
}
