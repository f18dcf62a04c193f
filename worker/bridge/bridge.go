//go:build js && wasm

// Package bridge carries requests, upstream calls and object storage between
// the platform and the gateway through linear memory.
//
// One call of the host carries a whole head. A request's task runs only inside
// events of its own request: the request starts it, and the end of an operation
// that it began continues it. It ends with the answer, or with the body of the
// answer if Go watches that; what follows then runs in another task.
package bridge

import (
	"context"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"weir/pkg/machine/storage"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/memory"
	"weir/pkg/wire/redact"
	"weir/pkg/wire/stream"
	"weir/worker/contract"
)

// App is the program behind the bridge. It is built at the first event, when the
// variables of the worker can be read.
type App interface {
	// Serve answers a request. If it panics, the answer is 500 and the panic is
	// logged.
	Serve(ctx context.Context, r *httpmsg.Request) *httpmsg.Response
	// Object serves a call of a machine's object.
	Object(ctx context.Context, st storage.Storage, machineID, op string, body []byte) (int, []byte)
	// Alarm serves the alarm of a machine's object. It logs its error.
	Alarm(ctx context.Context, st storage.Storage, machineID string) error
	// Cron serves the scheduled trigger.
	Cron(ctx context.Context, expression string)
	// HandOver returns what the app has buffered, for TakeOver of the app of an
	// instance that replaces this one.
	HandOver() []byte
	TakeOver(handed []byte)
}

var (
	build func() App
	app   App
	// handed was buffered by the instance that this one replaces, until the app is
	// built.
	handed []byte
	calls  = map[int32]*call{}
)

// softLimit is the size of memory from which garbage is collected more often: the
// isolate has 128 MiB in all, and linear memory never shrinks.
const softLimit = 48 << 20

// gcPercent is how much garbage gathers, in per cent of the memory in use, or of
// 4 MiB if less is: a collection costs as much as some hundred calls.
const gcPercent = 300

// Run serves events until the program is replaced. It does not return.
func Run(b func() App) {
	debug.SetMemoryLimit(softLimit)
	debug.SetGCPercent(gcPercent)
	build = b
	select {}
}

// exportReset discards the app with everything that the warm-up has left in it. The
// next event builds another.
//
//go:wasmexport weir_reset
func exportReset() { app = nil }

// exportHandOver returns the size of what HandOver returns, which is in out.
//
//go:wasmexport weir_hand_over
func exportHandOver() int32 {
	out = append(out[:0], handed...)
	if app != nil {
		out = append(out[:0], app.HandOver()...)
	}
	return int32(len(out))
}

//go:wasmexport weir_take_over
func exportTakeOver(n int32) { handed = takeBody(0, n) }

// theApp returns the app, built on first use.
func theApp() App {
	if app == nil {
		app = build()
		if handed != nil {
			app.TakeOver(handed)
			handed = nil
		}
	}
	return app
}

// call is one event under way, and the context of everything done for it.
type call struct {
	id       int32
	done     chan struct{} // created on first use
	canceled bool
	answered bool
	held     bool // the host keeps the platform's event alive
	swept    bool // the platform's event is over: no operation can end any more
	request  *httpmsg.Request
	response *httpmsg.Response // set while its body flows or once it has ended
}

// Deadline reports that there is no deadline: time limits belong to operations.
func (c *call) Deadline() (time.Time, bool) { return time.Time{}, false }

// Done is closed when the client leaves.
func (c *call) Done() <-chan struct{} {
	if c.done == nil {
		c.done = make(chan struct{})
		if c.canceled {
			close(c.done)
		}
	}
	return c.done
}

// Err is context.Canceled once the client has left.
func (c *call) Err() error {
	if c.canceled {
		return context.Canceled
	}
	return nil
}

// Value returns the call itself for the bridge's own key.
func (c *call) Value(key any) any {
	if _, ok := key.(callKey); ok {
		return c
	}
	return nil
}

//go:wasmexport weir_cancel
func exportCancel(id int32) {
	if c := calls[id]; c != nil {
		c.cancel()
	}
}

