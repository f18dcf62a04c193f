package llm

import (
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"weir/pkg/wire/apierr"
)

type role uint8

const (
	user role = iota // also carries the results of tools
	assistant
	system // leading ones are the system prompt
)

type blockKind uint8

const (
	textBlock blockKind = iota
	imageBlock
	documentBlock
	audioBlock
	toolUseBlock
	toolResultBlock
	thinkingBlock
	refusalBlock
)

// block is a piece of a message.
type block struct {
	kind     blockKind
	custom   bool // a call of a custom tool
	old      bool // a call in the old form, function_call
	built    builtin
	failed   bool // the tool reported an error
	redacted bool // a thinking block without text
	compacts bool // a summary of everything before it

	text   string // of text, thinking, refusal, and of a document that is text
	mime   string // media type of data
	data   string // base64
	url    string
	file   string // id of a stored file
	title  string // file name or title
	detail string // of an image: auto, low, high
	id     string // of a tool call, and of the result that belongs to it
	name   string // of a tool
	args   string // arguments of a call: JSON text, perhaps broken; of a custom tool any text
	space  string // namespace of the tool
	parts  []block
	// sig is opaque to all but issuer. On a tool call it is Gemini's.
	sig, issuer string
	cache       string // "", "5m", "1h": ends a cached prefix
	cites       []citation
}

// citation is a source of a text.
type citation struct {
	url, title string
	quote      string // cited text of the source
	// start and end are code point offsets in the block's text; both are zero if
	// not known.
	start, end int
}

type message struct {
	role   role
	blocks []block
}

// tool is a function that the model may call.
type tool struct {
	name, description string
	schema            string // raw JSON; empty when absent
	strict            string // "true", "false" or empty
	custom            string // raw JSON of a custom tool, flat form; empty for functions
	cache             string
	space             string // its namespace
	built             builtin
}

type choiceMode uint8

const (
	choiceUnset choiceMode = iota
	choiceAuto
	choiceAny
	choiceTool
	choiceNone
)

type toolChoice struct {
	mode    choiceMode
	name    string
	space   string // namespace of the tool
	custom  bool
	built   builtin
	allowed []string // only these tools may be called: names, namespaces, or results of identity
}

type formatKind uint8

const (
	formatUnset formatKind = iota
	formatText
	formatObject
	formatSchema
)

type format struct {
	kind                      formatKind
	name, description, schema string
	strict                    string
}

type thinkMode uint8

const (
	thinkUnset thinkMode = iota
	thinkOff
	thinkOn     // the model decides how much
	thinkBudget // budget tokens
)

// request is what a client asks. Numbers keep the text they came in.
type request struct {
	pacer
	pieces   int         // of the body
	fields   *fieldNames // of the client's dialect
	messages []message
	tools    []tool
	search   bool // the hosted web search
	web      webSearch
	choice   toolChoice
	parallel string // "true", "false" or empty

	maxTokens                   int64 // 0 when absent
	temperature, topP, topK     string
	stop                        []string
	presence, frequency, seed   string
	logitBias                   string // raw JSON
	logprobs                    bool
	topLogprobs                 string
	stream                      bool
	think                       thinkMode
	effort                      string // none, minimal, low, medium, high, xhigh, max
	budget                      int64
	summary                     string // how thinking is shown: raw value of the client
	format                      format
	verbosity                   string
	metadata                    string // raw JSON
	user, tier, cacheKey, store string
	endUser                     string // user, if safety_identifier was given too
	cache                       string // cache control of the whole prompt

	dropped []string
	depth   int               // of the content that is read
	schemas int               // bytes of schemas read, see maxSchemas
	names   map[string]string // of tools by call id, see toolName
	old     bool              // the client sent functions, the old form of tools
	oldIDs  map[string]int    // how often each was called
	shells  map[string]string // call ids of local_shell calls, by item id
}

// maxDropped is how many fields are named; a client can think of more.
const maxDropped = 32

// drop notes that a field of the client's dialect does not reach the upstream.
func (q *request) drop(name string) {
	if len(q.dropped) >= maxDropped {
		return
	}
	if len(name) > 64 {
		name = name[:64]
	}
	for _, d := range q.dropped {
		if d == name {
			return
		}
	}
	q.dropped = append(q.dropped, name)
}

// dropOthers drops the members of an object that are not among the known.
func (q *request) dropOthers(at string, v gjson.Result, known ...string) {
	forEach(v, func(k, x gjson.Result) bool {
		if x.Type != gjson.Null && !slices.Contains(known, k.Str) {
			q.drop(at + k.Str)
		}
		return true
	})
}

// field is a part of the middle form that has other names in other dialects.
type field uint8

const (
	fieldStop field = iota
	fieldEffort
	fieldUser
	fieldFormat
	fieldParallel
	fieldCache
	fieldThinking
	fieldMaxTokens
	fieldLogprobs
	fieldSearch
	fieldSearchAllowed // sites to search
	fieldSearchBlocked // sites not to search
	fieldDetail
	fieldLevel  // the effort, where it is not the one of fieldEffort
	fieldSchema // prefix of the name and description of a schema
	fields      = iota
)

