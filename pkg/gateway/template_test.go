package gateway

import (
	"context"
	"fmt"
	"testing"

	"weir/pkg/auth"
	"weir/pkg/endpoint"
	"weir/pkg/llm"
	"weir/pkg/wire/httpmsg"
)

// A host keeps its own form of a template: there is one for each kind of answer,
// and no field is in both parts of a header.
func TestTemplatesOfAnswers(t *testing.T) {
	f := newFixture()
	answers := map[string]httpmsg.Header{
		"json":    {{Name: "content-type", Value: "application/json"}},
		"other":   {{Name: "content-type", Value: "audio/mpeg"}, {Name: "x-content-type-options", Value: "nosniff"}, {Name: "vary", Value: "x"}},
		"cached":  {{Name: "cache-control", Value: "max-age=60"}, {Name: "content-type", Value: "application/json"}},
		"foreign": {{Name: "x-request-id", Value: "up"}, {Name: "request-id", Value: "up"}, {Name: "access-control-allow-origin", Value: "https://evil.example"}},
	}
	var routes []Route
	for name, header := range answers {
		h := func(context.Context, *auth.Call) (*httpmsg.Response, error) {
			return &httpmsg.Response{Status: 200, Header: append(httpmsg.Header(nil), header...)}, nil
		}
		for i, d := range []llm.Dialect{llm.Chat, llm.Messages} {
			for j, c := range []endpoint.Cors{endpoint.NoCors, endpoint.OpenCors, endpoint.ListCors} {
				routes = append(routes, Route{Pattern: fmt.Sprintf("/%s/%d/%d", name, i, j), Access: endpoint.Data, Dialect: d, Cors: c, Methods: []Method{{Name: "GET", Handler: h}}})
			}
		}
	}
	f.SetRoutes(routes)
	paths := []string{"/none", "/v1/none", "/v1/messages/none"}
	for _, r := range routes {
		paths = append(paths, r.Pattern)
	}
	templates := map[*httpmsg.Template]string{}
	for range 3 {
		for _, path := range paths {
			for _, key := range []string{"data", ""} {
				resp, _ := f.get("GET", path, key, "")
				once := map[string]bool{}
				for _, h := range []httpmsg.Header{resp.Template.Fields, resp.Header} {
					for _, field := range h {
						if once[field.Name] {
							t.Errorf("%s: %s is sent twice: %v %v", path, field.Name, resp.Template.Fields, resp.Header)
						}
						once[field.Name] = true
					}
				}
				for _, name := range []string{"x-request-id", "cache-control", "x-content-type-options", "vary"} {
					if resp.Get(name) == "" || resp.Get(name) == "up" || resp.Get(name) == "x" {
						t.Errorf("%s: %s is %q", path, name, resp.Get(name))
					}
				}
				if at := resp.Get("access-control-allow-origin"); at != "" && at != "*" {
					t.Errorf("%s: another's origin %q", path, at)
				}
				if resp.Template.Fields.Get("x-request-id") != "" {
					t.Errorf("%s: the template has a field of one request", path)
				}
				templates[resp.Template] = path
			}
		}
	}
	if most := 2*len(routes) + 3; len(templates) > most {
		t.Errorf("%d templates, at most %d", len(templates), most)
	}
	resp, _ := f.get("GET", "/cached/0/0", "data", "")
	if got := resp.Get("cache-control"); got != "max-age=60" {
		t.Errorf("an endpoint's own cache-control became %q", got)
	}
}
