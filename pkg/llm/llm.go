// Package llm translates between the dialects of chat, bytes to bytes.
//
// The package of each dialect reads it into the middle form (pkg/llm/ir:
// messages of blocks, answers, stream events) and writes it from there, so that
// any client dialect goes to any upstream dialect. A field that the target does
// not support is dropped by its writer and named in the result, or refused with
// a 400 if dropping it would change the answer's meaning (several choices,
// audio, server state).
//
// There is no I/O, no clock and no randomness here: ids and times come with the
// Options.
package llm

import (
	"bytes"
	"github.com/tidwall/gjson"
	"slices"

	"weir/pkg/llm/ir"
	"weir/pkg/llm/responses"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/memory"
)

// Dialect is a wire format of chat.
type Dialect uint8

// The dialects. Clients speak the first four, and Completions.
const (
	Chat      Dialect = iota // OpenAI chat completions
	Responses                // OpenAI Responses
	Messages                 // Anthropic Messages, 2023-06-01 and 2026-10-21
	Gemini                   // Google generateContent
	Cohere                   // Cohere v2 chat
	Converse                 // Amazon Bedrock's Converse; its frames as server-sent events (pkg/provider/bedrock)

	Completions // OpenAI's legacy text completions, which clients alone speak
)

// Dialects is the number of dialects.
const Dialects = len(dialects)

// String returns the dialect's name in lower case.
func (d Dialect) String() string { return dialects[d].name }

// Endpoint returns the name of the endpoint, in the rows of pkg/provider, at which
// providers speak the dialect, "" if none does. "chat" is that of a provider's own dialect.
func (d Dialect) Endpoint() string { return dialects[d].endpoint }

// Client returns what is known of the dialect's clients, nil if no client speaks it.
func (d Dialect) Client() *Client { return dialects[d].client }

// ModelInURL reports whether the URL of a request names the model, "MODEL:METHOD", and
// its body does not.
func (d Dialect) ModelInURL() bool { return dialects[d].modelInURL }

// Request turns a client's request into the upstream's.
//
// dropped names the fields of the client's dialect that the upstream does not
// get, each once, in the order met; they belong in x-weir-dropped. The error is
// an *apierr.Error with status 400. For from == to the bytes pass: only the
// model and what Deviations lists is changed (see adaptRequest). Between
// different dialects a body of more than 24,000 pieces is refused with 413.
func Request(from, to Dialect, body []byte, opt ir.Options) (out []byte, dropped []string, err error) {
	if from == to {
		return adaptRequest(from, body, &opt)
	}
	parts, dropped, err := translate(from, to, body, opt, false)
	if err != nil {
		return nil, nil, err
	}
	return parts[0], dropped, nil
}

// RequestParts is Request with the result in parts, some of which are texts of body: of
// a large one only what must be changed is copied.
func RequestParts(from, to Dialect, body []byte, opt ir.Options) (parts [][]byte, dropped []string, err error) {
	if from == to {
		return adaptParts(from, body, &opt)
	}
	return translate(from, to, body, opt, len(body) >= minParts)
}

// minParts is the length of a body from which on the result may be in parts.
const minParts = 1 << 20

func translate(from, to Dialect, body []byte, opt ir.Options,
	spans bool) (parts [][]byte, dropped []string, err error) {
	pieces, err := ir.CountPieces(body)
	if err != nil {
		return nil, nil, apierr.Invalid("", "The body is not valid JSON.")
	}
	if !gjson.Parse(ir.View(body)).IsObject() {
		return nil, nil, apierr.Invalid("", "The body must be a JSON object.")
	}
	if pieces > ir.MaxPieces {
		return nil, nil, ir.TooManyPieces(pieces)
	}
	copied := ir.Copied(body, spans)
	if spans && copied >= ir.MinSpan {
		// Their escapes would have them copied.
		if long := ir.LongTexts(body, opt.ID); 2*long.Size() < copied {
			if err := takeMemory(&opt, pieces, long.Size(), long.Size()); err != nil {
				return nil, nil, err
			}
			parts, dropped, err = rewrite(from, to, long.Short(), opt, pieces, long.Size(), true)
			if err != nil {
				return nil, nil, err
			}
			if parts, ok := long.Restore(parts); ok {
				return parts, dropped, nil
			}
			opt.Forget()
		}
	}
	if err := takeMemory(&opt, pieces, copied, 0); err != nil {
		return nil, nil, err
	}
	return rewrite(from, to, body, opt, pieces, copied, spans)
}

