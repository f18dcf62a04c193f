package llm

import (
	"github.com/tidwall/gjson"

	"weir/pkg/llm/chat"
	"weir/pkg/llm/cohere"
	"weir/pkg/llm/completions"
	"weir/pkg/llm/converse"
	"weir/pkg/llm/gemini"
	"weir/pkg/llm/ir"
	"weir/pkg/llm/messages"
	"weir/pkg/llm/responses"
	"weir/pkg/wire/apierr"
)

// dialect is what a package of a dialect provides.
type dialect struct {
	name string
	// endpoint is the endpoint of a provider's row that speaks the dialect; "chat" is that
	// of the row's own. It is empty for a dialect that clients alone speak.
	endpoint string

	// client is nil if no client speaks the dialect, as are read, fields, writeAnswer, sink
	// and failure then. read reads a client's request.
	client *ir.Client
	read   func(root gjson.Result, q *ir.Request, opt *ir.Options) error
	fields *ir.FieldNames

	// writeAnswer writes a client's JSON answer, sink a client's stream. failure
	// ends a stream with an error.
	writeAnswer func(a *ir.Answer, d *ir.Writer, opt *ir.Options)
	sink        func(opt *ir.Options) ir.StreamSink
	order       order
	noComments  bool // the clients fail at comments in a stream
	failure     func(dst []byte, e *apierr.Error) []byte
	// objectArguments: the clients expect the arguments of calls to be objects.
	objectArguments bool

	// write writes a request for an upstream. adapt changes a request of a client
	// of the same dialect; nil changes nothing.
	write func(q *ir.Request, d *ir.Writer, opt *ir.Options) error
	adapt func(p ir.Patch, opt ir.Options) ir.Patch
	marks []string // see Marks
	// forget removes the thoughts of a conversation from a request of a client of the
	// same dialect.
	forget func(p *ir.Patch)
	// tools are the rules for tools; customTools reports whether tools that are not
	// functions are supported.
	tools       ir.ToolRules
	customTools func(v *ir.Deviations) bool
	userLimit   int  // characters of a user's id; 0 is the upstream's, see Deviations
	details     bool // requests say how closely to look at an image
	openAI      bool // a dialect of OpenAI, with its names of fields
	modelInURL  bool // the model is in the URL of a request, and may be in its body

	// readAnswer reads an upstream's JSON answer, or returns false if it is not of
	// the dialect. source reads an upstream's stream. usage reads the token counts
	// of a JSON answer.
	readAnswer func(root gjson.Result, a *ir.Answer, opt *ir.Options) bool
	source     func(opt *ir.Options) ir.Source
	// harmless reports whether an event of a stream, as most begin with, reports no
	// failure for certain. If it is nil or returns false, the event is parsed.
	harmless func(data []byte) bool
	usage    func(root gjson.Result) ir.Usage
	// countUsage reads the usage object of an answer that passes to a client of the
	// same dialect.
	countUsage func(v gjson.Result) ir.Usage
	finish     string // the path of the finish or stop reason in a JSON answer
	completed  string // the status of a JSON answer that is the reason without another one
	array      bool   // an answer may be wrapped in an array

	// watch reads an event of a stream that passes to a client of the same dialect.
	// name is that of its event field. If whole is false, the event is too long and
	// data is its beginning.
	watch func(w *ir.Watched, name, data []byte, whole bool)
	// seenUsage reads a usage object of such a stream; usageName is the name of the
	// object with its quotes, "usage" if empty. finishName is the name before the
	// reason that ends an answer, where that may be at the end of a long event.
	seenUsage             func(v gjson.Result) ir.Usage
	usageName, finishName string
	// billedMarks are in answers that are billed by more than the usage object states.
	// seenBilled reads that from a part of a long line of such a stream; it may be nil.
	billedMarks []string
	seenBilled  func(u *ir.Usage, part []byte)
	// terminator is the last event. sentinel is the data of an event that is not
	// JSON. afterFailure follows an error event.
	terminator, sentinel, afterFailure string
	// heartbeat is sent to clients while the upstream is silent; "" sends none.
	heartbeat string
}

// order is the order in which a sink takes the events of an answer.
type order uint8

const (
	anyOrder   order = iota // as they come
	blockOrder              // a block after the other
	heldOrder               // the same, and the sink stores the texts
)

func noCustomTools(*ir.Deviations) bool { return false }

// comment is a heartbeat that means nothing to a client.
const comment = ": keep-alive\n\n"

