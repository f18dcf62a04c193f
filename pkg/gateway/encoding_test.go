package gateway

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"runtime"
	"strings"
	"testing"

	"weir/pkg/auth"
	"weir/pkg/endpoint"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/memory"
)

func gzipped(t *testing.T, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// An encoded body is decoded, and what comes of it has the limits of any other.
func TestEncodedBodies(t *testing.T) {
	const limit = 1 << 20
	text := strings.Repeat("a", limit)
	for _, tt := range []struct {
		name, path, enc string
		body            []byte
		want            int
	}{
		{"gzip", "/v1/json", "gzip", gzipped(t, text), 204},
		{"in capitals", "/v1/json", " GZIP", gzipped(t, text), 204},
		{"identity", "/v1/json", "identity", []byte(text), 204},
		{"a byte too long", "/v1/json", "gzip", gzipped(t, text+"a"), 413},
		{"far too long", "/v1/json", "gzip", gzipped(t, strings.Repeat(text, 64)), 413},
		{"too long, of nothing", "/v1/json", "gzip", bytes.Repeat(gzipped(t, ""), limit/20), 413},
		{"not gzip", "/v1/json", "gzip", []byte(text[:100]), 400},
		{"cut", "/v1/json", "gzip", gzipped(t, text)[:500], 400},
		{"not zstd", "/v1/json", "zstd", []byte(text[:100]), 400},
		{"brotli, which this platform does not decode", "/v1/json", "br", []byte(text), 415},
		{"another coding", "/v1/json", "compress", []byte(text), 415},
		{"a form", "/v1/form", "gzip", gzipped(t, text), 415},
		{"bytes that are never read", "/v1/bytes", "gzip", gzipped(t, text), 204},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFixture()
			budget := &memory.Budget{Max: 32 << 20}
			f.Memory = budget
			most := int64(0)
			handler := func(_ context.Context, c *auth.Call) (*httpmsg.Response, error) {
				if c.Request.Path == "/v1/bytes" {
					return &httpmsg.Response{Status: 204}, nil
				}
				got, err := c.ReadBody()
				if most = budget.Used(); err == nil && string(got) != text {
					t.Errorf("read %d bytes", len(got))
				}
				return &httpmsg.Response{Status: 204}, err
			}
			post := []Method{{Name: "POST", Handler: handler}}
			f.SetRoutes([]Route{
				{Pattern: "/v1/json", Access: endpoint.Data, MaxBody: limit, Methods: post},
				{Pattern: "/v1/form", Access: endpoint.Data, MaxBody: maxForm, Methods: post},
				{Pattern: "/v1/bytes", Access: endpoint.Data, MaxBody: maxForm, AnyEncoding: true, Methods: post},
			})
			resp := f.Serve(context.Background(), &httpmsg.Request{
				Method: "POST", Path: tt.path, Length: -1, Body: io.NopCloser(bytes.NewReader(tt.body)),
				Header: httpmsg.Header{{Name: "authorization", Value: "data"}, {Name: "content-encoding", Value: tt.enc}},
			})
			if resp.Status != tt.want || most > 4*limit || budget.Used() != 0 {
				t.Errorf("status %d, want %d; %d bytes were held, %d are left", resp.Status, tt.want, most, budget.Used())
			}
		})
	}
}

// The length of an encoded body is unknown until its end. Reading it takes its bytes
// in parts, and once more as a whole, no more: an isolate has 128 MiB.
func TestMemoryOfEncodedBody(t *testing.T) {
	const size = 16 << 20
	f := newFixture()
	f.Memory = &memory.Budget{Max: 64 << 20}
	handler := func(_ context.Context, c *auth.Call) (*httpmsg.Response, error) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		got, err := c.ReadBody()
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; len(got) != size || took > 5*size/2 {
			t.Errorf("%d bytes took %d", len(got), took)
		}
		return &httpmsg.Response{Status: 204}, err
	}
	f.SetRoutes([]Route{{Pattern: "/v1/json", Access: endpoint.Data, MaxBody: maxChat, Methods: []Method{{Name: "POST", Handler: handler}}}})
	body := gzipped(t, strings.Repeat("a", size))
	resp := f.Serve(context.Background(), &httpmsg.Request{
		Method: "POST", Path: "/v1/json", Length: int64(len(body)), Body: io.NopCloser(bytes.NewReader(body)),
		Header: httpmsg.Header{{Name: "authorization", Value: "data"}, {Name: "content-encoding", Value: "gzip"}},
	})
	if resp.Status != 204 {
		t.Errorf("status %d", resp.Status)
	}
}
