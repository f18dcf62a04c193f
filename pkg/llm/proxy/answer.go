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

// found is what read found in the answer.
type found struct {
	whole  []byte // the answer for the client, when it is in memory
	events bool   // it is an event stream
	usage  llm.Usage
	id     string // of an answer that the upstream itself names
	input  int64  // estimated tokens of the request; -1 while not estimated
}

// readAnswer reads an answer before it is accepted. After one that cannot be
// parsed, and after a stream whose first event is an error, another account may
// be tried.
func readAnswer(up *accounts.Attempt, resp *upstream.Response) error {
	a := up.State.(*attempt)
	a.found.input = -1
	var err error
	if a.ask.Stream {
		err = a.begin(resp)
	} else {
		err = a.whole(resp)
	}
	if err != nil {
		var e *apierr.Error
		if errors.As(err, &e) {
			e.Message = redact.Patterns(e.Message)
		}
		return err
	}
	if a.found.whole != nil {
		resp.Body = stream.FromBytes(a.found.whole)
	}
	a.Used.Tokens = a.found.usage
	return nil
}

// whole reads a complete JSON answer; an incomplete one is an error
// (docs/reference/reliability.md, F13, F18).
func (a *attempt) whole(resp *upstream.Response) error {
	body, err := stream.ReadAll(resp.Body, maxAnswer)
	if err != nil {
		return err
	}
	switch shapeOf(body) {
	case jsonBody:
		return a.wholeJSON(body)
	case eventBody:
		// Some servers only stream.
		a.found.whole, a.found.usage, err = llm.Collect(a.way.dialect, a.ask.Dialect, body, a.opt)
		return err
	}
	return endpoint.BadBody(nil)
}

// passes reports whether the answer goes to the client unchanged: it is in the
// client's dialect, with the client's own tools.
func (a *attempt) passes() bool { return a.way.dialect == a.ask.Dialect && !a.opt.Tools.Changed() }

func (a *attempt) wholeJSON(body []byte) (err error) {
	if !a.passes() {
		a.found.whole, a.found.usage, err = llm.Response(a.way.dialect, a.ask.Dialect, body, a.opt)
		return err
	}
	if err = a.same(body); err == nil {
		a.found.whole = body
	}
	return err
}

// marks are the fields by which the answers of a dialect are known.
var marks = [...]string{llm.Chat: "choices", llm.Responses: "output", llm.Messages: "content"}

// same checks an answer in the client's own dialect, which passes byte for
// byte, and takes out what is to be known of it.
func (a *attempt) same(body []byte) error {
	mark := marks[a.ask.Dialect]
	set, err := jsonscan.Read(body, mark, "usage", "id")
	if err != nil {
		return endpoint.BadBody(err)
	}
	if set.Get(mark).Kind != jsonscan.Array {
		// An error with a 2xx, or something else altogether.
		if _, _, err = llm.Response(a.way.dialect, a.ask.Dialect, body, a.opt); err == nil {
			err = endpoint.BadBody(nil)
		}
		return err
	}
	if v := set.Get("usage"); v.Kind == jsonscan.Object && a.ask.Dialect != llm.Chat {
		a.found.usage = llm.UsageOf(a.ask.Dialect, wrap(body[v.Start:v.End]))
	} else if v.Kind == jsonscan.Object {
		a.found.usage = llm.UsageOf(llm.Chat, wrap(body[v.Start:v.End]))
	} else {
		a.found.usage = llm.UsageOf(a.ask.Dialect, body)
	}
	if a.ask.Dialect == llm.Responses {
		a.found.id, _, _ = set.String("id")
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

// reply makes the client's answer of an accepted one.
func (a *attempt) reply(res *accounts.Result) *Reply {
	r := &Reply{Target: res.Target, Connection: res.Connection}
	if a.way.dialect == llm.Responses && a.ask.Dialect == llm.Responses {
		r.ResponseID = a.found.id
	}
	if a.found.events {
		r.Response = a.stream(res)
		return r
	}
	r.Response = endpoint.JSONAnswer(res.Header, a.found.whole)
	if a.ask.Stream {
		r.Header.Set("content-type", eventStream)
	}
	return r
}

const eventStream = "text/event-stream; charset=utf-8"

// stream makes the answer of an upstream that streams: natively and watched
// where the bytes pass, else through the translation.
func (a *attempt) stream(res *accounts.Result) *httpmsg.Response {
	a.call.Body = nil // has been read; an open stream need not hold it
	m := meter{a: a, res: res}
	header := append(make(httpmsg.Header, 0, 12), httpmsg.Field{Name: "content-type", Value: eventStream})
	resp := &httpmsg.Response{Status: 200, Header: append(header, provider.ResponseNotes(res.Header)...)}
	if a.passes() {
		w := watcher{meter: m, o: llm.Observe(a.ask.Dialect, a.opt)}
		w.begin()
		if a.way.frames {
			resp.Body = &stream.Through{Src: res.Body, T: &unframed{watcher: w}, Idle: a.call.Machine.Settings.Idle()}
		} else {
			resp.Body = &stream.Watched{Src: res.Body, W: &w, Idle: a.call.Machine.Settings.Idle()}
		}
		return resp
	}
	resp.Body = &stream.Through{Src: res.Body, T: a.translator(m), Idle: a.call.Machine.Settings.Idle()}
	return resp
}
