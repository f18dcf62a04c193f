package translate

import (
	"encoding/base64"
	"strconv"
	"strings"

	"weir/pkg/apierr"

	"github.com/tidwall/gjson"
)

// converseModel is what a vendor's models take behind Bedrock's Converse.
// Source: AWS, Bedrock API Reference, Converse; User Guide, "Supported models
// and model features" and "Inference request parameters".
type converseModel struct {
	name  string // part of the model id
	force bool   // toolChoice any and tool
	cache bool   // cachePoint
	topK  string // where top_k goes in additionalModelRequestFields: before and after the number
	think string // form of reasoning: claude, effort, nova
	ids   int    // tool call ids have exactly so many letters and digits; 0 is free
}

// converseModels: the first row whose name is in the id.
var converseModels = [...]converseModel{
	{name: "claude", force: true, cache: true, topK: `"top_k":`, think: "claude"},
	{name: "nova-2", force: true, cache: true, topK: `"inferenceConfig":{"topK":}`, think: "nova"},
	{name: "nova", force: true, cache: true, topK: `"inferenceConfig":{"topK":}`},
	{name: "mistral", force: true, topK: `"top_k":`, ids: 9},
	{name: "openai.gpt", think: "effort"},
	{},
}

func converseOf(id string) *converseModel {
	for i := range converseModels {
		if strings.Contains(id, converseModels[i].name) {
			return &converseModels[i]
		}
	}
	return &converseModels[len(converseModels)-1]
}

// converse is a request as it is written.
type converse struct {
	*request
	d         *doc
	opt       *Options
	model     *converseModel
	marks     int
	documents []string
}

// writeConverseRequest writes a Converse request; the model stands in its
// address.
func writeConverseRequest(q *request, d *doc, opt *Options) error {
	if err := q.noCustom(); err != nil {
		return err
	}
	c := &converse{request: q, d: d, opt: opt, model: converseOf(opt.Model)}
	gen := &otherClaude
	isClaude := c.model.think == "claude"
	if isClaude {
		gen = claudeOf(opt.Model)
	}
	schema, forceFormat, hint := false, false, ""
	switch q.format.kind {
	case formatObject:
		hint = "Answer with one JSON object and nothing else."
	case formatSchema:
		switch {
		case isClaude && gen.schema:
			schema = true
		case c.model.force:
			forceFormat = true
		default:
			hint = "Answer with JSON of this schema and nothing else:\n" + q.format.schema
		}
	}
	limit := opt.MaxOutput
	if limit == 0 && isClaude {
		limit = gen.maxOutput
	}
	think := c.thinking(gen, limit, forceFormat)

	d.open("", '{')
	lead := q.lead()
	c.system(lead, hint)
	if err := c.messages(lead); err != nil {
		return err
	}
	c.tools(gen, think.budget, forceFormat)
	c.inference(gen, isClaude, think, limit)
	c.further(isClaude, gen, think)
	if schema {
		d.open("outputConfig", '{')
		d.open("textFormat", '{')
		d.str("type", "json_schema")
		d.open("structure", '{')
		d.open("jsonSchema", '{')
		d.str("schema", closed(q.format.schema))
		d.opt("name", q.format.name)
		d.opt("description", q.format.description)
		for range 4 {
			d.close('}')
		}
	}
	switch q.tier {
	case "", "auto":
	case "default", "flex", "priority":
		d.open("serviceTier", '{')
		d.str("type", q.tier)
		d.close('}')
	default:
		q.drop("service_tier")
	}
	d.close('}')

	q.dropSet("metadata", q.metadata)
	if q.user != "" {
		q.dropField(fieldUser)
	}
	q.dropSet("presence_penalty", q.presence)
	q.dropSet("frequency_penalty", q.frequency)
	q.dropSet("seed", q.seed)
	q.dropSet("logit_bias", q.logitBias)
	if q.logprobs {
		q.dropField(fieldLogprobs)
	}
	q.dropSet("verbosity", q.verbosity)
	q.dropSet("prompt_cache_key", q.cacheKey)
	if q.store == "true" {
		q.drop("store")
	}
	if q.search {
		q.dropField(fieldSearch)
	}
	if q.parallel == "false" && len(q.tools) > 0 {
		q.dropField(fieldParallel)
	}
	return nil
}

