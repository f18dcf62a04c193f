package proxy

import (
	"encoding/json"
	"math/rand/v2"
	"testing"

	"weir/internal/testgw/fake"
	"weir/internal/testgw/objects"
	"weir/pkg/budget"
	"weir/pkg/llm"
	"weir/pkg/machine/rpc"
	"weir/pkg/snapshot"
	"weir/pkg/store"
)

// Claude's streams begin with a usage of one output token. A client that leaves before
// the end must not pay for that one alone.
func TestClientThatLeavesClaudesStreamUsesTheEstimate(t *testing.T) {
	const start = "event: message_start\n" +
		`data: {"type":"message_start","message":{"id":"m","type":"message","role":"assistant","model":"c","content":[],"usage":{"input_tokens":10,"output_tokens":1}}}` + "\n\n" +
		"event: content_block_start\n" + `data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}` + "\n\n" +
		"event: content_block_delta\n" + `data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a long text"}}` + "\n\n"
	for _, tt := range []struct {
		d    llm.Dialect
		body string
	}{
		{llm.Messages, `{"model":"an/c","stream":true,"max_tokens":1000,"messages":[{"role":"user","content":"hi"}]}`},
		{llm.Chat, `{"model":"an/c","stream":true,"max_tokens":1000,"messages":[{"role":"user","content":"hi"}]}`},
	} {
		w := newWorld(t, usual...)
		rec := *w.machine.Machine
		rec.Budgets = []store.Budget{{ID: "b1", Unit: store.Tokens, Limit: 1_000_000, Window: budget.Total}}
		w.machine = snapshot.New(&rec)
		var ledger budget.Ledger
		w.pool.Rand = rand.NewChaCha8([32]byte{1})
		w.pool.Object = &objects.Script{Answer: func(op string, body []byte) (int, []byte, error) {
			var asks budget.Asks
			if json.Unmarshal(body, &asks); op == "report" {
				var rep rpc.Report
				json.Unmarshal(body, &rep)
				asks = *rep.Budgets
			}
			g, _ := ledger.Take(&rec.Budgets[0], asks.Holder, &asks.Asks[0], w.Now().UnixMilli(), nil)
			out, err := json.Marshal(rpc.Granted{Grants: []budget.Grant{g}})
			return 200, out, err
		}}
		w.Answer = func(*fake.Seen) fake.Answer { return events(start) }
		reply, err := w.ask(tt.d, tt.body)
		if err != nil {
			t.Fatal(err)
		}
		if n, _ := reply.Body.Read(make([]byte, 64)); n == 0 {
			t.Fatal("nothing is sent")
		}
		reply.Body.Close()
		w.rows()
		if ledger.Spent < 1000 {
			t.Errorf("%v: spent is %d, want the estimate of 1,000 tokens and the input", tt.d, ledger.Spent)
		}
	}
}
