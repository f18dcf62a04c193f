package dashboard

import (
	"compress/gzip"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/fstest"
	"time"
)

func handlerOf(files fs.FS) http.Handler {
	return Handler(files, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Program", r.URL.Path)
		w.WriteHeader(http.StatusTeapot)
	}))
}

func dashboard() http.Handler {
	return handlerOf(fstest.MapFS{
		".gitignore":                 {Data: []byte("*")},
		"_headers":                   {Data: []byte("/*")},
		"index.html":                 {Data: []byte("<!doctype html>" + strings.Repeat("<p>page</p>", 200))},
		"openapi.json":               {Data: []byte("{}")},
		"llms.txt":                   {Data: []byte("# weir")},
		"docs/index.html":            {Data: []byte("<!doctype html>")},
		"docs/guides/codex.html":     {Data: []byte("<!doctype html>")},
		"docs/assets/site.js":        {Data: []byte("f()")},
		"docs/404.html":              {Data: []byte("<!doctype html>")},
		"assets/index-0123abcd.js":   {Data: []byte(strings.Repeat("f();", 1000))},
		"assets/index-0123abcd.css":  {Data: []byte("a{}")},
		"assets/icon.svg":            {Data: []byte("<svg/>")},
		"assets/nested/x-0123abcd.x": {Data: []byte("?")},
	})
}

