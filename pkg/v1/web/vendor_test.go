package web

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/internal/golden"
	"weir/internal/testgw"
	"weir/internal/testgw/fake"
	"weir/pkg/provider"
	"weir/pkg/store"
	"weir/pkg/wire/httpmsg"
)

// vendors are the providers with a fetch service.
var vendors = []string{"tavily", "exa", "firecrawl", "jina-reader", "linkup", "you", "ollama-cloud", "zai", "serper"}

// exchanged is a golden file: what went up and what the client got.
type exchanged struct {
	Method, URL string
	Header      httpmsg.Header
	Body        json.RawMessage
	Answer      json.RawMessage
	Dropped     []string
}

func TestVendors(t *testing.T) {
	for _, id := range vendors {
		for _, format := range []string{"", "text", "html"} {
			name := id
			if format != "" {
				name += "_" + format
			}
			t.Run(name, func(t *testing.T) {
				recorded, err := os.ReadFile("testdata/vendors/" + id + ".json")
				if err != nil {
					t.Fatal(err)
				}
				body := string(recorded)
				if format != "" {
					// The answers of vendors that can send HTML.
					for _, f := range []string{`"html":null`, `"markdown":"# Tea\n\nBoil water.","metadata":{"title":"Tea guide","language"`} {
						body = strings.Replace(body, f, strings.Replace(f, `"markdown":"# Tea\n\nBoil water."`, `"html":"<h1>Tea</h1><p>Boil <b>water</b>."`, 1), 1)
					}
					body = strings.Replace(body, `"html":null`, `"html":"<h1>Tea</h1><p>Boil <b>water</b>."`, 1)
				}
				w := testgw.Recorded(t)
				w.Connect(id, "c1", store.ProviderData{})
				w.Answer = func(*fake.Seen) fake.Answer {
					return fake.Answer{Body: body, Takes: 120 * time.Millisecond}
				}
				ask := `{"provider":"` + id + `","url":"https://tea.example.com/guide","max_characters":500`
				if format != "" {
					ask += `,"format":"` + format + `"`
				}
				c := w.Ask("/v1/web/fetch", ask+"}")
				resp, err := handler(w).Fetch(t.Context(), c)
				got := testgw.Body(t, resp, err)
				if len(w.Seen) != 1 {
					t.Fatalf("%d calls", len(w.Seen))
				}
				s := w.Seen[0]
				golden.JSON(t, "vendors/"+name, exchanged{s.Method, s.URL, s.Header, json.RawMessage(s.Body), json.RawMessage(got), c.Trace.Dropped})
			})
		}
	}
}

// A provider whose row says that it fetches pages needs a service, and the
// service a recorded answer.
func TestEveryFetchProviderHasAService(t *testing.T) {
	n := 0
	for _, d := range provider.All() {
		if !d.Fetch {
			continue
		}
		n++
		if serviceOf(d) == nil || !d.Serves("fetch") {
			t.Errorf("%s: the row says that it fetches pages, but services has no service for it", d.ID)
		}
		if !slices.Contains(vendors, d.ID) {
			t.Errorf("%s: no recorded answer in testdata/vendors", d.ID)
		}
	}
	if n != len(services) {
		t.Errorf("%d services for %d providers", len(services), n)
	}
}

// A provider reports a page that it could not read with status 200 and a
// failure or an empty list in the body.
func TestUnreadablePageDoesNotCoolAccount(t *testing.T) {
	tests := []struct {
		name, provider, body string
		status               int
		code                 string
	}{
		{"tavily_failed_results", "tavily", `{"results":[],"failed_results":[{"url":"x","error":"e"}]}`, 502, pageUnavailable},
		{"exa_status", "exa", `{"results":[],"statuses":[{"id":"x","status":"error","error":{"tag":"CRAWL_NOT_FOUND","httpStatusCode":404}}]}`, 404, pageNotFound},
		{"firecrawl_success_false", "firecrawl", `{"success":false,"error":"blocked"}`, 502, pageUnavailable},
		{"firecrawl_page_404", "firecrawl", `{"success":true,"data":{"markdown":"Not found","metadata":{"statusCode":404}}}`, 404, pageNotFound},
		{"jina_code", "jina-reader", `{"code":422,"status":42206,"data":null,"message":"m"}`, 502, pageUnavailable},
		{"empty_content", "linkup", `{"markdown":""}`, 502, pageUnavailable},
		{"another_shape", "zai", `{"x":1}`, 502, "bad_upstream_body"},
		{"not_json", "you", `<html>`, 502, "bad_upstream_body"},
		{"a_null", "ollama-cloud", `null`, 502, "bad_upstream_body"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := testgw.Recorded(t, tt.provider)
			w.Answer = func(*fake.Seen) fake.Answer { return fake.Answer{Body: tt.body} }
			for range 3 { // two failures of an account within 10 s would cool it down
				_, err := handler(w).Fetch(t.Context(), w.Ask("/v1/web/fetch", `{"provider":"`+tt.provider+`","url":"https://a.example.com/"}`))
				if e := testgw.Refused(t, err, tt.status); e.Code != tt.code {
					t.Errorf("code %q, want %q", e.Code, tt.code)
				}
			}
		})
	}
}
