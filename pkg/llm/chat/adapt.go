package chat

import (
	"cmp"

	"github.com/tidwall/gjson"

	"weir/pkg/llm/ir"
)

// The marks of a request, by number.
const (
	markCustom = iota
	markAllowed
	markDeveloper
	markExtra
	markReasoning
	markReasoningContent
	markReasoningDetails
)

// Marks are the strings in a request without which Adapt leaves its arrays unread.
var Marks = []string{
	markCustom: `custom"`, markAllowed: `allowed_tools"`, markDeveloper: `developer"`, markExtra: `extra_content"`,
	markReasoning: `reasoning"`, markReasoningContent: `reasoning_content"`, markReasoningDetails: `reasoning_details"`,
}

// Adapt changes what the upstream is known to refuse or to name differently in
// a body of its own dialect.
func Adapt(p ir.Patch, opt ir.Options) ir.Patch {
	v := opt.DeviationsOrDefault()
	if opt.AskUsage {
		if p.Get("stream_options").IsObject() {
			p.Set("stream_options.include_usage", "true")
		} else {
			p.Set("stream_options", `{"include_usage":true}`)
		}
	}
	if !v.Custom && (!v.Passes || opt.Vendor) && opt.Tools != nil && p.Marked(markCustom) {
		wrapCustomTools(&p, opt.Tools)
	}
	if v.Passes {
		applyRefusals(&p, opt.Refuses)
		return p
	}
	if !v.IsOpenAI() {
		if v.MaxTokens != "" {
			p.Rename("max_completion_tokens", v.MaxTokens)
		}
		if v.Seed != "" {
			p.Rename("seed", v.Seed)
		}
		if t := p.Get("temperature"); v.ZeroSample && t.Type == gjson.Number && t.Num == 0 {
			p.Del("temperature")
			p.Set("do_sample", "false")
		}
		if v.Only != nil {
			p.Only(v.Only)
		}
		if p.Marked(markAllowed) {
			limitTools(&p)
		}
		for _, name := range v.Drop {
			p.Drop(name)
		}
		if opt.Reasoning {
			for _, name := range v.DropReasoning {
				p.Drop(name)
			}
		}
		if v.NoStreamOptions {
			p.Del("stream_options")
		}
		adaptEffort(&p, v)
		if v.ThinksFreely && thinks(&p) && forces(p.Get("tool_choice")) {
			p.Drop("tool_choice")
		}
		for _, f := range v.Set {
			if !p.Has(f[0]) {
				p.Set(f[0], f[1])
			}
		}
	}
	applyRefusals(&p, opt.Refuses)
	markCache(&p, &opt)
	if v.System && p.Marked(markDeveloper) || v.ToolID > 0 || p.Marked(markExtra) ||
		p.Marked(markReasoning) || p.Marked(markReasoningContent) || p.Marked(markReasoningDetails) {
		adaptMessageFields(&p, v)
	}
	return p
}

// thinks reports whether a body asks for reasoning in one of the forms that adaptEffort
// writes.
func thinks(p *ir.Patch) bool {
	return p.Get("thinking.type").Str == "enabled" || p.Get("enable_thinking").Bool()
}

// forces reports whether a tool_choice makes the model call a tool.
func forces(choice gjson.Result) bool {
	return choice.Str == "required" || choice.IsObject()
}

// applyRefusals replaces the fields and roles that the server has refused by name with
// their other form.
func applyRefusals(p *ir.Patch, r ir.Refusals) {
	for _, f := range ir.OtherForms {
		switch {
		case !r.Has(f.Name):
		case f.Name == ir.RoleDeveloper:
			replaceDeveloper(p)
		case f.Instead == "":
			p.Drop(f.Name)
		case p.Has(f.Name):
			p.Rename(f.Name, f.Instead)
			p.Note(f.Name)
		}
	}
}

