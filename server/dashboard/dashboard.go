// Package dashboard serves the files that are part of the binary, as the edge
// platform serves them: the dashboard, one page at / and what it loads under
// /assets; the documentation under /docs; the description of the API at /openapi.json.
//
// scripts/ copy the built dashboard (build/dashboard) to files/ before they compile
// the binary. Without it a plain page at / and
// /docs says so, and /openapi.json says where it is.
package dashboard

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"io"
	"io/fs"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"
)

// The folder has a .gitignore and nothing else in a clean clone.
//
//go:embed all:files
var built embed.FS

//go:embed placeholder.html
var placeholder []byte

// noOpenAPI stands for /openapi.json in a binary that was built without it.
const noOpenAPI = `{"error":{"message":"This binary was built without the description of the API. It is ` +
	`docs/reference/openapi.json of the source, and part of binaries that ./build.sh serve or ./build.sh release builds.",` +
	`"type":"not_found_error","code":"not_built"}}`

// Files returns the embedded files.
func Files() fs.FS {
	files, err := fs.Sub(built, "files")
	if err != nil {
		panic(err) // the name is a constant
	}
	return files
}

// Built reports whether the binary has the dashboard.
func Built() bool {
	_, err := fs.Stat(Files(), "index.html")
	return err == nil
}

// security are the header fields of every file, those of
// worker/dashboard/public/_headers.
var security = [...][2]string{
	{"Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; media-src blob:; connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'; require-trusted-types-for 'script'; trusted-types 'none'"},
	{"X-Frame-Options", "DENY"},
	{"X-Content-Type-Options", "nosniff"},
	{"Referrer-Policy", "no-referrer"},
	{"Strict-Transport-Security", "max-age=31536000"},
	{"Cross-Origin-Opener-Policy", "same-origin"},
	{"Cross-Origin-Resource-Policy", "same-origin"},
	{"Permissions-Policy", "camera=(), microphone=(), geolocation=(), payment=(), usb=()"},
}

// openAPI is the path of the description of the API, which tools on other sites may
// read.
const openAPI = "/openapi.json"

// cacheControl returns how long a browser may use a file without asking.
func cacheControl(urlPath string) string {
	switch {
	case urlPath == "/assets/icon.svg":
		return "public, max-age=86400"
	case strings.HasPrefix(urlPath, "/assets/"): // names with a digest of their content
		return "public, max-age=31536000, immutable"
	}
	return "public, max-age=0, must-revalidate"
}

// types are the content types of the files by their extension. The system's own
// table differs between systems.
var types = map[string]string{
	".html":  "text/html; charset=utf-8",
	".js":    "text/javascript; charset=utf-8",
	".css":   "text/css; charset=utf-8",
	".svg":   "image/svg+xml",
	".json":  "application/json",
	".png":   "image/png",
	".ico":   "image/vnd.microsoft.icon",
	".woff2": "font/woff2",
	".txt":   "text/plain; charset=utf-8",
}

// smallFile is the length from which a file is worth compressing.
const smallFile = 1 << 10

// Time limits of a client: for receiving a file, and for the body of a request,
// which net/http discards.
const (
	writeTime   = 2 * time.Minute
	discardTime = 5 * time.Second
)

// file is one file of the dashboard.
type file struct {
	content     []byte
	contentType string
	etag        string // of the plain form
	status      int

	once   sync.Once
	zipped []byte // nil if that is no shorter
}

// gzipped returns the compressed form, which the first request for it builds.
func (f *file) gzipped() []byte {
	f.once.Do(func() {
		if len(f.content) < smallFile || strings.HasPrefix(f.contentType, "image/png") ||
			strings.HasPrefix(f.contentType, "font/") {
			return
		}
		var b bytes.Buffer
		w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
		if err != nil {
			return
		}
		if _, err := w.Write(f.content); err != nil || w.Close() != nil || b.Len() >= len(f.content) {
			return
		}
		f.zipped = b.Bytes()
	})
	return f.zipped
}

// Handler serves the dashboard of files, and passes every other path to next.
func Handler(files fs.FS, next http.Handler) http.Handler {
	h := &handler{next: next, files: map[string]*file{}}
	h.add("/", "index.html", files)
	h.add(openAPI, "openapi.json", files)
	h.add("/llms.txt", "llms.txt", files)
	if h.files["/"] == nil {
		h.files["/"] = newFile("index.html", placeholder)
		h.files["/docs/"] = h.files["/"]
		h.files[openAPI] = newFile("openapi.json", []byte(noOpenAPI))
		h.files[openAPI].status = http.StatusNotFound
		return h
	}
	// A file that cannot be read is missing; embedded files can be.
	_ = fs.WalkDir(files, "assets", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			h.add("/"+name, name, files)
		}
		return nil
	})
	_ = fs.WalkDir(files, "docs", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			h.add(pageOf("/"+name), name, files)
		}
		return nil
	})
	if f := h.files[noPage]; f != nil {
		f.status = http.StatusNotFound
	}
	return h
}

