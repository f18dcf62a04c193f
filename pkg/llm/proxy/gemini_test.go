package proxy

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"weir/internal/testgw/fake"
	"weir/pkg/llm"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/stream"
)

func TestReadGemini(t *testing.T) {
	for _, tt := range []struct {
		name, body, param string
		shown             bool // thoughts
	}{
		{"plain", `{"contents":[]}`, "", false},
		{"thoughts", `{"contents":[],"generationConfig":{"thinkingConfig":{"includeThoughts":true}}}`, "", true},
		{"thoughts_in_snake_case", `{"contents":{},"generation_config":{"thinking_config":{"include_thoughts":true}}}`, "", true},
		{"no_thoughts", `{"contents":[],"generationConfig":{"thinkingConfig":{"includeThoughts":false}}}`, "", false},
		{"no_json", `{"contents":`, "-", false},
		{"not_an_object", `[]`, "-", false},
		{"no_contents", `{}`, "contents", false},
		{"contents_of_another_type", `{"contents":"a"}`, "contents", false},
		{"two_contents_T35", `{"contents":[],"contents":[]}`, "contents", false},
	} {
		got, err := ReadGemini("ge/m", true, []byte(tt.body))
		var e *apierr.Error
		if tt.param != "" {
			if !errors.As(err, &e) || e.Status != 400 || tt.param != "-" && e.Param != tt.param {
				t.Errorf("%s: %v", tt.name, err)
			}
			continue
		}
		if err != nil || got.Model != "ge/m" || !got.Stream || got.HideThoughts == tt.shown || got.Dialect != llm.Gemini {
			t.Errorf("%s: %+v, %v", tt.name, got, err)
		}
	}
}

// The array of a Gemini client's stream is valid JSON whatever happens to the stream,
// and ends with the error of one that failed.
func TestArrayForm(t *testing.T) {
	type answer struct {
		Candidates []struct{ FinishReason string }
		Error      *struct {
			Code   int
			Status string
		}
	}
	events := map[string]func(d llm.Dialect, a fake.Answer) fake.Answer{
		"whole":        func(_ llm.Dialect, a fake.Answer) fake.Answer { return a },
		"byte_by_byte": func(_ llm.Dialect, a fake.Answer) fake.Answer { a.Pieces = strings.Split(a.Pieces[0], ""); return a },
		"cr_lf": func(_ llm.Dialect, a fake.Answer) fake.Answer {
			a.Pieces = []string{strings.ReplaceAll(a.Pieces[0], "\n", "\r\n")}
			return a
		},
		"comments": func(_ llm.Dialect, a fake.Answer) fake.Answer {
			a.Pieces = append(strings.SplitAfter(a.Pieces[0], "\n\n"), ": x\n\n")
			return a
		},
		"cut": func(_ llm.Dialect, a fake.Answer) fake.Answer {
			a.Pieces = []string{a.Pieces[0][:len(a.Pieces[0])*2/3]}
			return a
		},
		"reset": func(_ llm.Dialect, a fake.Answer) fake.Answer {
			a.Pieces, a.End = pieces(a.Pieces[0])[:2], stream.ErrReset
			return a
		},
		"silence": func(_ llm.Dialect, a fake.Answer) fake.Answer {
			a.Pieces, a.End = pieces(a.Pieces[0])[:2], stream.ErrIdle
			return a
		},
		"error": func(d llm.Dialect, a fake.Answer) fake.Answer {
			a.Pieces = append(pieces(a.Pieces[0])[:2:2], failing(d, "overloaded_error"))
			return a
		},
		"error_and_reset": func(d llm.Dialect, a fake.Answer) fake.Answer {
			a.Pieces, a.End = append(pieces(a.Pieces[0])[:2:2], failing(d, "overloaded_error")), stream.ErrReset
			return a
		},
		"not_streamed": nil,
	}
	for _, f := range families {
		for name, change := range events {
			w := newWorld(t, provided{prefix: f.prefix, provider: f.provider, base: f.base})
			w.Answer = func(r *fake.Seen) fake.Answer {
				d := upstreamDialect(t, r)
				if change == nil {
					return recorded(t, d, false)
				}
				return change(d, recorded(t, d, true))
			}
			reply, err := w.ask(llm.Gemini, strings.Replace(request(llm.Gemini, f.prefix+"/m", true), "?alt=sse", "", 1))
			if err != nil {
				t.Fatal(err)
			}
			text := w.text(reply)
			var list []answer
			if err := json.Unmarshal([]byte(text), &list); err != nil {
				t.Fatalf("%s %s: %v in %s", f.prefix, name, err, text)
			}
			if got := reply.Header.Get("content-type"); got != "application/json" {
				t.Errorf("%s %s: content type %s", f.prefix, name, got)
			}
			good, bad := 0, 0
			for i, a := range list {
				switch {
				case a.Error != nil:
					if bad++; i != len(list)-1 || a.Error.Code < 400 && f.prefix != "ge" {
						t.Errorf("%s %s: error %+v at %d of %d", f.prefix, name, a.Error, i, len(list))
					}
				case len(a.Candidates) == 1 && a.Candidates[0].FinishReason != "":
					good++
				}
			}
			failed := name == "cut" || name == "reset" || name == "silence" || strings.HasPrefix(name, "error")
			if failed != (bad == 1) || failed == (good == 1) || w.Open != 0 {
				t.Errorf("%s %s: %d ends, %d errors, %d open, of %s", f.prefix, name, good, bad, w.Open, text)
			}
			if errs := w.rows()[0].Errors; (errs != 0) != failed {
				t.Errorf("%s %s: %d errors counted", f.prefix, name, errs)
			}
			if f.prefix == "ge" && name == "whole" { // the bytes of the objects pass
				want := "[" + strings.TrimSuffix(strings.ReplaceAll(strings.ReplaceAll(recorded(t, llm.Gemini, true).Pieces[0], "data: ", ""), "\n\n", "\n,\n"), ",\n") + "]\n"
				if text != want {
					t.Errorf("got %s, want %s", text, want)
				}
			}
		}
	}
}

