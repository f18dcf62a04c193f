package responses

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"weir/pkg/wire/apierr"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/jsonscan"
	"weir/pkg/wire/jsonvalue"
	"weir/pkg/wire/socket"
	"weir/pkg/wire/sse"
	"weir/pkg/wire/stream"
	"weir/pkg/wire/upstream"
)

// turn is one response.create.
type turn struct {
	*session
	lane   string
	model  string
	store  bool          // the client lets the upstream store the response
	before *conversation // that it continues
	after  string        // the stored response that items follow, or ""
	items  []byte        // of the conversation, see conversation
	lost   bool          // the items are not in memory
	output bool          // items has some of the response
	ownID  string        // how the ids of reasoning items begin that weir has written
	held   []byte        // an error event that was not sent yet
	ended  bool          // an event that ends a response was sent
}

// create serves a response.create. Whatever becomes of it, its last message ends a
// response or is an error with a status: clients wait for that.
func (v *session) create(ctx context.Context, e *event) error {
	t, generate, err := v.turn(e)
	if err != nil {
		return v.fail(e.lane, err)
	}
	body, err := t.body(e)
	if err != nil {
		return v.fail(e.lane, err)
	}
	if !generate {
		return t.warmUp()
	}
	e.text, e.Set = nil, jsonscan.Set{} // the body has it
	return t.run(ctx, body)
}

// turn reads what the socket itself needs of a response.create. generate is false for
// a warm-up, which is not sent to an upstream.
func (v *session) turn(e *event) (t *turn, generate bool, err error) {
	t = &turn{session: v, lane: e.lane, store: true}
	generate = true
	for _, f := range []struct {
		name string
		to   *bool
	}{{"generate", &generate}, {"store", &t.store}} {
		if e.Has(f.name) {
			if *f.to, _, err = e.Bool(f.name); err != nil {
				return nil, false, apierr.Invalid(f.name, "%s must be a boolean.", f.name)
			}
		}
	}
	if b := e.Get("background"); b.Kind == jsonscan.Bool && string(e.Raw("background")) == "true" {
		return nil, false, apierr.Invalid("background",
			"background is not available over WebSocket. Leave it out, or send the request with POST.")
	}
	if t.model, _, err = e.String("model"); err != nil || t.model == "" {
		return nil, false, apierr.Invalid("model", "model is required.")
	}
	if !e.Has("previous_response_id") {
		return t, generate, nil
	}
	if t.after, _, err = e.String("previous_response_id"); err != nil || t.after == "" {
		return nil, false, apierr.Invalid("previous_response_id", "previous_response_id must be a string.")
	}
	for _, c := range v.lanes {
		if c == nil || c.id != t.after {
			continue
		}
		items, ok := v.conversations.use(c)
		if !ok {
			e := apierr.Invalid("previous_response_id",
				"The previous response is no longer in memory. Send the whole conversation in input, without previous_response_id.")
			e.Code = "previous_response_not_found"
			return nil, false, e
		}
		t.before, t.after, t.items = c, c.after, items
		break
	}
	return t, generate, nil
}

// ownFields are the fields of a response.create that its request has not.
var ownFields = [...]string{"type", "stream_id", "generate", "stream", "background", "previous_response_id",
	"response_id"}

// body returns the request of the turn with the conversation that it continues, and
// stores the items of that in the turn. A request without one is written over the event,
// which is at least as long: a large message is in memory once.
func (t *turn) body(e *event) ([]byte, error) {
	raw, input, ok := e.Raw("input"), []byte(nil), false
	if t.before != nil || len(raw) < maxConversation {
		input, ok = inputItems(raw)
	}
	if t.before != nil && !ok {
		return nil, apierr.Invalid("input", "input must be a string or an array of items.")
	}
	before := t.items
	t.items, t.lost = nil, !ok
	t.remember(before)
	t.remember(input)
	b := e.text[:0]
	if t.before != nil {
		b = make([]byte, 0, len(e.text)+len(before)+64)
	}
	var c jsonscan.Cursor
	c.Reset(e.text)
	c.Object()
	b = append(b, '{') // from here on it never passes the cursor
	for c.Key() {
		own := c.KeyIs("input") && t.before != nil
		for _, name := range ownFields {
			own = own || c.KeyIs(name)
		}
		name, value := c.KeySpan(), c.Value()
		if !own {
			if len(b) > 1 {
				b = append(b, ',')
			}
			b = append(append(b, e.text[name.Start:name.End]...), ':')
			b = append(b, e.text[value.Start:value.End]...)
		}
	}
	if len(b) > 1 {
		b = append(b, ',')
	}
	if t.after != "" {
		b = append(jsonscan.Quote(append(b, `"previous_response_id":`...), t.after), ',')
	}
	if t.before != nil {
		b = append(append(b, `"input":[`...), before...)
		if len(before) > 0 && len(input) > 0 {
			b = append(b, ',')
		}
		b = append(append(b, input...), `],`...)
	}
	return append(b, `"stream":true}`...), nil
}

