package proxy

import (
	"bytes"
	"context"
	"errors"

	"weir/pkg/accounts"
	"weir/pkg/endpoint"
	"weir/pkg/llm"
	"weir/pkg/provider"
	"weir/pkg/provider/bedrock"
	"weir/pkg/routing"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/jsonscan"
	"weir/pkg/wire/memory"
	"weir/pkg/wire/redact"
	"weir/pkg/wire/stream"
	"weir/pkg/wire/upstream"
)

// parsed is what an attempt knows of the answer that was accepted.
type parsed struct {
	whole  []byte   // the answer for the client, when it is in memory
	parts  [][]byte // of it, if whole is only the first
	events bool     // it is an event stream
	usage  llm.Usage
	id     string // of an answer that the upstream itself names
	answer []byte // of the upstream, if it came whole, until its usage is recorded
	text   int    // length of the text of a stream that has ended, see llm.Observer
}

// readAnswer reads an answer before it is accepted. After one that cannot be
// parsed, and after a stream whose first event is an error, another account may
// be tried.
func readAnswer(up *accounts.Attempt, resp *upstream.Response) error {
	a := up.State.(*attempt)
	var err error
	if a.req.Stream {
		err = a.begin(resp)
	} else {
		err = a.readWhole(resp)
	}
	if err != nil {
		var e *apierr.Error
		if errors.As(err, &e) {
			e.Message = redact.Patterns(e.Message)
		}
		return err
	}
	if a.parsed.whole != nil {
		a.whole.Reset(a.parsed.whole)
		resp.Body = &a.whole
	}
	a.Used.Tokens = a.parsed.usage
	if a.Estimator == nil && a.req.Background && a.parsed.events && a.parsed.id != "" {
		a.Used.Price = accounts.Later
	}
	return nil
}

// readWhole reads a complete JSON answer; an incomplete one is an error
// (docs/reference/reliability.md, F13, F18).
func (a *attempt) readWhole(resp *upstream.Response) error {
	body, err := stream.ReadAll(resp.Body, maxAnswer)
	if err != nil {
		return err
	}
	a.parsed.answer = body
	switch shapeOf(body) {
	case jsonBody:
		if err = a.filtered(body); err != nil {
			return err
		}
		if err = a.wholeJSON(body); err != nil && endpoint.ValidJSON(body) != nil {
			return endpoint.BadBody(upstream.ErrCut)
		}
		if err == nil {
			a.call.Trace.Finish = llm.FinishOf(a.api.dialect, body)
		}
		return err
	case eventBody:
		// Some servers only stream.
		a.parsed.whole, a.parsed.usage, err = llm.Collect(a.api.dialect, a.req.Dialect, body, a.opt)
		return err
	}
	return endpoint.BadBody(nil)
}

// InputTokens returns an estimate of what the model has read.
func (a *attempt) InputTokens() int64 {
	if a.input < 0 {
		a.input = llm.Estimate(a.req.Body)
	}
	return a.input
}

// OutputTokens returns an estimate of what the model has written.
func (a *attempt) OutputTokens() int64 {
	switch body := a.parsed.answer; {
	case body == nil:
		return llm.TextTokens(a.parsed.text)
	case shapeOf(body) == eventBody:
		return llm.TextTokens(llm.StreamText(a.api.dialect, body))
	default:
		return llm.TextTokens(llm.AnswerText(a.api.dialect, body))
	}
}

// settle makes of the usage of a translated answer what is recorded of it, see llm.Options.
func (a *attempt) settle(u *llm.Usage, text int) {
	a.parsed.text = text
	a.Settle(a.call.Machine, u)
}

// maxFiltered is the longest answer that may have nothing but a finish reason, in bytes.
const maxFiltered = 16 << 10

// filtered returns the failure of an answer that a filter has withheld, if the combo
// tries its next member after that. For any other client it is an answer.
func (a *attempt) filtered(body []byte) error {
	if len(a.targets) < 2 || len(body) > maxFiltered {
		return nil
	}
	for i := range a.targets {
		if &a.targets[i] == a.Target && routing.After(a.targets, i, routing.ContentFilter) >= 0 &&
			llm.Filtered(a.api.dialect, body) {
			return apierr.New(400, "content_filter", "The provider's filter has withheld the answer.")
		}
	}
	return nil
}

// passes reports whether the answer goes to the client unchanged: it is in the
// client's dialect, with the client's own tools.
func (a *attempt) passes() bool { return a.api.dialect == a.req.Dialect && !a.opt.Tools.Changed() }

