package gemini

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"weir/pkg/llm/ir"
	"weir/pkg/wire/apierr"
)

// Fields are the names of a request's fields.
var Fields = ir.FieldNames{
	ir.FieldStop:          "generationConfig.stopSequences",
	ir.FieldEffort:        "generationConfig.thinkingConfig",
	ir.FieldLevel:         "generationConfig.thinkingConfig.thinkingLevel",
	ir.FieldFormat:        "generationConfig.responseSchema",
	ir.FieldSchema:        "generationConfig.responseSchema.",
	ir.FieldThinking:      "contents.parts.thought",
	ir.FieldMaxTokens:     "generationConfig.maxOutputTokens",
	ir.FieldLogprobs:      "generationConfig.responseLogprobs",
	ir.FieldSearch:        "tools.googleSearch",
	ir.FieldSearchBlocked: "tools.googleSearch.excludeDomains",
}

// ReadRequest reads a generateContent request (docs/reference/dialects.md, a).
func ReadRequest(root gjson.Result, q *ir.Request, opt *ir.Options) (err error) {
	q.Stream = opt.Stream
	r := reader{q: q}
	var contents gjson.Result
	members(root, func(name string, v gjson.Result) bool {
		switch name {
		case "model": // that of the URL is used
		case "contents":
			contents = v
		case "systemInstruction":
			err = r.system(v)
		case "tools":
			elements(v, func(t gjson.Result) bool { r.tool(v, t); return true })
		case "toolConfig":
			err = r.toolConfig(v)
		case "generationConfig":
			err = r.config(v)
		case "cachedContent":
			err = apierr.Invalid(name, "This model's provider has no cachedContents. Send the content itself.")
		default:
			q.Drop(name)
		}
		return err == nil
	})
	if err != nil {
		return err
	}
	if r.format != "" && q.Format.Kind == ir.FormatObject {
		q.Format = ir.Format{Kind: ir.FormatSchema, Schema: r.format}
		if q.Strictable(gjson.Parse(r.format)) {
			q.Format.Strict = "true"
		}
	}
	if r.validated {
		for i := range q.Tools {
			if t := &q.Tools[i]; t.Schema != "" && q.Strictable(gjson.Parse(t.Schema)) {
				t.Strict = "true"
			}
		}
	}
	lead, i := len(q.Messages), 0
	elements(contents, func(v gjson.Result) bool {
		q.Messages = ir.Reserve(q.Messages, contents)
		err = r.content("contents["+strconv.Itoa(i)+"]", v)
		i++
		return err == nil
	})
	r.endTurn()
	if err == nil && len(q.Messages) == lead {
		err = apierr.Invalid("contents", "contents must have at least one part.")
	}
	return err
}

// reader reads a request.
type reader struct {
	q         *ir.Request
	format    string // schema of the answer
	validated bool   // calls are to match their schemas
	calls     int    // of the conversation so far
	// turn are the blocks of the model's contents since the last one of the user, and
	// run the text of the last block. Clients store each event of a stream as a content.
	turn []ir.Block
	run  ir.Joiner
	// waiting has the ids of the calls of the model's last turn, with true until
	// their result is read; byName has the same ids by the name of the function.
	waiting map[string]bool
	byName  map[string][]string
}

func (r *reader) system(v gjson.Result) (err error) {
	blocks, err := r.blocks("systemInstruction", v)
	if len(blocks) > 0 {
		r.q.Messages = slices.Insert(r.q.Messages, 0, ir.Message{Role: ir.RoleSystem, Blocks: blocks})
	}
	return err
}

func (r *reader) content(at string, v gjson.Result) error {
	switch name := ir.Str(v.Get("role")); name {
	case "", "user", "function":
		r.endTurn()
		blocks, err := r.blocks(at, v)
		if len(blocks) > 0 {
			r.q.Messages = append(r.q.Messages, ir.Message{Role: ir.RoleUser, Blocks: blocks})
		}
		return err
	case "model":
		if len(r.turn) == 0 {
			r.waiting, r.byName = nil, nil
		}
		parts := v.Get("parts")
		elements(parts, func(v gjson.Result) bool {
			r.q.Work(ir.PieceWork + len(v.Raw))
			r.turn = ir.Reserve(r.turn, parts)
			r.modelPart(v)
			return true
		})
		return nil
	default:
		return apierr.Invalid(at+".role", "role must be user or model, not %q.", ir.Truncate(name))
	}
}