// inputItems returns the items of an input without brackets. ok is false if it is
// neither a list nor a text.
func inputItems(raw []byte) (items []byte, ok bool) {
	switch {
	case len(raw) == 0:
		return nil, true
	case raw[0] == '[':
		return bytes.TrimSpace(raw[1 : len(raw)-1]), true
	case raw[0] == '"':
		return append(append([]byte(`{"type":"message","role":"user","content":`), raw...), '}'), true
	}
	return nil, false
}

// joinItems appends items to a list of items.
func joinItems(list, items []byte) []byte {
	if len(list) > 0 && len(items) > 0 {
		list = append(list, ',')
	}
	return append(list, items...)
}

// remember adds items to the conversation, unless it becomes too long.
func (t *turn) remember(items []byte) {
	if t.lost = t.lost || len(t.items)+len(items) >= maxConversation; t.lost {
		t.items = nil
		return
	}
	t.items = joinItems(t.items, items)
}

// run serves the turn and sends its events.
func (t *turn) run(ctx context.Context, body []byte) error {
	r := t.request
	r.Header = append(httpmsg.Header(nil), t.request.Header...)
	r.Start, r.Length, r.Body = t.Now(), int64(len(body)), stream.FromBytes(body)
	resp := t.Serve(ctx, &r)
	defer t.finish(ctx, resp)
	if resp.Status != 200 || !strings.HasPrefix(resp.Get("content-type"), "text/event-stream") {
		return t.refused(resp)
	}
	t.ownID = "rs_" + strings.TrimPrefix(resp.Get("x-request-id"), "req_") + "_"
	return t.events(ctx, resp.Body)
}

// finish closes the body of an answer, and does what follows it.
func (t *turn) finish(ctx context.Context, resp *httpmsg.Response) {
	if !t.ended {
		t.failed()
	}
	if resp.Body != nil {
		resp.Body.Close()
	}
	ctx = context.WithoutCancel(ctx)
	for _, after := range resp.After {
		after(ctx)
	}
}

// failed takes the response that the turn continues out of memory: the client sends
// everything again, as after the vendor's own failures.
func (t *turn) failed() {
	for lane, c := range t.lanes {
		if c != nil && c == t.before {
			t.conversations.remove(c)
			t.lanes[lane] = nil
		}
	}
}

// maxError is the maximum length of an error that is sent, in bytes.
const maxError = 64 << 10

// refused sends the error of an answer without events, with its header fields.
func (t *turn) refused(resp *httpmsg.Response) error {
	raw := []byte(nil)
	if all, err := stream.ReadAll(resp.Body, maxError); err == nil && jsonscan.Valid(all) {
		raw = []byte(gjson.GetBytes(all, "error").Raw)
	}
	status := resp.Status
	if gjson.GetBytes(raw, "code").Str == "budget" && t.served > 0 {
		return t.full() // another connection has another budget
	}
	if status < 400 {
		status, raw = 502, nil
	}
	if len(raw) == 0 || raw[0] != '{' {
		raw = errorObject(apierr.New(status, "", "The request failed with status %d.", status))
	}
	return t.sendError(t.lane, status, raw, resp.Header)
}

// events sends the events of a stream.
func (t *turn) events(ctx context.Context, body io.ReadCloser) error {
	t.open(ctx, body)
	var in sse.Reader
	var ev sse.Event
	piece := make([]byte, 16<<10)
	for {
		n, err := body.Read(piece)
		in.Push(piece[:n])
		for in.Next(&ev) {
			if err := t.event(ev.Data); err != nil {
				return err
			}
		}
		if err == nil && in.Err() == nil {
			continue
		}
		if err != nil && in.Finish(&ev) {
			if err := t.event(ev.Data); err != nil {
				return err
			}
		}
		if ctx.Err() != nil || t.ended {
			return ctx.Err()
		}
		return t.cut()
	}
}

