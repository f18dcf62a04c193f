package llm

import (
	"bytes"
	"slices"
	"strings"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"weir/pkg/wire/jsonscan"
)

// same prepares a request for an upstream of the client's own dialect. The
// bytes pass; only this is changed:
//
//   - model;
//   - chat: what a provider of the table is known to refuse or to call
//     otherwise (Deviations), and the fields for reasoning and signatures that
//     weir adds to answers, for upstreams that do not know them; for any other
//     compatible server only what it has refused by name (Options.Refuses);
//   - Messages: thoughts that another provider signed, and for hosted Claude
//     anthropic_version in place of the model.
func same(d Dialect, body []byte, root gjson.Result, opt *Options) ([]byte, []string, error) {
	p := patch{body: body}
	if opt.deviations().Anthropic == "" || d != Messages {
		model := root.Get("model")
		if model.Index > 0 && model.Raw != "" {
			p.body = jsonscan.Splice(body, jsonscan.Span{Start: model.Index, End: model.Index + len(model.Raw)}, jsonscan.Quote(nil, opt.Model))
		} else {
			p.set("model", quoted(opt.Model))
		}
	}
	if adapt := dialects[d].adapt; adapt != nil {
		p = adapt(p, *opt)
	}
	if opt.LongUser && dialects[d].openAI && (!opt.deviations().Passes || opt.Vendor) {
		p.shortUser(opt.deviations().userLimit())
	}
	if p.err != nil {
		return nil, nil, p.err
	}
	return p.body, p.dropped, nil
}

// patch changes a body field by field, on copies.
type patch struct {
	body    []byte
	dropped []string
	err     error
}

func (p *patch) has(name string) bool { return gjson.GetBytes(p.body, name).Exists() }

func (p *patch) set(path, raw string) {
	if p.err == nil {
		p.body, p.err = sjson.SetRawBytes(p.body, path, []byte(raw))
	}
}

func (p *patch) del(path string) {
	if p.err == nil {
		p.body, p.err = sjson.DeleteBytes(p.body, path)
	}
}

func (p *patch) drop(name string) {
	if p.has(name) {
		p.del(name)
		p.dropped = append(p.dropped, name)
	}
}

// only keeps the named members, in one pass, and removes refused members of the
// schemas.
func (p *patch) only(names []string) {
	if p.err != nil {
		return
	}
	marked := bytes.Contains(p.body, []byte(schemaMark))
	p.body = []byte(members(gjson.ParseBytes(p.body), func(name string, v gjson.Result) (string, bool) {
		if !slices.Contains(names, name) {
			if v.Type != gjson.Null && len(p.dropped) < maxDropped {
				p.note(name)
			}
			return "", false
		}
		if marked && (name == "tools" || name == "response_format") {
			return withoutMarks(v.Raw), true
		}
		return v.Raw, true
	}))
}

// rename moves a value to another name, unless that is taken.
func (p *patch) rename(from, to string) {
	v := gjson.GetBytes(p.body, from)
	if from == to || !v.Exists() {
		return
	}
	raw := v.Raw
	p.del(from)
	if !p.has(to) {
		p.set(to, raw)
	}
}

func adaptChat(p patch, opt Options) patch {
	v := opt.deviations()
	if !v.Custom && (!v.Passes || opt.Vendor) && opt.Tools != nil && bytes.Contains(p.body, []byte(`"custom"`)) {
		wrapCustomTools(&p, opt.Tools)
	}
	if v.Passes {
		adaptRefused(&p, opt.Refuses)
		return p
	}
	if !v.openAI() {
		if v.MaxTokens != "" {
			p.rename("max_completion_tokens", v.MaxTokens)
		}
		if v.Seed != "" {
			p.rename("seed", v.Seed)
		}
		if t := gjson.GetBytes(p.body, "temperature"); v.ZeroSample && t.Type == gjson.Number && t.Num == 0 {
			p.del("temperature")
			p.set("do_sample", "false")
		}
		if v.Only != nil {
			p.only(v.Only)
		}
		if bytes.Contains(p.body, []byte(`"allowed_tools"`)) {
			limitTools(&p)
		}
		for _, name := range v.Drop {
			p.drop(name)
		}
		if opt.Reasoning {
			for _, name := range v.DropReasoning {
				p.drop(name)
			}
		}
		if v.NoStreamOptions {
			p.del("stream_options")
		}
		adaptEffort(&p, v)
		for _, f := range v.Set {
			if !p.has(f[0]) {
				p.set(f[0], f[1])
			}
		}
	}
	if v.System && bytes.Contains(p.body, []byte("developer")) || v.ToolID > 0 ||
		mentionsReasoning(p.body) {
		adaptChatMessages(&p, v)
	}
	return p
}

