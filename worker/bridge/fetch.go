//go:build js && wasm

package bridge

import (
	"context"
	"fmt"
	"time"
	"unsafe"

	"weir/pkg/machine/rpc"
	"weir/pkg/wire/stream"
	"weir/pkg/wire/upstream"
	"weir/worker/contract"
)

// Doer makes upstream calls with the platform's fetch.
type Doer struct{}

type pending struct {
	call   *call
	wait   time.Duration // for each chunk of the body that Go itself reads
	idle   time.Duration // for each chunk of a body that the host reads whole
	op     *op
	memory stream.Memory
	whole  bool // the body comes with the head
	err    error
}

// Start passes a call to the host.
func (Doer) Start(ctx context.Context, req *upstream.Request) upstream.Pending {
	c := callOf(ctx)
	if c == nil {
		return &pending{err: errNoCall}
	}
	p := &pending{call: c, wait: req.HeaderTimeout, idle: req.Idle, op: begin(c), memory: req.Memory,
		whole: req.MaxBody > 0}
	p.op.memory = req.Memory
	if !p.op.usable() {
		return p
	}
	if req.Socket != nil {
		p.dialSocket(req)
		return p
	}
	head := append(packed[:0], req.Method...)
	head = append(head, '\n')
	head = append(head, req.URL...)
	head = packHeader(head, req.Header)
	packed = head
	var at []byte
	var h int32
	switch b := req.Body.(type) {
	case nil:
	case *stream.Bytes:
		at = b.All()
	default:
		var f *flow
		if h, f = handOver(b); f != nil {
			f.call = c
		}
	}
	var flags int32
	if req.Outlive {
		flags = contract.Outlive
	}
	hostFetch(p.op.number, c.id, ptr(head), int32(len(head)), ptr(at), int32(len(at)), h, ms(req.HeaderTimeout),
		ms(req.Timeout), ms(req.Idle), float64(req.MaxBody), flags)
	return p
}

// Wait returns the answer.
func (p *pending) Wait() (*upstream.Response, error) {
	if p.err != nil {
		return nil, p.err
	}
	e := p.op.wait()
	if p.memory != nil {
		p.memory.Sent()
	}
	switch {
	case e.outcome == contract.OK:
	case e.status == 1 && (e.outcome == contract.Network || e.outcome == contract.Timeout):
		return nil, fmt.Errorf("%w: %w", failure(e.outcome), upstream.ErrSent)
	default:
		return nil, failure(e.outcome)
	}
	r := &upstream.Response{Status: int(e.status), Header: parseHeader(e.head)}
	if e.handle != 0 && int(e.status) == 101 {
		r.Body, r.Socket = stream.FromBytes(nil), &webSocket{call: p.call, id: e.handle}
		return r, nil
	}
	if p.whole {
		r.Body, r.Owned = stream.FromBytes(e.body), true
	} else {
		r.Body = &hostBody{id: e.handle, call: p.call, wait: p.wait, idle: p.idle, memory: p.memory}
	}
	return r, nil
}

// Pauser pauses a request's goroutine with a host operation.
type Pauser struct{}

// Pause waits for d.
func (Pauser) Pause(ctx context.Context, d time.Duration) error {
	o := begin(callOf(ctx))
	if o.usable() {
		hostPause(o.number, ms(d))
	}
	if e := o.wait(); e.outcome != contract.OK {
		return failure(e.outcome)
	}
	return ctx.Err()
}

// Stub calls machines' objects.
type Stub struct{}

// Call calls the object of a machine and returns the status and body of its answer.
func (s Stub) Call(ctx context.Context, machineID, verb string, body []byte) (int, []byte, error) {
	return s.Start(ctx, machineID, verb, body).Wait()
}

// Start begins a call of the object of a machine.
func (Stub) Start(ctx context.Context, machineID, verb string, body []byte) rpc.Pending {
	c := callOf(ctx)
	if c == nil {
		return pendingCall{}
	}
	o := begin(c)
	if o.usable() {
		hostObject(o.number, c.id, sptr(machineID), int32(len(machineID)), sptr(verb), int32(len(verb)), ptr(body),
			int32(len(body)), ms(rpc.Limit(verb)))
	}
	return pendingCall{o}
}

// pendingCall is a call of an object under way; op is nil without a request.
type pendingCall struct{ op *op }

// Wait returns the status and body of the answer.
func (p pendingCall) Wait() (int, []byte, error) {
	if p.op == nil {
		return 0, nil, errNoCall
	}
	e := p.op.wait()
	if e.outcome == contract.Canceled {
		return 0, nil, upstream.ErrCanceled
	}
	if e.outcome != contract.OK {
		return 0, nil, fmt.Errorf("machine object: %s", e.head)
	}
	return int(e.status), e.body, nil
}

// ZoneOffset returns how far a time zone is ahead of UTC at a time, in seconds. It
// reports false for an unknown one.
func ZoneOffset(name string, unixMilli int64) (seconds int, ok bool) {
	n := hostZone(sptr(name), int32(len(name)), float64(unixMilli))
	return int(n), n != contract.Missing
}

// Decode returns a text of another encoding in UTF-8. label is the encoding's
// WHATWG label. Decode returns false if the platform does not know the encoding.
func Decode(label string, raw []byte) (string, bool) {
	return copied(hostDecode(sptr(label), int32(len(label)), ptr(raw), int32(len(raw))))
}

// Variable returns the value of a variable or secret of the worker, "" if it is not
// set. It can be called only while an event is handled.
func Variable(name string) string {
	v, _ := copied(hostVariable(sptr(name), int32(len(name))))
	return v
}

// copied returns the text of n bytes that the host has stored.
func copied(n int32) (string, bool) {
	if n == contract.Missing {
		return "", false
	}
	text := make([]byte, n)
	hostCopy(ptr(text))
	return unsafe.String(unsafe.SliceData(text), n), true
}

// SignRS256 returns the RSASSA-PKCS1-v1_5 signature of data with SHA-256, from the
// platform's WebCrypto.
func SignRS256(ctx context.Context, pkcs8, data []byte) ([]byte, error) {
	o := begin(callOf(ctx))
	if o.usable() {
		hostSign(o.number, ptr(pkcs8), int32(len(pkcs8)), ptr(data), int32(len(data)))
	}
	e := o.wait()
	if e.outcome != contract.OK {
		return nil, fmt.Errorf("sign: %s", e.head)
	}
	return e.body, nil
}

// Verify reports whether sig is a signature of data, by the platform's WebCrypto; see
// oidc.Verify.
func Verify(ctx context.Context, jwk []byte, alg string, data, sig []byte) (bool, error) {
	o := begin(callOf(ctx))
	if o.usable() {
		hostVerify(o.number, sptr(alg), int32(len(alg)), ptr(jwk), int32(len(jwk)), ptr(data), int32(len(data)),
			ptr(sig), int32(len(sig)))
	}
	e := o.wait()
	if e.outcome != contract.OK {
		return false, fmt.Errorf("verify: %s", e.head)
	}
	return len(e.body) == 1, nil
}
