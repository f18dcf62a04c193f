package converse

import (
	"cmp"
	"strings"

	"github.com/tidwall/gjson"

	"weir/pkg/llm/ir"
)

// model is what the models of a vendor support behind Bedrock's Converse.
// Source: AWS, Bedrock API Reference, Converse; User Guide, "Supported models
// and model features", "Inference request parameters" and "Prompt caching".
type model struct {
	name  string // part of the model id
	force bool   // toolChoice any and tool
	cache bool   // cachePoint
	topK  string // where top_k goes in additionalModelRequestFields: before and after the number
	think string // form of reasoning: claude, effort, nova
	ids   int    // exact length of tool call ids, letters and digits; 0 is any
}

// models are the rows by vendor. The first row whose name is in the model's id
// applies.
var models = [...]model{
	{name: "claude-3-5-haiku", force: true, cache: true, topK: `"top_k":`, think: "claude"},
	{name: "claude-3-7", force: true, cache: true, topK: `"top_k":`, think: "claude"},
	{name: "claude-3-", force: true, topK: `"top_k":`, think: "claude"},
	{name: "claude", force: true, cache: true, topK: `"top_k":`, think: "claude"},
	{name: "nova-2", force: true, cache: true, topK: `"inferenceConfig":{"topK":}`, think: "nova"},
	{name: "nova", force: true, cache: true, topK: `"inferenceConfig":{"topK":}`},
	{name: "mistral", force: true, ids: 9},
	{name: "openai.gpt", think: "effort"},
	{},
}

func modelNamed(id string) *model {
	for i := range models {
		if strings.Contains(id, models[i].name) {
			return &models[i]
		}
	}
	return &models[len(models)-1]
}

// requestWriter writes one request.
type requestWriter struct {
	*ir.Request
	d         *ir.Writer
	opt       *ir.Options
	model     *model
	marks     int
	documents map[string]int // number of documents by name
}

// WriteRequest writes a Converse request. The model is in its URL.
func WriteRequest(q *ir.Request, d *ir.Writer, opt *ir.Options) error {
	c := &requestWriter{Request: q, d: d, opt: opt, model: modelNamed(opt.Model)}
	if c.model.think == "claude" && c.model.cache {
		q.MarkCache(opt)
	}
	gen := &ir.OtherClaude
	isClaude := c.model.think == "claude"
	if isClaude {
		gen = ir.ClaudeNamed(opt.Model)
	}
	schema, forceFormat, hint := false, false, ""
	switch q.Format.Kind {
	case ir.FormatObject:
		hint = "Answer with one JSON object and nothing else."
	case ir.FormatSchema:
		switch {
		case isClaude && gen.Schema:
			schema = true
		case c.model.force:
			forceFormat = true
		default:
			hint = "Answer with JSON of this schema and nothing else:\n" + q.DescribedSchema()
		}
	}
	limit := opt.MaxOutput
	if limit == 0 && isClaude {
		limit = gen.MaxOutput
	}
	if n := opt.OutputLimit; n > 0 && (limit == 0 || n < limit) {
		limit = n
	}
	think := c.thinking(gen, limit, forceFormat)

	d.Open("", '{')
	lead := q.Lead()
	c.system(lead, hint)
	if err := c.messages(lead); err != nil {
		return err
	}
	c.tools(gen, think.Budget, forceFormat)
	c.inference(gen, isClaude, think, limit)
	c.further(isClaude, gen, think)
	if schema {
		d.Open("outputConfig", '{')
		d.Open("textFormat", '{')
		d.Str("type", "json_schema")
		d.Open("structure", '{')
		d.Open("jsonSchema", '{')
		d.Str("schema", q.CloseSchema(q.FieldName(ir.FieldFormat), q.Format.Schema))
		d.OptStr("name", q.Format.Name)
		d.OptStr("description", q.Format.Description)
		for range 4 {
			d.Close('}')
		}
	}
	switch q.ServiceTier {
	case "", "auto":
	case "default", "flex", "priority":
		d.Open("serviceTier", '{')
		d.Str("type", q.ServiceTier)
		d.Close('}')
	default:
		q.Drop("service_tier")
	}
	d.Close('}')

	q.DropIfSet("metadata", q.Metadata)
	if q.User != "" {
		q.DropField(ir.FieldUser)
	}
	q.DropIfSet("presence_penalty", q.PresencePenalty)
	q.DropIfSet("frequency_penalty", q.FrequencyPenalty)
	q.DropIfSet("seed", q.Seed)
	q.DropOpenAI()
	if q.SearchWeb {
		q.DropField(ir.FieldSearch)
	}
	if q.Parallel == "false" && len(q.Tools) > 0 {
		q.DropField(ir.FieldParallel)
	}
	return nil
}

