package ir

import "weir/pkg/wire/apierr"

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
)

// IssuerOr returns the name under which this upstream signs; vendor is the one of
// its dialect.
func (o *Options) IssuerOr(vendor string) string {
	if o.Issuer != "" {
		return o.Issuer
	}
	return vendor
}

// CallID makes an id for a tool call that came without.
func (o *Options) CallID(n int) string {
	d := Writer{B: []byte("call_" + o.ID + "_")}
	for i := range d.B {
		if c := d.B[i]; !IsLetter(c) && (c < '0' || c > '9') && c != '_' && c != '-' {
			d.B[i] = '_'
		}
	}
	d.B = append(d.B, byte('0'+n/10%10), byte('0'+n%10))
	return string(d.B)
}

// AnswerID gives the id that an answer carries: prefix and the request's id, or
// what the upstream called it.
func (o *Options) AnswerID(prefix, upstream string) string {
	if o.ID != "" {
		return prefix + o.ID
	}
	return prefix + upstream
}

// ModelOr gives the model that an answer carries.
func (o *Options) ModelOr(upstream string) string {
	if upstream == "" {
		return o.Model
	}
	return upstream
}

// Settings holds the settings of a Responses request, which every event with a
// response repeats. Request fills it in.
type Settings struct{ Raw string }