// thinking decides how the model is asked to reason; max is 0 when the client
// has set no limit and none is needed.
func (c *converse) thinking(gen *claude, limit int64, forceFormat bool) thought {
	t := thought{max: c.maxTokens}
	switch name := c.effortName(); {
	case c.model.think == "claude":
		max := c.maxTokens
		if max == 0 {
			if max = c.opt.MaxTokens; max == 0 {
				max = 4096
			}
		}
		t = c.claudeThinking(gen, max, limit, c.lostThinking(c.opt.issuer(Converse)) || forceFormat)
		if c.maxTokens == 0 && !t.budget {
			t.max = 0
		}
	case name == "" && c.think == thinkUnset:
	case effortIndex(name) < 0 || c.model.think == "":
		c.dropField(fieldEffort)
	default:
		t.effort = efforts[effortIndex(name)].rounded
		if c.model.think == "effort" && t.effort == "none" {
			t.effort = ""
			c.dropField(fieldEffort)
		}
	}
	return t
}

func (c *converse) system(lead int, hint string) {
	d := c.d
	start := len(d.b)
	d.open("system", '[')
	empty := len(d.b)
	for _, m := range c.request.messages[:lead] {
		for i := range m.blocks {
			if b := &m.blocks[i]; b.text != "" {
				c.text(b.text)
				c.cachePoint(b.cache)
			}
		}
	}
	if hint != "" {
		c.text(hint)
	}
	if len(d.b) == empty {
		d.b = d.b[:start]
		return
	}
	d.close(']')
}

func (c *converse) text(text string) {
	c.d.open("", '{')
	c.d.str("text", text)
	c.d.close('}')
}

// cachePoint ends a cached prefix; there may be four.
func (c *converse) cachePoint(ttl string) {
	if ttl == "" {
		return
	}
	if c.marks++; c.marks > 4 || !c.model.cache {
		c.dropField(fieldCache)
		return
	}
	c.d.raw("", `{"cachePoint":{"type":"default"`)
	if ttl == "1h" {
		c.d.str("ttl", ttl)
	}
	c.d.b = append(c.d.b, "}}"...)
}

// messages merges neighbours of one role, begins with a user message and puts
// results before everything else of their turn.
func (c *converse) messages(lead int) error {
	d := c.d
	d.open("messages", '[')
	list := c.request.messages[lead:]
	first := true
	for i := 0; i < len(list); {
		r := list[i].role
		var blocks []block
		for ; i < len(list) && (list[i].role == assistant) == (r == assistant); i++ {
			blocks = append(blocks, list[i].blocks...)
		}
		name := "user"
		if r == assistant {
			name = "assistant"
			if i == len(list) {
				trimLast(blocks)
			}
		}
		at := len(d.b)
		if r == assistant && first {
			d.raw("", `{"role":"user","content":[{"text":"(The conversation so far is not shown.)"}]}`)
		}
		d.open("", '{')
		d.str("role", name)
		d.open("content", '[')
		start := len(d.b)
		document, text := false, false
		for pass := 0; pass < 2; pass++ {
			for j := range blocks {
				b := &blocks[j]
				if (b.kind == toolResultBlock) != (pass == 0) {
					continue
				}
				document = document || b.kind == documentBlock
				text = text || b.kind == textBlock && strings.TrimSpace(b.text) != ""
				if err := c.block(b); err != nil {
					return err
				}
			}
		}
		if len(d.b) == start {
			d.b = d.b[:at] // nothing was left of it
			continue
		}
		if document && !text {
			c.text("(See the document.)") // one without a text is refused
		}
		first = false
		d.close(']')
		d.close('}')
	}
	d.close(']')
	return nil
}

func (c *converse) block(b *block) error {
	d := c.d
	switch b.kind {
	case textBlock, refusalBlock:
		if strings.TrimSpace(b.text) == "" {
			return nil // blank texts are refused
		}
		c.text(b.text)
	case imageBlock:
		if err := c.image(b); err != nil {
			return err
		}
	case documentBlock:
		if err := c.document(b); err != nil {
			return err
		}
	case audioBlock:
		return apierr.Invalid("messages", "This model does not take audio.")
	case toolUseBlock:
		args, ok := object(b.args)
		if !ok {
			args = `{"_raw":` + quoted(b.args) + `}`
		}
		d.open("", '{')
		d.open("toolUse", '{')
		d.str("toolUseId", c.callID(b.id))
		d.str("name", b.name)
		d.raw("input", args)
		d.close('}')
		d.close('}')
	case toolResultBlock:
		d.open("", '{')
		d.open("toolResult", '{')
		d.str("toolUseId", c.callID(b.id))
		d.open("content", '[')
		start := len(d.b)
		for i := range b.parts {
			if err := c.block(&b.parts[i]); err != nil {
				return err
			}
		}
		if len(d.b) == start {
			c.text("(no output)")
		}
		d.close(']')
		if b.failed {
			d.str("status", "error")
		}
		d.close('}')
		d.close('}')
	case thinkingBlock:
		if b.issuer != c.opt.issuer(Converse) || b.sig == "" {
			c.dropField(fieldThinking)
			return nil
		}
		d.open("", '{')
		d.open("reasoningContent", '{')
		if b.redacted {
			d.str("redactedContent", b.sig)
		} else {
			d.open("reasoningText", '{')
			d.str("text", b.text)
			d.str("signature", b.sig)
			d.close('}')
		}
		d.close('}')
		d.close('}')
		return nil // nothing is cached here
	}
	c.cachePoint(b.cache)
	return nil
}