// open prepares a body of the host to be read here.
func (t *turn) open(ctx context.Context, body io.ReadCloser) {
	if b, ok := body.(*stream.Through); ok {
		b.Src = &source{ReadCloser: b.Src, ctx: ctx, idle: b.Idle}
		b.Wait = func(chunk []byte) error { return t.wait(ctx, b.T, chunk) }
	}
}

// wait returns when there is memory for a transform's next chunk.
func (t *turn) wait(ctx context.Context, w stream.Transform, chunk []byte) error {
	for waited := time.Duration(0); !w.Ready(chunk); waited += stream.ReadyAgain {
		if t.Pause == nil || waited >= stream.ReadyWait {
			return stream.ErrMemory
		}
		if t.Pause.Pause(ctx, stream.ReadyAgain) != nil {
			return stream.ErrClient
		}
	}
	return nil
}

// source is the stream of an upstream. Its errors are those that the host reports of
// a stream that it moves.
type source struct {
	io.ReadCloser
	ctx  context.Context
	idle time.Duration
}

func (s *source) Read(d []byte) (int, error) {
	if s.idle > 0 {
		limitRead(s.ReadCloser, s.idle)
		s.idle = 0
	}
	n, err := s.ReadCloser.Read(d)
	switch {
	case err == nil || err == io.EOF:
	case s.ctx.Err() != nil || errors.Is(err, upstream.ErrCanceled):
		err = stream.ErrClient
	case errors.Is(err, upstream.ErrTimeout):
		err = stream.ErrIdle
	}
	return n, err
}

// limitRead limits how long a Read of a host's body may take.
func limitRead(body io.ReadCloser, d time.Duration) {
	if p, ok := body.(*stream.Prefix); ok {
		body = p.Rest
	}
	if l, ok := body.(interface{ LimitRead(d time.Duration) }); ok {
		l.LimitRead(d)
	}
}

// event sends an event of the stream. An error event is sent with the next one: if it
// is the last, clients would wait for more, and it gets a status instead.
func (t *turn) event(data []byte) error {
	if len(data) == 0 || data[0] != '{' || !jsonscan.Valid(data) {
		return nil // [DONE], or cut: what ends a broken stream may follow in a line of its own
	}
	if t.held != nil {
		held := t.held
		t.held = nil
		if err := t.send(t.lane, held); err != nil {
			return err
		}
	}
	switch gjson.GetBytes(data, "type").Str {
	case "error":
		t.held = bytes.Clone(data)
		return nil
	case "response.output_item.done":
		t.item(gjson.GetBytes(data, "item"))
	case "response.completed", "response.incomplete":
		t.completed(gjson.GetBytes(data, "response"))
	case "response.failed":
		t.ended = true
		t.failed()
	}
	return t.send(t.lane, data)
}

// item stores an item of the output. Reasoning that the upstream neither stores nor
// encrypts cannot be sent to it again.
func (t *turn) item(v gjson.Result) {
	if !v.IsObject() || !jsonscan.Valid([]byte(v.Raw)) {
		return
	}
	t.output = true
	switch v.Get("type").Str {
	case "reasoning":
		if v.Get("encrypted_content").Str == "" && !strings.HasPrefix(v.Get("id").Str, t.ownID) {
			return
		}
	case "compaction": // stands for all that was before it
		t.items, t.after, t.lost = nil, "", false
	}
	t.remember([]byte(v.Raw))
}

// completed stores the response as the one that the lane may continue, unless the
// upstream has it.
func (t *turn) completed(v gjson.Result) {
	t.ended = true
	t.served++
	if !t.output {
		jsonvalue.Each(v.Get("output"), func(_, item gjson.Result) bool {
			t.item(item)
			return true
		})
	}
	t.conversations.remove(t.lanes[t.lane])
	t.lanes[t.lane] = nil
	if t.store && v.Get("store").Type == gjson.True {
		return
	}
	c := &conversation{id: strings.Clone(v.Get("id").Str), after: t.after, items: t.items}
	if c.id != "" && !t.lost {
		t.conversations.add(c)
	}
	t.lanes[t.lane] = c
}