// endTurn ends the turn of the model.
func (r *reader) endTurn() {
	r.settle()
	if len(r.turn) > 0 {
		r.q.Messages = append(r.q.Messages, ir.Message{Role: ir.RoleAssistant, Blocks: r.turn})
		r.turn = nil
	}
}

// blocks reads the parts of a content of the user or the system.
func (r *reader) blocks(at string, v gjson.Result) (blocks []ir.Block, err error) {
	if v.Type == gjson.String {
		return []ir.Block{{Text: v.Str}}, nil
	}
	if !v.IsObject() {
		return nil, apierr.Invalid(at, "%s must be an object with parts.", at)
	}
	parts := v.Get("parts")
	elements(parts, func(v gjson.Result) bool {
		r.q.Work(ir.PieceWork + len(v.Raw))
		var b ir.Block
		var ok bool
		if b, ok, err = r.userPart(at+".parts", v); ok {
			blocks = append(ir.Reserve(blocks, parts), b)
		}
		return err == nil
	})
	return blocks, err
}

// settle sets the text of the last block of the turn.
func (r *reader) settle() {
	if text := r.run.Text(); text != "" {
		r.turn[len(r.turn)-1].Text = text
	}
	r.run = ir.Joiner{}
}

// part is a part as it was read.
type part struct {
	text, call, result, inline, file, code, output gjson.Result
	thought                                        bool
	signature                                      string
}

func (r *reader) part(v gjson.Result) (p part) {
	members(v, func(name string, v gjson.Result) bool {
		switch name {
		case "text":
			p.text = v
		case "thought":
			p.thought = v.Type == gjson.True
		case "thoughtSignature":
			if sig := ir.Str(v); sig != unsignedCall {
				p.signature = sig
			}
		case "functionCall":
			p.call = v
		case "functionResponse":
			p.result = v
		case "inlineData":
			p.inline = v
		case "fileData":
			p.file = v
		case "executableCode":
			p.code = v
		case "codeExecutionResult":
			p.output = v
		default:
			r.q.Drop("contents.parts." + name)
		}
		return true
	})
	return p
}

// plainText returns the text of a part: its own, or code and its output, which only
// Gemini runs itself.
func (p *part) plainText() string {
	if p.code.IsObject() {
		return "```\n" + ir.Str(p.code.Get("code")) + "\n```\n"
	}
	if p.output.IsObject() {
		return "```\n" + ir.Str(p.output.Get("output")) + "\n```\n"
	}
	return ir.Str(p.text)
}

// modelPart adds a part to the turn. Pieces of one text or thought become one block.
func (r *reader) modelPart(v gjson.Result) {
	p := r.part(v)
	thought, foreign := decodeSignature(p.signature)
	n := len(r.turn)
	open := n > 0 && r.turn[n-1].Kind == ir.ThinkingBlock && r.turn[n-1].Signature == "" && r.turn[n-1].Issuer == ""
	switch {
	case p.call.IsObject():
		r.settle()
		b := r.call(p.call)
		switch {
		case !foreign:
			if p.signature != "" {
				b.Signature, b.Issuer = p.signature, ir.IssuerGemini
			}
		case thought.Text != "" || thought.Signature != "": // else the mark of a foreign call
			r.turn = withThought(r.turn, thought)
		}
		r.turn = append(r.turn, b)
		return
	case p.inline.IsObject() || p.file.IsObject():
		r.q.Drop("contents.parts.inlineData") // no other model takes media of its own
		return
	}
	text := p.plainText()
	if !p.thought {
		if p.signature != "" {
			r.q.DropField(ir.FieldThinking)
		}
		r.extend(ir.TextBlock, text)
		return
	}
	if text != "" {
		if n > 0 && !open && r.turn[n-1].Kind == ir.ThinkingBlock {
			r.settle()
			r.turn = append(r.turn, ir.Block{Kind: ir.ThinkingBlock})
		}
		r.extend(ir.ThinkingBlock, text)
		open = true
	}
	if p.signature == "" {
		return
	}
	r.settle()
	if !foreign {
		thought = ir.Block{Kind: ir.ThinkingBlock, Signature: p.signature, Issuer: ir.IssuerGemini}
	}
	if !open || thought.Redacted {
		r.turn = append(r.turn, thought)
		return
	}
	last := &r.turn[len(r.turn)-1]
	last.Signature, last.Issuer = thought.Signature, thought.Issuer
}

