package llm_test

import (
	"errors"
	"strconv"
	"strings"
	"testing"

	"weir/pkg/llm"
	"weir/pkg/llm/ir"
	"weir/pkg/wire/apierr"
)

// maxPieces is the maximum number of pieces.
const maxPieces = 24_000

// bounded reports an error if the translation of a body has allocated more than
// 8 times the body and 16 MiB. All allocations count, so less was in use at any
// time.
func bounded(t *testing.T, name string, body, used int) {
	t.Helper()
	if most := 8*body + 16<<20; used > most {
		t.Errorf("%s: %d bytes allocated for a body of %d, at most %d", name, used, body, most)
	}
}

// pieceTargets is an upstream of each dialect.
var pieceTargets = []struct {
	d           llm.Dialect
	model, devs string
}{
	{llm.Chat, "m", "deepseek"}, {llm.Chat, "m", "openrouter"}, {llm.Responses, "gpt-5", "openai"},
	{llm.Messages, "claude-sonnet-4-5", "anthropic"}, {llm.Gemini, "gemini-3-pro", "gemini"},
	{llm.Cohere, "command-a", "cohere"}, {llm.Converse, "amazon.nova-pro-v1:0", "bedrock"},
}

// shapes are requests of n tiny pieces and the arrays that contain them.
var shapes = []struct {
	name        string
	d           llm.Dialect
	head, piece string
	tail        string
	pieces      int // that an element counts for
}{
	{"users", llm.Chat, `{"messages":[`, `{"role":"user","content":"t#"}`, `]}`, 1},
	{"turns", llm.Chat, `{"messages":[`, `{"role":"user","content":"t"},{"role":"assistant","content":"x"}`, `]}`, 2},
	{"systems", llm.Chat, `{"messages":[{"role":"user","content":"x"},`, `{"role":"system","content":"t"}`, `]}`, 1},
	{"calls", llm.Chat, `{"messages":[`, `{"role":"assistant","tool_calls":[{"id":"c#","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c#","content":"x"}`, `]}`, 3},
	{"parallel_calls", llm.Chat, `{"messages":[{"role":"assistant","tool_calls":[`, `{"id":"c#","type":"function","function":{"name":"f","arguments":"{}"}}`, `]}]}`, 1},
	{"results", llm.Chat, `{"messages":[`, `{"role":"tool","tool_call_id":"c#","content":"x"}`, `]}`, 1},
	{"parts", llm.Chat, `{"messages":[{"role":"user","content":[`, `{"type":"text","text":"x"}`, `]}]}`, 1},
	{"images", llm.Chat, `{"messages":[{"role":"user","content":[`, `{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}`, `]}]}`, 1},
	{"details", llm.Chat, `{"messages":[{"role":"assistant","content":"x","reasoning_details":[`, `{"type":"reasoning.text","text":"w","signature":"s","format":"openrouter"}`, `]}]}`, 1},
	{"tools", llm.Chat, `{"messages":[{"role":"user","content":"x"}],"tools":[`, `{"type":"function","function":{"name":"f#","parameters":{}}}`, `]}`, 1},
	{"functions", llm.Chat, `{"messages":[{"role":"user","content":"x"}],"functions":[`, `{"name":"f#","parameters":{}}`, `]}`, 1},
	{"stops", llm.Chat, `{"messages":[{"role":"user","content":"x"}],"stop":[`, `"s#"`, `]}`, 1},

	{"contents", llm.Gemini, `{"contents":[`, `{"parts":[{"text":"t#"}]}`, `]}`, 2},
	{"turns", llm.Gemini, `{"contents":[`, `{"parts":[{"text":"t"}]},{"role":"model","parts":[{"text":"x"}]}`, `]}`, 4},
	{"parts", llm.Gemini, `{"contents":[{"parts":[`, `{"text":"x"}`, `]}]}`, 1},
	{"texts_of_the_model", llm.Gemini, `{"contents":[{"role":"model","parts":[`, `{"text":"x"}`, `]}]}`, 1},
	{"calls", llm.Gemini, `{"contents":[`, `{"role":"model","parts":[{"functionCall":{"name":"f","args":{}}}]},{"parts":[{"functionResponse":{"name":"f","response":{"output":"x"}}}]}`, `]}`, 4},
	{"parallel_calls", llm.Gemini, `{"contents":[{"role":"model","parts":[`, `{"functionCall":{"name":"f","args":{}}}`, `]}]}`, 1},
	{"tools", llm.Gemini, `{"contents":[{"parts":[{"text":"x"}]}],"tools":[{"functionDeclarations":[`, `{"name":"f#"}`, `]}]}`, 1},

	{"users", llm.Messages, `{"max_tokens":9,"messages":[`, `{"role":"user","content":"t#"}`, `]}`, 1},
	{"calls", llm.Messages, `{"max_tokens":9,"messages":[`, `{"role":"assistant","content":[{"type":"tool_use","id":"c#","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"c#","content":[{"type":"text","text":"x"}]}]}`, `]}`, 5},
	{"parts", llm.Messages, `{"max_tokens":9,"messages":[{"role":"user","content":[`, `{"type":"text","text":"x"}`, `]}]}`, 1},
	{"system", llm.Messages, `{"max_tokens":9,"messages":[{"role":"user","content":"x"}],"system":[`, `{"type":"text","text":"x"}`, `]}`, 1},
	{"result_parts", llm.Messages, `{"max_tokens":9,"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":[`, `{"type":"text","text":"x"}`, `]}]}]}`, 1},
	{"documents", llm.Messages, `{"max_tokens":9,"messages":[{"role":"user","content":[`, `{"type":"document","title":"a","source":{"type":"base64","media_type":"application/pdf","data":"AAAA"}}`, `]}]}`, 1},
	{"thoughts", llm.Messages, `{"max_tokens":9,"messages":[{"role":"assistant","content":[`, `{"type":"thinking","thinking":"w","signature":"s"}`, `]}]}`, 1},
	{"tools", llm.Messages, `{"max_tokens":9,"messages":[{"role":"user","content":"x"}],"tools":[`, `{"name":"f#","input_schema":{}}`, `]}`, 1},
	{"strict_tools", llm.Messages, `{"max_tokens":9,"messages":[{"role":"user","content":"x"}],"tools":[`, `{"name":"f#","strict":true,"input_schema":{"type":"object","properties":{"a":{"type":"string"}}}}`, `]}`, 1},

	{"items", llm.Responses, `{"input":[`, `{"role":"user","content":"t#"}`, `]}`, 1},
	{"calls", llm.Responses, `{"input":[`, `{"type":"function_call","call_id":"c#","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"c#","output":"x"}`, `]}`, 2},
	{"parallel_calls", llm.Responses, `{"input":[`, `{"type":"function_call","call_id":"c#","name":"f","arguments":"{}"}`, `]}`, 1},
	{"outputs", llm.Responses, `{"input":[`, `{"type":"function_call_output","call_id":"c#","output":"x"}`, `]}`, 1},
	{"parts", llm.Responses, `{"input":[{"role":"user","content":[`, `{"type":"input_text","text":"x"}`, `]}]}`, 1},
	{"reasoning", llm.Responses, `{"input":[{"role":"user","content":"x"},`, `{"type":"reasoning","summary":[]}`, `]}`, 1},
	{"tools", llm.Responses, `{"input":"x","tools":[`, `{"type":"function","name":"f#","parameters":{}}`, `]}`, 1},
}

