package ir

import "weir/pkg/wire/apierr"

type EventKind uint8

const (
	EventStart     EventKind = iota // id, model: an answer has begun
	EventText                       // text
	EventThinking                   // text
	EventSignature                  // sig, issuer: ends the thinking before it, or stands alone
	EventRedacted                   // sig, issuer
	EventRefusal                    // text
	EventTool                       // block, id, name, sig
	EventArguments                  // block, text
	EventClose                      // the open block is complete
	EventCitation                   // cite
	EventLogprobs                   // sig: raw JSON
	EventImage                      // sig: address of a picture, a data: URI mostly
	EventUsage                      // usage
	EventFinish                     // finish, stopSeq, explain
	EventEnd                        // the terminator came
	EventFail                       // failure
)

// Event is a step of a streamed answer. text is as it stood between the quotes
// of a JSON string, escapes and all, and valid only during the call.
type Event struct {
	Kind    EventKind
	Finish  Finish
	Custom  bool
	Built   Builtin
	Old     bool // see block
	Block   int  // distinguishes tool calls
	Text    string
	Id      string // also the model of evStart in name
	Name    string
	Space   string
	Sig     string
	Issuer  string
	StopSeq string
	Explain string
	Cite    Citation
	Usage   Usage
	Failure *apierr.Error
}

// Sink takes the events of an answer in order.
type Sink interface{ Event(e *Event) }

// Source takes the events of an upstream's stream apart.
type Source interface {
	// read is given valid JSON, or a terminator such as [DONE].
	Read(name, data []byte, to Sink)
	// clean tells whether the stream may end here without a terminator.
	CleanEnd() bool
}

// QuickSource is a source that knows most events by the ones before.
type QuickSource interface {
	// quick reads an event that is known but for its text, checked or not,
	// and leaves all others to read.
	ReadQuick(data []byte, to Sink) bool
}

// StreamSink writes a client's stream.
type StreamSink interface {
	Sink
	Buffer() *[]byte
}
