package embeddings

import "weir/pkg/wire/jsonscan"

// openAI is the shape of OpenAI itself, and of all who copied it whole. The
// client's bytes go up with only the model changed.
var openAI = shape{read: readOpenAI, dialect: &asIs}

// asIs is the dialect of OpenAI.
var asIs = dialect{plain: true, encoding: "encoding_format", numbers: true, dimensions: "dimensions", user: true}

// The providers that took over OpenAI's shape with changes.
var (
	mistral = shape{name: "mistral", batch: 32, read: readOpenAI, dialect: &dialect{
		encoding: "encoding_format", numbers: true, dimensions: "output_dimension",
	}}
	voyage = shape{name: "voyage", batch: 1000, textOnly: true, read: readOpenAI, dialect: &dialect{
		encoding: "encoding_format", dimensions: "output_dimension", purpose: "input_type", query: `"query"`,
		document: `"document"`,
	}}
	jina = shape{name: "jina", batch: 2048, textOnly: true, read: readOpenAI, dialect: &dialect{
		encoding: "embedding_type", numbers: true, dimensions: "dimensions", array: true,
		purpose: "task", query: `"retrieval.query"`, document: `"retrieval.passage"`,
	}}
	nvidia = shape{name: "nvidia", read: readOpenAI, dialect: &dialect{
		encoding: "encoding_format", numbers: true, dimensions: "dimensions", user: true,
		purpose: "input_type", query: `"query"`, document: `"passage"`, always: true,
	}}
	together   = shape{name: "together", read: readOpenAI, dialect: &dialect{}}
	perplexity = shape{name: "perplexity", batch: 512, textOnly: true, read: readPerplexity, dialect: &dialect{
		dimensions: "dimensions", fixed: `"encoding_format":"base64_int8"`,
	}}
	dashscope  = shape{name: "dashscope", batch: 10, read: readOpenAI, dialect: &asIs}
	cloudflare = shape{name: "cloudflare", batch: 100, read: readOpenAI, dialect: &asIs}
)

// dialect says how a provider's request differs from OpenAI's. Fields that
// neither know travel on.
type dialect struct {
	plain      bool   // nothing differs: a request passes with only its model changed
	encoding   string // name of encoding_format; "" sends none
	numbers    bool   // the value "float" is sent too
	dimensions string // name of dimensions; "" drops it
	user       bool   // user is known
	array      bool   // input must be an array
	fixed      string // a member added to every request
	// purpose is the field that says what vectors are for, with its two
	// values. It is added when the client gave none and the machine's setting
	// says it, or always, then for storing unless the setting says otherwise.
	purpose, query, document string
	always                   bool
}

// write makes the body of a call.
func (d *dialect) write(p *part) []byte {
	if d.plain && p.whole() && p.user == nil {
		return jsonscan.Splice(p.body, p.at[fModel].Span, quoteModel(p))
	}
	return d.rewrite(p)
}

// quoteModel returns the upstream's model id as JSON.
func quoteModel(p *part) []byte {
	return jsonscan.Quote(make([]byte, 0, len(p.model)+8), p.model)
}

// rewrite copies the client's members one by one.
func (d *dialect) rewrite(p *part) []byte {
	out := make([]byte, 0, len(p.body)+len(p.model)+96)
	out = append(out, '{')
	member := func(name string, value []byte) {
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(append(append(out, '"'), name...), `":`...), value...)
	}
	purposeGiven := false
	var c jsonscan.Cursor
	c.Reset(p.body)
	for c.Object(); c.Key(); {
		key := c.KeySpan()
		purpose := d.purpose != "" && c.KeyIs(d.purpose)
		field := -1
		for i := range names {
			if c.KeyIs(names[i]) {
				field = i
			}
		}
		v := c.Value()
		raw := p.body[v.Start:v.End]
		switch field {
		case fModel:
			member("model", quoteModel(p))
		case fInput:
			if p.whole() && !(d.array && (p.kind == text || p.kind == tokens)) {
				member("input", raw)
			} else {
				member("input", p.list(nil))
			}
		case fEncoding:
			if d.encoding != "" && (p.base64 || d.numbers) {
				member(d.encoding, raw)
			}
		case fDimensions:
			if v.Kind == jsonscan.Null {
				break
			}
			if d.dimensions == "" {
				p.drop(fDimensions)
			} else if d.plain || p.size() > 0 {
				member(d.dimensions, raw)
			}
		case fUser:
			if v.Kind == jsonscan.Null {
				break
			}
			if d.user && p.user != nil {
				member("user", p.user)
			} else if d.user {
				member("user", raw)
			} else {
				p.drop(fUser)
			}
		default:
			if purpose && v.Kind == jsonscan.Null {
				break
			}
			purposeGiven = purposeGiven || purpose
			if len(out) > 1 {
				out = append(out, ',')
			}
			out = append(append(append(out, p.body[key.Start:key.End]...), ':'), raw...)
		}
	}
	if d.purpose != "" && !purposeGiven && (d.always || p.purpose != "") {
		if p.isQuery() {
			member(d.purpose, []byte(d.query))
		} else {
			member(d.purpose, []byte(d.document))
		}
	}
	if d.fixed != "" {
		out = append(append(out, ','), d.fixed...)
	}
	return append(out, '}')
}