func (a *attempt) wholeJSON(body []byte) (err error) {
	if !a.passes() {
		if len(body) > memory.Uncounted {
			a.opt.Memory = a.answerMemory
		}
		parts, usage, err := llm.ResponseParts(a.api.dialect, a.req.Dialect, body, a.opt)
		if err == nil {
			a.parsed.whole, a.parsed.parts, a.parsed.usage = parts[0], parts, usage
		}
		return err
	}
	if err = a.readUnchanged(body); err == nil {
		a.parsed.whole = body
	}
	return err
}

// readUnchanged reads the usage and the id of an answer in the client's own
// dialect, which passes byte for byte.
func (a *attempt) readUnchanged(body []byte) error {
	f := a.req.Dialect.Client()
	set, err := jsonscan.Read(body, f.Answer, f.Usage, "id", "service_tier", "status")
	if err != nil {
		return endpoint.BadBody(err)
	}
	if set.Get(f.Answer).Kind != jsonscan.Array {
		// An error with status 2xx, or another document.
		if _, _, err = llm.Response(a.api.dialect, a.req.Dialect, body, a.opt); err == nil && !f.NoAnswer {
			err = endpoint.BadBody(nil)
		}
		if err != nil {
			return err
		}
	}
	if v := set.Get(f.Usage); v.Kind == jsonscan.Object && !llm.BilledApart(a.req.Dialect, body) {
		a.parsed.usage = llm.CountUsage(a.req.Dialect, body[v.Start:v.End])
		if tier := set.Get("service_tier"); tier.Kind == jsonscan.String && string(body[tier.Start:tier.End]) != `"default"` {
			a.parsed.usage.Serve(set.Text(tier))
		}
	} else {
		a.parsed.usage = llm.UsageOf(a.req.Dialect, body)
	}
	if a.req.Dialect == llm.Responses {
		a.parsed.id, _, _ = set.String("id")
		if status, _, _ := set.String("status"); a.req.Background && (status == "queued" || status == "in_progress") {
			a.Used.Price = accounts.Later
		}
	}
	return nil
}

type shape uint8

const (
	otherBody shape = iota
	jsonBody
	eventBody
)

// shapeOf returns the kind of a body by its beginning. Content types are
// unreliable, and a line of an event stream never begins like JSON.
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

// reply returns the client's answer.
func (a *attempt) reply(res *accounts.Result) *Result {
	r := &Result{Target: res.Target, Connection: res.Connection, Unbilled: res.Attempt.Unbilled,
		Counted: res.Attempt.Counted, Labels: res.Attempt.Labels}
	a.parsed.answer = nil
	if a.api.dialect == llm.Responses && a.req.Dialect == llm.Responses {
		r.ResponseID = a.parsed.id
	}
	if a.parsed.events {
		r.Response = a.stream(res)
		if r.Unbilled != nil {
			bill := *res // the trace may use its memory again
			r.After = append(r.After, func(ctx context.Context) { bill.Bill(ctx, r.ResponseID, a.call.Route) })
		}
		return r
	}
	if a.req.Array { // of the events of an answer that came whole
		a.parsed.whole = arrayOf(a.parsed.whole)
	}
	r.Response = endpoint.JSONAnswer(res.Header, a.parsed.whole)
	if len(a.parsed.parts) > 1 {
		r.Body = stream.FromParts(a.parsed.parts)
	}
	if a.req.Stream && !a.req.Array {
		r.Header.Set("content-type", eventStream)
	}
	return r
}

const eventStream = "text/event-stream; charset=utf-8"

// stream returns the client's stream: unchanged and observed if the dialects
// are equal, or translated.
func (a *attempt) stream(res *accounts.Result) *httpmsg.Response {
	a.call.Body, a.Request.Body = nil, nil // an open stream need not hold them
	a.body.Reset(nil)
	a.releaseBody()
	m := outcome{a: a, res: res, costs: a.call.Machine.Settings.StatesStreamCost() && llm.TakesComments(a.req.Dialect)}
	header := append(make(httpmsg.Header, 0, 12), httpmsg.Field{Name: "content-type", Value: eventStream})
	resp := &httpmsg.Response{Status: 200, Header: provider.AppendNotes(header, res.Header)}
	body := &stream.Through{Src: res.Body, Idle: a.call.Machine.Settings.Idle()}
	resp.Body = body
	if a.passes() {
		w := passthrough{outcome: m, o: llm.Observe(a.req.Dialect)}
		switch {
		case a.api.frames:
			body.T = &bedrock.Chain{First: &bedrock.Frames{}, Then: &w}
		case a.opt.AskUsage && !a.req.Array:
			body.T = &askedUsage{passthrough: w}
		default:
			body.T, body.Watch = &w, !a.req.Array
		}
	} else {
		body.T = a.translator(m)
	}
	if a.req.Array {
		resp.Header.Set("content-type", "application/json")
		body.T = &arrayed{events: body.T}
	}
	return resp
}