// allowedTools removes all other tools for an upstream that does not support
// allowed_tools, and replaces tool_choice with its mode.
func limitTools(p *patch) {
	v := gjson.GetBytes(p.body, "tool_choice")
	if str(v.Get("type")) != "allowed_tools" {
		return
	}
	c := allowed(v.Get("allowed_tools"))
	may := make(map[string]bool, len(c.allowed))
	for _, name := range c.allowed {
		may[name] = true
	}
	mode := `"auto"`
	if c.mode == choiceAny {
		mode = `"required"`
	}
	p.set("tool_choice", mode)
	left := false
	p.each("tools", func(t gjson.Result) (string, bool) {
		keep := may[str(t.Get("function.name"))] || may[str(t.Get("custom.name"))]
		left = left || keep
		return t.Raw, keep
	})
	if !left {
		p.del("tools")
		p.del("tool_choice")
		p.dropped = append(p.dropped, "tool_choice.allowed_tools")
	}
}

// refused replaces what the server has refused by name with its older form.
func adaptRefused(p *patch, r Refusals) {
	if r&RefusesMaxCompletionTokens != 0 && p.has("max_completion_tokens") {
		p.rename("max_completion_tokens", maxTokensName)
		p.note("max_completion_tokens")
	}
	if r&RefusesEffort != 0 {
		p.drop("reasoning_effort")
	}
	if r&RefusesDeveloper != 0 && bytes.Contains(p.body, []byte("developer")) {
		p.each("messages", func(m gjson.Result) (string, bool) {
			if m.Get("role").Str != "developer" {
				return m.Raw, true
			}
			p.note("developer")
			return members(m, func(name string, x gjson.Result) (string, bool) {
				if name == "role" {
					return `"system"`, true
				}
				return x.Raw, true
			}), true
		})
	}
}

// shortUser replaces user ids over the limit with hashes.
func (p *patch) shortUser(limit int) {
	for _, name := range [...]string{"user", "safety_identifier"} {
		id := str(gjson.GetBytes(p.body, name))
		if short := ShortUser(id, limit); short != id {
			p.set(name, quoted(short))
		}
	}
}

// effort rounds reasoning_effort to what the upstream takes.
func adaptEffort(p *patch, v *Deviations) {
	e := gjson.GetBytes(p.body, "reasoning_effort")
	if e.Type != gjson.String || effortIndex(e.Str) < 0 {
		return
	}
	q := &request{fields: &chatFields}
	if q.setEffort("", e) != nil {
		return
	}
	switch v.Think {
	case ThinkEffort:
		if r := v.round(e.Str); r == "" {
			p.drop("reasoning_effort")
		} else if r != e.Str {
			p.set("reasoning_effort", quoted(r))
			if !v.means(e.Str) {
				p.note("reasoning_effort")
			}
		}
	default:
		d := doc{}
		d.open("", '{')
		writeChatEffort(q, &d, "", v, true)
		d.close('}')
		p.del("reasoning_effort")
		if len(q.dropped) > 0 {
			p.dropped = append(p.dropped, q.dropped...)
		}
		forEach(gjson.ParseBytes(d.b), func(k, x gjson.Result) bool {
			if !p.has(k.Str) {
				p.set(k.Str, x.Raw)
			} else if k.Str == "reasoning" {
				p.note("reasoning_effort") // the client has set both
			}
			return true
		})
	}
}

// each rebuilds the array at a path: change gives what stands for an element,
// itself mostly, and false to leave it out. Elements that stay keep their bytes.
func (p *patch) each(path string, change func(v gjson.Result) (raw string, keep bool)) {
	list := gjson.GetBytes(p.body, path)
	if !list.IsArray() || list.Index == 0 {
		return
	}
	d := doc{b: make([]byte, 0, len(list.Raw))}
	d.open("", '[')
	forEach(list, func(_, v gjson.Result) bool {
		if raw, keep := change(v); keep {
			d.raw("", raw)
		}
		return true
	})
	d.close(']')
	p.body = jsonscan.Splice(p.body, jsonscan.Span{Start: list.Index, End: list.Index + len(list.Raw)}, d.b)
}

