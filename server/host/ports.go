package host

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"time"

	"github.com/andybalholm/brotli"

	"weir/pkg/credentials/proxydial"
	"weir/pkg/gateway"
	"weir/pkg/machine/rpc"
	"weir/server/cell"
	"weir/server/webapi"
)

// Ports returns the ports of a program that waits with l.
func Ports(l cell.Leaver, c *Config) gateway.Ports {
	now := c.Now
	if now == nil {
		now = time.Now
	}
	var dialer proxydial.Dialer
	if c.Dialer != nil {
		dialer = c.Dialer(l)
	}
	return gateway.Ports{
		Do:           doer{l, c.Transport, c.Log},
		Dialer:       dialer,
		Pause:        pauser{l},
		Objects:      stub{l, c.Objects},
		CanonicalURL: webapi.CanonicalURL,
		Normalize:    webapi.Normalize,
		ZoneOffset:   webapi.ZoneOffset,
		Decode:       webapi.Decode,
		Brotli:       func(r io.Reader) io.Reader { return brotli.NewReader(r) },
		SignRS256: func(ctx context.Context, pkcs8, data []byte) (signature []byte, err error) {
			l.Outside(ctx, func() { signature, err = webapi.SignRS256(ctx, pkcs8, data) })
			return signature, err
		},
		DeriveKey: func(ctx context.Context, passphrase, salt []byte, iterations int) (key []byte, err error) {
			l.Outside(ctx, func() { key, err = webapi.DeriveKey(ctx, passphrase, salt, iterations) })
			return key, err
		},
		SpendCode:   c.SpendCode,
		Now:         now,
		Began:       now().UnixMilli(),
		Rand:        rand.Reader,
		Log:         c.Log,
		MaxRequests: cmp.Or(c.Requests, defaultRequests),
		ListsAtOnce: 16,
	}
}

// defaultRequests is the number of requests that a machine lists, about 45 MB.
const defaultRequests = 100_000

// pauser pauses the goroutine of a request.
type pauser struct{ cell.Leaver }

// Pause waits for d, or until the client leaves.
func (p pauser) Pause(ctx context.Context, d time.Duration) error {
	p.Outside(ctx, func() {
		t := time.NewTimer(d)
		defer t.Stop()
		select {
		case <-t.C:
		case <-ctx.Done():
		}
	})
	return ctx.Err()
}

// stub calls the objects of machines.
type stub struct {
	cell.Leaver
	next rpc.Stub
}

// Call calls the object of a machine.
func (s stub) Call(ctx context.Context, machineID, op string, body []byte) (status int, answer []byte, err error) {
	if s.next == nil {
		return 0, nil, errors.New("no objects")
	}
	s.Outside(ctx, func() { status, answer, err = s.next.Call(ctx, machineID, op, body) })
	return status, answer, err
}

// logWriter writes the lines of net/http to the log of a host.
type logWriter struct{ h *Host }

func (w logWriter) Write(p []byte) (int, error) {
	text, err := json.Marshal(strings.TrimSpace(string(p)))
	if err != nil {
		return 0, err
	}
	w.h.Log(1, `{"level":"warn","msg":"http server","error":`+string(text)+`}`)
	return len(p), nil
}