func TestManyPiecesStayWithinMemoryBound(t *testing.T) {
	for _, s := range shapes {
		most := (maxPieces - 8) / s.pieces
		fits := []byte(s.head + times(most, s.piece) + s.tail)
		over := []byte(s.head + times(maxPieces/s.pieces+9, s.piece) + s.tail)
		for _, to := range pieceTargets {
			name := s.name + " of " + s.d.String() + " to " + to.d.String()
			opt := llm.Options{Model: to.model, Deviations: ir.DeviationsOf(to.devs)}
			if to.d == s.d {
				if _, _, err := llm.Request(s.d, to.d, over, opt); err != nil {
					t.Errorf("%s: %v: the same dialect has no limit", name, err)
				}
				continue
			}
			var err error
			var e *apierr.Error
			bounded(t, name, len(fits), allocated(func() { _, _, err = llm.Request(s.d, to.d, fits, opt) }))
			if errors.As(err, &e) && e.Status == 413 {
				t.Errorf("%s: %v", name, err)
			}
			used := allocated(func() { _, _, err = llm.Request(s.d, to.d, over, opt) })
			if !errors.As(err, &e) || e.Status != 413 || e.Code != "request_too_large" || used > 64<<10 {
				t.Errorf("%s: over the limit: %v, %d bytes allocated", name, err, used)
			}
		}
	}
}

