package llm

import (
	"strings"

	"github.com/tidwall/gjson"
)

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

func (f *format) nameOr(name string) string {
	if f.name != "" {
		return f.name
	}
	return name
}

// schemaFormat reads {name, description, schema, strict}.
func schemaFormat(s gjson.Result) format {
	f := format{
		kind: formatSchema, name: str(s.Get("name")), description: str(s.Get("description")),
		schema: "{}", strict: boolean(s.Get("strict")),
	}
	if v := s.Get("schema"); v.IsObject() {
		f.schema = v.Raw
	}
	return f
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

// customNames returns the names of the custom tools.
func (q *request) customNames() map[string]bool {
	names := map[string]bool{}
	for i := range q.tools {
		if q.tools[i].custom != "" {
			names[q.tools[i].name] = true
		}
	}
	return names
}

// others returns the blocks of a user message besides tool results: first the
// non-text parts of the results, then the other blocks.
func (q *request) others(blocks []block) []block {
	rest := withoutResults(blocks)
	var found []block
	for i := range blocks {
		if b := &blocks[i]; b.kind == toolResultBlock {
			for j := range b.parts {
				if b.parts[j].kind != textBlock {
					found = append(grow(found, q.pieces), b.parts[j])
				}
			}
		}
	}
	if len(found) == 0 {
		return rest
	}
	return append(found, rest...)
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

// lostThinking tells whether the turn that is going on has called tools
// without the thinking that led to it, as clients of other dialects lose it.
func (q *request) lostThinking(own string) bool {
	for i := len(q.messages) - 1; i >= 0; i-- {
		m := &q.messages[i]
		if m.role == user {
			asked := false
			for j := range m.blocks {
				asked = asked || m.blocks[j].kind != toolResultBlock
			}
			if asked {
				return false
			}
			continue
		}
		if m.role != assistant {
			continue
		}
		calls, thought := false, false
		for j := range m.blocks {
			b := &m.blocks[j]
			calls = calls || b.kind == toolUseBlock
			thought = thought || b.kind == thinkingBlock && b.issuer == own && b.sig != ""
		}
		if calls && !thought {
			return true
		}
	}
	return false
}