// thinking returns how the model is asked to reason. MaxTokens is 0 if the
// client has set no limit and none is required.
func (c *requestWriter) thinking(gen *ir.ClaudeModel, limit int64, forceFormat bool) ir.Thinking {
	t := ir.Thinking{MaxTokens: c.MaxTokens}
	switch name := c.EffortName(); {
	case c.model.think == "claude":
		max := cmp.Or(c.MaxTokens, c.opt.RequiredMaxTokens(gen))
		t = c.ClaudeThinking(gen, max, limit, c.LostThinking(c.opt.IssuerOr(ir.IssuerBedrock)) || forceFormat)
		if c.MaxTokens == 0 && !t.Budget {
			t.MaxTokens = 0
		}
	case name == "" && c.Think == ir.ThinkUnset:
	case ir.EffortIndex(name) < 0 || c.model.think == "":
		c.DropField(ir.FieldEffort)
	default:
		if t.Effort = ir.Efforts[ir.EffortIndex(name)].Rounded; t.Effort != name && c.Effort != "" {
			c.DropEffort()
		}
		if c.model.think == "effort" && t.Effort == "none" {
			t.Effort = ""
			c.DropField(ir.FieldEffort)
		}
	}
	return t
}

func (c *requestWriter) system(lead int, hint string) {
	d := c.d
	start := len(d.Buf)
	d.Open("system", '[')
	empty := len(d.Buf)
	for _, m := range c.Request.Messages[:lead] {
		for i := range m.Blocks {
			if b := &m.Blocks[i]; b.Text != "" {
				c.text(b.Text)
				c.cachePoint(b.Cache)
			}
		}
	}
	if hint != "" {
		c.text(hint)
	}
	if len(d.Buf) == empty {
		d.Buf = d.Buf[:start]
		return
	}
	d.Close(']')
}

func (c *requestWriter) text(text string) {
	c.d.Open("", '{')
	c.d.Str("text", text)
	c.d.Close('}')
}

// cachePoint ends a cached prefix. Four are allowed.
func (c *requestWriter) cachePoint(ttl string) {
	if ttl == "" {
		return
	}
	if c.marks++; c.marks > 4 || !c.model.cache {
		c.DropField(ir.FieldCache)
		return
	}
	c.d.Raw("", `{"cachePoint":{"type":"default"`)
	if ttl == "1h" {
		c.d.Str("ttl", ttl)
	}
	c.d.Buf = append(c.d.Buf, "}}"...)
}