func (c *call) cancel() {
	if c.canceled {
		return
	}
	c.canceled = true
	if c.done != nil {
		close(c.done)
	}
}

// exportSweep ends a call whose event the platform has ended without a word, which
// it does when the client leaves: its operations fail, and it begins no others.
//
//go:wasmexport weir_sweep
func exportSweep(id int32) int32 {
	if c := calls[id]; c != nil {
		c.swept = true
		c.cancel()
		for i := 0; i < len(ops); i++ { // a task that continues may begin others
			if o := ops[i]; o.call == c && !o.done {
				finish(o.number, &event{outcome: contract.Canceled})
			}
		}
	}
	for number, f := range watched { // an upload may outlive its call
		if f.call != nil && f.call.id == id {
			f.end(stream.ErrClient)
			exportEnded(number)
		}
	}
	return scheduled()
}

//go:wasmexport weir_request
func exportRequest(id, headLen, bodyLen int32) int32 {
	c := &call{id: id}
	calls[id] = c
	r := parseRequest(string(scratch[:headLen]))
	switch bodyLen {
	case contract.NoBody:
		r.Length = 0
	case contract.BodyLater:
		r.Body = &clientBody{hostBody: hostBody{call: c}, length: r.Length}
	default:
		r.Body = stream.FromBytes(takeBody(headLen, bodyLen))
	}
	c.request = r
	start(c)
	return scheduled()
}

//go:wasmexport weir_run
func exportRun(id, kind, headLen, bodyLen int32) int32 {
	c := &call{id: id}
	calls[id] = c
	name, verb, _ := strings.Cut(string(scratch[:headLen]), "\n")
	b := takeBody(headLen, bodyLen)
	start(&objectEvent{c, kind, name, verb, b})
	return scheduled()
}

// parseRequest reads "METHOD\nURL\nname\nvalue…".
func parseRequest(head string) *httpmsg.Request {
	r := &httpmsg.Request{Length: -1, Start: time.Now()}
	r.Method, head = cutLine(head)
	var url string
	url, head = cutLine(head)
	at := strings.Index(url, "://") + 3
	if slash := strings.IndexByte(url[at:], '/'); slash >= 0 {
		r.Origin, r.Path = url[:at+slash], url[at+slash:]
	} else {
		r.Origin, r.Path = url, "/"
	}
	r.Path, r.Query, _ = strings.Cut(r.Path, "?")
	r.Header = parseHeader(head)
	if n, err := strconv.ParseInt(r.Header.Get("content-length"), 10, 64); err == nil && n >= 0 {
		r.Length = n
	}
	return r
}

func parseHeader(head string) httpmsg.Header {
	if head == "" {
		return nil
	}
	h := make(httpmsg.Header, 0, (strings.Count(head, "\n")+1)/2+2)
	for head != "" {
		var f httpmsg.Field
		f.Name, head = cutLine(head)
		f.Value, head = cutLine(head)
		h = append(h, f)
	}
	return h
}

func cutLine(s string) (string, string) {
	if i := strings.IndexByte(s, '\n'); i >= 0 {
		return s[:i], s[i+1:]
	}
	return s, ""
}

// packed is the memory of the head that is passed to the host, which copies it.
var packed []byte

// packHeader is the inverse of parseHeader, appended to b.
func packHeader(b []byte, h httpmsg.Header) []byte {
	for i := range h {
		if len(b) > 0 {
			b = append(b, '\n')
		}
		b = append(b, h[i].Name...)
		b = append(b, '\n')
		b = append(b, h[i].Value...)
	}
	return b
}

// run serves the request of a call; once the body of the answer has ended, it does
// what follows.
func (c *call) run() {
	defer c.recover()
	if c.response == nil {
		c.response = theApp().Serve(c, c.request)
		if c.response.Upgrade != nil {
			c.converse(c.response)
		} else if f := c.respond(c.response); f != nil {
			f.then = c // no task waits while the body flows
			return
		}
	}
	if b, ok := c.request.Body.(*clientBody); ok {
		b.Close()
	}
	for _, after := range c.response.After {
		after(c)
	}
	c.finish()
}

