package ir

import (
	"strings"

	"github.com/tidwall/gjson"
)

type formatKind uint8

// The forms of answers.
const (
	FormatUnset formatKind = iota
	FormatText
	FormatObject
	FormatSchema
)

// Format is the requested form of the answer.
type Format struct {
	Kind                      formatKind
	Name, Description, Schema string
	Strict                    string
}

// NameOr returns the format's name, or name if it has none.
func (f *Format) NameOr(name string) string {
	if f.Name != "" {
		return f.Name
	}
	return name
}

// ReadSchemaFormat reads {name, description, schema, strict}.
func ReadSchemaFormat(s gjson.Result) Format {
	f := Format{
		Kind: FormatSchema, Name: Str(s.Get("name")), Description: Str(s.Get("description")),
		Schema: "{}", Strict: Boolean(s.Get("strict")),
	}
	if v := s.Get("schema"); v.IsObject() {
		f.Schema = v.Raw
	}
	return f
}

type thinkMode uint8

// The modes of thinking.
const (
	ThinkUnset thinkMode = iota
	ThinkOff
	ThinkOn     // the model decides how much
	ThinkBudget // budget tokens
)

// Request is a client's request. Numbers are stored as their JSON text.
type Request struct {
	Pacer
	Pieces     int         // of the body
	Fields     *FieldNames // of the client's dialect
	Messages   []Message
	Tools      []Tool
	SearchWeb  bool // the hosted web search
	WebSearch  WebSearch
	ToolChoice ToolChoice
	Parallel   string // "true", "false" or empty

	MaxTokens                               int64 // 0 when absent
	Temperature, TopP, TopK                 string
	Stop                                    []string
	PresencePenalty, FrequencyPenalty, Seed string
	LogitBias                               string // raw JSON
	Logprobs                                bool
	TopLogprobs                             string
	Stream                                  bool
	Compact                                 bool // a Responses request for a compaction
	Think                                   thinkMode
	Effort                                  string // none, minimal, low, medium, high, xhigh, max
	ThinkBudget                             int64
	Summary                                 string // how thinking is summarized: the client's raw value
	Format                                  Format
	Verbosity                               string
	Metadata                                string // raw JSON
	User, ServiceTier, CacheKey, Store      string
	EndUser                                 string // user, if safety_identifier was given too
	Cache                                   string // cache control of the whole prompt

	Dropped     []string
	Depth       int               // of the current content
	SchemaBytes int               // bytes of schemas read, see MaxSchemas
	names       map[string]string // of tools by call id, see ToolName
	Legacy      bool              // the client sent functions instead of tools
	LegacyCalls map[string]int    // how often each was called
	ShellCalls  map[string]string // call ids of local_shell calls, by item id
}

// Add appends a block to the last message if it has the same role, or begins a
// message.
func (q *Request) Add(r Role, b Block) {
	if n := len(q.Messages); n > 0 && q.Messages[n-1].Role == r {
		q.Messages[n-1].Blocks = append(grow(q.Messages[n-1].Blocks, q.Pieces), b)
		return
	}
	q.Messages = append(grow(q.Messages, q.Pieces), Message{r, []Block{b}})
}

// Lead returns the number of leading messages that are the system prompt. If
// all messages are, the last one becomes the user's.
func (q *Request) Lead() int {
	for i, m := range q.Messages {
		if m.Role != RoleSystem {
			return i
		}
	}
	if n := len(q.Messages); n > 0 {
		q.Messages[n-1].Role = RoleUser
		return n - 1
	}
	return 0
}

// SystemText joins the texts of the leading system messages.
func (q *Request) SystemText(lead int) string {
	var j Joiner
	for _, m := range q.Messages[:lead] {
		for i := range m.Blocks {
			j.Add("\n\n", m.Blocks[i].Text)
		}
	}
	return j.Text()
}

// WriteSystem writes the leading system messages as one of chat's form, and returns the others.
func (q *Request) WriteSystem(d *Writer) []Message {
	lead := q.Lead()
	if text := q.SystemText(lead); text != "" {
		d.Open("", '{')
		d.Str("role", "system")
		d.Str("content", text)
		d.Close('}')
	}
	for i := range q.Messages[:lead] {
		q.DropCaches(q.Messages[i].Blocks)
	}
	return q.Messages[lead:]
}

// ToolName returns the name of the tool of a call id.
func (q *Request) ToolName(id string) string {
	if q.names == nil {
		q.names = map[string]string{}
		for i := range q.Messages {
			for j := range q.Messages[i].Blocks {
				if b := &q.Messages[i].Blocks[j]; b.Kind == ToolCallBlock && q.names[b.ID] == "" {
					q.names[b.ID] = b.Name
				}
			}
		}
	}
	return q.names[id]
}

// CustomNames returns the names of the custom tools.
func (q *Request) CustomNames() map[string]bool {
	names := map[string]bool{}
	for i := range q.Tools {
		if q.Tools[i].Custom != "" {
			names[q.Tools[i].Name] = true
		}
	}
	return names
}

// NonResults returns the blocks of a user message besides tool results: first the
// non-text parts of the results, then the other blocks.
func (q *Request) NonResults(blocks []Block) []Block {
	rest := WithoutResults(blocks)
	var parts []Block
	for i := range blocks {
		if b := &blocks[i]; b.Kind == ToolResultBlock {
			for j := range b.Parts {
				if b.Parts[j].Kind != TextBlock {
					parts = append(grow(parts, q.Pieces), b.Parts[j])
				}
			}
		}
	}
	if len(parts) == 0 {
		return rest
	}
	return append(parts, rest...)
}

// StopSequences returns the stop sequences that are more than white space,
// which Claude refuses.
func (q *Request) StopSequences() (list []string) {
	for _, s := range q.Stop {
		if strings.TrimSpace(s) == "" {
			q.DropField(FieldStop)
		} else {
			list = append(list, s)
		}
	}
	return list
}

// LostThinking reports whether the current turn has called tools without the
// thinking before them, which clients of other dialects do not send back.
func (q *Request) LostThinking(own string) bool {
	for i := len(q.Messages) - 1; i >= 0; i-- {
		m := &q.Messages[i]
		if m.Role == RoleUser {
			asked := false
			for j := range m.Blocks {
				asked = asked || m.Blocks[j].Kind != ToolResultBlock
			}
			if asked {
				return false
			}
			continue
		}
		if m.Role != RoleAssistant {
			continue
		}
		calls, thought := false, false
		for j := range m.Blocks {
			b := &m.Blocks[j]
			calls = calls || b.Kind == ToolCallBlock
			thought = thought || b.Kind == ThinkingBlock && b.Issuer == own && b.Signature != ""
		}
		if calls && !thought {
			return true
		}
	}
	return false
}