// withThought puts the thought that a call has brought back into the blocks since the
// last call: at their beginning, unless the client has also sent it as a part.
func withThought(blocks []ir.Block, thought ir.Block) []ir.Block {
	at := len(blocks)
	for ; at > 0 && blocks[at-1].Kind != ir.ToolCallBlock; at-- {
		b := &blocks[at-1]
		if b.Kind != ir.ThinkingBlock {
			continue
		}
		if b.Signature == "" && b.Issuer == "" { // without its signature
			thought.Text = cmp.Or(thought.Text, b.Text)
			*b = thought
			return blocks
		}
		if b.Signature == thought.Signature && b.Issuer == thought.Issuer {
			return blocks
		}
	}
	return slices.Insert(blocks, at, thought)
}

// extend adds a text to the last block if it has the same kind, or begins a block.
func (r *reader) extend(kind ir.BlockKind, text string) {
	if text == "" {
		return
	}
	if n := len(r.turn); n == 0 || r.turn[n-1].Kind != kind {
		r.settle()
		r.turn = append(r.turn, ir.Block{Kind: kind})
	}
	r.run.Add("", text)
}

// call reads a function call. One without an id gets the same in every request of
// a conversation.
func (r *reader) call(v gjson.Result) ir.Block {
	b := ir.Block{Kind: ir.ToolCallBlock, Arguments: "{}"}
	members(v, func(name string, v gjson.Result) bool {
		switch name {
		case "id":
			b.ID = ir.Str(v)
		case "name":
			b.Name = ir.Str(v)
		case "args":
			if v.IsObject() {
				b.Arguments = v.Raw
			}
		}
		return true
	})
	r.calls++
	if b.ID == "" {
		b.ID = "gcall_" + strconv.Itoa(r.calls)
	}
	if r.waiting == nil {
		r.waiting, r.byName = map[string]bool{}, map[string][]string{}
	}
	r.waiting[b.ID] = true
	r.byName[b.Name] = append(r.byName[b.Name], b.ID)
	return b
}

// callOf returns the id of the call that a result answers: of its own id, or of the
// next call of that name.
func (r *reader) callOf(id, name string) string {
	if r.waiting[id] {
		r.waiting[id] = false
		return id
	}
	for list := r.byName[name]; len(list) > 0; {
		next := list[0]
		list = list[1:]
		r.byName[name] = list
		if r.waiting[next] {
			r.waiting[next] = false
			return next
		}
	}
	if id == "" {
		r.calls++
		id = "gcall_" + strconv.Itoa(r.calls)
	}
	return id
}

func (r *reader) userPart(at string, v gjson.Result) (b ir.Block, ok bool, err error) {
	p := r.part(v)
	switch {
	case p.result.IsObject():
		if waiting, known := r.waiting[ir.Str(p.result.Get("id"))]; known && !waiting {
			return b, false, nil // Gemini CLI repeats the results of a session that it resumes
		}
		b, err = r.result(at, p.result)
		return b, err == nil, err
	case p.inline.IsObject(), p.file.IsObject():
		b, err = media(at, p.inline, p.file)
		return b, err == nil, err
	}
	b.Text = p.plainText()
	return b, b.Text != "", nil
}

