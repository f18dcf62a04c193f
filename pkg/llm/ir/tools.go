package ir

import (
	"strings"

	"github.com/tidwall/gjson"
)

// Tools maps the upstream's tools to the client's where they differ: names that
// are too long or in a namespace, and custom tools that became functions. Request
// fills it in; Response, Stream, Collect and Replay restore the client's tools.
type Tools struct {
	sent   map[string]ClientTool // by the name at the upstream
	legacy bool                  // the client uses function_call instead of tool_calls
}

// ClientTool is a tool of the client.
type ClientTool struct {
	Name, namespace string
	Custom          bool
	builtin         Builtin
	Wrapped         bool // the upstream has a function with one string instead
}

// Changed reports whether calls in an answer must be changed for the client,
// even one of the client's own dialect.
func (t *Tools) Changed() bool { return t != nil && (len(t.sent) > 0 || t.legacy) }

// Map stores the client's tool of a name at the upstream.
func (t *Tools) Map(sent string, c ClientTool) {
	if t.sent == nil {
		t.sent = map[string]ClientTool{}
	}
	t.sent[sent] = c
}

// NameTools replaces the names and kinds of a request's tools, calls and results
// with those that the upstream supports, and stores the mapping in the options.
//
// functions reports whether the upstream supports functions only, no custom tools.
func (q *Request) NameTools(rules ToolRules, functions bool, opt *Options) {
	if opt.Tools == nil {
		opt.Tools = &Tools{}
	}
	t := opt.Tools
	*t = Tools{legacy: q.Legacy}
	n := &namer{ToolRules: rules}
	if q.fitTools(n, functions) {
		q.ToolChoice.Custom = q.ToolChoice.Custom && !functions
		return
	}
	n.taken, n.names, n.byName = map[string]bool{}, map[string]string{}, map[string]string{}
	for i := range q.Tools {
		if v := &q.Tools[i]; identity(v.Namespace, v.Name, v.Builtin) == v.Name && n.fits(v.Name) {
			n.reserve(v.Name)
		}
	}
	may := make(map[string]bool, len(q.ToolChoice.Allowed))
	for _, name := range q.ToolChoice.Allowed {
		may[name] = true
	}
	var allowed []string
	named, seen := q.Tools[:0], make(map[string]bool, len(q.Tools))
	for _, v := range q.Tools {
		id := identity(v.Namespace, v.Name, v.Builtin)
		if seen[id] {
			continue // upstreams refuse duplicate names
		}
		seen[id] = true
		c := ClientTool{Name: strings.Clone(v.Name), Custom: v.Custom != "", builtin: v.Builtin}
		if id != v.Name {
			c.namespace = strings.Clone(v.Namespace)
		}
		v.Name = n.name(v.Namespace, v.Name, v.Builtin)
		if may[id] || c.builtin == 0 && may[c.Name] || c.namespace != "" && may[c.namespace] {
			allowed = append(allowed, v.Name) // an entry may be a whole namespace
		}
		if c.Wrapped = c.Custom && functions; c.Wrapped {
			v.Wrap()
		} else if c.Custom && v.Name != c.Name {
			v.Custom = SetMember(gjson.Parse(v.Custom), "name", Quote(v.Name))
		}
		if v.Name != c.Name || c.namespace != "" || c.builtin != 0 || c.Wrapped {
			t.Map(v.Name, c)
		}
		named = append(named, v)
	}
	q.Tools = named
	if c := &q.ToolChoice; c.Mode == ChoiceTool {
		c.Name, c.Custom = n.name(c.Namespace, c.Name, c.Builtin), c.Custom && !functions
	} else if len(allowed) > 0 {
		c.Allowed = allowed
	}
	for i := range q.Messages {
		q.nameCalls(q.Messages[i].Blocks, n, functions)
	}
}

// fitTools reports whether the upstream supports all tools unchanged.
func (q *Request) fitTools(n *namer, functions bool) bool {
	for i := range q.Tools {
		t := &q.Tools[i]
		if t.Namespace != "" || t.Builtin != 0 || functions && t.Custom != "" || !n.fits(t.Name) {
			return false
		}
	}
	for i := range q.Messages {
		for j := range q.Messages[i].Blocks {
			b := &q.Messages[i].Blocks[j]
			if b.Kind != ToolCallBlock && b.Kind != ToolResultBlock {
				continue
			}
			if b.Namespace != "" || b.Builtin != 0 || functions && b.Custom || !n.fits(b.Name) {
				return false
			}
		}
	}
	return true
}

// nameCalls renames calls and results like their tools.
func (q *Request) nameCalls(blocks []Block, n *namer, functions bool) {
	for i := range blocks {
		b := &blocks[i]
		if b.Kind != ToolCallBlock && b.Kind != ToolResultBlock || b.Name == "" && b.Kind == ToolResultBlock && !b.Custom {
			continue
		}
		if b.Name != "" {
			b.Name = n.name(b.Namespace, b.Name, b.Builtin)
		}
		if b.Custom && functions {
			b.Custom = false
			if b.Kind == ToolCallBlock {
				b.Arguments = WrapInput(b.Arguments)
			}
		}
	}
}