// Declarations and arguments of tools are opaque: a long array in them is one
// value.
func TestArraysInArgumentsAndSchemasAreNotPieces(t *testing.T) {
	list := `[` + times(2*maxPieces, `#`) + `]`
	for name, body := range map[string]string{
		"input":  `{"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"f","input":{"a":` + list + `}}]}]}`,
		"schema": `{"messages":[{"role":"user","content":"x"}],"tools":[{"name":"f","input_schema":{"type":"object","properties":{"a":{"enum":` + list + `}}}}]}`,
	} {
		if _, _, err := llm.Request(llm.Messages, llm.Chat, []byte(body), options()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	logs := `{"choices":[{"message":{"content":"x"},"finish_reason":"stop","logprobs":{"content":[{"token":"x","logprob":0,"bytes":` + list + `,"top_logprobs":[]}]}}]}`
	if _, _, err := llm.Response(llm.Chat, llm.Responses, []byte(logs), options()); err != nil {
		t.Errorf("logprobs: %v", err)
	}
}

func TestAnswersOfManyPiecesStayWithinMemoryBound(t *testing.T) {
	answers := []struct {
		name        string
		d           llm.Dialect
		head, piece string
		tail        string
	}{
		{"calls", llm.Chat, `{"choices":[{"message":{"tool_calls":[`, `{"id":"c#","type":"function","function":{"name":"f","arguments":"{}"}}`, `]}}]}`},
		{"parts", llm.Chat, `{"choices":[{"message":{"content":[`, `{"type":"text","text":"x"}`, `]}}]}`},
		{"thoughts", llm.Chat, `{"choices":[{"message":{"content":[`, `{"type":"thinking","thinking":"x"}`, `]}}]}`},
		{"citations", llm.Chat, `{"choices":[{"message":{"content":"x","annotations":[`, `{"url_citation":{"url":"u#"}}`, `]}}]}`},
		{"calls", llm.Messages, `{"content":[`, `{"type":"tool_use","id":"c#","name":"f","input":{}}`, `]}`},
		{"blocks", llm.Messages, `{"content":[`, `{"type":"text","text":"x"}`, `]}`},
		{"thoughts", llm.Messages, `{"content":[`, `{"type":"thinking","thinking":"x","signature":"s"}`, `]}`},
		{"calls", llm.Responses, `{"output":[`, `{"type":"function_call","call_id":"c#","name":"f","arguments":"{}"}`, `]}`},
		{"parts", llm.Responses, `{"output":[{"type":"message","content":[`, `{"type":"output_text","text":"x"}`, `]}]}`},
		{"calls", llm.Gemini, `{"candidates":[{"finishReason":"STOP","content":{"parts":[`, `{"functionCall":{"name":"f","args":{}}}`, `]}}]}`},
		{"parts", llm.Gemini, `{"candidates":[{"finishReason":"STOP","content":{"parts":[`, `{"text":"x"}`, `]}}]}`},
		{"calls", llm.Cohere, `{"message":{"tool_calls":[`, `{"id":"c#","type":"function","function":{"name":"f","arguments":"{}"}}`, `]}}`},
		{"calls", llm.Converse, `{"output":{"message":{"content":[`, `{"toolUse":{"toolUseId":"c#","name":"f","input":{}}}`, `]}}}`},
		{"texts", llm.Converse, `{"output":{"message":{"content":[`, `{"text":"x"}`, `]}}}`},
	}
	for _, a := range answers {
		fits := []byte(a.head + times(maxPieces-8, a.piece) + a.tail)
		over := []byte(a.head + times(maxPieces+8, a.piece) + a.tail)
		for _, to := range clients {
			name := a.name + " of " + a.d.String() + " to " + to.String()
			var err error
			bounded(t, name, len(fits), allocated(func() { _, _, err = llm.Response(a.d, to, fits, options()) }))
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			var e *apierr.Error
			if _, _, err = llm.Response(a.d, to, over, options()); !errors.As(err, &e) || e.Status != 502 || e.Code != "upstream_too_large" {
				t.Errorf("%s: over the limit: %v", name, err)
			}
		}
	}
}

// Each inner schema was read once for each schema that contains it: a long
// description at the bottom of a deep one took minutes.
func TestSchemaWorkIsBounded(t *testing.T) {
	deep := func(levels, text int) string {
		return strings.Repeat(`{"type":"object","properties":{"a":`, levels) + `{"type":"string","description":"` + strings.Repeat("x", text) + `"}` + strings.Repeat(`}}`, levels)
	}
	bodies := map[llm.Dialect]string{
		llm.Chat:     `{"messages":[{"role":"user","content":"x"}],"tools":[{"type":"function","function":{"name":"f","strict":true,"parameters":#}}],"response_format":{"type":"json_schema","json_schema":{"name":"n","schema":#}}}`,
		llm.Gemini:   `{"contents":[{"parts":[{"text":"x"}]}],"generationConfig":{"responseMimeType":"application/json","responseSchema":#},"tools":[{"functionDeclarations":[{"name":"f","parameters":#}]}],"toolConfig":{"functionCallingConfig":{"mode":"VALIDATED"}}}`,
		llm.Messages: `{"max_tokens":9,"messages":[{"role":"user","content":"x"}],"output_config":{"format":{"type":"json_schema","schema":#}},"tools":[{"name":"f","strict":true,"input_schema":#}]}`,
	}
	for from, body := range bodies {
		for _, to := range pieceTargets {
			if to.d == from {
				continue
			}
			pauses := 0
			opt := llm.Options{Model: to.model, Deviations: ir.DeviationsOf(to.devs), Pause: func() { pauses++ }}
			if _, _, err := llm.Request(from, to.d, []byte(strings.ReplaceAll(body, "#", deep(20, 30<<10))), opt); err != nil {
				t.Errorf("%v to %v: a schema as large as they come: %v", from, to.d, err)
			}
			pauses = 0
			_, _, err := llm.Request(from, to.d, []byte(strings.ReplaceAll(body, "#", deep(40, 4<<20))), opt)
			var e *apierr.Error
			if err != nil && (!errors.As(err, &e) || e.Status != 413) || pauses > 200 {
				t.Errorf("%v to %v: %d pauses, %v", from, to.d, pauses, err)
			}
		}
	}
}

func TestDeepContentsAreRefused(t *testing.T) {
	nested := func(levels int) string {
		return `{"max_tokens":9,"messages":[{"role":"user","content":` + strings.Repeat(`[{"type":"tool_result","tool_use_id":"c","content":`, levels) + `"words"` + strings.Repeat(`}]`, levels) + `}]}`
	}
	if _, _, err := llm.Request(llm.Messages, llm.Chat, []byte(nested(3)), options()); err != nil {
		t.Error(err)
	}
	var e *apierr.Error
	if _, _, err := llm.Request(llm.Messages, llm.Chat, []byte(nested(30)), options()); !errors.As(err, &e) || e.Status != 400 {
		t.Errorf("30 levels: %v", err)
	}
	if few, many := llm.Estimate([]byte(nested(3))), llm.Estimate([]byte(nested(30))); few > 8 || many < 100 {
		t.Errorf("%d tokens at 3 levels, %d at 30", few, many)
	}
}

func TestOnlyLongTranslationsPause(t *testing.T) {
	for _, s := range shapes {
		for _, to := range pieceTargets {
			if to.d == s.d {
				continue
			}
			pauses := 0
			opt := llm.Options{Model: to.model, Deviations: ir.DeviationsOf(to.devs), Pause: func() { pauses++ }}
			if _, _, _ = llm.Request(s.d, to.d, []byte(s.head+times(100, s.piece)+s.tail), opt); pauses > 0 {
				t.Errorf("%s of %v to %v: %d pauses for 100 pieces", s.name, s.d, to.d, pauses)
			}
			if s.name == "stops" || s.name == "documents" && to.d != llm.Converse {
				continue
			}
			if _, _, err := llm.Request(s.d, to.d, []byte(s.head+times(maxPieces/s.pieces, s.piece)+s.tail), opt); err == nil && pauses < 2 {
				t.Errorf("%s of %v to %v: %d pauses for as many pieces as fit", s.name, s.d, to.d, pauses)
			}
		}
	}
	pauses := 0
	long := []byte(`{"messages":[` + times(200, `{"role":"user","content":"`+strings.Repeat("x", 64<<10)+`"}`) + `]}`)
	opt := llm.Options{Model: "claude-sonnet-4-5", Pause: func() { pauses++ }}
	if _, _, err := llm.Request(llm.Chat, llm.Messages, long, opt); err != nil || pauses < 20 {
		t.Errorf("%d pauses for %d bytes, %v", pauses, len(long), err)
	}
}

// Streams of very many tiny deltas: the allocated bytes at most double with
// their number, and a stream whose deltas must be stored fails at the limit.
func TestStreamWorkIsLinear(t *testing.T) {
	event := func(name, data string) string { return "event: " + name + "\ndata: " + data + "\n\n" }
	streams := []struct {
		name  string
		d     llm.Dialect
		piece string
	}{
		{"texts", llm.Chat, `data: {"choices":[{"index":0,"delta":{"content":"x"}}]}` + "\n\n"},
		{"calls", llm.Chat, `data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":#,"id":"c#","function":{"name":"f","arguments":"{}"}}]}}]}` + "\n\n"},
		{"open_calls", llm.Chat, `data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":#,"id":"c#","function":{"name":"f","arguments":"{"}}]}}]}` + "\n\n"},
		{"calls_of_a_line", llm.Chat, `data: {"choices":[{"index":0,"delta":{"tool_calls":[` + times(50, `{"index":#,"id":"c#","function":{"name":"f","arguments":"{}"}}`) + `]}}]}` + "\n\n"},
		{"parts", llm.Chat, `data: {"choices":[{"index":0,"delta":{"content":[` + times(50, `{"type":"text","text":"x"}`) + `]}}]}` + "\n\n"},
		{"comments", llm.Chat, ": x\n\n"},
		{"blank_lines", llm.Chat, "\n"},
		{"blocks", llm.Messages, event("content_block_start", `{"type":"content_block_start","index":#,"content_block":{"type":"text","text":"x"}}`) + event("content_block_stop", `{"type":"content_block_stop","index":#}`)},
		{"calls", llm.Messages, event("content_block_start", `{"type":"content_block_start","index":#,"content_block":{"type":"tool_use","id":"c#","name":"f","input":{}}}`) + event("content_block_stop", `{"type":"content_block_stop","index":#}`)},
		{"items", llm.Responses, event("response.output_item.added", `{"type":"response.output_item.added","output_index":#,"item":{"type":"function_call","id":"i#","call_id":"c#","name":"f","arguments":""}}`) + event("response.function_call_arguments.delta", `{"type":"response.function_call_arguments.delta","output_index":#,"delta":"{}"}`)},
		{"parts", llm.Gemini, `data: {"candidates":[{"content":{"parts":[{"text":"x"}]}}]}` + "\n\n"},
		{"calls", llm.Gemini, `data: {"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":{}}}]}}]}` + "\n\n"},
	}
	const n = 4000
	for _, s := range streams {
		for _, to := range clients {
			if to == s.d {
				continue
			}
			run := func(n int) int {
				var all []byte
				for i := range n {
					all = append(all, strings.ReplaceAll(s.piece, "#", strconv.Itoa(i))...)
				}
				out := make([]byte, 0, 1<<20)
				return allocated(func() {
					tr := llm.Stream(s.d, to, options())
					for at := 0; at < len(all); at += 4096 {
						out = tr.Push(all[at:min(at+4096, len(all))], out[:0])
					}
					tr.End(nil, out[:0])
				})
			}
			run(10)
			if once, twice := run(n), run(2*n); twice > once*5/2+(1<<20) {
				t.Errorf("%s of %v to %v: %d bytes for %d, %d for twice as many", s.name, s.d, to, once, n, twice)
			}
		}
	}
}
