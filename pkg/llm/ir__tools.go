package llm

import (
	"strings"

	"github.com/tidwall/gjson"
)

// Tools maps the upstream's tools to the client's where they differ: names that
// are too long or in a namespace, and custom tools that became functions. Request
// fills it in; Response, Stream, Collect and Replay restore the client's tools.
type Tools struct {
	sent map[string]callee // by the name at the upstream
	old  bool              // the client uses function_call instead of tool_calls
}

// callee is a tool of the client.
type callee struct {
	name, space string
	custom      bool
	built       builtin
	wrapped     bool // the upstream has a function with one string instead
}

// Changed reports whether calls in an answer must be changed for the client,
// even one of the client's own dialect.
func (t *Tools) Changed() bool { return t != nil && (len(t.sent) > 0 || t.old) }

func (t *Tools) note(sent string, c callee) {
	if t.sent == nil {
		t.sent = map[string]callee{}
	}
	t.sent[sent] = c
}

// nameTools replaces the names and kinds of a request's tools, calls and results
// with those that the upstream supports, and stores the mapping in the options.
//
// functions reports whether the upstream supports functions only, no custom tools.
func (q *request) nameTools(rules toolRules, functions bool, opt *Options) {
	if opt.Tools == nil {
		opt.Tools = &Tools{}
	}
	t := opt.Tools
	*t = Tools{old: q.old}
	n := &namer{toolRules: rules}
	if q.fitTools(n, functions) {
		q.choice.custom = q.choice.custom && !functions
		return
	}
	n.taken, n.names, n.bare = map[string]bool{}, map[string]string{}, map[string]string{}
	for i := range q.tools {
		if v := &q.tools[i]; identity(v.space, v.name, v.built) == v.name && n.fits(v.name) {
			n.reserve(v.name)
		}
	}
	may := make(map[string]bool, len(q.choice.allowed))
	for _, name := range q.choice.allowed {
		may[name] = true
	}
	var allowed []string
	kept, seen := q.tools[:0], make(map[string]bool, len(q.tools))
	for _, v := range q.tools {
		id := identity(v.space, v.name, v.built)
		if seen[id] {
			continue // upstreams refuse duplicate names
		}
		seen[id] = true
		c := callee{name: strings.Clone(v.name), custom: v.custom != "", built: v.built}
		if id != v.name {
			c.space = strings.Clone(v.space)
		}
		v.name = n.name(v.space, v.name, v.built)
		if may[id] || c.built == 0 && may[c.name] || c.space != "" && may[c.space] {
			allowed = append(allowed, v.name) // an entry may be a whole namespace
		}
		if c.wrapped = c.custom && functions; c.wrapped {
			v.wrap()
		} else if c.custom && v.name != c.name {
			v.custom = members(gjson.Parse(v.custom), func(name string, x gjson.Result) (string, bool) {
				if name == "name" {
					return quoted(v.name), true
				}
				return x.Raw, true
			})
		}
		if v.name != c.name || c.space != "" || c.built != 0 || c.wrapped {
			t.note(v.name, c)
		}
		kept = append(kept, v)
	}
	q.tools = kept
	if c := &q.choice; c.mode == choiceTool {
		c.name, c.custom = n.name(c.space, c.name, c.built), c.custom && !functions
	} else if len(allowed) > 0 {
		c.allowed = allowed
	}
	for i := range q.messages {
		q.nameCalls(q.messages[i].blocks, n, functions)
	}
}

// fitTools reports whether the upstream supports all tools unchanged.
func (q *request) fitTools(n *namer, functions bool) bool {
	for i := range q.tools {
		t := &q.tools[i]
		if t.space != "" || t.built != 0 || functions && t.custom != "" || !n.fits(t.name) {
			return false
		}
	}
	for i := range q.messages {
		for j := range q.messages[i].blocks {
			b := &q.messages[i].blocks[j]
			if b.kind != toolUseBlock && b.kind != toolResultBlock {
				continue
			}
			if b.space != "" || b.built != 0 || functions && b.custom || !n.fits(b.name) {
				return false
			}
		}
	}
	return true
}

// nameCalls renames calls and results like their tools.
func (q *request) nameCalls(blocks []block, n *namer, functions bool) {
	for i := range blocks {
		b := &blocks[i]
		if b.kind != toolUseBlock && b.kind != toolResultBlock || b.name == "" && b.kind == toolResultBlock && !b.custom {
			continue
		}
		if b.name != "" {
			b.name = n.name(b.space, b.name, b.built)
		}
		if b.custom && functions {
			b.custom = false
			if b.kind == toolUseBlock {
				b.args = wrapInput(b.args)
			}
		}
	}
}
