package ir

import (
	"cmp"

	"weir/pkg/wire/apierr"
	"weir/pkg/wire/jsonscan"
)

// Options are the parameters of a translation besides the body. The zero value
// works.
type Options struct {
	Model      string      // the upstream's model id, written into requests
	ID         string      // of the request: new ids are chatcmpl-<ID>, msg_<ID>, resp_<ID>, …
	Now        int64       // Unix seconds, for "created"
	Deviations *Deviations // of the upstream; nil is plain OpenAI
	MaxTokens  int64       // sent to upstreams that require a limit if the client has set none; 0 is by the model's name
	MaxOutput  int64       // the model's maximum output; 0 is unknown
	// OutputLimit is the most output tokens that the request may ask for, and asks for if
	// the client has set no limit or a higher one; 0 is no limit.
	OutputLimit int64
	// Memory acquires the memory that the translation of a large request or answer
	// takes beside its bytes; its error ends the translation. nil acquires none.
	Memory    func(bytes int64) error
	Reasoning bool     // the model reasons (catalogue); OpenAI's are known by their ids as well
	Refuses   Refusals // what the upstream has refused by name; those of OtherForms count
	// NoThoughts leaves the thoughts of the conversation out: the upstream has refused
	// the signature of one.
	NoThoughts bool
	// Issuer is who signs the thinking of this upstream. A signature is sent to
	// its issuer only. Empty: anthropic, gemini, openai, cohere or chat.
	Issuer string
	// Tools, if set, is filled in by Request and used to restore the answer.
	Tools *Tools
	// Vendor reports that the upstream is a provider of the table, not a
	// compatible server: a chat client's custom tools and long user ids do not
	// pass.
	Vendor bool
	// LongUser reports that user or safety_identifier may be over the
	// upstream's limit.
	LongUser bool
	// Attribution reports that the upstream is Anthropic itself, which reads what Claude
	// Code says of itself in front of its system prompt. Others do not get it.
	Attribution bool
	// Marked is what was found of the marks of the client's dialect in the body of a
	// request for an upstream of the same dialect, and ModelAt is the place of the
	// body's model. If they are missing, Request looks for them.
	Marked  *jsonscan.Marked
	ModelAt jsonscan.Span
	// Settings, for a Responses client, is filled in by Request and repeated in
	// the answer. If nil, the answer has the default settings.
	Settings *Settings
	// Lost, if set, is called with the names of parts of a JSON answer that the
	// client's dialect cannot express.
	Lost func(name string)
	// Settle, if set, replaces counts of an answer that the upstream has not stated, or that
	// cannot be true, before the client gets them. text is the length of the text of a stream
	// so far, as in Observer.Text.
	Settle func(u *Usage, text int)
	// Stream reports that the client wants a stream, where its request does not say
	// so: in Gemini's dialect the URL does.
	Stream bool
	// HideThoughts reports that a Gemini client has not asked for thoughts. They
	// still return to their issuer with the calls that follow them.
	HideThoughts bool
	// StreamUsage reports that the chat client wants usage in its stream.
	StreamUsage bool
	// AskUsage asks the upstream of a chat client for the usage of a stream.
	AskUsage bool
	// CacheMarks, if set, asks for marks of cached prefixes where the model caches
	// nothing without, and is filled in by Request.
	CacheMarks *CacheMarks
	// Clean removes what a client must not see from a failure that a stream
	// reports; nil changes nothing.
	Clean func(*apierr.Error)
	// Pause lets other calls run. Request and Response call it about once per
	// MiB of work; nil never pauses.
	Pause func()
}

// Forget removes what a translation has filled in.
func (o *Options) Forget() {
	if o.Tools != nil {
		*o.Tools = Tools{}
	}
	if o.Settings != nil {
		*o.Settings = Settings{Compact: o.Settings.Compact}
	}
	if o.CacheMarks != nil {
		*o.CacheMarks = CacheMarks{Auto: o.CacheMarks.Auto}
	}
}

var noDeviations = Deviations{Custom: true}

// DeviationsOrDefault returns the deviations, plain OpenAI's if they are nil.
func (o *Options) DeviationsOrDefault() *Deviations {
	if o.Deviations == nil {
		return &noDeviations
	}
	return o.Deviations
}

// Issuers of signatures, if Options.Issuer is empty.
const (
	IssuerChat      = "chat" // also of thoughts without a signature
	IssuerOpenAI    = "openai"
	IssuerAnthropic = "anthropic"
	IssuerGemini    = "gemini"
	IssuerBedrock   = "bedrock"
	// IssuerCompaction marks a summary that weir has made of a conversation.
	IssuerCompaction = "compaction"
)

// RequiredMaxTokens returns the limit of a request without one, where the upstream requires it.
func (o *Options) RequiredMaxTokens(gen *ClaudeModel) int64 {
	return cmp.Or(o.MaxTokens, gen.DefaultMaxTokens())
}

// IssuerOr returns the name under which this upstream signs; vendor is the one of
// its dialect.
func (o *Options) IssuerOr(vendor string) string {
	if o.Issuer != "" {
		return o.Issuer
	}
	return vendor
}

// CallID returns an id for a tool call that has none.
func (o *Options) CallID(n int) string {
	d := Writer{Buf: []byte("call_" + o.ID + "_")}
	for i := range d.Buf {
		if c := d.Buf[i]; !IsLetter(c) && (c < '0' || c > '9') && c != '_' && c != '-' {
			d.Buf[i] = '_'
		}
	}
	d.Buf = append(d.Buf, byte('0'+n/10%10), byte('0'+n%10))
	return string(d.Buf)
}

// AnswerID returns the id of an answer: prefix and the request's id, or the
// upstream's.
func (o *Options) AnswerID(prefix, upstream string) string {
	if o.ID != "" {
		return prefix + o.ID
	}
	return prefix + upstream
}

// ModelOr returns the model of an answer: the upstream's, or that of the
// request.
func (o *Options) ModelOr(upstream string) string {
	if upstream == "" {
		return o.Model
	}
	return upstream
}

// Settings holds the settings of a Responses request, which every event with a
// response repeats. Request fills it in.
type Settings struct {
	Raw string
	// Compact asks for the compaction of the conversation: the answer is one
	// item with a summary of it. Request sets it for a request that ends with a
	// compaction_trigger; the caller may set it before.
	Compact bool
}

// Compacts reports whether the answer is the compaction of a conversation.
func (o *Options) Compacts() bool { return o.Settings != nil && o.Settings.Compact }
