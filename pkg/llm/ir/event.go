package ir

import "weir/pkg/wire/apierr"

// EventKind is the kind of an Event.
type EventKind uint8

// The kinds of events, with the fields that each sets.
const (
	EventStart     EventKind = iota // ID, and the model in Name: an answer begins
	EventText                       // Text
	EventThinking                   // Text
	EventSignature                  // Signature, Issuer: ends the thinking before it, or has no text
	EventRedacted                   // Signature, Issuer
	EventRefusal                    // Text
	EventTool                       // Block, ID, Name, Signature
	EventArguments                  // Block, Text
	EventClose                      // the open block is complete
	EventCitation                   // Citation
	EventLogprobs                   // Signature has raw JSON
	EventImage                      // Signature has the URL of an image, mostly a data: URI
	EventUsage                      // Usage
	EventFinish                     // Finish, StopSequence, Explanation
	EventEnd                        // the terminator arrived
	EventFail                       // Failure
)

// Event is a step of a streamed answer. Text is escaped, as between the quotes
// of a JSON string, and valid only during the call.
type Event struct {
	Kind         EventKind
	Finish       Finish
	Custom       bool
	Builtin      Builtin
	Legacy       bool // see Block
	Block        int  // distinguishes tool calls
	Text         string
	ID           string // of an answer or a tool call
	Name         string
	Namespace    string
	Signature    string
	Issuer       string
	StopSequence string
	Explanation  string
	Citation     Citation
	Usage        Usage
	Failure      *apierr.Error
}

// Sink receives the events of an answer in order.
type Sink interface{ Event(e *Event) }

// Source reads an upstream's stream and sends its events to a sink.
type Source interface {
	// Read reads the data of an event: valid JSON, or a terminator such as
	// [DONE].
	Read(name, data []byte, to Sink)
	// CleanEnd reports whether the stream may end here without a terminator.
	CleanEnd() bool
}

// QuickSource is a source that recognizes most events by the ones before.
type QuickSource interface {
	// ReadQuick reads an event that is known except for its text. It returns
	// false if Read must read the event.
	ReadQuick(data []byte, to Sink) bool
}

// StreamSink writes a client's stream.
type StreamSink interface {
	Sink
	Buffer() *[]byte
}