// A client that leaves an array gets no end of it. Heartbeats are blank lines.
func TestClosedArray(t *testing.T) {
	a := &arrayed{events: &passthrough{outcome: outcome{done: true}, o: llm.Observe(llm.Gemini)}}
	out := a.Beat(a.Push([]byte("data: {}\n\n"), nil))
	if out = a.Beat(a.End(stream.ErrClient, out)); string(out) != "[{}\n\n" {
		t.Errorf("got %q", out)
	}
	empty := &arrayed{events: &passthrough{outcome: outcome{done: true}, o: llm.Observe(llm.Gemini)}}
	if out := empty.End(nil, nil); !strings.HasPrefix(string(out), `[{"error":`) || !strings.HasSuffix(string(out), "]\n") {
		t.Errorf("got %q", out)
	}
}

// A prompt that Gemini blocks has no candidates.
func TestBlockedPromptPasses(t *testing.T) {
	const blocked = `{"promptFeedback":{"blockReason":"SAFETY"},"usageMetadata":{"promptTokenCount":7}}`
	w := newWorld(t, usual...)
	w.Answer = func(*fake.Seen) fake.Answer { return jsonOf(200, blocked) }
	reply, err := w.ask(llm.Gemini, request(llm.Gemini, "ge/gemini-2.5-flash", false))
	if err != nil || w.text(reply) != blocked || w.rows()[0].InputTokens != 7 {
		t.Errorf("%v, usage %+v", err, w.rows())
	}
}

// Clients know a missing model by its status.
func TestUnknownModelOfGeminiClient(t *testing.T) {
	w := newWorld(t, usual...)
	if _, err := w.ask(llm.Gemini, request(llm.Gemini, "nothing/m", false)); status(err) != 404 {
		t.Errorf("got %v", err)
	}
}

// Only what is asked for is told of thoughts.
func TestThoughtsAreHiddenUnlessAsked(t *testing.T) {
	for _, stream := range []bool{false, true} {
		for _, shown := range []bool{false, true} {
			w := newWorld(t, usual...)
			w.Answer = func(r *fake.Seen) fake.Answer {
				if stream {
					return events(`data: {"choices":[{"index":0,"delta":{"reasoning_content":"hm"}}]}` + "\n\n" + `data: {"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n")
				}
				return jsonOf(200, `{"choices":[{"message":{"reasoning_content":"hm","content":"a"},"finish_reason":"stop"}]}`)
			}
			raw := request(llm.Gemini, "up/m", stream)
			if shown {
				raw = strings.Replace(raw, `"generationConfig":{`, `"generationConfig":{"thinkingConfig":{"includeThoughts":true},`, 1)
			}
			reply, err := w.ask(llm.Gemini, raw)
			if err != nil {
				t.Fatal(err)
			}
			if got := w.text(reply); strings.Contains(got, `"thought":true`) != shown || !strings.Contains(got, `"text":"a"`) {
				t.Errorf("stream %v, shown %v: %s", stream, shown, got)
			}
		}
	}
}

// Whatever an upstream sends, the array of a Gemini client is valid JSON.
func FuzzArrayForm(f *testing.F) {
	for _, seed := range []string{
		"data: {}\n\n", ": x\n\ndata: {\"a\":1}\r\n\r\n", "data: {\"candidates\":[{\"finishReason\":\"STOP\"}]}", "data: {\"error\":{\"code\":429}}\n\n",
		"data: {\"a\":\n\n", "{\"error\":{}}", "data: [DONE]\n\n", "event: x\ndata: 1\ndata: 2\n\n", "",
	} {
		f.Add([]byte(seed), uint16(3))
	}
	f.Fuzz(func(t *testing.T, body []byte, cut uint16) {
		a := &arrayed{events: &passthrough{outcome: outcome{done: true}, o: llm.Observe(llm.Gemini)}}
		at := int(cut) % (len(body) + 1)
		out := a.Push(body[at:], a.Push(body[:at], nil))
		out = a.End(nil, out)
		var list []any
		if err := json.Unmarshal(out, &list); err != nil {
			t.Fatalf("%v: %q", err, out)
		}
	})
}
