package proxy

import (
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"weir/internal/testgw/fake"
	"weir/pkg/llm"
)

// A text completion is answered by the chat of every upstream family.
func TestCompletions(t *testing.T) {
	for _, f := range usual {
		if f.prefix == "dg" {
			continue // has no chat
		}
		for _, streams := range []bool{false, true} {
			name := f.prefix + ", JSON"
			if streams {
				name = f.prefix + ", stream"
			}
			if streams && f.prefix == "br" {
				continue // its events are binary frames
			}
			t.Run(name, func(t *testing.T) {
				w := newWorld(t, f)
				w.Answer = func(r *fake.Seen) fake.Answer { return recorded(t, upstreamDialect(t, r), streams) }
				body := `{"model":"` + f.prefix + `/m","prompt":"Once upon","max_tokens":9,"stop":["END"],"suffix":"the end"`
				if streams {
					body += `,"stream":true,"stream_options":{"include_usage":true}`
				}
				res, err := w.ask(llm.Completions, body+"}")
				if err != nil {
					t.Fatal(err)
				}
				if sent := w.Seen[0].Body; !strings.Contains(sent, "Once upon") || strings.Contains(sent, "the end") {
					t.Errorf("sent %s", sent)
				}
				if d := strings.Join(w.call.Trace.Dropped, ","); !strings.Contains(d, "suffix") {
					t.Errorf("dropped %q", d)
				}
				text, finish, used := "", "", int64(0)
				answer := w.text(res)
				if !streams {
					answer = "data: " + answer + "\n\ndata: [DONE]\n\n"
				}
				for data := range strings.SplitSeq(strings.TrimSuffix(answer, "data: [DONE]\n\n"), "\n\n") {
					v := gjson.Parse(strings.TrimPrefix(data, "data: "))
					if data == "" || strings.HasPrefix(data, ":") {
						continue
					}
					if v.Get("object").Str != "text_completion" || !strings.HasPrefix(v.Get("id").Str, "cmpl-") {
						t.Errorf("got %s", data)
					}
					text += v.Get("choices.0.text").Str
					finish += v.Get("choices.0.finish_reason").Str
					used += v.Get("usage.total_tokens").Int()
				}
				if text == "" || finish == "" || used == 0 || !strings.HasSuffix(answer, "data: [DONE]\n\n") {
					t.Errorf("text %q, finish %q, %d tokens in %s", text, finish, used, answer)
				}
			})
		}
	}
}

func TestBadCompletions(t *testing.T) {
	w := newWorld(t, usual...)
	w.Answer = func(*fake.Seen) fake.Answer { return fake.Answer{Status: 500} }
	for _, fields := range []string{
		``, `,"prompt":""`, `,"prompt":7`, `,"prompt":["a","b"]`, `,"prompt":[1,2]`, `,"prompt":[[1,2]]`, `,"prompt":"a","n":2`,
		`,"prompt":"a","best_of":3`, `,"prompt":"a","echo":true`, `,"prompt":"a","max_tokens":-1`, `,"prompt":"a","stream":1`,
	} {
		if _, err := w.ask(llm.Completions, `{"model":"up/m"`+fields+`}`); status(err) != 400 || len(w.Seen) > 0 {
			t.Errorf("%s: %v, %d calls", fields, err, len(w.Seen))
		}
	}
	w.Answer = func(*fake.Seen) fake.Answer { return recorded(t, llm.Chat, false) }
	if _, err := w.ask(llm.Completions, `{"model":"up/m","prompt":["a"],"n":1,"echo":false}`); err != nil {
		t.Error(err)
	}
}

// A stream that breaks off ends with an error.
func TestCutCompletion(t *testing.T) {
	w := newWorld(t, usual...)
	w.Answer = func(*fake.Seen) fake.Answer {
		return events("data: {\"id\":\"x\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"}}]}\n\n")
	}
	res, err := w.ask(llm.Completions, `{"model":"up/m","prompt":"a","stream":true}`)
	if err != nil {
		t.Fatal(err)
	}
	if text := w.text(res); !strings.Contains(text, `"text":"Hi"`) || !strings.Contains(text, `"code":"upstream_cut"`) || !strings.HasSuffix(text, "data: [DONE]\n\n") || strings.Contains(text, `"finish_reason":"`) {
		t.Errorf("got %s", text)
	}
}