// respond passes the answer to the host. It returns the flow of a body that Go
// watches or transforms.
func (c *call) respond(resp *httpmsg.Response) *flow {
	var all []byte
	var h int32
	var f *flow
	switch b := resp.Body.(type) {
	case nil:
	case *stream.Bytes:
		if all = b.All(); len(all) > memory.Uncounted {
			h, f = handOverWhole([][]byte{all})
			all = nil
			b.Reset(nil) // while the client reads, only the host has it
		}
	case *stream.Parts:
		h, f = handOverWhole(b.All())
		resp.Body = nil
	default:
		h, f = handOver(b)
	}
	if f != nil {
		f.call = c
	}
	head := packHeader(packed[:0], resp.Header)
	packed = head
	c.answered = true
	hostRespond(c.id, int32(resp.Status), numbered(resp.Template), ptr(head), int32(len(head)), ptr(all), int32(len(all)),
		h)
	return f
}

// templates counts those that the host has.
var templates int32

// numbered returns the host's number of a template, 0 for none. The host gets each
// once.
func numbered(t *httpmsg.Template) int32 {
	if t == nil {
		return 0
	}
	if t.Number == 0 {
		templates++
		t.Number = templates
		head := packHeader(nil, t.Fields)
		hostTemplate(t.Number, ptr(head), int32(len(head)))
	}
	return t.Number
}

// recover ends a call whose task has panicked, and answers its request.
func (c *call) recover() {
	p := recover()
	if p == nil {
		return
	}
	defer c.finish()
	LogLine(2, redact.PanicLine(c.request.ID, p))
	if !c.answered {
		head := packHeader(nil, httpmsg.Header{{Name: "content-type", Value: "application/json"},
			{Name: "cache-control", Value: "no-store"}, {Name: "x-request-id", Value: c.request.ID}})
		b := []byte(`{"error":{"message":"internal error","type":"server_error","param":null,"code":null}}`)
		hostRespond(c.id, 500, 0, ptr(head), int32(len(head)), ptr(b), int32(len(b)), 0)
	}
}

func (c *call) finish() {
	delete(calls, c.id)
	hostDone(c.id)
}

// objectEvent is an event without a request.
type objectEvent struct {
	*call
	kind       int32
	name, verb string
	body       []byte
}

func (o *objectEvent) run() {
	c := o.call
	defer c.finish()
	defer func() {
		if p := recover(); p != nil {
			LogLine(2, redact.PanicLine("", p))
			hostObjectRespond(c.id, 500, nil, 0)
		}
	}()
	st := Storage{call: c.id}
	var status int
	var answer []byte
	switch o.kind {
	case contract.ObjectCall:
		status, answer = theApp().Object(c, st, o.name, o.verb, o.body)
	case contract.Alarm:
		if theApp().Alarm(c, st, o.name) != nil {
			status = 500
		}
	case contract.Cron:
		theApp().Cron(c, o.verb)
	}
	hostObjectRespond(c.id, int32(status), ptr(answer), int32(len(answer)))
}

// Changed reports a change of a machine to the other instance of the isolate, if there
// is one.
func Changed(machineID string) { hostChanged(sptr(machineID), int32(len(machineID))) }

// exportChanged reports to the app a change that another instance has made.
//
//go:wasmexport weir_changed
func exportChanged(n int32) {
	if a, ok := app.(interface{ ChangedElsewhere(machineID string) }); ok {
		a.ChangedElsewhere(string(scratch[:n]))
	}
}

// exportUnreported returns of how many machines the app has usage to report, which it does
// with the end of a request.
//
//go:wasmexport weir_unreported
func exportUnreported() int32 {
	if a, ok := app.(interface{ Unreported() int }); ok {
		return int32(a.Unreported())
	}
	return 0
}

// LogLine writes one line, of level 2 and above to the platform's error log.
func LogLine(level int, line string) { hostLog(int32(level), sptr(line), int32(len(line))) }

// Idle returns how many tasks have nothing to do, for tests.
func Idle() int { return len(idle) }

// InFlight returns how many calls, operations and streams are under way, for tests.
func InFlight() (callCount, opCount, streamCount int) {
	return len(calls), len(ops) - len(freeOps), len(watched)
}
