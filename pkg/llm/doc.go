// Package llm turns one wire format of chat into another, bytes to bytes.
//
// Each dialect has a side of its own that reads it into the middle form
// (middle.go: messages of blocks; answers; stream events) and writes it from
// there, so that any client dialect goes to any upstream dialect. What a
// target cannot say is left out by the rule of its writer and named in the
// result, or refused with a 400 where leaving it out would change the answer's
// meaning (several choices, audio, server state).
//
// There is no I/O, no clock and no randomness here: ids and times come with
// the Options.
package llm

import (
	"github.com/tidwall/gjson"

	"weir/pkg/wire/apierr"
	"weir/pkg/wire/jsonscan"
)

// Dialect is a wire format of chat.
type Dialect uint8

// The dialects. Clients speak the first three.
const (
	Chat      Dialect = iota // OpenAI chat completions
	Responses                // OpenAI Responses
	Messages                 // Anthropic Messages, 2023-06-01 and 2026-10-21
	Gemini                   // Google generateContent
	Cohere                   // Cohere v2 chat
	Converse                 // Amazon Bedrock's Converse; its frames as server-sent events (pkg/provider/bedrock)
)

var dialectNames = [...]string{"chat", "responses", "messages", "gemini", "cohere", "converse"}

// String gives the dialect's name in lower case.
func (d Dialect) String() string { return dialectNames[d] }

// Options says what a body alone does not tell. The zero value works.
type Options struct {
	Model      string      // the upstream's model id, written into requests
	ID         string      // of the request: made ids are chatcmpl-<ID>, msg_<ID>, resp_<ID>, …
	Now        int64       // Unix seconds, for "created"
	Deviations *Deviations // of the upstream; nil is plain OpenAI
	MaxTokens  int64       // sent to upstreams that require a limit when the client gave none; 0 goes by the model's name
	MaxOutput  int64       // most tokens that the model gives; 0 is unknown
	Reasoning  bool        // the model reasons (catalogue); OpenAI's are known by their ids as well
	Refuses    Refusals    // what the upstream has refused by name before
	// Issuer names who signs the thinking of this upstream. A signature only
	// goes back to its issuer. Empty: anthropic, gemini, openai, cohere or chat.
	Issuer string
	// Tools, if set, is filled in by Request and used to restore the answer.
	Tools *Tools
	// Vendor: the upstream is a provider of the table, not a compatible server:
	// a chat client's custom tools and long user ids do not pass.
	Vendor bool
	// LongUser: user or safety_identifier may be over the upstream's limit.
	LongUser bool
	// Settings, for a Responses client, is filled in by Request and repeated in
	// the answer. If nil, the answer has the default settings.
	Settings *Settings
	// Lost, if set, is called with the names of parts of a JSON answer that the
	// client's dialect cannot express.
	Lost func(name string)
	// StreamUsage: the chat client asked for usage in its stream.
	StreamUsage bool
	// Clean makes a failure that a stream tells of fit to be shown; nil leaves
	// it as it is.
	Clean func(*apierr.Error)
	// Pause lets other calls run. Request and Response call it after about every
	// MiB of work; nil never pauses.
	Pause func()
}

var noDeviations = Deviations{Custom: true}

func (o *Options) deviations() *Deviations {
	if o.Deviations == nil {
		return &noDeviations
	}
	return o.Deviations
}

var issuers = [...]string{"chat", "openai", "anthropic", "gemini", "cohere", "bedrock"}

func (o *Options) issuer(d Dialect) string {
	if o.Issuer != "" {
		return o.Issuer
	}
	return issuers[d]
}

