package responses

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"weir/pkg/llm/ir"
	"weir/pkg/wire/jsonscan"
	"weir/pkg/wire/vendorerror"
)

// source reads the events of a Responses stream
// (docs/reference/api-shapes.md, 4.3).
type source struct {
	opt   *ir.Options
	began bool
	calls []streamedItem // by output index
	e     ir.Event
	tools ir.Usage // what tools of the vendor have done
	last  string   // container of the last run of code
}

// streamedItem is the state of an output item.
type streamedItem struct {
	index  int
	custom bool
	args   bool // deltas of its arguments arrived
	part   bool // a part of its reasoning summary has ended
}

// NewSource returns the source of an upstream's stream.
func NewSource(opt *ir.Options) ir.Source { return &source{opt: opt} }

func (s *source) CleanEnd() bool { return false }

func (s *source) item(index int) *streamedItem {
	for i := range s.calls {
		if s.calls[i].index == index {
			return &s.calls[i]
		}
	}
	if len(s.calls) > 4096 {
		return &streamedItem{index: index}
	}
	s.calls = append(s.calls, streamedItem{index: index})
	return &s.calls[len(s.calls)-1]
}

var (
	textHead      = []byte(`{"type":"response.output_text.delta",`)
	argumentsHead = []byte(`{"type":"response.function_call_arguments.delta",`)
)

// ReadQuick reads a delta of a text or of a call's arguments, which most events are,
// in the pass that also checks it.
func (s *source) ReadQuick(data []byte, to ir.Sink) bool {
	arguments := bytes.HasPrefix(data, argumentsHead)
	if !arguments && !bytes.HasPrefix(data, textHead) {
		return false
	}
	index := 0
	var delta string
	types := 0
	var c jsonscan.Cursor
	c.Reset(data)
	for c.Object(); c.Key(); {
		switch {
		case c.KeyIs("delta"):
			v := c.Value()
			if v.Kind != jsonscan.String {
				return false
			}
			delta = ir.View(data[v.Start+1 : v.End-1])
		case c.KeyIs("output_index"):
			v := c.Value()
			n, err := strconv.Atoi(ir.View(data[v.Start:v.End]))
			if err != nil {
				return false
			}
			index = n
		case c.KeyIs("logprobs"):
			if v := c.Value(); v.End-v.Start > len("[]") {
				return false
			}
		default:
			if c.KeyIs("type") {
				types++
			}
			c.Skip()
		}
	}
	if types != 1 || c.End() != nil {
		return false
	}
	s.e = ir.Event{Kind: ir.EventText, Block: index, Text: delta}
	if arguments {
		item := s.item(index)
		item.args = true
		s.e.Kind, s.e.Custom = ir.EventArguments, item.custom
	}
	if delta != "" {
		to.Event(&s.e)
	}
	return true
}

