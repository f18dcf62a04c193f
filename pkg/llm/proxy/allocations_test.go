package proxy

import (
	"context"
	"testing"

	"weir/pkg/accounts"
	"weir/pkg/auth"
	"weir/pkg/llm"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/stream"
	"weir/pkg/wire/upstream"
)

// quick is a Sender that always returns the same values, so that what is counted is
// allocated by the pipeline.
type quick struct {
	answer []byte
	body   stream.Bytes
	resp   upstream.Response
	res    accounts.Result
	sent   []byte
}

func (q *quick) Send(_ context.Context, call *accounts.Call) (*accounts.Result, error) {
	to := &call.Targets[0]
	conn := to.Connections[0]
	a, err := call.Build(to, conn, nil)
	if err != nil {
		return nil, err
	}
	q.sent = a.Request.Body.(*stream.Bytes).All()
	q.body.Reset(q.answer)
	q.resp = upstream.Response{Status: 200, Header: q.resp.Header, Body: &q.body}
	if err := call.Read(a, &q.resp); err != nil {
		return nil, err
	}
	q.res = accounts.Result{Response: &q.resp, Target: to, Connection: conn, Attempt: a}
	return &q.res, nil
}

// An unstreamed call in the upstream's own dialect allocates the client's request,
// the model's name, the targets, the exchange, the functions that build attempts and judge
// refusals, the attempt, the body that goes up, the address, the result and the
// answer; the Responses dialect also the answer's id. The bytes of the answer pass.
func TestAllocationsOfACall(t *testing.T) {
	for _, tt := range []struct {
		d            llm.Dialect
		provider     string
		body, answer string
		most         float64
	}{
		{
			llm.Chat, "openai-compatible-0123abcd", `{"model":"up/bench","messages":[{"role":"user","content":"Say hello in a friendly way."}]}`,
			`{"id":"chatcmpl-1","object":"chat.completion","created":1700000000,"model":"bench","choices":[{"index":0,"message":{"role":"assistant","content":"Hello there."},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":3,"total_tokens":12}}`, 11,
		},
		{
			llm.Chat, "openai", `{"model":"up/bench","messages":[{"role":"user","content":"Say hello in a friendly way."}]}`,
			`{"id":"chatcmpl-1","object":"chat.completion","created":1700000000,"model":"bench","choices":[{"index":0,"message":{"role":"assistant","content":"Hello there."},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":3,"total_tokens":12}}`, 10,
		},
		{
			llm.Messages, "anthropic", `{"model":"up/bench","max_tokens":9,"messages":[{"role":"user","content":"Say hello in a friendly way."}]}`,
			`{"id":"msg_1","type":"message","role":"assistant","model":"bench","content":[{"type":"text","text":"Hello there."}],"stop_reason":"end_turn","usage":{"input_tokens":9,"output_tokens":3}}`, 10,
		},
		{
			llm.Responses, "openai", `{"model":"up/bench","input":"Say hello in a friendly way."}`,
			`{"id":"resp_1","object":"response","output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Hello there."}]}],"usage":{"input_tokens":9,"output_tokens":3,"total_tokens":12}}`, 11,
		},
	} {
		w := newWorld(t, provided{prefix: "up", provider: tt.provider, base: "https://up.example/v1"})
		q := &quick{answer: []byte(tt.answer)}
		p := &Proxy{Accounts: q, Now: w.Now}
		body := []byte(tt.body)
		call := &auth.Call{Request: &httpmsg.Request{ID: "req_1", Method: "POST", Start: w.Now()}, Machine: w.machine, MachineID: mid}
		var reply *Result
		got := testing.AllocsPerRun(100, func() {
			req, err := ReadRequest(tt.d, body)
			if err != nil {
				t.Fatal(err)
			}
			if reply, err = p.Answer(context.Background(), call, req); err != nil {
				t.Fatal(err)
			}
		})
		t.Logf("%s, %s: %.0f allocations", tt.d, tt.provider, got)
		if got > tt.most {
			t.Errorf("%s, %s: %.0f allocations, at most %.0f", tt.d, tt.provider, got, tt.most)
		}
		if all := reply.Body.(*stream.Bytes).All(); &all[0] != &q.answer[0] || len(all) != len(q.answer) {
			t.Errorf("%s, %s: the answer is a copy", tt.d, tt.provider)
		}
		if q.res.Attempt.Used.Tokens != (llm.Usage{Input: 9, Output: 3, Known: true}) {
			t.Errorf("%s, %s: usage %+v", tt.d, tt.provider, q.res.Attempt.Used.Tokens)
		}
	}
}
