package llm

import (
	"bytes"

	"github.com/tidwall/gjson"
)

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
