package program

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"time"
)

const healthTime = 5 * time.Second

func (r *run) health(f *flags) error {
	s, err := r.readSettings(f)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), healthTime)
	defer cancel()
	err = errNotRunning
	if s.variable("LISTEN") == "" && s.database == "" { // the server on the data directory may listen anywhere
		var res *http.Response
		if res, err = control(ctx, s.data, "GET", "/health", nil); err == nil {
			res.Body.Close()
		}
	}
	if errors.Is(err, errNotRunning) {
		err = askHealth(ctx, s)
	}
	if err != nil {
		return fmt.Errorf("the server at %s does not answer: %w", s.listen, err)
	}
	fmt.Fprintln(r.stdout, "ok")
	return nil
}

// askHealth returns an error unless the server answers /health with 200.
func askHealth(ctx context.Context, s *settings) error {
	network, address := s.listen.network, s.listen.name
	if network == "tcp" {
		host, port, _ := net.SplitHostPort(address) // checked before
		if ip, err := netip.ParseAddr(host); err == nil && ip.IsUnspecified() {
			if host = "127.0.0.1"; ip.Is6() {
				host = "::1"
			}
		}
		address = net.JoinHostPort(host, port) // without a host the dialer takes this computer
	}
	transport := &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, address)
		},
		// The certificate is for the public name; the connection leads to this computer.
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
	}
	scheme := "http"
	if s.tls() {
		scheme = "https"
	}
	req, err := http.NewRequestWithContext(ctx, "GET", scheme+"://localhost/health", nil)
	if err != nil {
		return err
	}
	res, err := transport.RoundTrip(req)
	if err != nil {
		return listenCause(err)
	}
	defer res.Body.Close()
	io.Copy(io.Discard, io.LimitReader(res.Body, 4096))
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("status %d", res.StatusCode)
	}
	return nil
}
