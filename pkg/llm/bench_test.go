package llm_test

import (
	"fmt"
	"testing"

	"weir/pkg/llm"
)

// chunks are the 200 chunks of an ordinary stream, each as it arrives.
func chunks() (list [][]byte) {
	list = append(list, []byte(`data: {"id":"chatcmpl-123","object":"chat.completion.chunk","created":1700000000,"model":"gpt-5","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}],"usage":null}`+"\n\n"))
	for i := range 200 {
		list = append(list, []byte(fmt.Sprintf(`data: {"id":"chatcmpl-123","object":"chat.completion.chunk","created":1700000000,"model":"gpt-5","choices":[{"index":0,"delta":{"content":" word%d"},"finish_reason":null}],"usage":null}`, i)+"\n\n"))
	}
	list = append(list, []byte(`data: {"id":"chatcmpl-123","object":"chat.completion.chunk","created":1700000000,"model":"gpt-5","choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":10,"completion_tokens":200,"total_tokens":210}}`+"\n\n"), []byte("data: [DONE]\n\n"))
	return list
}

func benchStream(b *testing.B, from, to llm.Dialect, list [][]byte) {
	out := make([]byte, 0, 4096)
	b.ReportAllocs()
	for b.Loop() {
		s := llm.Stream(from, to, llm.Options{ID: "r1", Model: "m"})
		for _, c := range list {
			out = s.Push(c, out[:0])
		}
		s.End(nil, out[:0])
		if !s.Complete() {
			b.Fatal(s.Failure())
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(list)), "ns/chunk")
}

func BenchmarkChatToMessages(b *testing.B) {
	benchStream(b, llm.Chat, llm.Messages, chunks())
}

func BenchmarkMessagesToChat(b *testing.B) {
	benchStream(b, llm.Messages, llm.Chat, in(llm.Messages))
}

// in returns the ordinary stream in a dialect.
func in(d llm.Dialect) (list [][]byte) {
	if d == llm.Chat {
		return chunks()
	}
	s := llm.Stream(llm.Chat, d, llm.Options{ID: "r1"})
	for _, c := range chunks() {
		if out := s.Push(c, nil); len(out) > 0 {
			list = append(list, out)
		}
	}
	return list
}

// A translator allocates nothing for a text, of which a stream has most.
func TestTranslatedTextDoesNotAllocate(t *testing.T) {
	for _, from := range clients {
		list := in(from)
		for _, to := range clients {
			s := llm.Stream(from, to, options())
			out := make([]byte, 0, 16<<10)
			for _, c := range list[:100] {
				out = s.Push(c, out[:0])
			}
			if n := testing.AllocsPerRun(100, func() { out = s.Push(list[100], out[:0]) }); n != 0 || len(out) == 0 {
				t.Errorf("%v to %v: %v allocations for %s", from, to, n, list[100])
			}
		}
	}
}

func BenchmarkChatToResponses(b *testing.B) {
	benchStream(b, llm.Chat, llm.Responses, chunks())
}

func BenchmarkResponsesToChat(b *testing.B) {
	benchStream(b, llm.Responses, llm.Chat, in(llm.Responses))
}

func BenchmarkObserver(b *testing.B) {
	var all []byte
	for _, c := range chunks() {
		all = append(all, c...)
	}
	b.ReportAllocs()
	b.SetBytes(int64(len(all)))
	for b.Loop() {
		o := llm.Observe(llm.Chat)
		o.Sample(all)
		o.End(nil)
		if !o.Complete() || !o.Usage().Known {
			b.Fatal("not seen")
		}
	}
}

func BenchmarkSameDialect(b *testing.B) {
	body := []byte(`{"model":"openai/gpt-5","messages":[{"role":"system","content":"You are helpful."},{"role":"user","content":"Hello, how are you?"}],"stream":true,"temperature":0.5}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := llm.Request(llm.Chat, llm.Chat, body, llm.Options{Model: "gpt-5"}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRequestChatToMessages(b *testing.B) {
	body := []byte(`{"model":"anthropic/x","messages":[{"role":"system","content":"You are helpful."},{"role":"user","content":"Hello, how are you?"}],"stream":true,"temperature":0.5}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := llm.Request(llm.Chat, llm.Messages, body, llm.Options{Model: "claude-sonnet-4-5"}); err != nil {
			b.Fatal(err)
		}
	}
}
