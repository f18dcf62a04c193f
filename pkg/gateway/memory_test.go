package gateway

import (
	"context"
	"io"
	"strings"
	"testing"

	"weir/pkg/auth"
	"weir/pkg/endpoint"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/memory"
	"weir/pkg/wire/stream"
)

// pieces is a body that comes in pieces of 16 KiB; each looks at what is held.
type pieces struct {
	left int64
	look func()
}

func (p *pieces) Read(b []byte) (int, error) {
	p.look()
	n := min(int64(len(b)), p.left, 16<<10)
	if n == 0 {
		return 0, io.EOF
	}
	p.left -= n
	return int(n), nil
}

func (p *pieces) Close() error { return nil }

// A body of known length has its memory before it is read, another one in steps.
func TestBodyIsAdmittedBeforeItIsRead(t *testing.T) {
	const mib = 1 << 20
	for _, tt := range []struct {
		name, path   string
		length, size int64
		least, most  int64 // held at the end of the body
	}{
		{"small", "/v1/json", memory.Uncounted, memory.Uncounted, 0, 0},
		{"large", "/v1/json", 8 * mib, 8 * mib, 16 * mib, 16 * mib},
		{"announced only", "/v1/json", 8 * mib, mib, 2 * mib, 2 * mib},
		{"chunked, small", "/v1/json", -1, 62, 0, 0},
		{"chunked, large", "/v1/json", -1, 3 * mib, 6 * mib, 6 * mib},
		{"counts itself", "/v1/form", mib, mib, 0, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := newFixture().Gateway
			budget := &memory.Budget{Max: 32 * mib}
			g.Memory = budget
			read, held := int64(0), int64(-1)
			body := &pieces{left: tt.size}
			body.look = func() {
				read = tt.size - body.left
				used, declared := budget.Used(), tt.length // with the host until it is whole
				if read == tt.length {
					declared *= 2
				}
				if most := 2 * (read + max(read/2, 64<<10) + 1); tt.most > 0 && tt.length < 0 && used > most || tt.length > 0 && tt.most > 0 && used != declared {
					t.Errorf("%d bytes are held when %d have come", used, read)
				}
			}
			handler := func(_ context.Context, c *auth.Call) (*httpmsg.Response, error) {
				_, err := c.ReadBody()
				held = budget.Used()
				return &httpmsg.Response{Status: 204}, err
			}
			g.SetRoutes([]Route{
				{Pattern: "/v1/json", Access: endpoint.Public, MaxBody: maxJSON, Methods: []Method{{Name: "POST", Handler: handler}}},
				{Pattern: "/v1/form", Access: endpoint.Public, MaxBody: maxForm, Methods: []Method{{Name: "POST", Handler: handler}}},
			})
			ask := &httpmsg.Request{Method: "POST", Path: tt.path, Length: tt.length, Body: body}
			if resp := g.Serve(context.Background(), ask); resp.Status != 204 || held < tt.least || held > tt.most || budget.Used() != 0 {
				t.Errorf("status %d, held %d, want %d; %d are left", resp.Status, held, tt.most, budget.Used())
			}
		})
	}
}

// The body of a message of a WebSocket has arrived, and is counted like any other.
func TestArrivedBodyIsCountedOnce(t *testing.T) {
	const mib = 1 << 20
	g := newFixture().Gateway
	g.Memory = &memory.Budget{Max: 32 * mib}
	held := int64(0)
	g.SetRoutes([]Route{{Pattern: "/v1/json", Access: endpoint.Public, MaxBody: maxJSON, Methods: []Method{{Name: "POST", Handler: func(_ context.Context, c *auth.Call) (*httpmsg.Response, error) {
		_, err := c.ReadBody()
		held = g.Memory.Used()
		return &httpmsg.Response{Status: 204}, err
	}}}}})
	body := stream.FromBytes([]byte(strings.Repeat(" ", 8*mib)))
	resp := g.Serve(context.Background(), &httpmsg.Request{Method: "POST", Path: "/v1/json", Length: 8 * mib, Body: body})
	if resp.Status != 204 || held != 16*mib || g.Memory.Used() != 0 {
		t.Errorf("status %d, held %d, want %d", resp.Status, held, 16*mib)
	}
}

func TestBodyWithoutMemoryIsRefused(t *testing.T) {
	g := newFixture().Gateway
	g.Memory = &memory.Budget{Max: 2 << 20}
	var other memory.Lease
	if g.Memory.Start(&other, "other", 0); !other.TryAcquire(memory.Form, memory.Amount{Host: 3 << 19}) {
		t.Fatal("no memory")
	}
	read := false
	g.SetRoutes([]Route{{Pattern: "/v1/json", Access: endpoint.Public, MaxBody: maxJSON, Methods: []Method{{Name: "POST", Handler: func(_ context.Context, c *auth.Call) (*httpmsg.Response, error) {
		_, err := c.ReadBody()
		read = err == nil
		return &httpmsg.Response{Status: 204}, err
	}}}}})
	ask := func() *httpmsg.Response {
		return g.Serve(context.Background(), &httpmsg.Request{Method: "POST", Path: "/v1/json", Length: 512 << 10, Body: io.NopCloser(strings.NewReader(strings.Repeat(" ", 512<<10)))})
	}
	if resp := ask(); resp.Status != 503 || resp.Get("retry-after") == "" || read {
		t.Errorf("status %d without memory", resp.Status)
	}
	other.Release()
	if resp := ask(); resp.Status != 204 || g.Memory.Used() != 0 {
		t.Errorf("status %d with memory, %d bytes are left", resp.Status, g.Memory.Used())
	}
}
