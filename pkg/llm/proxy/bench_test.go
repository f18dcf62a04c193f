package proxy

import (
	"io"
	"strings"
	"testing"

	"weir/internal/testgw/fake"
	"weir/pkg/llm"
)

// BenchmarkJSON is a chat call that passes, without the platform.
func BenchmarkJSON(b *testing.B) {
	w := newWorld(b, usual[:1]...)
	a := recorded(b, llm.Chat, false)
	w.Answer = func(*fake.Seen) fake.Answer { return a }
	body := `{"model":"up/bench","messages":[{"role":"user","content":"Say hello in a friendly way."}]}`
	b.ReportAllocs()
	for b.Loop() {
		reply, err := w.ask(llm.Chat, body)
		if err != nil {
			b.Fatal(err)
		}
		io.Copy(io.Discard, reply.Body)
		w.Seen = w.Seen[:0]
	}
}

// BenchmarkStream is one of 200 chunks.
func BenchmarkStream(b *testing.B) {
	chunk := `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":"word "},"finish_reason":null}]}` + "\n\n"
	text := strings.Repeat(chunk, 200) + "data: [DONE]\n\n"
	for _, bb := range []struct {
		name string
		d    llm.Dialect
	}{{"passes", llm.Chat}, {"translated", llm.Messages}} {
		b.Run(bb.name, func(b *testing.B) {
			w := newWorld(b, usual[:1]...)
			w.Answer = func(*fake.Seen) fake.Answer { return events(text) }
			body := `{"model":"up/bench","max_tokens":9,"stream":true,"messages":[{"role":"user","content":"Say hello in a friendly way."}]}`
			b.ReportAllocs()
			for b.Loop() {
				reply, err := w.ask(bb.d, body)
				if err != nil {
					b.Fatal(err)
				}
				io.Copy(io.Discard, reply.Body)
				w.Seen = w.Seen[:0]
			}
		})
	}
}