// dialects is the table of the dialects. A new dialect is a package and a row.
var dialects = [...]dialect{
	Chat: {
		name: "chat", endpoint: "chat", fields: &chat.Fields, openAI: true, details: true,
		client: &chat.Client, read: chat.ReadRequest, write: chat.WriteRequest, adapt: chat.Adapt,
		marks: chat.Marks, forget: chat.DropThoughts,
		writeAnswer: chat.WriteAnswer, readAnswer: chat.ReadAnswer, usage: chat.ReadUsage, finish: "choices.0.finish_reason",
		countUsage: chat.CountUsage,
		source:     chat.NewSource, harmless: chat.Harmless, sink: chat.NewSink, failure: ir.AppendOpenAIFailure,
		tools: ir.ToolRules{MaxName: 64}, customTools: func(v *ir.Deviations) bool { return v.Custom },
		billedMarks: []string{chat.BilledMark},
		watch:       chat.Watch, seenUsage: chat.UsageObject, terminator: "data: [DONE]\n\n", sentinel: "[DONE]",
		afterFailure: "data: [DONE]\n\n",
		heartbeat:    comment,
	},
	Responses: {
		name: "responses", endpoint: "responses", fields: &responses.Fields, openAI: true, details: true,
		client: &responses.Client, read: responses.ReadRequest, write: responses.WriteRequest,
		adapt: responses.Adapt, marks: responses.Marks, forget: responses.DropThoughts,
		writeAnswer: responses.WriteAnswer, readAnswer: responses.ReadAnswer, usage: responses.ReadUsage,
		finish: responses.FinishPath, completed: "completed",
		countUsage: responses.CountUsage,
		source:     responses.NewSource, harmless: responses.Harmless, sink: responses.NewSink, order: heldOrder,
		failure: responses.AppendFailure,
		tools:   ir.ToolRules{MaxName: 64}, customTools: func(*ir.Deviations) bool { return true },
		billedMarks: responses.BilledMarks[:], seenBilled: responses.SeenBilled,
		watch: responses.Watch, seenUsage: responses.UsageObject, heartbeat: comment,
	},
	Messages: {
		name: "messages", endpoint: "messages", fields: &messages.Fields,
		client: &messages.Client, read: messages.ReadRequest, write: messages.WriteRequest, adapt: messages.Adapt,
		marks: messages.Marks, forget: messages.DropThoughts,
		writeAnswer: messages.WriteAnswer, readAnswer: messages.ReadAnswer, usage: messages.ReadUsage, finish: "stop_reason",
		countUsage: messages.CountUsage,
		source:     messages.NewSource, harmless: messages.Harmless, sink: messages.NewSink, order: blockOrder,
		failure:         messages.AppendFailure,
		objectArguments: true,
		tools:           ir.ToolRules{MaxName: 128}, customTools: noCustomTools,
		userLimit:   256,
		billedMarks: messages.BilledMarks[:],
		watch:       messages.Watch, seenUsage: messages.UsageObject,
		terminator: "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
		heartbeat:  "event: ping\ndata: {\"type\":\"ping\"}\n\n",
	},
	Gemini: {
		name: "gemini", endpoint: "chat", fields: &gemini.Fields, modelInURL: true,
		client: &gemini.Client, read: gemini.ReadRequest, write: gemini.WriteRequest, adapt: gemini.Adapt,
		marks: gemini.Marks, forget: gemini.DropThoughts,
		writeAnswer: gemini.WriteAnswer, readAnswer: gemini.ReadAnswer, usage: gemini.ReadUsage,
		finish:     "candidates.0.finishReason",
		countUsage: gemini.CountUsage, array: true,
		source: gemini.NewSource, harmless: gemini.Harmless, sink: gemini.NewSink, order: blockOrder,
		noComments: true, failure: gemini.AppendFailure,
		objectArguments: true,
		tools:           ir.ToolRules{MaxName: 64, LetterFirst: true}, customTools: noCustomTools,
		billedMarks: []string{gemini.BilledMark}, seenBilled: gemini.SeenBilled,
		watch: gemini.Watch, seenUsage: gemini.UsageObject,
		usageName: `"usageMetadata"`, finishName: `"finishReason":`,
		heartbeat: gemini.Heartbeat,
	},
	Cohere: {
		name: "cohere", endpoint: "chat",
		write: cohere.WriteRequest, readAnswer: cohere.ReadAnswer, usage: cohere.ReadUsage, finish: "finish_reason",
		source: cohere.NewSource,
		tools:  ir.ToolRules{MaxName: 64}, customTools: noCustomTools,
	},
	Completions: {
		name: "completions", fields: &completions.Fields, openAI: true,
		client: &completions.Client, read: completions.ReadRequest, writeAnswer: completions.WriteAnswer,
		sink: completions.NewSink, failure: ir.AppendOpenAIFailure,
		terminator: "data: [DONE]\n\n", sentinel: "[DONE]", afterFailure: "data: [DONE]\n\n",
	},
	Converse: {
		name: "converse", endpoint: "chat",
		write: converse.WriteRequest, readAnswer: converse.ReadAnswer, usage: converse.ReadUsage, finish: "stopReason",
		source: converse.NewSource,
		tools:  ir.ToolRules{MaxName: 64}, customTools: noCustomTools,
	},
}
