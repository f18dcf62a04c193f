package llm

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"weir/pkg/wire/jsonscan"
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

// builtin is a tool of Responses that the client runs and that has its own item
// types. Its calls have the arguments of the function that replaces it.
type builtin uint8

const (
	builtinShell    builtin = 1 + iota // local_shell, one program with its arguments
	builtinSearch                      // tool_search, run by the client
	builtinCommands                    // shell, a list of commands
	builtinPatch                       // apply_patch, a change of one file
)

var builtinNames = [...]string{builtinShell: "local_shell", builtinSearch: "tool_search", builtinCommands: "shell", builtinPatch: "apply_patch"}

// builtinOf returns the tool of a type that is named in tool_choice, or 0.
func builtinOf(kind string) builtin {
	for b := builtinShell; int(b) < len(builtinNames); b++ {
		if builtinNames[b] == kind && b != builtinSearch {
			return b
		}
	}
	return 0
}

// plainSpace is the namespace whose tools are called by their names alone.
const plainSpace = "functions"

const shellSchema = `{"type":"object","properties":{` +
	`"command":{"type":"array","items":{"type":"string"},"description":"The program and its arguments."},` +
	`"working_directory":{"type":"string","description":"The directory to run it in."},` +
	`"timeout_ms":{"type":"integer","description":"The time limit in milliseconds."},` +
	`"env":{"type":"object","description":"Further environment variables.","additionalProperties":{"type":"string"}},` +
	`"user":{"type":"string","description":"The user to run it as."}},"required":["command"]}`

const commandsSchema = `{"type":"object","properties":{` +
	`"commands":{"type":"array","items":{"type":"string"},"description":"The commands, each a line for the shell. Those of one call may run at the same time."},` +
	`"timeout_ms":{"type":"integer","description":"The time limit in milliseconds."},` +
	`"max_output_length":{"type":"integer","description":"The most characters of output to return for each command."}},"required":["commands"]}`

const patchSchema = `{"type":"object","properties":{` +
	`"type":{"type":"string","enum":["create_file","update_file","delete_file"]},` +
	`"path":{"type":"string","description":"The file, relative to the working directory."},` +
	`"diff":{"type":"string","description":"The change in the V4A format. Not for delete_file."}},"required":["type","path"]}`

const patchAbout = `Creates, updates or deletes one file. The diff of create_file is the new file with "+" before each line. ` +
	`The diff of update_file is one or more sections: a line "@@" (or "@@ " and the class or function that the section is in), then ` +
	`lines of the file, with " " before those that stay, "-" before those that go and "+" before those that come. Give about three lines ` +
	`of context before and after a change. There are no line numbers and no file headers.`

const inputSchema = `{"type":"object","properties":{"input":{"type":"string","description":"The whole input of the tool, as plain text."}},` +
	`"required":["input"],"additionalProperties":false}`

// namer chooses a name that the upstream accepts for each tool: stable across
// requests, and unique within a request.
type namer struct {
	toolRules
	taken map[string]bool
	names map[string]string // by identity
	bare  map[string]string // by the name within its namespace, "" for several
}

// toolRules are a dialect's rules for tools.
type toolRules struct {
	limit  int  // most characters of a name
	letter bool // a name begins with a letter or an underscore
}

// identity returns a unique key of a tool. Names do not contain NUL.
func identity(space, name string, built builtin) string {
	if built != 0 {
		return "\x00" + builtinNames[built]
	}
	if space == "" || space == plainSpace {
		return name
	}
	return space + "\x00" + name
}

// fits reports whether the upstream accepts a name.
func (n *namer) fits(name string) bool {
	if len(name) > n.limit || n.letter && name != "" && !letter(name[0]) && name[0] != '_' {
		return false
	}
	for i := 0; i < len(name); i++ {
		if !nameByte(name[i]) {
			return false
		}
	}
	return true
}

func nameByte(c byte) bool { return letter(c) || c >= '0' && c <= '9' || c == '_' || c == '-' }

