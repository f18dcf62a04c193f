package translate

import (
	"bytes"
	"strconv"
	"strings"

	"weir/pkg/fields"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"
)

// same prepares a request for an upstream of the client's own dialect. The
// bytes pass; only this is changed:
//
//   - model;
//   - chat: what the upstream is known to refuse or to call otherwise
//     (Deviations), and the fields for reasoning and signatures that weir adds
//     to answers, for upstreams that do not know them;
//   - Messages: thoughts that another provider signed, and for hosted Claude
//     anthropic_version in place of the model.
func same(d Dialect, body []byte, root gjson.Result, opt *Options) ([]byte, []string, error) {
	p := patch{body: body}
	if opt.deviations().Anthropic == "" || d != Messages {
		model := root.Get("model")
		if model.Index > 0 && model.Raw != "" {
			p.body = fields.Splice(body, fields.Span{Start: model.Index, End: model.Index + len(model.Raw)}, fields.Quote(nil, opt.Model))
		} else {
			p.set("model", quoted(opt.Model))
		}
	}
	switch d {
	case Chat:
		p.chat(opt)
	case Messages:
		p.messages(opt)
	case Responses:
		p.responses(opt)
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

func (p *patch) chat(opt *Options) {
	v := opt.deviations()
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
		p.effort(v)
		for _, f := range v.Set {
			if !p.has(f[0]) {
				p.set(f[0], f[1])
			}
		}
	}
	if v.System && bytes.Contains(p.body, []byte("developer")) || v.ToolID > 0 ||
		bytes.Contains(p.body, []byte(`"reasoning`)) || bytes.Contains(p.body, []byte(`"extra_content"`)) {
		p.chatMessages(v)
	}
}

// effort rounds reasoning_effort to what the upstream takes.
func (p *patch) effort(v *Deviations) {
	e := gjson.GetBytes(p.body, "reasoning_effort")
	if e.Type != gjson.String || effortIndex(e.Str) < 0 {
		return
	}
	q := &request{}
	if q.setEffort("", e) != nil {
		return
	}
	switch v.Think {
	case ThinkEffort:
		if r := v.round(e.Str); r == "" {
			p.drop("reasoning_effort")
		} else if r != e.Str {
			p.set("reasoning_effort", quoted(r))
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
		gjson.ParseBytes(d.b).ForEach(func(k, x gjson.Result) bool {
			if !p.has(k.Str) {
				p.set(k.Str, x.Raw)
			}
			return true
		})
	}
}

// chatMessages changes what messages hold that the upstream does not know.
func (p *patch) chatMessages(v *Deviations) {
	messages := gjson.GetBytes(p.body, "messages")
	if !messages.IsArray() {
		return
	}
	var edits []edit
	messages.ForEach(func(_, m gjson.Result) bool {
		role := m.Get("role")
		if v.System && role.Str == "developer" {
			edits = append(edits, edit{role, `"system"`})
		}
		if id := m.Get("tool_call_id"); v.ToolID > 0 && id.Type == gjson.String {
			edits = append(edits, edit{id, quoted(v.toolID(id.Str))})
		}
		if role.Str != "assistant" {
			return true
		}
		m.Get("tool_calls").ForEach(func(_, c gjson.Result) bool {
			if id := c.Get("id"); v.ToolID > 0 && id.Type == gjson.String {
				edits = append(edits, edit{id, quoted(v.toolID(id.Str))})
			}
			return true
		})
		return true
	})
	p.apply(edits)
	n := int(gjson.GetBytes(p.body, "messages.#").Int())
	for i := 0; i < n; i++ {
		at := "messages." + strconv.Itoa(i)
		m := gjson.GetBytes(p.body, at)
		if m.Get("role").Str != "assistant" {
			continue
		}
		thought := ""
		for _, name := range [...]string{"reasoning_content", "reasoning"} {
			x := m.Get(name)
			if !x.Exists() || name == v.Reasoning {
				continue
			}
			if thought == "" {
				thought = x.Raw
			}
			p.del(at + "." + name)
			if v.Reasoning == "" {
				p.note("reasoning_content")
			}
		}
		if v.Reasoning != "" && thought != "" && !m.Get(v.Reasoning).Exists() {
			p.set(at+"."+v.Reasoning, thought)
		}
		if !v.Details && m.Get("reasoning_details").Exists() {
			p.del(at + ".reasoning_details")
			p.note("reasoning_details")
		}
		calls := int(m.Get("tool_calls.#").Int())
		for j := 0; j < calls && !v.Extra; j++ {
			path := "tool_calls." + strconv.Itoa(j) + ".extra_content"
			if m.Get(path).Exists() {
				p.del(at + "." + path)
			}
		}
	}
}

func (p *patch) note(name string) {
	for _, d := range p.dropped {
		if d == name {
			return
		}
	}
	p.dropped = append(p.dropped, name)
}

// edit replaces a value, whose Index tells its place in the body.
type edit struct {
	at   gjson.Result
	with string
}

// apply makes edits that are in the order of the body.
func (p *patch) apply(edits []edit) {
	if len(edits) == 0 || p.err != nil {
		return
	}
	out := make([]byte, 0, len(p.body)+64)
	last := 0
	for _, e := range edits {
		if e.at.Index < last || e.at.Index == 0 {
			continue
		}
		out = append(append(out, p.body[last:e.at.Index]...), e.with...)
		last = e.at.Index + len(e.at.Raw)
	}
	p.body = append(out, p.body[last:]...)
}

// messages takes out what only other providers can read.
func (p *patch) messages(opt *Options) {
	if v := opt.deviations().Anthropic; v != "" {
		p.del("model")
		p.set("anthropic_version", quoted(v))
		if strings.HasPrefix(v, "bedrock") {
			p.del("stream")
		}
	}
	if !bytes.Contains(p.body, []byte(`"`+wrapMark)) {
		return
	}
	own := opt.issuer(Messages)
	n := int(gjson.GetBytes(p.body, "messages.#").Int())
	for i := n - 1; i >= 0; i-- {
		at := "messages." + strconv.Itoa(i)
		content := gjson.GetBytes(p.body, at+".content")
		if !content.IsArray() {
			continue
		}
		blocks := content.Array()
		kept := len(blocks)
		for j := len(blocks) - 1; j >= 0; j-- {
			sig, field := str(blocks[j].Get("signature")), "signature"
			if str(blocks[j].Get("type")) == "redacted_thinking" {
				sig, field = str(blocks[j].Get("data")), "data"
			}
			if !strings.HasPrefix(sig, wrapMark) {
				continue
			}
			path := at + ".content." + strconv.Itoa(j)
			if issuer, inside := unwrap(sig, ""); issuer == own && inside != "" {
				p.set(path+"."+field, quoted(inside))
				continue
			}
			p.del(path)
			p.note("messages.thinking")
			kept--
		}
		if kept == 0 {
			p.del(at)
		}
	}
}

// responses takes out reasoning items that only other providers can read.
func (p *patch) responses(opt *Options) {
	if !bytes.Contains(p.body, []byte(`"`+wrapMark)) {
		return
	}
	n := int(gjson.GetBytes(p.body, "input.#").Int())
	for i := n - 1; i >= 0; i-- {
		at := "input." + strconv.Itoa(i)
		sig := gjson.GetBytes(p.body, at+".encrypted_content")
		if sig.Type == gjson.String && strings.HasPrefix(sig.Str, wrapMark) {
			p.del(at)
			p.note("input.reasoning")
		}
	}
}