// callID makes an id of at most 64 of the characters taken, the same for the
// same id.
func (c *converse) callID(id string) string {
	id = messagesID(id)
	if n := c.model.ids; n > 0 {
		kept := make([]byte, 0, n)
		for i := len(id) - 1; i >= 0 && len(kept) < n; i-- { // ids differ at their ends
			if id[i] != '_' && id[i] != '-' {
				kept = append(kept, id[i])
			}
		}
		for len(kept) < n {
			kept = append(kept, '0')
		}
		return string(kept)
	}
	if len(id) > 64 {
		id = id[len(id)-64:]
	}
	return id
}

func (c *converse) image(b *block) error {
	kind, ok := strings.CutPrefix(b.mime, "image/")
	if kind == "jpg" {
		kind = "jpeg"
	}
	switch {
	case b.file != "":
		return apierr.Invalid("messages", "Files stored at another provider cannot be used with this model.")
	case b.url != "" || b.data == "":
		return apierr.Invalid("messages", "This model takes images as base64 data only, not by address.")
	case !ok || kind != "png" && kind != "jpeg" && kind != "gif" && kind != "webp":
		return apierr.Invalid("messages", "This model takes png, jpeg, gif and webp images.")
	}
	c.d.raw("", `{"image":{`)
	c.d.str("format", kind)
	c.source(b.data)
	c.d.b = append(c.d.b, "}}"...)
	return nil
}

func (c *converse) source(data string) {
	c.d.open("source", '{')
	c.d.str("bytes", data)
	c.d.close('}')
}

// converseDocuments are the formats by media type.
var converseDocuments = [...][2]string{
	{"application/pdf", "pdf"}, {"text/csv", "csv"}, {"text/html", "html"}, {"text/markdown", "md"}, {"text/plain", "txt"},
	{"application/msword", "doc"}, {"application/vnd.openxmlformats-officedocument.wordprocessingml.document", "docx"},
	{"application/vnd.ms-excel", "xls"}, {"application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", "xlsx"},
}

func (c *converse) document(b *block) error {
	data, kind := b.data, ""
	for i := range converseDocuments {
		if converseDocuments[i][0] == b.mime {
			kind = converseDocuments[i][1]
		}
	}
	if b.text != "" {
		data = base64.StdEncoding.EncodeToString([]byte(b.text))
		if kind == "" {
			kind = "txt"
		}
	}
	switch {
	case b.file != "":
		return apierr.Invalid("messages", "Files stored at another provider cannot be used with this model.")
	case b.url != "" || data == "":
		return apierr.Invalid("messages", "This model takes documents as base64 data only, not by address.")
	case kind == "":
		return apierr.Invalid("messages", "This model does not take documents of this type.")
	}
	c.d.raw("", `{"document":{`)
	c.d.str("format", kind)
	c.d.str("name", c.documentName(b.title))
	c.source(data)
	c.d.b = append(c.d.b, "}}"...)
	return nil
}

// documentName keeps the characters that a name may have, without the file
// type at its end; no two documents of a request have the same.
func (c *converse) documentName(title string) string {
	if i := strings.LastIndexByte(title, '.'); i > 0 {
		title = title[:i]
	}
	var kept []byte
	for i := 0; i < len(title) && len(kept) < 180; i++ {
		ch := title[i]
		if !letter(ch) && (ch < '0' || ch > '9') && strings.IndexByte("-()[]", ch) < 0 {
			ch = ' '
		}
		if ch != ' ' || len(kept) > 0 && kept[len(kept)-1] != ' ' {
			kept = append(kept, ch)
		}
	}
	base := strings.TrimRight(string(kept), " ")
	if base == "" {
		base = "document"
	}
	name := base
	for n := 2; c.named(name); n++ {
		name = base + " " + strconv.Itoa(n)
	}
	c.documents = append(c.documents, name)
	return name
}

func (c *converse) named(name string) bool {
	for _, d := range c.documents {
		if d == name {
			return true
		}
	}
	return false
}