func ask(h http.Handler, method, target string, fields ...string) *http.Response {
	r := httptest.NewRequest(method, target, nil)
	for i := 0; i < len(fields); i += 2 {
		r.Header.Set(fields[i], fields[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result()
}

// edgeHeaders reads the header fields that the edge platform sets, by pattern.
func edgeHeaders(t *testing.T) map[string]map[string]string {
	t.Helper()
	raw, err := os.ReadFile("../../worker/dashboard/public/_headers")
	if err != nil {
		t.Fatal(err)
	}
	rules, pattern := map[string]map[string]string{}, ""
	for line := range strings.Lines(string(raw)) {
		line = strings.TrimRight(line, "\n")
		switch name, value, field := strings.Cut(strings.TrimSpace(line), ": "); {
		case line == "" || line[0] == '#' || strings.HasPrefix(name, "!"):
		case line[0] == '/':
			pattern = line
			rules[pattern] = map[string]string{}
		case field:
			rules[pattern][name] = value
		default:
			t.Fatalf("line %q of _headers is of an unknown form", line)
		}
	}
	return rules
}

func TestHeadersAreThoseOfTheEdge(t *testing.T) {
	rules := edgeHeaders(t)
	if len(rules) != 4 || len(rules["/*"]) != len(security) {
		t.Errorf("_headers has %d patterns and %d fields for every file, want 4 and %d", len(rules), len(rules["/*"]), len(security))
	}
	for path, patterns := range map[string][]string{
		"/":                         {"/*"},
		"/assets/index-0123abcd.js": {"/*", "/assets/*"},
		"/assets/icon.svg":          {"/*", "/assets/icon.svg"},
		"/openapi.json":             {"/*", "/openapi.json"},
	} {
		for name, h := range map[string]http.Handler{"built": dashboard(), "placeholder": handlerOf(fstest.MapFS{})} {
			if name == "placeholder" && path != "/" {
				continue
			}
			res := ask(h, "GET", path)
			if res.StatusCode != 200 {
				t.Errorf("%s %s: status %d", name, path, res.StatusCode)
			}
			for _, p := range patterns {
				for field, want := range rules[p] {
					if over := rules[path][field]; over != "" {
						want = over
					}
					if got := res.Header.Get(field); got != want {
						t.Errorf("%s %s: %s is %q, want %q", name, path, field, got, want)
					}
				}
			}
		}
	}
}

func TestBuildWithoutFilesSaysHowToGetThem(t *testing.T) {
	h := handlerOf(fstest.MapFS{})
	for path, status := range map[string]int{"/": 200, "/docs": 307, "/docs/": 200, "/openapi.json": 404, "/assets/a.js": 404} {
		res := ask(h, "GET", path)
		body, _ := io.ReadAll(res.Body)
		if res.StatusCode != status {
			t.Errorf("%s: status %d, want %d", path, res.StatusCode, status)
		}
		if !strings.HasPrefix(path, "/assets") && status != 307 && !strings.Contains(string(body), "./build.sh release") {
			t.Errorf("%s does not say how to get it: %s", path, body)
		}
	}
}

func TestAPIPathsAreNotFiles(t *testing.T) {
	h := dashboard()
	for _, tt := range []struct {
		method, path string
		status       int
		contentType  string
	}{
		{"GET", "/", 200, "text/html; charset=utf-8"},
		{"HEAD", "/", 200, "text/html; charset=utf-8"},
		{"POST", "/", 405, ""},
		{"GET", "/assets/index-0123abcd.js", 200, "text/javascript; charset=utf-8"},
		{"GET", "/assets/index-0123abcd.css", 200, "text/css; charset=utf-8"},
		{"GET", "/assets/icon.svg", 200, "image/svg+xml"},
		{"GET", "/assets/nested/x-0123abcd.x", 200, "application/octet-stream"},
		{"GET", "/openapi.json", 200, "application/json"},
		{"GET", "/llms.txt", 200, "text/plain; charset=utf-8"},
		{"GET", "/docs/", 200, "text/html; charset=utf-8"},
		{"GET", "/docs", 307, ""},
		{"GET", "/docs/guides/codex", 200, "text/html; charset=utf-8"},
		{"GET", "/docs/guides/codex.html", 404, "text/html; charset=utf-8"},
		{"HEAD", "/docs/guides/codex", 200, "text/html; charset=utf-8"},
		{"HEAD", "/openapi.json", 200, "application/json"},
		{"GET", "/docs/assets/site.js", 200, "text/javascript; charset=utf-8"},
		{"GET", "/docs/missing", 404, "text/html; charset=utf-8"},
		{"HEAD", "/docs/guides/missing", 404, "text/html; charset=utf-8"},
		{"GET", "/assets/", 404, ""},
		{"GET", "/assets/missing.js", 404, ""},
		{"GET", "/assets/..%2findex.html", 404, ""},
		{"GET", "/index.html", http.StatusTeapot, ""},
		{"GET", "/_headers", http.StatusTeapot, ""},
		{"GET", "/.gitignore", http.StatusTeapot, ""},
		{"GET", "/v1/models", http.StatusTeapot, ""},
		{"POST", "/api/session", http.StatusTeapot, ""},
	} {
		res := ask(h, tt.method, tt.path)
		body, _ := io.ReadAll(res.Body)
		if res.StatusCode != tt.status || tt.contentType != "" && res.Header.Get("Content-Type") != tt.contentType {
			t.Errorf("%s %s: status %d, type %q, want %d, %q", tt.method, tt.path, res.StatusCode, res.Header.Get("Content-Type"), tt.status, tt.contentType)
		}
		if (tt.contentType != "" && tt.method == "GET") != (len(body) > 0) {
			t.Errorf("%s %s: %d bytes", tt.method, tt.path, len(body))
		}
	}
}

func TestFilesAreCompressedAndCached(t *testing.T) {
	h := dashboard()
	const path = "/assets/index-0123abcd.js"
	plain, zipped := ask(h, "GET", path), ask(h, "GET", path, "Accept-Encoding", "br, gzip;q=0.5")
	if zipped.Header.Get("Content-Encoding") != "gzip" || plain.Header.Get("Content-Encoding") != "" {
		t.Fatalf("encodings %q and %q", zipped.Header.Get("Content-Encoding"), plain.Header.Get("Content-Encoding"))
	}
	z, err := gzip.NewReader(zipped.Body)
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(z)
	want, _ := io.ReadAll(plain.Body)
	if err != nil || string(got) != string(want) {
		t.Errorf("the compressed form has %d bytes, the plain one %d: %v", len(got), len(want), err)
	}
	if ask(h, "GET", path, "Accept-Encoding", "gzip;q=0").Header.Get("Content-Encoding") != "" {
		t.Error("gzip was refused by the client")
	}
	if zipped.Header.Get("ETag") == plain.Header.Get("ETag") || plain.Header.Get("Vary") != "Accept-Encoding" {
		t.Error("the two forms have one tag")
	}
	for _, tag := range []string{plain.Header.Get("ETag"), `"other", W/` + plain.Header.Get("ETag"), "*"} {
		res := ask(h, "GET", path, "If-None-Match", tag)
		if body, _ := io.ReadAll(res.Body); res.StatusCode != 304 || len(body) > 0 {
			t.Errorf("If-None-Match %s: status %d", tag, res.StatusCode)
		}
	}
	if res := ask(h, "GET", path, "If-None-Match", `"other"`); res.StatusCode != 200 {
		t.Errorf("another tag: status %d", res.StatusCode)
	}
}

func TestBinaryWithoutDashboardSaysSo(t *testing.T) {
	for name, files := range map[string]fs.FS{"clean clone": fstest.MapFS{".gitignore": {}}, "assets alone": fstest.MapFS{"assets/a.js": {Data: []byte("x")}}} {
		h := handlerOf(files)
		body, _ := io.ReadAll(ask(h, "GET", "/").Body)
		if !strings.Contains(string(body), "./build.sh serve") {
			t.Errorf("%s: %s", name, body)
		}
		if res := ask(h, "GET", "/assets/a.js"); res.StatusCode != 404 {
			t.Errorf("%s: an asset has status %d", name, res.StatusCode)
		}
	}
	if _, err := Files().Open("."); err != nil {
		t.Error(err)
	}
}

// A body that nothing reads does not hold the connection.
func TestBodyOfARequestForAFileIsNotWaitedFor(t *testing.T) {
	server := httptest.NewServer(dashboard())
	defer server.Close()
	c, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(time.Minute))
	io.WriteString(c, "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n")
	got, err := io.ReadAll(c)
	if err != nil || !strings.HasPrefix(string(got), "HTTP/1.1 200 ") {
		t.Fatalf("got %q, %v", got, err)
	}
}
