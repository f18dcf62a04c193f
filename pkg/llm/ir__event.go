package llm

import "weir/pkg/wire/apierr"

type eventKind uint8

const (
	evStart     eventKind = iota // id, model: an answer has begun
	evText                       // text
	evThinking                   // text
	evSignature                  // sig, issuer: ends the thinking before it, or stands alone
	evRedacted                   // sig, issuer
	evRefusal                    // text
	evTool                       // block, id, name, sig
	evArgs                       // block, text
	evClose                      // the open block is complete
	evCite                       // cite
	evLogprobs                   // sig: raw JSON
	evImage                      // sig: address of a picture, a data: URI mostly
	evUsage                      // usage
	evFinish                     // finish, stopSeq, explain
	evEnd                        // the terminator came
	evFail                       // failure
)

// event is a step of a streamed answer. text is as it stood between the quotes
// of a JSON string, escapes and all, and valid only during the call.
type event struct {
	kind    eventKind
	finish  finish
	custom  bool
	built   builtin
	old     bool // see block
	block   int  // distinguishes tool calls
	text    string
	id      string // also the model of evStart in name
	name    string
	space   string
	sig     string
	issuer  string
	stopSeq string
	explain string
	cite    citation
	usage   Usage
	failure *apierr.Error
}

// sink takes the events of an answer in order.
type sink interface{ event(e *event) }

// source takes the events of an upstream's stream apart.
type source interface {
	// read is given valid JSON, or a terminator such as [DONE].
	read(name, data []byte, to sink)
	// clean tells whether the stream may end here without a terminator.
	clean() bool
}

// quicker is a source that knows most events by the ones before.
type quicker interface {
	// quick reads an event that is known but for its text, checked or not,
	// and leaves all others to read.
	quick(data []byte, to sink) bool
}

// streamSink writes a client's stream.
type streamSink interface {
	sink
	buffer() *[]byte
}