// members rebuilds an object: change gives what stands for a member's value,
// and false to leave the member out.
func members(v gjson.Result, change func(name string, v gjson.Result) (raw string, keep bool)) string {
	d := doc{b: make([]byte, 0, len(v.Raw))}
	d.open("", '{')
	forEach(v, func(k, x gjson.Result) bool {
		if raw, keep := change(k.Str, x); keep {
			d.raw("", k.Raw)
			d.b = append(append(d.b, ':'), raw...)
		}
		return true
	})
	d.close('}')
	return string(d.b)
}

// chatMessages changes what messages hold that the upstream does not know.
func adaptChatMessages(p *patch, v *Deviations) {
	p.each("messages", func(m gjson.Result) (string, bool) {
		if !m.IsObject() {
			return m.Raw, true
		}
		role := m.Get("role").Str
		id := m.Get("tool_call_id")
		if !(role == "assistant" || v.System && role == "developer" || v.ToolID > 0 && id.Exists()) {
			return m.Raw, true
		}
		thought, named := "", false
		raw := members(m, func(name string, x gjson.Result) (string, bool) {
			switch name {
			case "role":
				if v.System && role == "developer" {
					return `"system"`, true
				}
			case "tool_call_id":
				if v.ToolID > 0 {
					return quoted(toolID(v, str(x))), true
				}
			case "reasoning_content", "reasoning":
				if name == v.Reasoning {
					named = true
					return x.Raw, true
				}
				if role != "assistant" {
					return x.Raw, true
				}
				if thought == "" {
					thought = x.Raw
				}
				if v.Reasoning == "" {
					p.note("reasoning_content")
				}
				return "", false
			case "reasoning_details":
				if !v.Details && role == "assistant" {
					p.note(name)
					return "", false
				}
			case "tool_calls":
				if x.IsArray() && (v.ToolID > 0 || !v.Extra) {
					return adaptCalls(v, x), true
				}
			}
			return x.Raw, true
		})
		if v.Reasoning != "" && thought != "" && !named {
			d := doc{b: []byte(raw[:len(raw)-1])}
			d.raw(v.Reasoning, thought)
			d.close('}')
			raw = string(d.b)
		}
		return raw, true
	})
}

// calls rebuilds tool_calls for an upstream with ids of its own or without
// extra_content.
func adaptCalls(v *Deviations, list gjson.Result) string {
	d := doc{}
	d.open("", '[')
	forEach(list, func(_, c gjson.Result) bool {
		raw := c.Raw
		if c.IsObject() {
			raw = members(c, func(name string, x gjson.Result) (string, bool) {
				switch {
				case name == "id" && v.ToolID > 0:
					return quoted(toolID(v, str(x))), true
				case name == "extra_content" && !v.Extra:
					return "", false
				}
				return x.Raw, true
			})
		}
		d.raw("", raw)
		return true
	})
	d.close(']')
	return string(d.b)
}

func (p *patch) note(name string) {
	for _, d := range p.dropped {
		if d == name {
			return
		}
	}
	p.dropped = append(p.dropped, name)
}

// messages removes from a body for Claude what other providers have added.
func adaptMessages(p patch, opt Options) patch {
	if v := opt.deviations().Anthropic; v != "" {
		p.del("model")
		p.set("anthropic_version", quoted(v))
		if strings.HasPrefix(v, "bedrock") {
			p.del("stream")
		}
	}
	if bytes.Contains(p.body, []byte(`"`+wrapMark)) {
		foreignThoughts(&p, opt.issuer(issuerAnthropic))
	} else if !foreignResult(p.body) {
		return p
	}
	budgetThinking(&p)
	return p
}

// maxTail is how many bytes at the end of a body are searched for the last tool
// result, so that a long body without one costs no more.
const maxTail = 1 << 20

// foreignResult reports whether the last tool result answers a call of another
// provider. No other body of an ordinary client is parsed a second time.
func foreignResult(body []byte) bool {
	name := []byte(`"tool_use_id"`)
	body = body[max(0, len(body)-maxTail):]
	i := bytes.LastIndex(body, name)
	if i < 0 {
		return false
	}
	id := bytes.TrimLeft(body[i+len(name):], " \t\r\n:")
	return len(id) > 0 && !bytes.HasPrefix(id, []byte(`"toolu_`))
}

