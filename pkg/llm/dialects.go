package llm

import (
	"github.com/tidwall/gjson"

	"weir/pkg/wire/apierr"
)

// dialect is what a package of a dialect provides.
type dialect struct {
	name string

	// read reads a client's request. It is nil if no client speaks the dialect, as
	// are fields, writeAnswer, sink, failure and watch then.
	read   func(root gjson.Result, q *request, opt *Options) error
	fields *fieldNames

	// writeAnswer writes a client's JSON answer, sink a client's stream. failure
	// ends a stream with an error.
	writeAnswer func(a *answer, d *doc, opt *Options)
	sink        func(opt *Options) streamSink
	order       order
	failure     func(dst []byte, e *apierr.Error) []byte
	// objectArguments: the clients expect the arguments of calls to be objects.
	objectArguments bool

	// write writes a request for an upstream. adapt changes a request of a client
	// of the same dialect; nil changes nothing.
	write func(q *request, d *doc, opt *Options) error
	adapt func(p patch, opt Options) patch
	// tools are the rules for tools; customTools reports whether tools that are not
	// functions are supported.
	tools       toolRules
	customTools func(v *Deviations) bool
	userLimit   int  // characters of a user's id; 0 is the upstream's, see Deviations
	details     bool // requests say how closely to look at an image
	openAI      bool // a dialect of OpenAI, with its names of fields

	// readAnswer reads an upstream's JSON answer, or returns false if it is not of
	// the dialect. source reads an upstream's stream. usage reads the token counts
	// of a JSON answer.
	readAnswer func(root gjson.Result, a *answer, opt *Options) bool
	source     func(opt *Options) source
	usage      func(root gjson.Result) Usage
	array      bool // an answer may be wrapped in an array

	// watch reads an event of a stream that passes to a client of the same dialect.
	// name is that of its event field. If whole is false, the event is too long and
	// data is its beginning.
	watch func(w *watched, name, data []byte, whole bool)
	// seenUsage reads a usage object of such a stream.
	seenUsage func(v gjson.Result) Usage
	// terminator is the last event. sentinel is the data of an event that is not
	// JSON. afterFailure follows an error event.
	terminator, sentinel, afterFailure string
}

// order is the order in which a sink takes the events of an answer.
type order uint8

const (
	anyOrder   order = iota // as they come
	blockOrder              // a block after the other
	heldOrder               // the same, and the sink stores the texts
)

func noCustomTools(*Deviations) bool { return false }

// dialects is the table of the dialects. A new dialect is a package and a row.
var dialects = [...]dialect{
	Chat: {
		name: "chat", fields: &chatFields, openAI: true, details: true,
		read: readChatRequest, write: writeChatRequest, adapt: adaptChat,
		writeAnswer: writeChatAnswer, readAnswer: readChatAnswer, usage: chatUsage,
		source: newChatSource, sink: newChatSink, failure: appendChatFailure,
		tools: toolRules{limit: 64}, customTools: func(v *Deviations) bool { return v.Custom },
		watch: watchChat, seenUsage: seenChatUsage, terminator: "data: [DONE]\n\n", sentinel: "[DONE]", afterFailure: "data: [DONE]\n\n",
	},
	Responses: {
		name: "responses", fields: &responsesFields, openAI: true, details: true,
		read: readResponsesRequest, write: writeResponsesRequest, adapt: adaptResponses,
		writeAnswer: writeResponsesAnswer, readAnswer: readResponsesAnswer, usage: responsesAnswerUsage,
		source: newResponsesSource, sink: newResponsesSink, order: heldOrder, failure: appendResponsesFailure,
		tools: toolRules{limit: 64}, customTools: func(*Deviations) bool { return true },
		watch: watchResponses, seenUsage: seenResponsesUsage,
	},
	Messages: {
		name: "messages", fields: &messagesFields,
		read: readMessagesRequest, write: writeMessagesRequest, adapt: adaptMessages,
		writeAnswer: writeMessagesAnswer, readAnswer: readMessagesAnswer, usage: messagesAnswerUsage,
		source: newMessagesSource, sink: newMessagesSink, order: blockOrder, failure: appendMessagesFailure,
		objectArguments: true,
		tools:           toolRules{limit: 128}, customTools: noCustomTools,
		userLimit: 256,
		watch:     watchMessages, seenUsage: seenMessagesUsage, terminator: "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
	},
	Gemini: {
		name:  "gemini",
		write: writeGeminiRequest, readAnswer: readGeminiAnswer, usage: geminiAnswerUsage, array: true,
		source: newGeminiSource,
		tools:  toolRules{limit: 64, letter: true}, customTools: noCustomTools,
	},
	Cohere: {
		name:  "cohere",
		write: writeCohereRequest, readAnswer: readCohereAnswer, usage: cohereAnswerUsage,
		source: newCohereSource,
		tools:  toolRules{limit: 64}, customTools: noCustomTools,
	},
	Converse: {
		name:  "converse",
		write: writeConverseRequest, readAnswer: readConverseAnswer, usage: converseAnswerUsage,
		source: newConverseSource,
		tools:  toolRules{limit: 64}, customTools: noCustomTools,
	},
}