// takeMemory acquires the memory of a translation that copies this number of bytes, and
// more bytes besides.
func takeMemory(opt *ir.Options, pieces, copied, more int) error {
	if opt.Memory == nil {
		return nil
	}
	return opt.Memory(int64(pieces)*ir.PieceMemory + memory.Translated(int64(copied)) + int64(more))
}

// rewrite translates a checked request, of which copied bytes are copied.
func rewrite(from, to Dialect, body []byte, opt ir.Options, pieces, copied int,
	spans bool) (parts [][]byte, dropped []string, err error) {
	root := gjson.Parse(ir.View(body))
	client, upstream := &dialects[from], &dialects[to]
	if client.read == nil {
		return nil, nil, apierr.New(500, "", "No client speaks this dialect.")
	}
	t := &struct { // one allocation
		opt ir.Options
		q   ir.Request
		d   ir.Writer
	}{opt: opt, q: ir.Request{Fields: client.fields, Pieces: pieces, Pacer: ir.Pacer{Pause: opt.Pause}}}
	q, d := &t.q, &t.d
	q.Work(2 * len(body))
	if err = client.read(root, q, &t.opt); err != nil {
		return nil, nil, err
	}
	if opt.NoThoughts {
		q.DropThoughts()
	}
	asked := q.MaxTokens
	if asked == 0 && to == Messages { // which has a limit in any case
		asked = opt.RequiredMaxTokens(ir.ClaudeNamed(opt.Model))
	}
	if opt.OutputLimit > 0 && (asked == 0 || asked > opt.OutputLimit) {
		q.MaxTokens = opt.OutputLimit
		q.Drop(limited(q.FieldName(ir.FieldMaxTokens), opt.OutputLimit))
	}
	v := opt.DeviationsOrDefault()
	q.NameTools(upstream.tools, !upstream.customTools(v), &t.opt)
	limit := upstream.userLimit
	if limit == 0 {
		limit = v.UserLimit()
	}
	q.User = ir.ShortUser(q.User, limit)
	d.Buf, d.Pacer, d.Spans = make([]byte, 0, copied+copied/4+256), &q.Pacer, spans
	if !upstream.details {
		q.DropDetails()
	}
	err = upstream.write(q, d, &t.opt)
	if err == nil && q.SchemaBytes > ir.MaxSchemas {
		err = apierr.New(413, "request_too_large",
			"The schemas of the request are too large, or nested too deeply, to be translated for this model's provider.")
	}
	if err != nil {
		return nil, nil, err
	}
	return d.Parts(), q.Dropped, nil
}

// Response turns an upstream's JSON answer (status 2xx) into the client's. For
// an answer that is not of the upstream's dialect, or that holds an error in
// spite of its status, it returns an *apierr.Error with 502 or the error's
// status.
func Response(from, to Dialect, body []byte, opt ir.Options) ([]byte, ir.Usage, error) {
	parts, usage, err := response(from, to, body, opt, false)
	if err != nil {
		return nil, ir.Usage{}, err
	}
	return parts[0], usage, nil
}

// ResponseParts is Response with the result in parts, as RequestParts.
func ResponseParts(from, to Dialect, body []byte, opt ir.Options) ([][]byte, ir.Usage, error) {
	return response(from, to, body, opt, len(body) >= minParts)
}

func response(from, to Dialect, body []byte, opt ir.Options, spans bool) ([][]byte, ir.Usage, error) {
	t := &struct { // one allocation
		opt ir.Options
		a   ir.Answer
		d   ir.Writer
	}{opt: opt}
	copied := len(body)
	if opt.Memory != nil {
		copied = ir.Copied(body, spans)
	}
	if err := readAnswer(&t.a, from, body, copied, &t.opt); err != nil {
		return nil, ir.Usage{}, err
	}
	pace := ir.Pacer{Pause: opt.Pause}
	pace.Work(2 * len(body))
	t.d.Buf, t.d.Pacer = make([]byte, 0, copied+256), &pace
	t.d.Spans = spans
	usage := t.a.Usage
	if opt.Settle != nil {
		opt.Settle(&t.a.Usage, 0)
	}
	dialects[to].writeAnswer(&t.a, &t.d, &t.opt)
	return t.d.Parts(), usage, nil
}