// replaceDeveloper writes the role system in place of developer.
func replaceDeveloper(p *ir.Patch) {
	if !p.Marked(markDeveloper) {
		return
	}
	p.Each("messages", func(m gjson.Result) (string, bool) {
		if m.Get("role").Str != ir.RoleDeveloper {
			return m.Raw, true
		}
		p.Note(ir.RoleDeveloper)
		return ir.SetMember(m, "role", `"system"`), true
	})
}

// adaptEffort rounds reasoning_effort to a value that the upstream accepts, or
// writes the upstream's own field instead.
func adaptEffort(p *ir.Patch, v *ir.Deviations) {
	e := p.Get("reasoning_effort")
	if e.Type != gjson.String || ir.EffortIndex(e.Str) < 0 {
		return
	}
	q := &ir.Request{Fields: &Fields}
	if q.SetEffort("", e) != nil {
		return
	}
	switch v.Think {
	case ir.ReasoningEffort:
		if r := v.RoundEffort(e.Str); r == "" {
			p.Drop("reasoning_effort")
		} else if r != e.Str {
			p.Set("reasoning_effort", ir.Quote(r))
			if !v.Maps(e.Str) {
				p.Note("reasoning_effort")
			}
		}
	default:
		d := ir.Writer{}
		d.Open("", '{')
		writeEffort(q, &d, "", v, true)
		d.Close('}')
		p.Del("reasoning_effort")
		if len(q.Dropped) > 0 {
			p.Dropped = append(p.Dropped, q.Dropped...)
		}
		ir.Each(gjson.ParseBytes(d.Buf), func(k, x gjson.Result) bool {
			if !p.Has(k.Str) {
				p.Set(k.Str, x.Raw)
			} else if k.Str == "reasoning" {
				p.Note("reasoning_effort") // the client has set both
			}
			return true
		})
	}
}

// adaptMessageFields removes or renames the fields of messages that the
// upstream does not support.
func adaptMessageFields(p *ir.Patch, v *ir.Deviations) {
	p.Each("messages", func(m gjson.Result) (string, bool) {
		if !m.IsObject() {
			return m.Raw, true
		}
		role := m.Get("role").Str
		id := m.Get("tool_call_id")
		if !(role == "assistant" || v.System && role == "developer" || v.ToolID > 0 && id.Exists()) {
			return m.Raw, true
		}
		thought, named := "", false
		raw := ir.MapMembers(m, func(name string, x gjson.Result) (string, bool) {
			switch name {
			case "role":
				if v.System && role == "developer" {
					return `"system"`, true
				}
			case "tool_call_id":
				if v.ToolID > 0 {
					return ir.Quote(toolID(v, ir.Str(x))), true
				}
			case "reasoning_content", "reasoning":
				if name == v.Reasoning {
					named = true
					return x.Raw, true
				}
				if role != "assistant" {
					return x.Raw, true
				}
				thought = cmp.Or(thought, x.Raw)
				if v.Reasoning == "" {
					p.Note("reasoning_content")
				}
				return "", false
			case "reasoning_details":
				if !v.Details && role == "assistant" {
					p.Note(name)
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
			d := ir.Writer{Buf: []byte(raw[:len(raw)-1])}
			d.Raw(v.Reasoning, thought)
			d.Close('}')
			raw = string(d.Buf)
		}
		return raw, true
	})
}

// adaptCalls rewrites tool_calls for an upstream with its own form of ids or
// without extra_content.
func adaptCalls(v *ir.Deviations, list gjson.Result) string {
	d := ir.Writer{}
	d.Open("", '[')
	ir.Each(list, func(_, c gjson.Result) bool {
		raw := c.Raw
		if c.IsObject() {
			raw = ir.MapMembers(c, func(name string, x gjson.Result) (string, bool) {
				switch {
				case name == "id" && v.ToolID > 0:
					return ir.Quote(toolID(v, ir.Str(x))), true
				case name == "extra_content" && !v.Extra:
					return "", false
				}
				return x.Raw, true
			})
		}
		d.Raw("", raw)
		return true
	})
	d.Close(']')
	return string(d.Buf)
}
