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
	_ "time/tzdata" // a system may have no time zones

	"github.com/andybalholm/brotli"

	"weir/pkg/gateway"
	"weir/server/jwk"
)

// Ports returns the ports of the program.
func Ports(c *Config) gateway.Ports {
	now := c.Now
	if now == nil {
		now = time.Now
	}
	outside := c.Outside
	if outside == nil {
		outside = func(_ context.Context, wait func()) { wait() }
	}
	began := now().UnixMilli()
	if c.Replicas != nil {
		began = 0
	}
	return gateway.Ports{
		Do:          doer{outside, c.Transport, c.Log},
		Dialer:      c.Dialer,
		Pause:       pauser(outside),
		Objects:     stub{outside, c},
		ZoneOffset:  zoneOffset,
		Decode:      decode,
		Brotli:      func(r io.Reader) io.Reader { return brotli.NewReader(r) },
		SignRS256:   signRS256,
		Verify:      jwk.Verify,
		SpendCode:   c.SpendCode,
		Now:         now,
		Began:       began,
		Replicas:    c.Replicas,
		Rand:        rand.Reader,
		Process:     c.Process,
		Log:         c.Log,
		MaxRequests: cmp.Or(c.Requests, defaultRequests),
		ListsAtOnce: 16,
		Disk:        c.Disk,
		Newer:       c.Newer,
		ConfigFile:  c.ConfigFile,
		Managed:     c.Managed,
	}
}

// zoneOffset returns how far a time zone of the IANA database is ahead of UTC at a
// time, in seconds. It reports false for an unknown one.
func zoneOffset(name string, unixMilli int64) (seconds int, ok bool) {
	if name == "" || name == "Local" {
		return 0, false
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return 0, false
	}
	_, seconds = time.UnixMilli(unixMilli).In(zone).Zone()
	return seconds, true
}

// defaultRequests is the number of requests that a machine lists, about 45 MB.
const defaultRequests = 100_000

// pauser pauses the goroutine of a request.
type pauser func(ctx context.Context, wait func())

// Pause waits for d, or until the client leaves.
func (outside pauser) Pause(ctx context.Context, d time.Duration) error {
	outside(ctx, func() {
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
	outside func(ctx context.Context, wait func())
	*Config
}

// Call calls the object of a machine.
func (s stub) Call(ctx context.Context, machineID, op string, body []byte) (status int, answer []byte, err error) {
	if s.Objects == nil {
		return 0, nil, errors.New("no objects")
	}
	s.outside(ctx, func() { status, answer, err = s.Objects.Call(ctx, machineID, op, body) })
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
