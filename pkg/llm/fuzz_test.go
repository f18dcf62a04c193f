package llm_test

import (
	"encoding/json"
	"errors"
	"testing"
	"unicode/utf8"

	"weir/pkg/llm"
	"weir/pkg/llm/ir"
	"weir/pkg/wire/apierr"
)

// seeds adds the recorded cases of every dialect to a fuzz target.
func seeds(f *testing.F, dir, ext string, dialects []llm.Dialect, add func(d uint8, body []byte)) {
	for _, d := range dialects {
		for _, body := range cases(f, dir+"/"+d.String(), ext) {
			add(uint8(d), body)
		}
	}
}

func FuzzRequest(f *testing.F) {
	seeds(f, "requests", ".json", clients, func(d uint8, body []byte) {
		for to := range upstreams {
			f.Add(d, uint8(to), body)
		}
	})
	models := []string{"gpt-5", "claude-3-5-haiku", "claude-sonnet-4-5", "claude-opus-5-5", "gemini-3-pro", "x"}
	providers := []string{"openai", "mistral", "deepseek", "openrouter", "zai", "other", "vertex"}
	f.Fuzz(func(t *testing.T, from, to uint8, body []byte) {
		opt := options()
		opt.Model = models[int(to)/len(upstreams)%len(models)]
		opt.Deviations = ir.DeviationsOf(providers[int(from)/len(clients)%len(providers)])
		out, _, err := llm.Request(clients[int(from)%len(clients)], upstreams[int(to)%len(upstreams)], body, opt)
		if err != nil {
			var e *apierr.Error
			if !errors.As(err, &e) || e.Status != 400 {
				t.Fatalf("not a 400: %v", err)
			}
			return
		}
		if !json.Valid(out) || !utf8.Valid(out) {
			t.Fatalf("not JSON: %s", out)
		}
		llm.Estimate(out)
	})
}

// FuzzOtherForms reads text completions, and requests to the chat endpoint in the
// forms of other dialects.
func FuzzOtherForms(f *testing.F) {
	f.Add(uint8(0), []byte(`{"model":"m","prompt":["Once upon"],"max_tokens":9,"stop":["a","b"],"suffix":"x","n":1}`))
	f.Add(uint8(1), []byte(`{"model":"m","messages":[{"role":"user","content":"x"}],"tools":[{"type":"custom","name":"p","format":{"type":"grammar","syntax":"lark","definition":"x"}},{"name":"f","input_schema":{}}],"tool_choice":{"type":"any"}}`))
	f.Add(uint8(1), []byte(`{"model":"m","system":"s","messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"weir_YS5i","content":"x"}]}],"tools":[{"name":"f","input_schema":{}}]}`))
	f.Add(uint8(2), []byte(`{"model":"m","input":[{"role":"user","content":"x"},{"type":"compaction","encrypted_content":"weir.compaction.eA=="},{"type":"compaction_trigger"}]}`))
	f.Fuzz(func(t *testing.T, form uint8, body []byte) {
		var out []byte
		var err error
		if json.Valid(body) && len(body) > 0 && body[0] == '{' {
			switch form % 3 {
			case 0:
				out, _, err = llm.Request(llm.Completions, upstreams[int(form)%len(upstreams)], body, options())
			case 1:
				out, _, err = llm.ToChat(body, true, "m")
			default:
				out, _, err = llm.ToChat(body, false, "m")
			}
		}
		var e *apierr.Error
		if err != nil && (!errors.As(err, &e) || e.Status != 400) {
			t.Fatalf("not a 400: %v", err)
		}
		if err == nil && len(out) > 0 && !json.Valid(out) {
			t.Fatalf("not JSON: %s", out)
		}
	})
}

func FuzzAnswer(f *testing.F) {
	seeds(f, "answers", ".json", upstreams, func(d uint8, body []byte) {
		for to := range clients {
			f.Add(d, uint8(to), body)
		}
	})
	f.Fuzz(func(t *testing.T, from, to uint8, body []byte) {
		out, _, err := llm.Response(upstreams[int(from)%len(upstreams)], clients[int(to)%len(clients)], body, options())
		if err == nil && !json.Valid(out) {
			t.Fatalf("not JSON: %s", out)
		}
		events, _, again := llm.Replay(upstreams[int(from)%len(upstreams)], clients[int(to)%len(clients)], body, options())
		if (err == nil) != (again == nil) {
			t.Fatalf("answer %v, replay %v", err, again)
		}
		if err == nil {
			grammar(t, clients[int(to)%len(clients)], events, true)
		}
		llm.UsageOf(upstreams[int(from)%len(upstreams)], body)
	})
}

func FuzzStream(f *testing.F) {
	seeds(f, "streams", ".sse", upstreams, func(d uint8, body []byte) {
		for to := range clients {
			f.Add(d, uint8(to), uint16(97), body)
		}
	})
	f.Fuzz(func(t *testing.T, from, to uint8, cut uint16, body []byte) {
		at := int(cut) % (len(body) + 1)
		out, s := run(upstreams[int(from)%len(upstreams)], clients[int(to)%len(clients)], body[:at], body[at:])
		grammar(t, clients[int(to)%len(clients)], out, s.Complete())
		if (s.Failure() == nil) != s.Complete() {
			t.Fatalf("complete %v, failure %v", s.Complete(), s.Failure())
		}
	})
}

func FuzzObserver(f *testing.F) {
	seeds(f, "streams", ".sse", clients, func(d uint8, body []byte) { f.Add(d, uint16(97), body) })
	for _, body := range usualStreams() {
		f.Add(uint8(0), uint16(171), []byte(body))
	}
	f.Fuzz(func(t *testing.T, d uint8, size uint16, body []byte) {
		bytewise := whatIsSeen(clients[int(d)%len(clients)], body, 1, nil) // reads every line
		for _, n := range []int{int(size)%400 + 1, len(body) + 1} {
			if got := whatIsSeen(clients[int(d)%len(clients)], body, n, nil); got != bytewise {
				t.Fatalf("in pieces of %d %+v, of one byte %+v", n, got, bytewise)
			}
		}
	})
}
