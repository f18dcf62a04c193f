package dial

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/andybalholm/brotli"
)

func gzipped(text string) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	io.WriteString(w, text)
	w.Close()
	return b.Bytes()
}

func brotlied(text string) []byte {
	var b bytes.Buffer
	w := brotli.NewWriter(&b)
	io.WriteString(w, text)
	w.Close()
	return b.Bytes()
}

// workerd's fetch was called with the same answers: see the decision 64.
func TestAnswersAreDecodedAsByWorkerd(t *testing.T) {
	const text = "hello world hello world"
	for _, tt := range []struct {
		name, method string
		encoding     []string
		body         []byte
		want         string
		fails        bool
	}{
		{"gzip", "GET", []string{"gzip"}, gzipped(text), text, false},
		{"br", "GET", []string{"br"}, brotlied(text), text, false},
		{"capitals", "GET", []string{"GZIP"}, gzipped(text), text, false},
		{"none", "GET", nil, []byte(text), text, false},
		{"identity", "GET", []string{"identity"}, []byte(text), text, false},
		{"deflate", "GET", []string{"deflate"}, []byte("x\x9c"), "x\x9c", false},
		{"zstd", "GET", []string{"zstd"}, []byte(text), text, false},
		{"x-gzip", "GET", []string{"x-gzip"}, gzipped(text), string(gzipped(text)), false},
		{"twice", "GET", []string{"gzip, gzip"}, gzipped(string(gzipped(text))), string(gzipped(string(gzipped(text)))), false},
		{"two fields", "GET", []string{"gzip", "br"}, gzipped(text), string(gzipped(text)), false},
		{"two members", "GET", []string{"gzip"}, append(gzipped(text), gzipped(text)...), text + text, false},
		{"no gzip", "GET", []string{"gzip"}, []byte(text), "", true},
		{"no br", "GET", []string{"br"}, []byte("\xff\xff\xff" + text), "", true},
		{"cut gzip", "GET", []string{"gzip"}, gzipped(text)[:20], "", true},
		{"cut br", "GET", []string{"br"}, brotlied(text)[:10], "", true},
		{"empty", "GET", []string{"gzip"}, nil, "", true},
		{"empty br", "GET", []string{"br"}, nil, "", true},
		{"garbage at the end", "GET", []string{"gzip"}, append(gzipped(text), "garbage"...), "", true},
		{"head", "HEAD", []string{"gzip"}, nil, "", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if v, ok := r.Header["Accept-Encoding"]; ok {
					t.Errorf("accept-encoding %q is added", v)
				}
				w.Header()["Content-Encoding"] = tt.encoding
				w.Header().Set("content-type", "text/plain")
				w.Write(tt.body)
			}))
			defer s.Close()
			tr := Transport(&Policy{AllowPrivate: true})
			defer tr.CloseIdleConnections()
			r, _ := http.NewRequestWithContext(t.Context(), tt.method, s.URL, nil)
			resp, err := Decode(tr).RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			got, err := io.ReadAll(resp.Body)
			if (err != nil) != tt.fails || !tt.fails && string(got) != tt.want {
				t.Errorf("%q %v, want %q", got, err, tt.want)
			}
			if !tt.fails && tt.method == "GET" && resp.ContentLength != -1 && resp.ContentLength != int64(len(got)) {
				t.Errorf("length %d of %d bytes", resp.ContentLength, len(got))
			}
			if len(tt.encoding) == 1 && resp.Header.Get("content-encoding") != tt.encoding[0] {
				t.Errorf("header %v", resp.Header)
			}
		})
	}
}

// flusher is a compressing writer.
type flusher interface {
	io.Writer
	Flush() error
}

func TestCompressedStreamIsDecodedAsItArrives(t *testing.T) {
	for encoding, open := range map[string]func(io.Writer) flusher{
		"gzip": func(w io.Writer) flusher { return gzip.NewWriter(w) },
		"br":   func(w io.Writer) flusher { return brotli.NewWriter(w) },
	} {
		next := make(chan struct{})
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("content-encoding", encoding)
			z := open(w)
			for range 3 {
				io.WriteString(z, "data: 1\n\n")
				z.Flush()
				w.(http.Flusher).Flush()
				<-next
			}
		}))
		tr := Transport(&Policy{AllowPrivate: true})
		r, _ := http.NewRequestWithContext(t.Context(), "GET", s.URL, nil)
		resp, err := Decode(tr).RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		event := make([]byte, len("data: 1\n\n"))
		for range 3 {
			if _, err := io.ReadFull(resp.Body, event); err != nil {
				t.Errorf("%s: %v", encoding, err)
			}
			next <- struct{}{} // the server waits for the client here
		}
		// The compressed stream has no end.
		if _, err := resp.Body.Read(event); err == nil || errors.Is(err, io.EOF) && err != io.ErrUnexpectedEOF {
			t.Errorf("%s: %v at the end of a cut stream", encoding, err)
		}
		if _, again := resp.Body.Read(event); again == nil {
			t.Errorf("%s: an error is not repeated", encoding)
		}
		resp.Body.Close()
		tr.CloseIdleConnections()
		s.Close()
	}
}
