package gateway

import (
	"io"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"weir/pkg/llm"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/httpmsg"
)

func TestUnknownPathsNameTheRouteThatWasMeant(t *testing.T) {
	for _, tt := range []struct {
		method, path string
		status       int
		want         string // with ORIGIN for the address of the gateway
	}{
		{"POST", "/embeddings", 404, "No route POST /embeddings. Did you mean /v1/embeddings? Set the base URL to ORIGIN/v1."},
		{"POST", "/v1/embeddings/embeddings", 404, "No route POST /v1/embeddings/embeddings. Did you mean /v1/embeddings? Set the base URL to ORIGIN/v1."},
		{"POST", "/v1/embeddings/v1/messages", 404, "No route POST /v1/embeddings/v1/messages. Did you mean /v1/messages? Set the base URL to ORIGIN/v1."},
		{"POST", "/v1/embeddings/", 404, "No route POST /v1/embeddings/. Did you mean /v1/embeddings? Set the base URL to ORIGIN/v1."},
		{"POST", "//v1/embeddings", 404, "No route POST //v1/embeddings. Did you mean /v1/embeddings? Set the base URL to ORIGIN/v1."},
		{"POST", "/v1//embeddings", 404, "No route POST /v1//embeddings. Did you mean /v1/embeddings? Set the base URL to ORIGIN/v1."},
		{"GET", "/api/machines/", 404, "No route GET /api/machines/. Did you mean /api/machines?"},
		{"POST", "/0123456789abcdef/embeddings", 404, "No route POST /0123456789abcdef/embeddings. Did you mean /0123456789abcdef/v1/embeddings? Set the base URL to ORIGIN/0123456789abcdef/v1."},
		{"POST", "/0123456789abcdef/v1/embeddings/", 404, "No route POST /v1/embeddings/. Did you mean /0123456789abcdef/v1/embeddings? Set the base URL to ORIGIN/0123456789abcdef/v1."},
		{"GET", "/v1/none", 404, "No route GET /v1/none."},
		{"GET", "/none/" + strings.Repeat("x", 200), 404, "No route has this path."},
		{"GET", "/none/\x01", 404, "No route has this path."},
		{"GET", "/v1/none/sk-0123456789abcdef-canary", 404, "No route has this path."},
		{"POST", "/none/sk-canary1/embeddings", 404, "No route has this path. Did you mean /v1/embeddings? Set the base URL to ORIGIN/v1."},
		{"GET", "/none/a%2Fb", 404, "No route has this path."},
		{"POST", "/v1/assistants", 501, "/v1/assistants is not offered by this gateway. Offered: /v1/embeddings, /v1/messages, /v1/models."},
		{"GET", "/v1/files/file-1", 501, "/v1/files is not offered by this gateway. Offered: /v1/embeddings, /v1/messages, /v1/models."},
		{"POST", "/v1beta/files", 501, "/v1beta/files is not offered by this gateway. Offered of the Gemini API: /v1beta/models, and the methods of a model."},
		{"POST", "/v1alpha/cachedContents/x", 501, "/v1beta/cachedContents is not offered by this gateway. Offered of the Gemini API: /v1beta/models, and the methods of a model."},
		{"POST", "/upload/v1beta/files", 501, "/upload/v1beta is not offered by this gateway. Offered of the Gemini API: /v1beta/models, and the methods of a model."},
		{"GET", "/v1/filesystem", 404, "No route GET /v1/filesystem."},
		{"PUT", "/api/keys", 405, "PUT is not allowed for /api/keys. Use GET."},
	} {
		resp, body := newFixture().get(tt.method, tt.path, "data", "")
		want := strings.ReplaceAll(tt.want, "ORIGIN", "")
		if got := gjson.Get(body, "error.message").Str; resp.Status != tt.status || got != want {
			t.Errorf("%s %s: got %d %q, want %d %q", tt.method, tt.path, resp.Status, got, tt.status, want)
		}
		if retry := resp.Get("x-should-retry"); (tt.status == 501) != (retry == "false") {
			t.Errorf("%s: x-should-retry %q", tt.path, retry)
		}
	}
}

func TestBrowserAtAWrongAddressGetsAPage(t *testing.T) {
	const browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
	for _, tt := range []struct {
		method, path, accept string
		page                 bool
	}{
		{"GET", "/nosuchpage", browser, true},
		{"GET", "/0123456789abcdef/nosuchpage", browser, true},
		{"GET", "/nosuchpage", "*/*", false},
		{"GET", "/nosuchpage", "application/json", false},
		{"GET", "/nosuchpage", "", false},
		{"POST", "/nosuchpage", browser, false},
		{"GET", "/v1/none", browser, false},
		{"GET", "/v1beta/none", browser, false},
		{"GET", "/api/none", browser, false},
		{"GET", "/0123456789abcdef/v1/none", browser, false},
	} {
		r := &httpmsg.Request{Method: tt.method, Path: tt.path, Header: httpmsg.Header{{Name: "accept", Value: tt.accept}}}
		resp := newFixture().Serve(t.Context(), r)
		got, err := io.ReadAll(resp.Body)
		if err != nil || resp.Status != 404 {
			t.Fatalf("%s %s: %d %v", tt.method, tt.path, resp.Status, err)
		}
		html := strings.HasPrefix(resp.Get("content-type"), "text/html") && strings.Contains(string(got), `href="/docs/"`)
		if html != tt.page || html == gjson.ValidBytes(got) {
			t.Errorf("%s %s, accept %q: got %s", tt.method, tt.path, tt.accept, got)
		}
	}
}

func TestErrorsShowAngleBracketsUnescaped(t *testing.T) {
	e := apierr.Invalid("model", "A model is named <alias>/<model>.")
	for _, d := range []llm.Dialect{llm.Chat, llm.Messages} {
		if got := string(body(e, &Route{Dialect: d}, &httpmsg.Request{})); !strings.Contains(got, "named <alias>/<model>.") {
			t.Error(got)
		}
	}
}