// fieldNames are the names of these parts in a dialect.
type fieldNames [fields]string

// fieldName returns the name of a part in the client's dialect.
func (q *request) fieldName(f field) string { return q.fields[f] }

// dropEffort notes that an effort was rounded, or not sent.
func (q *request) dropEffort() {
	if q.effort != "" {
		q.dropField(fieldLevel)
		return
	}
	q.dropField(fieldEffort)
}

func (q *request) dropField(f field) {
	if f == fieldParallel && q.old {
		return // the client did not set it
	}
	q.drop(q.fieldName(f))
}

// dropSet drops the named field when it has a value.
func (q *request) dropSet(name, value string) {
	if value != "" {
		q.drop(name)
	}
}

// dropOpenAI names the fields that only OpenAI's dialects have.
func (q *request) dropOpenAI() {
	q.dropSet("logit_bias", q.logitBias)
	if q.logprobs {
		q.dropField(fieldLogprobs)
	}
	q.dropSet("top_logprobs", q.topLogprobs)
	q.dropSet("user", q.endUser)
	q.dropSet("verbosity", q.verbosity)
	q.dropSet("prompt_cache_key", q.cacheKey)
	if q.store == "true" {
		q.drop("store")
	}
}

// stops gives the stop sequences that are more than white space, which Claude
// refuses.
func (q *request) stops() (list []string) {
	for _, s := range q.stop {
		if strings.TrimSpace(s) == "" {
			q.dropField(fieldStop)
		} else {
			list = append(list, s)
		}
	}
	return list
}

// dropDetails notes that only OpenAI's dialects say how closely to look at a
// picture.
func (q *request) dropDetails() {
	for i := range q.messages {
		for j := range q.messages[i].blocks {
			b := &q.messages[i].blocks[j]
			if b.detail != "" && b.detail != "auto" {
				q.dropField(fieldDetail)
			}
			for k := range b.parts {
				if p := &b.parts[k]; p.detail != "" && p.detail != "auto" {
					q.dropField(fieldDetail)
				}
			}
		}
	}
}

// add appends a block to the last message when that has the same role, else
// begins a message.
func (q *request) add(r role, b block) {
	if n := len(q.messages); n > 0 && q.messages[n-1].role == r {
		q.messages[n-1].blocks = append(grow(q.messages[n-1].blocks, q.pieces), b)
		return
	}
	q.messages = append(grow(q.messages, q.pieces), message{r, []block{b}})
}

// lead gives how many messages at the front are the system prompt. A
// conversation of nothing else has none: its last message must be asked.
func (q *request) lead() int {
	for i, m := range q.messages {
		if m.role != system {
			return i
		}
	}
	if n := len(q.messages); n > 0 {
		q.messages[n-1].role = user
		return n - 1
	}
	return 0
}

// systemText joins the texts of the leading system messages.
func (q *request) systemText(lead int) string {
	var j joined
	for _, m := range q.messages[:lead] {
		for i := range m.blocks {
			j.add("\n\n", m.blocks[i].text)
		}
	}
	return j.text()
}

// toolName finds the tool that a call id belongs to.
func (q *request) toolName(id string) string {
	if q.names == nil {
		q.names = map[string]string{}
		for i := range q.messages {
			for j := range q.messages[i].blocks {
				if b := &q.messages[i].blocks[j]; b.kind == toolUseBlock && q.names[b.id] == "" {
					q.names[b.id] = b.name
				}
			}
		}
	}
	return q.names[id]
}

// finish is why an answer ended.
type finish uint8

const (
	finishUnset finish = iota
	finishStop
	finishSequence // one of the stop sequences came up
	finishLength
	finishTools
	finishFilter
	finishPause
	finishWindow // the context is full
)

// Usage counts the tokens of an answer. Input is the whole prompt with what
// was read from and written to the cache, Output has the reasoning in it.
type Usage struct {
	Input, Output, CacheRead, CacheWrite, Reasoning int64
	Known                                           bool // the upstream told
	last                                            bool // Output is the final figure and replaces earlier ones
}

// answer is a whole answer.
type answer struct {
	id, model string
	blocks    []block
	finish    finish
	stopSeq   string
	explain   string // why it was refused
	usage     Usage
	tier      string
	logprobs  string // raw JSON, chat's form
	failure   *apierr.Error
}

func (a *answer) hasTools() bool {
	for i := range a.blocks {
		if a.blocks[i].kind == toolUseBlock {
			return true
		}
	}
	return false
}

// reason is the finish, corrected for upstreams that say stop after a call.
func (a *answer) reason() finish { return settle(a.finish, a.hasTools()) }

func settle(f finish, tools bool) finish {
	if tools && (f == finishStop || f == finishUnset) {
		return finishTools
	}
	if f == finishUnset {
		return finishStop
	}
	return f
}

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