func (s *source) Read(name, data []byte, to ir.Sink) {
	if string(data) == "[DONE]" {
		return // some servers send one after the last event
	}
	var kind string
	var index int
	var delta, item, response, note, logprobs gjson.Result
	root := gjson.Parse(ir.View(data))
	ir.Each(root, func(k, v gjson.Result) bool {
		switch k.Str {
		case "type":
			kind = ir.Str(v)
		case "output_index":
			index = int(v.Int())
		case "delta":
			delta = v
		case "item":
			item = v
		case "response":
			response = v
		case "annotation":
			note = v
		case "logprobs":
			logprobs = v
		}
		return true
	})
	switch kind {
	case "response.output_text.delta":
		if logprobs.IsArray() && len(logprobs.Raw) > 2 {
			to.Event(&ir.Event{Kind: ir.EventLogprobs, Signature: `{"content":` + logprobs.Raw + `,"refusal":null}`})
		}
		s.piece(ir.EventText, index, delta, to)
	case "response.refusal.delta":
		s.piece(ir.EventRefusal, index, delta, to)
	case "response.reasoning_summary_text.delta", "response.reasoning_text.delta":
		if c := s.item(index); c.part {
			c.part = false
			s.e = ir.Event{Kind: ir.EventThinking, Block: index, Text: `\n\n`}
			to.Event(&s.e)
		}
		s.piece(ir.EventThinking, index, delta, to)
	case "response.reasoning_summary_part.done":
		s.item(index).part = true
	case "response.function_call_arguments.delta", "response.custom_tool_call_input.delta":
		c := s.item(index)
		c.args = true
		s.e = ir.Event{Kind: ir.EventArguments, Block: index, Text: ir.EscapedText(delta), Custom: c.custom}
		if s.e.Text != "" {
			to.Event(&s.e)
		}
	case "response.output_item.added":
		t := ir.Str(item.Get("type"))
		if t == "function_call" || t == "custom_tool_call" {
			s.item(index).custom = t[0] == 'c'
			to.Event(&ir.Event{Kind: ir.EventTool, Block: index, Custom: t[0] == 'c', ID: ir.Str(item.Get("call_id")),
				Name: ir.Str(item.Get("name"))})
		}
	case "response.output_item.done":
		countItem(&s.tools, &s.last, item)
		s.ended(index, item, to)
	case "response.output_text.annotation.added":
		if c := ir.ReadURLCitation(note); c.URL != "" {
			to.Event(&ir.Event{Kind: ir.EventCitation, Citation: c})
		}
	case "response.created", "response.in_progress":
		if !s.began {
			s.began = true
			toolOptions(&s.tools, response)
			to.Event(&ir.Event{Kind: ir.EventStart, ID: strings.TrimPrefix(ir.Str(response.Get("id")), "resp_"),
				Name: ir.Str(response.Get("model"))})
		}
	case "response.completed", "response.incomplete":
		if u := ReadUsage(response); u.Known {
			s.tools.Merge(u)
			u = s.tools
			to.Event(&ir.Event{Kind: ir.EventUsage, Usage: u})
		}
		to.Event(&ir.Event{Kind: ir.EventFinish, Finish: finishOf(response)})
		to.Event(&ir.Event{Kind: ir.EventEnd})
	case "response.failed", "response.cancelled":
		e := ir.ErrorIn(response)
		if e == nil {
			e = ir.StatusError(502)
		}
		to.Event(&ir.Event{Kind: ir.EventFail, Failure: e})
	case "error":
		e := ir.ErrorIn(root)
		if e == nil {
			e = ir.StatusError(vendorerror.Status(root))
			ir.Describe(e, root)
		}
		to.Event(&ir.Event{Kind: ir.EventFail, Failure: e})
	case "":
		if e := ir.ErrorIn(root); e != nil {
			to.Event(&ir.Event{Kind: ir.EventFail, Failure: e})
		}
	}
}

func (s *source) piece(kind ir.EventKind, index int, delta gjson.Result, to ir.Sink) {
	if text := ir.EscapedText(delta); text != "" {
		s.e = ir.Event{Kind: kind, Block: index, Text: text}
		to.Event(&s.e)
	}
}

// ended reads a complete item: what only it has, and arguments without deltas.
func (s *source) ended(index int, item gjson.Result, to ir.Sink) {
	c := s.item(index)
	switch ir.Str(item.Get("type")) {
	case "function_call", "custom_tool_call":
		if !c.args {
			text := item.Get("arguments")
			if c.custom {
				text = item.Get("input")
			}
			if t := ir.EscapedText(text); t != "" {
				to.Event(&ir.Event{Kind: ir.EventArguments, Block: index, Text: t, Custom: c.custom})
			}
		}
	case "reasoning":
		if e := ir.Str(item.Get("encrypted_content")); e != "" {
			to.Event(&ir.Event{Kind: ir.EventSignature, Block: index, Signature: ir.Str(item.Get("id")) + ":" + e,
				Issuer: s.opt.IssuerOr(ir.IssuerOpenAI)})
		}
	case "message":
	default:
		return
	}
	to.Event(&ir.Event{Kind: ir.EventClose, Block: index})
}
