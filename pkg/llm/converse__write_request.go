package llm

import (
	"strings"

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
	{name: "mistral", force: true, ids: 9},
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
	documents map[string]int // how many of a name there were
}

// writeConverseRequest writes a Converse request; the model stands in its
// address.
func writeConverseRequest(q *request, d *doc, opt *Options) error {
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
			hint = "Answer with JSON of this schema and nothing else:\n" + q.describedSchema()
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
		d.str("schema", q.closed(q.fieldName(fieldFormat), q.format.schema))
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
	q.dropOpenAI()
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
				max = gen.unlimited()
			}
		}
		t = c.claudeThinking(gen, max, limit, c.lostThinking(c.opt.issuer(issuerBedrock)) || forceFormat)
		if c.maxTokens == 0 && !t.budget {
			t.max = 0
		}
	case name == "" && c.think == thinkUnset:
	case effortIndex(name) < 0 || c.model.think == "":
		c.dropField(fieldEffort)
	default:
		if t.effort = efforts[effortIndex(name)].rounded; t.effort != name && c.effort != "" {
			c.dropEffort()
		}
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
		turn := turnOf(list[i:])
		i += len(turn)
		name := "user"
		if r == assistant {
			name = "assistant"
			if i == len(list) {
				trimLast(turn)
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
		err := resultsFirst(turn, func(b *block) error {
			document = document || b.kind == documentBlock
			text = text || b.kind == textBlock && strings.TrimSpace(b.text) != ""
			return c.block(b)
		})
		if err != nil {
			return err
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

// inference writes inferenceConfig.
func (c *converse) inference(gen *claude, isClaude bool, think thought, limit int64) {
	d := c.d
	start := len(d.b)
	d.open("inferenceConfig", '{')
	empty := len(d.b)
	if c.model.think == "nova" && think.effort == "high" {
		// Nova 2 refuses all of these then.
		if c.maxTokens > 0 {
			c.dropField(fieldMaxTokens)
		}
		c.dropSet("temperature", c.temperature)
		c.dropSet("top_p", c.topP)
		c.dropSet("top_k", c.topK)
		think.max, c.temperature, c.topP, c.topK = 0, "", "", ""
	}
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
	if stop := c.stops(); len(stop) > 0 {
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