// readOpenAI reads {object, data[{object, index, embedding}], model, usage} in
// one pass. An answer that has all of it may pass as it is.
func readOpenAI(a *answer, r *request) error {
	a.plain, a.inputTokens, a.allTokens = true, -1, -1
	var c jsonscan.Cursor
	c.MaxTokens = maxAnswer
	c.Reset(a.body)
	if c.Kind() != jsonscan.Object {
		return errShape
	}
	listed, found := false, false
	for c.Object(); c.Key(); {
		switch {
		case c.KeyIs("data"):
			if found || c.Kind() != jsonscan.Array {
				return errShape
			}
			found = true
			if a.items = a.space; cap(a.items) < r.count {
				a.items = make([]item, 0, r.count)
			}
			for c.Array(); c.Elem(); {
				if err := a.readItem(&c); err != nil {
					return err
				}
			}
		case c.KeyIs("model"):
			if a.model.Kind != jsonscan.Absent {
				a.plain = false
			}
			a.model = c.Value()
		case c.KeyIs("object"):
			listed = isText(a.body, c.Value(), "list")
		case c.KeyIs("usage") && c.Kind() == jsonscan.Object:
			a.readUsage(&c)
		default:
			c.Skip()
		}
	}
	if err := c.End(); err != nil {
		return err
	}
	if !found {
		return errShape
	}
	a.plain = a.plain && listed && a.inputTokens >= 0 && a.allTokens >= 0
	return nil
}

func (a *answer) readItem(c *jsonscan.Cursor) error {
	if c.Kind() != jsonscan.Object {
		return errShape
	}
	it := item{index: len(a.items)}
	named, indexed := false, false
	for c.Object(); c.Key(); {
		switch {
		case c.KeyIs("embedding"):
			if it.raw != nil {
				return errShape
			}
			start := c.Offset()
			switch c.Kind() {
			case jsonscan.Array:
				n, _, ok := c.Numbers()
				if !ok || n == 0 {
					return errShape
				}
				it.raw = trimmed(a.body, start, c.Offset())
			case jsonscan.String:
				v := c.Value()
				it.raw, it.form, it.escaped = a.body[v.Start:v.End], float32le, v.Escaped
				if len(it.raw) < 4 {
					return errShape
				}
			default:
				return errShape
			}
		case c.KeyIs("index") && c.Kind() != jsonscan.Null:
			n, ok := number(a.body, c.Value())
			if !ok || n >= maxInputs {
				return errShape
			}
			it.index, indexed = int(n), true
		case c.KeyIs("object"):
			named = isText(a.body, c.Value(), "embedding")
		default:
			c.Skip()
		}
	}
	if it.raw == nil {
		return errShape
	}
	a.plain = a.plain && named && indexed
	a.items = append(a.items, it)
	return nil
}

// readUsage passes a usage object. Counts that are missing or no integers stay
// unknown.
func (a *answer) readUsage(c *jsonscan.Cursor) {
	for c.Object(); c.Key(); {
		switch {
		case c.KeyIs("prompt_tokens"):
			if n, ok := number(a.body, c.Value()); ok {
				a.inputTokens = n
			}
		case c.KeyIs("total_tokens"):
			if n, ok := number(a.body, c.Value()); ok {
				a.allTokens = n
			}
		default:
			c.Skip()
		}
	}
}

// readPerplexity is readOpenAI with vectors of signed bytes.
func readPerplexity(a *answer, r *request) error {
	if err := readOpenAI(a, r); err != nil {
		return err
	}
	for i := range a.items {
		if a.items[i].form == float32le {
			a.items[i].form = int8s
		}
	}
	return nil
}

// trimmed returns the bytes of a value without the blanks after it.
func trimmed(body []byte, start, end int) []byte {
	for end > start && body[end-1] <= ' ' {
		end--
	}
	return body[start:end]
}

// isText reports whether a value is a text.
func isText(body []byte, v jsonscan.Value, want string) bool {
	switch {
	case v.Kind != jsonscan.String:
		return false
	case v.Escaped:
		return jsonscan.Text(body, v) == want
	}
	return string(body[v.Start+1:v.End-1]) == want
}

// number reads a count: an integer that is not negative.
func number(body []byte, v jsonscan.Value) (n int64, ok bool) {
	if v.Kind != jsonscan.Number || v.End-v.Start > 15 {
		return 0, false
	}
	for _, b := range body[v.Start:v.End] {
		if b-'0' > 9 {
			return 0, false
		}
		n = n*10 + int64(b-'0')
	}
	return n, true
}
