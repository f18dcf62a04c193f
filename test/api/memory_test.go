package api

import (
	"context"
	"runtime"
	"strings"
	"testing"

	"weir/internal/testgw/fake"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/stream"
)

// While a client reads a large answer or a stream, the program has nothing of the
// request and of the attempts.
func TestAnswersHoldNoRequest(t *testing.T) {
	long := strings.Repeat("a", 1<<20)
	for _, tt := range []struct{ name, path, body, answer string }{
		{"answer", "/v1/chat/completions", `{"model":"up/m","messages":[{"role":"user","content":"` + long + `"}]}`,
			`{"id":"x","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"` + long + `"},"finish_reason":"stop"}]}`},
		{"translated answer", "/v1/messages", `{"model":"up/m","max_tokens":9,"messages":[{"role":"user","content":"` + long + `"}]}`,
			`{"id":"x","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"` + long + `"},"finish_reason":"stop"}]}`},
		{"stream", "/v1/chat/completions", `{"model":"up/m","stream":true,"messages":[{"role":"user","content":"` + long + `"}]}`,
			"data: {\"id\":\"x\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}}]}\n\n"},
		{"translated stream", "/v1/messages", `{"model":"up/m","max_tokens":9,"stream":true,"messages":[{"role":"user","content":"` + long + `"}]}`,
			"data: {\"id\":\"x\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}}]}\n\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			_, key := w.tenant(1)
			w.Answer = func(*fake.Seen) fake.Answer { return fake.JSON(tt.answer) }
			freed := make(chan struct{})
			resp := func() *httpmsg.Response {
				body := []byte(tt.body)
				runtime.AddCleanup(&body[0], func(c chan struct{}) { close(c) }, freed)
				return w.App.Serve(context.Background(), &httpmsg.Request{
					Method: "POST", Path: tt.path, Origin: "http://gateway.example", Start: w.Now(), Length: int64(len(body)),
					Header: httpmsg.Header{{Name: "authorization", Value: "Bearer " + key}, {Name: "content-type", Value: "application/json"}},
					Body:   stream.FromBytes(body),
				})
			}()
			if resp.Status != 200 {
				t.Fatal(resp.Status)
			}
			w.Seen = nil
			for range 3 {
				runtime.GC()
			}
			select {
			case <-freed:
			default:
				t.Error("the request's body is still in memory")
			}
			runtime.KeepAlive(resp)
		})
	}
}