// reserve registers a tool that keeps its name.
func (n *namer) reserve(name string) {
	n.taken[name], n.names[name] = true, name
}

// name returns the name of a tool at the upstream.
func (n *namer) name(space, name string, built builtin) string {
	id := identity(space, name, built)
	if got, ok := n.names[id]; ok {
		return got
	}
	if got := n.bare[id]; got != "" {
		return got // a call without its namespace
	}
	want := name
	if id != name && built == 0 {
		if want = space + name; !strings.HasSuffix(space, "_") {
			want = space + "__" + name
		}
	}
	if !n.fits(want) || n.taken[want] {
		want = n.shorten(want, id)
	}
	n.taken[want], n.names[id] = true, want
	if space != "" {
		if _, several := n.bare[name]; several {
			n.bare[name] = ""
		} else {
			n.bare[name] = want
		}
	}
	return want
}

// shorten inserts a hash of the tool's identity into a name, and keeps its end,
// which is the most descriptive part.
func (n *namer) shorten(name, id string) string {
	const hashed, head = 9, 22
	b := make([]byte, 0, len(name)+1)
	if n.letter && name != "" && !letter(name[0]) && name[0] != '_' {
		b = append(b, '_')
	}
	for i := 0; i < len(name); i++ {
		if c := name[i]; nameByte(c) {
			b = append(b, c)
		} else {
			b = append(b, '_')
		}
	}
	start, end := string(b), ""
	if room := n.limit - hashed; len(b) > room {
		start, end = string(b[:head]), "_"+string(b[len(b)-(room-head-1):])
	}
	for try := 0; ; try++ {
		if short := start + "_" + digest(id + strings.Repeat("\x00", try))[:hashed-1] + end; !n.taken[short] {
			return short
		}
	}
}