// badBody returns the error of a 2xx answer that cannot be read.
func badBody() *apierr.Error {
	return apierr.New(502, "bad_upstream_body", "The provider's answer could not be read. Check the base URL of the account, or try again.")
}

func readAnswer(a *ir.Answer, from Dialect, body []byte, copied int, opt *ir.Options) error {
	pieces, err := ir.CountPieces(body)
	if err != nil {
		return badBody()
	}
	if pieces > ir.MaxPieces {
		return apierr.New(502, "upstream_too_large", "The provider's answer has more than %d parts.", ir.MaxPieces)
	}
	if err := takeMemory(opt, pieces, copied, 0); err != nil {
		return err
	}
	root := gjson.Parse(ir.View(body))
	if dialects[from].array && root.IsArray() {
		root = root.Get("0")
	}
	if !root.IsObject() {
		return badBody()
	}
	if e := ir.ErrorIn(root); e != nil {
		return e
	}
	if pieces > ir.Many {
		a.Blocks = make([]ir.Block, 0, pieces)
	}
	ok := dialects[from].readAnswer(root, a, opt)
	if a.Failure != nil {
		return a.Failure
	}
	if !ok {
		return badBody()
	}
	opt.Tools.Restore(a)
	if opt.Compacts() {
		if e := responses.CheckSummary(a); e != nil {
			return e
		}
	}
	return nil
}

// Filtered reports whether an upstream's JSON answer has nothing but the finish reason
// that a filter has withheld it.
func Filtered(from Dialect, body []byte) bool {
	var a ir.Answer
	if readAnswer(&a, from, body, len(body), &ir.Options{}) != nil || a.Finish != ir.FinishFilter {
		return false
	}
	for i := range a.Blocks {
		if b := &a.Blocks[i]; b.Kind != ir.ThinkingBlock && (b.Kind != ir.TextBlock || b.Text != "") {
			return false
		}
	}
	return true
}

// UsageOf returns the token counts of an upstream's JSON answer. The body must
// be valid JSON. Known is false for an answer without usage.
func UsageOf(from Dialect, body []byte) ir.Usage {
	return dialects[from].usage(gjson.Parse(ir.View(body)))
}

// FinishOf returns the finish or stop reason of an upstream's JSON answer, as the upstream
// writes it: of several choices the first one's, "" for none.
func FinishOf(from Dialect, body []byte) string {
	var w ir.Watched
	d := &dialects[from]
	if d.finish != "" {
		w.Stop(ir.Str(gjson.Get(ir.View(body), d.finish)))
	}
	if w.Finish == "" && d.completed != "" && gjson.Get(ir.View(body), "status").Str == d.completed {
		return d.completed
	}
	return w.Finish
}

// TakesComments reports whether the clients of a dialect ignore comments in a stream.
func TakesComments(d Dialect) bool { return !dialects[d].noComments }

// BilledApart reports whether an answer may be billed by more than its usage object
// states, which UsageOf reads.
func BilledApart(d Dialect, body []byte) bool {
	return slices.ContainsFunc(dialects[d].billedMarks, func(mark string) bool {
		return bytes.Contains(body, []byte(mark))
	})
}

// CountUsage returns the token counts of a usage object, valid JSON, in an answer of
// a client's dialect.
func CountUsage(d Dialect, usage []byte) ir.Usage {
	return dialects[d].countUsage(gjson.Parse(ir.View(usage)))
}

// CompactionMark is the index, in the Marks of Responses, of the one without which
// a request does not ask for a compaction.
const CompactionMark = responses.TriggerMark

// AsksForCompaction reports whether the input of a Responses request ends with a
// compaction_trigger.
func AsksForCompaction(input []byte) bool { return responses.EndsWithTrigger(input) }