// result reads the response of a function.
func (r *reader) result(at string, v gjson.Result) (b ir.Block, err error) {
	b.Kind = ir.ToolResultBlock
	var response, parts gjson.Result
	members(v, func(name string, v gjson.Result) bool {
		switch name {
		case "id":
			b.ID = ir.Str(v)
		case "name":
			b.Name = ir.Str(v)
		case "response":
			response = v
		case "parts":
			parts = v
		case "scheduling", "willContinue":
			r.q.Drop("contents.parts.functionResponse." + name)
		}
		return true
	})
	b.ID = r.callOf(b.ID, b.Name)
	var text string
	if text, b.IsError = resultText(response); text != "" {
		b.Parts = []ir.Block{{Text: text}}
	}
	elements(parts, func(v gjson.Result) bool {
		p := r.part(v)
		var m ir.Block
		if m, err = media(at, p.inline, p.file); err == nil {
			b.Parts = append(ir.Reserve(b.Parts, parts), m)
		}
		return err == nil
	})
	return b, err
}

// resultText returns the text of a response: of its only member output, result or
// error, or the whole in JSON.
func resultText(v gjson.Result) (text string, isError bool) {
	if !v.IsObject() {
		return ir.Raw(v), false
	}
	n := 0
	var only, value gjson.Result
	v.ForEach(func(k, x gjson.Result) bool {
		n++
		only, value = k, x
		return n < 2
	})
	if n != 1 {
		return v.Raw, false
	}
	switch only.Str {
	case "error":
		isError = true
	case "output", "result":
	default:
		return v.Raw, false
	}
	if value.Type == gjson.String {
		return value.Str, isError
	}
	return value.Raw, isError
}

// media reads inlineData, or fileData with a public address.
func media(at string, inline, file gjson.Result) (b ir.Block, err error) {
	kind, uri := "", ""
	members(inline, func(name string, v gjson.Result) bool {
		switch name {
		case "mimeType":
			kind = ir.Str(v)
		case "data":
			b.Data = standardBase64(ir.Str(v))
		case "displayName":
			b.Title = ir.Str(v)
		}
		return true
	})
	members(file, func(name string, v gjson.Result) bool {
		switch name {
		case "mimeType":
			kind = ir.Str(v)
		case "fileUri":
			uri = ir.Str(v)
		case "displayName":
			b.Title = ir.Str(v)
		}
		return true
	})
	kind, _, _ = strings.Cut(strings.ToLower(kind), ";")
	switch {
	case strings.HasPrefix(kind, "image/"):
		b.Kind = ir.ImageBlock
		if kind == "image/jpg" {
			kind = "image/jpeg"
		}
	case strings.HasPrefix(kind, "audio/"):
		b.Kind = ir.AudioBlock
		switch kind {
		case "audio/mp3":
			kind = "audio/mpeg"
		case "audio/x-wav", "audio/wave":
			kind = "audio/wav"
		}
	case strings.HasPrefix(kind, "video/"):
		return b, apierr.Invalid(at, "Only Gemini models accept video. Choose one of them, or send images.")
	default:
		b.Kind = ir.DocumentBlock
	}
	if uri == "" {
		if b.Data == "" {
			return b, apierr.Invalid(at, "A part has no data.")
		}
		b.MediaType = kind
		if strings.HasPrefix(kind, "text/") {
			b.DecodeText()
		}
		return b, nil
	}
	if !strings.HasPrefix(uri, "http://") && !strings.HasPrefix(uri, "https://") || strings.HasPrefix(uri, filesHost) {
		return b, apierr.Invalid(at, "Files stored at another provider cannot be used with this model. Send them as inlineData.")
	}
	if b.Kind == ir.AudioBlock {
		return b, apierr.Invalid(at, "This model accepts audio as inlineData only.")
	}
	b.URL = uri
	return b, nil
}

// filesHost begins the addresses of Google's Files API, which only its own models
// read.
const filesHost = "https://generativelanguage.googleapis.com/"
