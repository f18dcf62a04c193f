package proxy

import (
	"bytes"
	"errors"

	"weir/pkg/accounts"
	"weir/pkg/endpoint"
	"weir/pkg/llm"
	"weir/pkg/provider"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/jsonscan"
	"weir/pkg/wire/redact"
	"weir/pkg/wire/stream"
	"weir/pkg/wire/upstream"
)

// found is what check found of the answer that was settled for.
type found struct {
	settled bool
	whole   []byte // the answer for the client, when it is in memory
	events  bool   // it is an event stream
	usage   llm.Usage
	id      string // of an answer that the upstream itself names
	input   int64  // estimated tokens of the request; -1 while not estimated
}

// check looks at an answer before it is settled for. One that cannot be read,
// and a stream whose first event is an error, is none: another account may be
// tried.
func (x *exchange) check(resp *upstream.Response) error {
	x.found = found{input: -1}
	var err error
	if x.ask.Stream {
		err = x.begin(resp)
	} else {
		err = x.whole(resp)
	}
	if err != nil {
		var e *apierr.Error
		if errors.As(err, &e) {
			e.Message = redact.Patterns(e.Message)
		}
		return err
	}
	if x.found.whole != nil {
		resp.Body = stream.FromBytes(x.found.whole)
	}
	x.found.settled = true
	return nil
}

// whole reads a JSON answer: whole, or it is none
// (docs/reference/reliability.md, F13, F18).
func (x *exchange) whole(resp *upstream.Response) error {
	body, err := stream.ReadAll(resp.Body, maxAnswer)
	if err != nil {
		return err
	}
	switch shapeOf(body) {
	case jsonBody:
		return x.wholeJSON(body)
	case eventBody:
		// Some servers only stream.
		x.found.whole, x.found.usage, err = llm.Collect(x.way.dialect, x.ask.Dialect, body, x.opt)
		return err
	}
	return badBody(nil)
}

// passes reports whether the answer goes to the client unchanged: it is in the
// client's dialect, with the client's own tools.
func (x *exchange) passes() bool { return x.way.dialect == x.ask.Dialect && !x.opt.Tools.Changed() }

func (x *exchange) wholeJSON(body []byte) (err error) {
	if !x.passes() {
		x.found.whole, x.found.usage, err = llm.Response(x.way.dialect, x.ask.Dialect, body, x.opt)
		return err
	}
	if err = x.same(body); err == nil {
		x.found.whole = body
	}
	return err
}

// marks are the fields by which the answers of a dialect are known.
var marks = [...]string{llm.Chat: "choices", llm.Responses: "output", llm.Messages: "content"}

// same checks an answer in the client's own dialect, which passes byte for byte,
// and takes out what is to be known of it.
func (x *exchange) same(body []byte) error {
	mark := marks[x.ask.Dialect]
	set, err := jsonscan.Read(body, mark, "usage", "id")
	if err != nil {
		return badBody(err)
	}
	if set.Get(mark).Kind != jsonscan.Array {
		// An error with a 2xx, or something else altogether.
		if _, _, err = llm.Response(x.way.dialect, x.ask.Dialect, body, x.opt); err == nil {
			err = badBody(nil)
		}
		return err
	}
	if v := set.Get("usage"); v.Kind == jsonscan.Object && x.ask.Dialect != llm.Chat {
		x.found.usage = llm.UsageOf(x.ask.Dialect, wrap(body[v.Start:v.End]))
	} else if v.Kind == jsonscan.Object {
		x.found.usage = llm.UsageOf(llm.Chat, wrap(body[v.Start:v.End]))
	} else {
		x.found.usage = llm.UsageOf(x.ask.Dialect, body)
	}
	if x.ask.Dialect == llm.Responses {
		x.found.id, _, _ = set.String("id")
	}
	return nil
}

// wrap makes a small answer that has only its usage, so that the whole one is
// not read again.
func wrap(usage []byte) []byte {
	out := make([]byte, 0, len(usage)+12)
	return append(append(append(out, `{"usage":`...), usage...), '}')
}

type shape uint8

const (
	otherBody shape = iota
	jsonBody
	eventBody
)

// shapeOf tells what a body is by how it begins. Content types lie, and a line
// of an event stream never begins like JSON.
func shapeOf(head []byte) shape {
	head = bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\uFEFF")), " \t\r\n")
	if len(head) == 0 {
		return otherBody
	}
	if head[0] == '{' || head[0] == '[' {
		return jsonBody
	}
	for _, field := range [...]string{":", "data:", "event:", "id:", "retry:"} {
		if bytes.HasPrefix(head, []byte(field)) {
			return eventBody
		}
	}
	return otherBody
}

func badBody(cause error) error {
	e := apierr.New(502, "bad_upstream_body", "the provider's answer could not be read")
	e.Err = cause
	return e
}

// reply makes the client's answer of what was settled for.
func (x *exchange) reply(res *accounts.Result) *Reply {
	r := &Reply{Target: res.Target, Connection: res.Connection}
	if x.way.dialect == llm.Responses && x.ask.Dialect == llm.Responses {
		r.ResponseID = x.found.id
	}
	if x.found.events {
		r.Response = x.stream(res)
		return r
	}
	x.used(x.found.usage, false)
	r.Response = endpoint.JSONAnswer(res.Header, x.found.whole)
	if x.ask.Stream {
		r.Header.Set("content-type", eventStream)
	}
	return r
}

const eventStream = "text/event-stream; charset=utf-8"

// stream makes the answer of an upstream that streams: natively and watched
// where the bytes pass, else through the translation.
func (x *exchange) stream(res *accounts.Result) *httpmsg.Response {
	x.call.Body = nil // has been read; an open stream need not hold it
	m := meter{x: x, res: res}
	header := append(make(httpmsg.Header, 0, 12), httpmsg.Field{Name: "content-type", Value: eventStream})
	resp := &httpmsg.Response{Status: 200, Header: append(header, provider.ResponseNotes(res.Header)...)}
	if x.passes() {
		w := watcher{meter: m, o: llm.Observe(x.ask.Dialect, x.opt)}
		w.begin()
		if x.way.frames {
			resp.Body = &stream.Through{Src: res.Body, T: &unframed{watcher: w}, Idle: x.call.Machine.Settings.Idle()}
		} else {
			resp.Body = &stream.Watched{Src: res.Body, W: &w, Idle: x.call.Machine.Settings.Idle()}
		}
		return resp
	}
	resp.Body = &stream.Through{Src: res.Body, T: x.translator(m), Idle: x.call.Machine.Settings.Idle()}
	return resp
}
