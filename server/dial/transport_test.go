package dial

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"testing"

	"golang.org/x/net/http2"
)

// A client that reads slowly must not make the server store an answer.
func TestStreamOfHTTP2IsBufferedWithinBounds(t *testing.T) {
	s := httptest.NewUnstartedServer(nil)
	s.StartTLS() // for its certificate
	defer s.Close()
	certificate := s.TLS.Certificates
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: certificate, NextProtos: []string{"h2"}})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	window := make(chan uint32, 1)
	go func() {
		defer close(window)
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		preface := make([]byte, len(http2.ClientPreface))
		if _, err := io.ReadFull(conn, preface); err != nil {
			return
		}
		frame, err := http2.NewFramer(conn, conn).ReadFrame()
		if settings, ok := frame.(*http2.SettingsFrame); err == nil && ok {
			size, _ := settings.Value(http2.SettingInitialWindowSize)
			window <- size
		}
	}()
	tr := Transport(&Policy{AllowPrivate: true})
	defer tr.CloseIdleConnections()
	tr.TLSClientConfig.RootCAs = s.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	r, _ := http.NewRequestWithContext(t.Context(), "GET", "https://"+l.Addr().String()+"/", nil)
	if resp, err := tr.RoundTrip(r); err == nil {
		resp.Body.Close()
	}
	if got := <-window; got == 0 || got > 512<<10 {
		t.Errorf("an upstream may send %d bytes before they are read", got)
	}
}

// net/http would take the idle connection for a request with Close set too.
func TestFreshRequestHasItsOwnConnection(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.RemoteAddr) }))
	defer s.Close()
	pooled := Transport(&Policy{AllowPrivate: true})
	defer pooled.CloseIdleConnections()
	tr := Fresh(pooled)
	from := func(fresh bool) string {
		r, _ := http.NewRequestWithContext(t.Context(), "GET", s.URL, nil)
		r.Close = fresh
		resp, err := tr.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, _ := io.ReadAll(resp.Body)
		return string(body)
	}
	first := from(false)
	if again := from(false); again != first {
		t.Errorf("from %s, then from %s", first, again)
	}
	if own := from(true); own == first {
		t.Errorf("a fresh request came from %s too", own)
	}
}

func TestRootsArePartOfTheBinary(t *testing.T) {
	if os.Getenv("WEIR_TEST_ROOTS") != "" {
		pool, err := x509.SystemCertPool()
		if err != nil || pool.Equal(x509.NewCertPool()) {
			t.Errorf("no roots: %v", err)
		}
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestRootsArePartOfTheBinary$")
	cmd.Env = append(os.Environ(), "WEIR_TEST_ROOTS=1", "SSL_CERT_FILE=/nonexistent", "SSL_CERT_DIR=/nonexistent")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