// Request turns a client's request into the upstream's.
//
// dropped names the fields of the client's dialect that the upstream does not
// get, each once, in the order met; they belong in x-weir-dropped. The error
// is an *apierr.Error with status 400. For from == to the bytes pass: only the
// model and what Deviations says is changed (see same.go). Between different
// dialects a body of more than 24,000 pieces is refused with 413.
func Request(from, to Dialect, body []byte, opt Options) (out []byte, dropped []string, err error) {
	pieces := 0
	if from == to {
		err = check(body)
	} else {
		pieces, err = scan(body)
	}
	if err != nil {
		return nil, nil, apierr.Invalid("", "The body is not valid JSON.")
	}
	root := gjson.Parse(view(body))
	if !root.IsObject() {
		return nil, nil, apierr.Invalid("", "The body must be a JSON object.")
	} else if from == to {
		return same(from, body, root, &opt)
	}
	if opt.Refuses != 0 && to == Chat {
		opt.Deviations = opt.Refuses.over(opt.deviations())
	}
	if pieces > maxPieces {
		return nil, nil, tooManyPieces(pieces)
	}
	q := &request{from: from, pieces: pieces, pacer: pacer{pause: opt.Pause}}
	q.did(2 * len(body))
	switch from {
	case Chat:
		err = readChatRequest(root, q)
	case Responses:
		var a asked
		if err = readResponsesRequest(root, q, &a); err == nil && opt.Settings != nil {
			opt.Settings.keep(&a)
		}
	case Messages:
		err = readMessagesRequest(root, q)
	default:
		err = apierr.New(500, "", "No client speaks this dialect.")
	}
	if err != nil {
		return nil, nil, err
	}
	q.nameTools(to, &opt)
	q.user = ShortUser(q.user, userLimit(to, opt.deviations()))
	d := doc{b: make([]byte, 0, len(body)+len(body)/4+256), pace: &q.pacer}
	if to != Chat && to != Responses {
		q.dropDetails()
	}
	switch to {
	case Chat:
		err = writeChatRequest(q, &d, &opt)
	case Responses:
		err = writeResponsesRequest(q, &d, &opt)
	case Messages:
		err = writeMessagesRequest(q, &d, &opt)
	case Gemini:
		err = writeGeminiRequest(q, &d, &opt)
	case Cohere:
		err = writeCohereRequest(q, &d, &opt)
	case Converse:
		err = writeConverseRequest(q, &d, &opt)
	}
	if err == nil && q.schemas > maxSchemas {
		err = apierr.New(413, "request_too_large", "The schemas of the request are too large, or nested too deeply, to be translated for this model's provider.")
	}
	if err != nil {
		return nil, nil, err
	}
	return d.b, q.dropped, nil
}

// Response turns an upstream's JSON answer (status 2xx) into the client's.
// An answer that is not the upstream's dialect, or that holds an error in
// spite of its status, gives an *apierr.Error with 502 or the error's status.
func Response(from, to Dialect, body []byte, opt Options) ([]byte, Usage, error) {
	a, err := readAnswer(from, body, &opt)
	if err != nil {
		return nil, Usage{}, err
	}
	pace := pacer{pause: opt.Pause}
	pace.did(2 * len(body))
	d := doc{b: make([]byte, 0, len(body)+256), pace: &pace}
	a.write(to, &d, &opt)
	return d.b, a.usage, nil
}

func (a *answer) write(to Dialect, d *doc, opt *Options) {
	switch to {
	case Responses:
		writeResponsesAnswer(a, d, opt)
	case Messages:
		writeMessagesAnswer(a, d, opt)
	default:
		writeChatAnswer(a, d, opt)
	}
}

// badBody is a 2xx answer that cannot be read.
func badBody() *apierr.Error {
	return apierr.New(502, "bad_upstream_body", "The provider's answer could not be read.")
}

func readAnswer(from Dialect, body []byte, opt *Options) (*answer, error) {
	pieces, err := scan(body)
	if err != nil {
		return nil, badBody()
	}
	if pieces > maxPieces {
		return nil, apierr.New(502, "upstream_too_large", "The provider's answer has more than %d parts.", maxPieces)
	}
	root := gjson.Parse(view(body))
	if from == Gemini && root.IsArray() {
		root = root.Get("0")
	}
	if !root.IsObject() {
		return nil, badBody()
	}
	if e := failureIn(root); e != nil {
		return nil, e
	}
	a := &answer{}
	if pieces > many {
		a.blocks = make([]block, 0, pieces)
	}
	var ok bool
	switch from {
	case Chat:
		ok = readChatAnswer(root, a, opt)
	case Responses:
		ok = readResponsesAnswer(root, a, opt)
	case Messages:
		ok = readMessagesAnswer(root, a, opt)
	case Gemini:
		ok = readGeminiAnswer(root, a, opt)
	case Cohere:
		ok = readCohereAnswer(root, a, opt)
	case Converse:
		ok = readConverseAnswer(root, a, opt)
	}
	if a.failure != nil {
		return nil, a.failure
	}
	if !ok {
		return nil, badBody()
	}
	opt.Tools.restore(a)
	return a, nil
}

// check tells whether b is one JSON value, strictly (pkg/wire/jsonscan).
func check(b []byte) error {
	var c jsonscan.Cursor
	c.Reset(b)
	c.Skip()
	return c.End()
}