// cut sends the error of a stream that has ended without an event that ends a
// response.
func (t *turn) cut() error {
	e := gjson.ParseBytes(t.held)
	if nested := e.Get("error"); nested.IsObject() {
		e = nested
	}
	code, message := e.Get("code").Str, e.Get("message").Str
	message = cmp.Or(message, "The provider ended the stream before the answer was complete. Try again.")
	return t.fail(t.lane, apierr.New(statusOfCode(code), code, "%s", message))
}

// statusOfCode returns the status of an error within a stream, which has only a code.
func statusOfCode(code string) int {
	switch code {
	case "rate_limit_exceeded", "insufficient_quota":
		return 429
	case "server_is_overloaded", "slow_down", "overloaded", "upstream_overloaded":
		return 503
	case "context_length_exceeded", "invalid_prompt", "invalid_request_error":
		return 400
	}
	return 502
}

// warmUp answers a request that generates nothing: the next one continues it.
func (t *turn) warmUp() error {
	id := make([]byte, 16)
	rand.Read(id)
	for i, status := range []string{"in_progress", "completed"} {
		var w jsonvalue.Writer
		w.Object("")
		w.String("type", []string{"response.created", "response.completed"}[i])
		w.Int("sequence_number", i)
		w.Object("response")
		w.String("id", "resp_"+hex.EncodeToString(id))
		w.String("object", "response")
		w.Int("created_at", int(t.Now().Unix()))
		w.String("status", status)
		w.Raw("error", "")
		w.Raw("incomplete_details", "")
		w.String("model", t.model)
		w.Array("output")
		w.End(']')
		w.Raw("store", "false")
		if i == 1 {
			w.Raw("usage", `{"input_tokens":0,"input_tokens_details":{"cached_tokens":0},"output_tokens":0,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":0}`)
		}
		w.End('}')
		w.End('}')
		if err := t.event(w); err != nil {
			return err
		}
	}
	return nil
}

// refuseInput answers a response.inject. One response is created at a time, so the one
// that it is for has ended when it is read.
func (v *session) refuseInput(e *event) error {
	id, _, _ := e.String("response_id")
	code, message := "response_not_found", "No response with this response_id is the latest of its stream."
	for _, c := range v.lanes {
		if c != nil && id != "" && c.id == id {
			code, message = "response_already_completed", "The response has completed. Send the input with response.create."
		}
	}
	var w jsonvalue.Writer
	w.Object("")
	w.String("type", "response.inject.failed")
	w.String("response_id", id)
	w.Raw("input", string(e.Raw("input")))
	w.Object("error")
	w.String("code", code)
	w.String("message", message)
	w.End('}')
	w.Int("sequence_number", 0)
	w.End('}')
	return v.send(e.lane, w)
}

// fail sends an error of the request, or of the socket.
func (v *session) fail(lane string, err error) error {
	var e *apierr.Error
	if !errors.As(err, &e) {
		e = apierr.New(500, "", "Internal error.")
	}
	return v.sendError(lane, e.Status, errorObject(e), nil)
}

func errorObject(e *apierr.Error) []byte {
	var w jsonvalue.Writer
	w.Object("")
	w.String("type", e.Type)
	w.Text("code", e.Code)
	w.String("message", e.Message)
	w.Text("param", e.Param)
	w.End('}')
	return w
}

// sendError sends an error with a status, and the header fields of an answer.
func (v *session) sendError(lane string, status int, object []byte, header httpmsg.Header) error {
	var w jsonvalue.Writer
	w.Object("")
	w.String("type", "error")
	w.Int("status", status)
	w.Raw("error", string(object))
	w.Object("headers")
	for _, f := range header {
		if f.Name != "content-type" && header.Get(f.Name) == f.Value { // the first of a name
			w.String(f.Name, f.Value)
		}
	}
	w.End('}')
	w.End('}')
	return v.send(lane, w)
}

// send sends an event, with the name of its lane.
func (v *session) send(lane string, event []byte) error {
	data := make([]byte, 0, len(event)+len(lane)+16)
	data = append(data, '{')
	if lane != "" {
		data = append(append(append(data, `"stream_id":"`...), lane...), `",`...)
	}
	data = append(data, event[1:]...)
	return v.conn.Write(socket.Message{Data: data})
}