// messages merges adjacent messages of one role, begins with a user message and
// puts tool results before the other blocks of their turn.
func (c *requestWriter) messages(lead int) error {
	d := c.d
	d.Open("messages", '[')
	list := c.Request.Messages[lead:]
	first := true
	for i := 0; i < len(list); {
		r := list[i].Role
		turn := ir.Turn(list[i:])
		i += len(turn)
		name := "user"
		if r == ir.RoleAssistant {
			name = "assistant"
			if i == len(list) {
				ir.TrimPrefill(turn)
			}
		}
		at := len(d.Buf)
		if r == ir.RoleAssistant && first {
			d.Raw("", `{"role":"user","content":[{"text":"(The conversation so far is not shown.)"}]}`)
		}
		d.Open("", '{')
		d.Str("role", name)
		d.Open("content", '[')
		start := len(d.Buf)
		document, text := false, false
		err := ir.ResultsFirst(turn, func(b *ir.Block) error {
			document = document || b.Kind == ir.DocumentBlock
			text = text || b.Kind == ir.TextBlock && strings.TrimSpace(b.Text) != ""
			return c.block(b)
		})
		if err != nil {
			return err
		}
		if len(d.Buf) == start {
			d.Buf = d.Buf[:at] // all of its blocks were left out
			continue
		}
		if document && !text {
			c.text("(See the document.)") // Bedrock refuses a document without a text
		}
		first = false
		d.Close(']')
		d.Close('}')
	}
	d.Close(']')
	return nil
}

// inference writes inferenceConfig.
func (c *requestWriter) inference(gen *ir.ClaudeModel, isClaude bool, think ir.Thinking, limit int64) {
	d := c.d
	start := len(d.Buf)
	d.Open("inferenceConfig", '{')
	empty := len(d.Buf)
	if c.model.think == "nova" && think.Effort == "high" {
		// Nova 2 refuses all of these at high effort.
		if c.MaxTokens > 0 {
			c.DropField(ir.FieldMaxTokens)
		}
		c.DropIfSet("temperature", c.Temperature)
		c.DropIfSet("top_p", c.TopP)
		c.DropIfSet("top_k", c.TopK)
		think.MaxTokens, c.Temperature, c.TopP, c.TopK = 0, "", "", ""
	}
	if max := think.MaxTokens; max > 0 {
		if limit > 0 && max > limit {
			max = limit
		}
		d.Int("maxTokens", max)
	}
	if !isClaude || gen.Sampling && !think.Budget {
		temperature := c.Temperature
		if temperature != "" && gjson.Parse(temperature).Num > 1 {
			temperature = "1"
		}
		d.OptRaw("temperature", temperature)
		if isClaude && gen.OneSampling && temperature != "" {
			c.DropIfSet("top_p", c.TopP)
		} else {
			d.OptRaw("topP", c.TopP)
		}
	} else {
		c.DropIfSet("temperature", c.Temperature)
		c.DropIfSet("top_p", c.TopP)
	}
	if stop := c.StopSequences(); len(stop) > 0 {
		d.Raw("stopSequences", ir.QuoteList(stop))
	}
	if len(d.Buf) == empty {
		d.Buf = d.Buf[:start]
		return
	}
	d.Close('}')
}

// further writes additionalModelRequestFields, which differ by vendor.
func (c *requestWriter) further(isClaude bool, gen *ir.ClaudeModel, think ir.Thinking) {
	d := c.d
	start := len(d.Buf)
	d.Open("additionalModelRequestFields", '{')
	empty := len(d.Buf)
	switch {
	case c.TopK == "":
	case c.model.topK == "" || isClaude && (!gen.Sampling || think.Budget):
		c.Drop("top_k")
	default:
		i := strings.LastIndexByte(c.model.topK, ':') + 1
		d.Raw("", c.model.topK[:i]+c.TopK+c.model.topK[i:])
	}
	switch c.model.think {
	case "claude":
		d.OptRaw("thinking", think.JSON)
		if think.Effort != "" {
			d.Raw("output_config", `{"effort":`+ir.Quote(think.Effort)+`}`)
		}
	case "effort":
		d.OptStr("reasoning_effort", think.Effort)
	case "nova":
		switch think.Effort {
		case "":
		case "none":
			d.Raw("reasoningConfig", `{"type":"disabled"}`)
		default:
			d.Raw("reasoningConfig", `{"type":"enabled","maxReasoningEffort":`+ir.Quote(think.Effort)+`}`)
		}
	}
	if len(d.Buf) == empty {
		d.Buf = d.Buf[:start]
		return
	}
	d.Close('}')
}
