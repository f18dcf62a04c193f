package program

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// flooder is a client of HTTP/2 that writes frames of any form.
type flooder struct {
	*http2.Framer
	block  bytes.Buffer
	enc    *hpack.Encoder
	stream uint32
}

// flood connects to a server. It reads the answers only if reads.
func flood(t *testing.T, address string, pool *x509.CertPool, reads bool) *flooder {
	t.Helper()
	c, err := tls.Dial("tcp", address, &tls.Config{RootCAs: pool, NextProtos: []string{"h2"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(5 * time.Second)) // the server may stop reading, which ends the flood
	f := &flooder{Framer: http2.NewFramer(c, c), stream: 1}
	f.AllowIllegalWrites = true
	f.enc = hpack.NewEncoder(&f.block)
	if _, err := c.Write([]byte(http2.ClientPreface)); err != nil {
		t.Fatal(err)
	}
	if err := f.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0}); err != nil {
		t.Fatal(err)
	}
	if reads {
		go func() {
			for {
				if _, err := f.ReadFrame(); err != nil {
					return
				}
			}
		}()
	}
	return f
}

// head returns the header block of a request.
func (f *flooder) head(method, path string, more ...hpack.HeaderField) []byte {
	f.block.Reset()
	for _, h := range append([]hpack.HeaderField{
		{Name: ":method", Value: method}, {Name: ":scheme", Value: "https"}, {Name: ":authority", Value: "weir.example"}, {Name: ":path", Value: path},
	}, more...) {
		f.enc.WriteField(h)
	}
	return f.block.Bytes()
}

// open begins a request.
func (f *flooder) open(method, path string, ends bool) (uint32, error) {
	id := f.stream
	f.stream += 2
	return id, f.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: f.head(method, path), EndHeaders: true, EndStream: ends})
}

// resident returns the most memory that a process has had, 0 where that is not known.
func resident(pid int) (mib int) {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kib, _ := strconv.Atoi(strings.Fields(rest)[0])
			return kib >> 10
		}
	}
	return 0
}

// Floods of HTTP/2 end by the protocol's own limits: other clients are served meanwhile
// and afterwards, and memory stays bounded.
func TestFloodsOfHTTP2(t *testing.T) {
	home := t.TempDir()
	cert, key := filepath.Join(home, "cert.pem"), filepath.Join(home, "key.pem")
	pool := issue(t, cert, key, 1)
	p, base := serving(t, home, nil, "--tls-cert", cert, "--tls-key", key)
	address := strings.TrimPrefix(base, "https://")
	healthy := func(when string) {
		t.Helper()
		c := &http.Client{Transport: &http.Transport{ForceAttemptHTTP2: true, DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: pool}}}
		res, err := c.Get(base + "/health")
		if err != nil {
			t.Fatalf("%s: %v", when, err)
		}
		res.Body.Close()
		if res.StatusCode != 200 || res.ProtoMajor != 2 {
			t.Errorf("%s: status %d over %s", when, res.StatusCode, res.Proto)
		}
	}
	healthy("before")
	before := resident(p.cmd.Process.Pid)
	value := strings.Repeat("x", 4000)
	for _, tt := range []struct {
		name  string
		reads bool
		most  int // frames
		frame func(f *flooder, i int) error
	}{
		{"rapid resets", true, 20_000, func(f *flooder, _ int) error {
			id, err := f.open("POST", "/v1/chat/completions", false)
			if err != nil {
				return err
			}
			return f.WriteRSTStream(id, http2.ErrCodeCancel)
		}},
		{"rapid resets, answers unread", false, 20_000, func(f *flooder, _ int) error {
			id, err := f.open("GET", "/v1/models", true)
			if err != nil {
				return err
			}
			return f.WriteRSTStream(id, http2.ErrCodeCancel)
		}},
		{"requests without end", true, 5_000, func(f *flooder, _ int) error {
			_, err := f.open("POST", "/v1/chat/completions", false)
			return err
		}},
		{"answers without a window", true, 5_000, func(f *flooder, _ int) error {
			_, err := f.open("GET", "/v1/none", true)
			return err
		}},
		{"settings", false, 50_000, func(f *flooder, i int) error {
			return f.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: uint32(i % 2)})
		}},
		{"pings", false, 50_000, func(f *flooder, i int) error { return f.WritePing(false, [8]byte{byte(i)}) }},
		{"priorities", true, 50_000, func(f *flooder, i int) error {
			return f.WritePriority(uint32(2*i+1), http2.PriorityParam{StreamDep: 0, Weight: byte(i)})
		}},
		{"window updates", true, 50_000, func(f *flooder, _ int) error { return f.WriteWindowUpdate(0, 1) }},
		{"empty data", true, 50_000, func(f *flooder, i int) error {
			if i == 0 {
				_, err := f.open("POST", "/v1/chat/completions", false)
				return err
			}
			return f.WriteData(1, false, nil)
		}},
		{"a head without end", true, 50_000, func(f *flooder, i int) error {
			f.block.Reset()
			if i == 0 {
				return f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: f.head("GET", "/health")})
			}
			f.enc.WriteField(hpack.HeaderField{Name: "x-more", Value: value + strconv.Itoa(i)})
			return f.WriteContinuation(1, false, f.block.Bytes())
		}},
		{"empty continuations", true, 50_000, func(f *flooder, i int) error {
			if i == 0 {
				return f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: f.head("GET", "/health")})
			}
			return f.WriteContinuation(1, false, nil)
		}},
		{"compressed heads", true, 2_000, func(f *flooder, _ int) error { // a byte for each field of 4 KB
			id := f.stream
			f.stream += 2
			fields := make([]hpack.HeaderField, 4000)
			for i := range fields {
				fields[i] = hpack.HeaderField{Name: "x-same", Value: value}
			}
			return f.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: f.head("GET", "/health", fields...), EndHeaders: true, EndStream: true})
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := flood(t, address, pool, tt.reads)
			sent := 0
			for ; sent < tt.most; sent++ {
				if err := tt.frame(f, sent); err != nil {
					break // the server has closed the connection, or reads no more
				}
			}
			healthy("after " + strconv.Itoa(sent) + " frames")
			t.Logf("%d frames; at most %d MiB", sent, resident(p.cmd.Process.Pid))
		})
	}
	healthy("in the end")
	if most := resident(p.cmd.Process.Pid); most > before+128 {
		t.Errorf("the server had %d MiB, %d before the floods", most, before)
	}
	if strings.Contains(p.stderr.String(), "panic") {
		t.Error("a flood caused a panic")
	}
}