// budgetThinking disables a thinking budget if the current turn has called tools
// at another provider: Claude refuses the request without its own thinking before
// these calls. Adaptive thinking does not require it.
func budgetThinking(p *patch) {
	if p.err != nil || gjson.GetBytes(p.body, "thinking.type").Str != "enabled" {
		return
	}
	bare, calls := false, false // of the last assistant message
	forEach(gjson.GetBytes(p.body, "messages"), func(_, m gjson.Result) bool {
		content := m.Get("content")
		if !content.IsArray() {
			content = gjson.Result{}
		}
		switch str(m.Get("role")) {
		case "assistant":
			bare, calls = true, false
			first := true
			forEach(content, func(_, b gjson.Result) bool {
				kind := str(b.Get("type"))
				if first {
					bare, first = kind != "thinking" && kind != "redacted_thinking", false
				}
				calls = calls || kind == "tool_use"
				return true
			})
		case "user":
			answers := false
			forEach(content, func(_, b gjson.Result) bool {
				answers = answers || str(b.Get("type")) == "tool_result"
				return !answers
			})
			calls = calls && answers
		}
		return true
	})
	if !bare || !calls {
		return
	}
	p.set("thinking", `{"type":"disabled"}`)
	p.note("thinking")
	// Without thinking Claude refuses clear_thinking edits.
	edits := gjson.GetBytes(p.body, "context_management.edits")
	if !edits.IsArray() || !strings.Contains(edits.Raw, `"clear_thinking`) {
		return
	}
	p.each("context_management.edits", func(e gjson.Result) (string, bool) {
		return e.Raw, !strings.HasPrefix(str(e.Get("type")), "clear_thinking")
	})
	if gjson.GetBytes(p.body, "context_management.edits.#").Int() == 0 {
		p.del("context_management")
	}
	p.note("context_management.edits")
}

// foreignThoughts removes what only other providers can read.
func foreignThoughts(p *patch, own string) {
	p.each("messages", func(m gjson.Result) (string, bool) {
		content := m.Get("content")
		if !content.IsArray() || !strings.Contains(content.Raw, `"`+wrapMark) {
			return m.Raw, true
		}
		d := doc{}
		d.open("", '[')
		forEach(content, func(_, b gjson.Result) bool {
			field := "signature"
			if str(b.Get("type")) == "redacted_thinking" {
				field = "data"
			}
			sig := str(b.Get(field))
			if !strings.HasPrefix(sig, wrapMark) {
				d.raw("", ownCitations(p, b))
				return true
			}
			if issuer, inside := unwrap(sig, ""); issuer == own && inside != "" {
				d.raw("", members(b, func(name string, x gjson.Result) (string, bool) {
					if name == field {
						return quoted(inside), true
					}
					return x.Raw, true
				}))
				return true
			}
			p.note("messages.thinking")
			return true
		})
		d.close(']')
		if len(d.b) == len("[]") {
			return "", false
		}
		return members(m, func(name string, x gjson.Result) (string, bool) {
			if name == "content" {
				return string(d.b), true
			}
			return x.Raw, true
		}), true
	})
}

// ownCitations returns a block without the citations of other providers.
func ownCitations(p *patch, b gjson.Result) string {
	if !strings.Contains(b.Raw, `"`+wrapMark) || str(b.Get("type")) != "text" {
		return b.Raw
	}
	return members(b, func(name string, v gjson.Result) (string, bool) {
		if name != "citations" || !v.IsArray() {
			return v.Raw, true
		}
		d := doc{}
		d.open("", '[')
		v.ForEach(func(_, c gjson.Result) bool {
			if strings.HasPrefix(str(c.Get("encrypted_index")), wrapMark) {
				p.note("messages.citations")
			} else {
				d.raw("", c.Raw)
			}
			return true
		})
		d.close(']')
		return string(d.b), len(d.b) > len("[]")
	})
}

// responses takes out reasoning items that only other providers can read.
func adaptResponses(p patch, opt Options) patch {
	if !bytes.Contains(p.body, []byte(`"`+wrapMark)) {
		return p
	}
	p.each("input", func(item gjson.Result) (string, bool) {
		if strings.HasPrefix(str(item.Get("encrypted_content")), wrapMark) {
			p.note("input.reasoning")
			return "", false
		}
		return item.Raw, true
	})
	return p
}

// mentionsReasoning tells whether a body may have fields for reasoning or
// signatures in its messages.
func mentionsReasoning(body []byte) bool {
	if bytes.Contains(body, []byte(`"extra_content"`)) {
		return true
	}
	name := []byte(`"reasoning`)
	for {
		i := bytes.Index(body, name)
		if i < 0 {
			return false
		}
		if body = body[i+len(name):]; !bytes.HasPrefix(body, []byte(`_effort"`)) {
			return true
		}
	}
}