// tools writes toolConfig. A conversation with calls in it must have one, so
// tools that are not offered any more are named again.
func (c *converse) tools(gen *claude, budget, forceFormat bool) {
	d, tools := c.d, c.request.tools
	if len(c.choice.allowed) > 0 {
		tools = only(tools, c.choice.allowed)
	}
	used := c.usedTools()
	if c.choice.mode == choiceNone {
		if len(used) == 0 {
			tools = nil
		} else if len(tools) > 0 {
			c.drop("tool_choice")
		}
	}
	if len(tools) == 0 && !forceFormat {
		for _, name := range used {
			tools = append(tools, tool{name: name})
		}
	}
	if len(tools) == 0 && !forceFormat {
		return
	}
	d.open("toolConfig", '{')
	d.open("tools", '[')
	for i := range tools {
		t := &tools[i]
		c.toolSpec(t.name, t.description, t.schemaOr())
		c.cachePoint(t.cache)
	}
	if forceFormat {
		c.toolSpec(formatTool, "Gives the answer.", objectSchema(c.format.schema))
	}
	d.close(']')
	mode, name := c.choice.mode, c.choice.name
	if forceFormat && len(tools) == 0 {
		mode, name = choiceTool, formatTool
	} else if forceFormat {
		mode = choiceAny
	}
	if len(c.request.tools) == 0 && !forceFormat {
		mode = choiceUnset
	}
	if (mode == choiceAny || mode == choiceTool) && (!c.model.force || !gen.forced || budget) {
		mode = choiceUnset
		c.drop("tool_choice")
	}
	switch mode {
	case choiceAuto:
		d.raw("toolChoice", `{"auto":{}}`)
	case choiceAny:
		d.raw("toolChoice", `{"any":{}}`)
	case choiceTool:
		d.raw("toolChoice", `{"tool":{"name":`+quoted(name)+`}}`)
	}
	d.close('}')
}

// usedTools names the tools that were called, each once.
func (c *converse) usedTools() (names []string) {
	for i := range c.request.messages {
	next:
		for j := range c.request.messages[i].blocks {
			b := &c.request.messages[i].blocks[j]
			if b.kind != toolUseBlock {
				continue
			}
			for _, n := range names {
				if n == b.name {
					continue next
				}
			}
			names = append(names, b.name)
		}
	}
	return names
}

func (c *converse) toolSpec(name, description, schema string) {
	c.d.raw("", `{"toolSpec":{`)
	c.d.str("name", name)
	c.d.opt("description", description)
	c.d.raw("inputSchema", `{"json":`+schema+`}`)
	c.d.b = append(c.d.b, "}}"...)
}

// inference writes inferenceConfig.
func (c *converse) inference(gen *claude, isClaude bool, think thought, limit int64) {
	d := c.d
	start := len(d.b)
	d.open("inferenceConfig", '{')
	empty := len(d.b)
	if max := think.max; max > 0 {
		if limit > 0 && max > limit {
			max = limit
		}
		d.int("maxTokens", max)
	}
	if !isClaude || gen.sampling && !think.budget {
		temperature := c.temperature
		if temperature != "" && gjson.Parse(temperature).Num > 1 {
			temperature = "1"
		}
		d.optRaw("temperature", temperature)
		if isClaude && gen.oneSampling && temperature != "" {
			c.dropSet("top_p", c.topP)
		} else {
			d.optRaw("topP", c.topP)
		}
	} else {
		c.dropSet("temperature", c.temperature)
		c.dropSet("top_p", c.topP)
	}
	var stop []string
	for _, s := range c.stop {
		if strings.TrimSpace(s) == "" {
			c.dropField(fieldStop)
			continue
		}
		stop = append(stop, s)
	}
	if len(stop) > 0 {
		d.raw("stopSequences", quoteList(stop))
	}
	if len(d.b) == empty {
		d.b = d.b[:start]
		return
	}
	d.close('}')
}

// further writes additionalModelRequestFields, which each vendor has its own
// of.
func (c *converse) further(isClaude bool, gen *claude, think thought) {
	d := c.d
	start := len(d.b)
	d.open("additionalModelRequestFields", '{')
	empty := len(d.b)
	switch {
	case c.topK == "":
	case c.model.topK == "" || isClaude && (!gen.sampling || think.budget):
		c.drop("top_k")
	default:
		i := strings.LastIndexByte(c.model.topK, ':') + 1
		d.raw("", c.model.topK[:i]+c.topK+c.model.topK[i:])
	}
	switch c.model.think {
	case "claude":
		d.optRaw("thinking", think.json)
		if think.effort != "" {
			d.raw("output_config", `{"effort":`+quoted(think.effort)+`}`)
		}
	case "effort":
		d.opt("reasoning_effort", think.effort)
	case "nova":
		switch think.effort {
		case "":
		case "none":
			d.raw("reasoningConfig", `{"type":"disabled"}`)
		default:
			d.raw("reasoningConfig", `{"type":"enabled","maxReasoningEffort":`+quoted(think.effort)+`}`)
		}
	}
	if len(d.b) == empty {
		d.b = d.b[:start]
		return
	}
	d.close('}')
}