// digest returns the SHA-256 of a text in hexadecimal.
func digest(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
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

func (t *Tools) note(sent string, c callee) {
	if t.sent == nil {
		t.sent = map[string]callee{}
	}
	t.sent[sent] = c
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

// wrapInput returns the arguments of the function that replaces a custom tool.
func wrapInput(text string) string { return `{"input":` + quoted(text) + `}` }

// wrap turns a custom tool into a function. The format of its input becomes text
// in the description.
func (t *tool) wrap() {
	f := gjson.Get(t.custom, "format")
	text := t.description
	if text != "" {
		text += "\n\n"
	}
	text += "Call this tool as a function, whatever format is described above: put the complete input text in the string \"input\"."
	if def := str(f.Get("definition")); str(f.Get("type")) == "grammar" && def != "" {
		kind := "Lark grammar"
		if str(f.Get("syntax")) == "regex" {
			kind = "regular expression"
		}
		text += " The input must match this " + kind + ":\n" + def
	}
	t.description, t.schema, t.custom, t.strict = text, inputSchema, "", ""
}

// commandsTool reads a shell tool. It returns false for one that runs in the
// vendor's container.
func commandsTool(v gjson.Result) (tool, bool) {
	env := v.Get("environment")
	if kind := str(env.Get("type")); kind != "" && kind != "local" {
		return tool{}, false
	}
	var about strings.Builder
	about.WriteString("Runs commands in a shell on the user's machine and returns what they print and how they end.")
	forEach(env.Get("skills"), func(_, s gjson.Result) bool {
		about.WriteString("\n- Skill " + str(s.Get("name")) + ", described in " + str(s.Get("path")) + "/SKILL.md: " + str(s.Get("description")))
		return true
	})
	return tool{name: builtinNames[builtinCommands], built: builtinCommands, description: about.String(), schema: commandsSchema}, true
}

// openCall begins the item of a call.
func openCall(d *doc, kind, id, call, status string) {
	d.b = append(d.b, '{')
	d.str("id", id)
	d.str("type", kind)
	d.str("status", status)
	d.str("call_id", call)
}

// parseArgs parses the arguments of a call; invalid ones are empty.
func parseArgs(args string) (v gjson.Result) {
	if json, ok := object(args); ok {
		v = gjson.Parse(json)
	}
	return v
}

// writeCommandsCall writes a shell_call; args are not escaped.
func writeCommandsCall(d *doc, id, call, args, status string) {
	openCall(d, "shell_call", id, call, status)
	v := parseArgs(args)
	d.open("action", '{')
	d.open("commands", '[')
	if c := v.Get("commands"); c.IsArray() {
		forEach(c, func(_, x gjson.Result) bool { d.str("", x.String()); return true })
	} else if s := str(c); s != "" {
		d.str("", s)
	}
	d.close(']')
	for _, name := range [...]string{"timeout_ms", "max_output_length"} {
		if n := v.Get(name); n.Type == gjson.Number {
			d.raw(name, n.Raw)
		} else {
			d.null(name)
		}
	}
	d.close('}')
	d.raw("environment", `{"type":"local"}`)
	d.close('}')
}

// writePatchCall writes an apply_patch_call; args are not escaped.
func writePatchCall(d *doc, id, call, args, status string) {
	openCall(d, "apply_patch_call", id, call, status)
	v := parseArgs(args)
	d.open("operation", '{')
	kind := str(v.Get("type"))
	if kind != "create_file" && kind != "delete_file" {
		kind = "update_file"
	}
	d.str("type", kind)
	d.str("path", str(v.Get("path")))
	if kind != "delete_file" {
		d.str("diff", str(v.Get("diff")))
	}
	d.close('}')
	d.close('}')
}

// shellCall reads the action of a shell call as arguments.
func shellCall(action gjson.Result) string {
	if !action.IsObject() {
		return ""
	}
	return members(action, func(name string, v gjson.Result) (string, bool) {
		return v.Raw, name != "type" && v.Type != gjson.Null
	})
}

// writeShellCall writes a local_shell_call; args are not escaped.
func writeShellCall(d *doc, id, call, args, status string) {
	openCall(d, "local_shell_call", id, call, status)
	v := parseArgs(args)
	d.open("action", '{')
	d.str("type", "exec")
	d.open("command", '[')
	if c := v.Get("command"); c.IsArray() {
		forEach(c, func(_, x gjson.Result) bool { d.str("", x.String()); return true })
	} else if s := str(c); s != "" {
		d.str("", "sh")
		d.str("", "-c")
		d.str("", s)
	}
	d.close(']')
	env := `{}`
	if e := v.Get("env"); e.IsObject() {
		env = e.Raw
	}
	d.raw("env", oneLine(env))
	if n := v.Get("timeout_ms"); n.Type == gjson.Number {
		d.raw("timeout_ms", n.Raw)
	}
	d.opt("working_directory", str(v.Get("working_directory")))
	d.opt("user", str(v.Get("user")))
	d.close('}')
	d.close('}')
}

// writeSearchCall writes a tool_search_call; args are not escaped.
func writeSearchCall(d *doc, id, call, args, status string) {
	args, ok := object(args)
	if !ok {
		args = "{}"
	}
	openCall(d, "tool_search_call", id, call, status)
	d.str("execution", "client")
	d.raw("arguments", oneLine(args))
	d.close('}')
}

// builtinOutput reads the output of a shell_call, a list of
// {stdout, stderr, outcome}, or of an apply_patch_call, a text.
func builtinOutput(v gjson.Result) block {
	b := block{kind: toolResultBlock, id: str(v.Get("call_id")), failed: str(v.Get("status")) == "failed"}
	out := v.Get("output")
	text := out.Str
	if out.IsArray() || out.IsObject() {
		text = oneLine(out.Raw)
	} else if text == "" {
		if text = "Done."; b.failed {
			text = "Failed."
		}
	}
	b.parts = []block{{text: text}}
	return b
}

// foundTools returns the result of a tool search for the model. The request
// contains the definitions of the tools.
func foundTools(list []tool) string {
	if len(list) == 0 {
		return "No tools were found."
	}
	var b strings.Builder
	b.WriteString("These tools were found and can be called now:")
	for i := range list {
		b.WriteString("\n- ")
		if list[i].space != "" {
			b.WriteString(list[i].space + ": ")
		}
		b.WriteString(list[i].name)
	}
	return b.String()
}

// readNamespace reads {name, description, tools}. The namespace's description
// becomes a part of the first tool's.
func readNamespace(v gjson.Result, q *request) {
	name, about := str(v.Get("name")), str(v.Get("description"))
	forEach(v.Get("tools"), func(_, v gjson.Result) bool {
		var t tool
		switch kind := str(v.Get("type")); kind {
		case "function":
			t = function(v)
		case "custom":
			f := v.Get("format")
			t = customTool(v, f, f)
		default:
			q.drop("tools." + kind)
			return true
		}
		t.space = name
		if about != "" {
			t.description = strings.TrimSpace("About the " + name + " tools: " + about + "\n\n" + t.description)
			about = ""
		}
		q.tools = append(q.tools, t)
		return true
	})
}

// UserLimit returns a provider's limit for a user's id in OpenAI's dialects, in
// characters.
func UserLimit(provider string) int { return DeviationsOf(provider).userLimit() }

// userLimit returns the limit for a user's id in OpenAI's dialects, in characters.
func (v *Deviations) userLimit() int {
	if v.User > 0 {
		return v.User
	}
	return 128
}

// ShortUser returns a user's id, or a stable hash of one over the limit. Vendors
// only compare it.
func ShortUser(id string, limit int) string {
	if len(id) <= limit || utf8.RuneCountInString(id) <= limit {
		return id
	}
	return "user_" + digest(id)[:32]
}

// customTools turns the custom tools of a chat request into functions, for an
// upstream of the same dialect that supports only these.
func wrapCustomTools(p *patch, t *Tools) {
	p.each("tools", func(v gjson.Result) (string, bool) {
		if str(v.Get("type")) != "custom" {
			return v.Raw, true
		}
		c := v.Get("custom")
		f := customTool(c, c.Get("format"), c.Get("format.grammar"))
		t.note(strings.Clone(f.name), callee{name: strings.Clone(f.name), custom: true, wrapped: true})
		f.wrap()
		d := doc{}
		writeChatFunction(&d, &f)
		return string(d.b), true
	})
	if c := gjson.GetBytes(p.body, "tool_choice"); c.IsObject() {
		p.body = jsonscan.Splice(p.body, jsonscan.Span{Start: c.Index, End: c.Index + len(c.Raw)}, []byte(functionRef(c)))
	}
	p.each("messages", func(m gjson.Result) (string, bool) {
		calls := m.Get("tool_calls")
		if !calls.IsArray() || !strings.Contains(calls.Raw, `"custom"`) {
			return m.Raw, true
		}
		return members(m, func(name string, x gjson.Result) (string, bool) {
			if name != "tool_calls" {
				return x.Raw, true
			}
			d := doc{}
			d.open("", '[')
			forEach(x, func(_, c gjson.Result) bool {
				if b := chatCall(c); b.custom {
					b.custom, b.args = false, wrapInput(b.args)
					writeChatCall(&d, &b, b.id, false)
				} else {
					d.raw("", c.Raw)
				}
				return true
			})
			d.close(']')
			return string(d.b), true
		}), true
	})
}

// functionRef turns {type:custom} into {type:function} in a tool_choice.
func functionRef(v gjson.Result) string {
	if str(v.Get("type")) == "custom" && v.Get("custom").IsObject() {
		return `{"type":"function","function":` + v.Get("custom").Raw + `}`
	}
	if !v.Get("allowed_tools.tools").IsArray() {
		return v.Raw
	}
	return members(v, func(name string, x gjson.Result) (string, bool) {
		if name != "allowed_tools" {
			return x.Raw, true
		}
		return members(x, func(name string, x gjson.Result) (string, bool) {
			if name != "tools" {
				return x.Raw, true
			}
			d := doc{}
			d.open("", '[')
			forEach(x, func(_, e gjson.Result) bool { d.raw("", functionRef(e)); return true })
			d.close(']')
			return string(d.b), true
		}), true
	})
}
