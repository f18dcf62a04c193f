//go:build js && wasm

package bridge

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"weir/pkg/wire/stream"
	"weir/pkg/wire/upstream"
)

// Doer makes upstream calls by the platform's fetch.
type Doer struct{}

type pending struct {
	call   int32
	wait   time.Duration // for each piece of the body that Go itself reads
	idle   time.Duration // for each piece of one that the host gathers
	ch     chan event
	buffer bool
	err    error
}

// Start hands a call to the host.
func (Doer) Start(ctx context.Context, req *upstream.Request) upstream.Pending {
	c := callOf(ctx)
	if c == nil {
		return &pending{err: errNoCall}
	}
	head := make([]byte, 0, 512)
	head = append(head, req.Method...)
	head = append(head, '\n')
	head = append(head, req.URL...)
	head = packHeader(head, req.Header)
	var at []byte
	var h int32
	switch b := req.Body.(type) {
	case nil:
	case *stream.Bytes:
		at = b.All()
	default:
		h, _ = handle(b)
	}
	var flags int32
	if req.Outlive {
		flags = 1
	}
	op, ch := begin()
	hostStart(op, c.id, ptr(head), int32(len(head)), ptr(at), int32(len(at)), h, ms(req.HeaderTimeout), ms(req.Timeout), ms(req.Idle), float64(req.MaxBody), flags)
	return &pending{call: c.id, wait: req.HeaderTimeout, idle: req.Idle, ch: ch, buffer: req.MaxBody > 0}
}

// Wait gives the answer.
func (p *pending) Wait() (*upstream.Response, error) {
	if p.err != nil {
		return nil, p.err
	}
	e := <-p.ch
	if e.kind != opOK && e.kind != opEnd {
		return nil, failure(e.kind)
	}
	r := &upstream.Response{Status: int(e.status)}
	if e.kind == opOK {
		r.Header = parseHeader(e.head)
		r.Body = stream.FromBytes(e.body)
		return r, nil
	}
	// The last field of the head is the number of the body's stream.
	at := strings.LastIndexByte(e.head, '\n')
	id, err := strconv.Atoi(e.head[at+1:])
	if err != nil {
		return nil, fmt.Errorf("bridge: head of an answer: %w", err)
	}
	r.Header = parseHeader(strings.TrimSuffix(e.head[:at], "\n:stream"))
	if len(r.Header) == 1 && r.Header[0].Name == ":stream" {
		r.Header = nil
	}
	r.Body = &hostBody{id: int32(id), of: p.call, wait: p.wait, idle: p.idle}
	return r, nil
}

// Pauser pauses a request's goroutine by a host operation.
type Pauser struct{}

// Pause waits for d.
func (Pauser) Pause(ctx context.Context, d time.Duration) error {
	op, ch := begin()
	hostPause(op, ms(d))
	<-ch
	return ctx.Err()
}

// Stub calls machines' objects.
type Stub struct{}

// Call asks the object of machineID.
func (Stub) Call(ctx context.Context, machineID, verb string, body []byte) (int, []byte, error) {
	c := callOf(ctx)
	if c == nil {
		return 0, nil, errNoCall
	}
	op, ch := begin()
	hostObject(op, c.id, sptr(machineID), int32(len(machineID)), sptr(verb), int32(len(verb)), ptr(body), int32(len(body)))
	e := <-ch
	if e.kind != opOK {
		return 0, nil, fmt.Errorf("machine object: %s", e.head)
	}
	return int(e.status), e.body, nil
}

// CanonicalURL gives the platform's own reading of a URL.
func CanonicalURL(raw string) (string, bool) {
	return viaHost(raw, func(out []byte) int32 { return hostURL(sptr(raw), int32(len(raw)), ptr(out), int32(len(out))) })
}

// Normalize gives the NFKC form of text, by the platform.
func Normalize(text string) string {
	s, ok := viaHost(text, func(out []byte) int32 {
		return hostNormalize(sptr(text), int32(len(text)), ptr(out), int32(len(out)))
	})
	if !ok {
		return text
	}
	return s
}

// Decode gives a text in UTF-8 that is written in another encoding, by the
// platform; label is the encoding's WHATWG label. It is false for one that the
// platform does not know.
func Decode(label string, raw []byte) (string, bool) {
	n := hostDecode(sptr(label), int32(len(label)), ptr(raw), int32(len(raw)))
	if n < 0 {
		return "", false
	}
	text := make([]byte, n)
	hostDecoded(ptr(text))
	return unsafe.String(unsafe.SliceData(text), n), true
}

func viaHost(in string, call func(out []byte) int32) (string, bool) {
	buf := make([]byte, 20*len(in)+64) // NFKC makes at most 18 characters of one
	n := call(buf)
	if n < 0 {
		return "", false
	}
	return string(buf[:n]), true
}

// SignRS256 gives the RSASSA-PKCS1-v1_5 signature of data with SHA-256, by the
// platform's WebCrypto.
func SignRS256(_ context.Context, pkcs8, data []byte) ([]byte, error) {
	op, ch := begin()
	hostSign(op, ptr(pkcs8), int32(len(pkcs8)), ptr(data), int32(len(data)))
	e := <-ch
	if e.kind != opOK {
		return nil, fmt.Errorf("sign: %s", e.head)
	}
	return e.body, nil
}

// DeriveKey makes a key of 32 bytes by PBKDF2 with SHA-256, by the platform's
// WebCrypto.
func DeriveKey(_ context.Context, passphrase, salt []byte, iterations int) ([]byte, error) {
	op, ch := begin()
	hostDerive(op, ptr(passphrase), int32(len(passphrase)), ptr(salt), int32(len(salt)), int32(iterations))
	e := <-ch
	if e.kind != opOK {
		return nil, fmt.Errorf("derive a key: %s", e.head)
	}
	return e.body, nil
}