// noPage is the page for an address of the documentation that has none.
const noPage = "/docs/404"

// pageOf returns the URL path of a file of the documentation: /docs/guides/codex of
// /docs/guides/codex.html, /docs/ of /docs/index.html.
func pageOf(name string) string {
	if folder, ok := strings.CutSuffix(name, "/index.html"); ok {
		return folder + "/"
	}
	return strings.TrimSuffix(name, ".html")
}

type handler struct {
	next  http.Handler
	files map[string]*file // by path of the URL
}

func (h *handler) add(urlPath, name string, files fs.FS) {
	if content, err := fs.ReadFile(files, name); err == nil {
		h.files[urlPath] = newFile(name, content)
	}
}

func newFile(name string, content []byte) *file {
	sum := sha256.Sum256(content)
	f := &file{content: content, contentType: types[path.Ext(name)], status: http.StatusOK,
		etag: `"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`}
	f.contentType = cmp.Or(f.contentType, "application/octet-stream")
	return f
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if page := r.URL.Path + "/"; h.files[page] != nil && strings.HasPrefix(page, "/docs/") {
		w.Header().Set("Location", page)
		w.WriteHeader(http.StatusTemporaryRedirect)
		return
	}
	f := h.files[r.URL.Path]
	if f == nil && strings.HasPrefix(r.URL.Path, "/docs/") {
		f = h.files[noPage]
	}
	if f == nil && !strings.HasPrefix(r.URL.Path, "/assets/") {
		h.next.ServeHTTP(w, r)
		return
	}
	head := w.Header()
	limit := http.NewResponseController(w)
	limit.SetWriteDeadline(time.Now().Add(writeTime))
	if r.ContentLength != 0 { // nothing reads the body
		limit.SetReadDeadline(time.Now().Add(discardTime))
		if r.ProtoMajor == 1 {
			head.Set("Connection", "close")
		}
	}
	for _, field := range security {
		head.Set(field[0], field[1])
	}
	if r.URL.Path == openAPI {
		head.Set("Cross-Origin-Resource-Policy", "cross-origin")
		head.Set("Access-Control-Allow-Origin", "*")
	}
	switch {
	case f == nil:
		head.Set("Cache-Control", "no-store")
		w.WriteHeader(http.StatusNotFound)
		return
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		head.Set("Allow", "GET, HEAD")
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	content, etag := f.content, f.etag
	head.Set("Vary", "Accept-Encoding")
	if Accepts(r.Header, "gzip") {
		if zipped := f.gzipped(); zipped != nil {
			content, etag = zipped, strings.TrimSuffix(etag, `"`)+`-gzip"`
			head.Set("Content-Encoding", "gzip")
		}
	}
	head.Set("Content-Type", f.contentType)
	head.Set("Cache-Control", cacheControl(r.URL.Path))
	head.Set("ETag", etag)
	if f.status == http.StatusOK && matches(r.Header, etag) {
		head.Del("Content-Encoding")
		head.Del("Content-Type")
		w.WriteHeader(http.StatusNotModified)
		return
	}
	head.Set("Content-Length", strconv.Itoa(len(content)))
	w.WriteHeader(f.status)
	if r.Method == http.MethodGet {
		_, _ = io.Copy(w, bytes.NewReader(content)) // the client may have left
	}
}

// Accepts reports whether a client accepts a content coding (RFC 9110, 12.5.3).
func Accepts(h http.Header, coding string) bool {
	for _, field := range h.Values("Accept-Encoding") {
		for item := range strings.SplitSeq(field, ",") {
			name, weight, _ := strings.Cut(item, ";")
			if strings.EqualFold(strings.TrimSpace(name), coding) {
				_, q, ok := strings.Cut(weight, "=")
				v, err := strconv.ParseFloat(strings.TrimSpace(q), 64)
				return !ok || err == nil && v > 0
			}
		}
	}
	return false
}

// matches reports whether a client has the file of that tag (RFC 9110, 13.1.2).
func matches(h http.Header, etag string) bool {
	for _, field := range h.Values("If-None-Match") {
		for item := range strings.SplitSeq(field, ",") {
			if item = strings.TrimSpace(item); item == "*" || strings.TrimPrefix(item, "W/") == etag {
				return true
			}
		}
	}
	return false
}
