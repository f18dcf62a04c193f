package embeddings

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"weir/pkg/accounts"
	"weir/pkg/auth"
	"weir/pkg/provider"
	"weir/pkg/store"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/stream"
	"weir/pkg/wire/upstream"
)

// quick is a Sender that sends and returns always the same values, so that what is
// counted is allocated by the endpoint.
type quick struct {
	answer []byte
	space  []byte
	body   stream.Bytes
	resp   upstream.Response
	res    accounts.Result
}

func (q *quick) Send(_ context.Context, call *accounts.Call) (*accounts.Result, error) {
	to := &call.Targets[0]
	conn := to.Connections[0]
	a, err := call.Build(to, conn, nil)
	if err != nil {
		return nil, err
	}
	q.body.Reset(append(q.space[:0], q.answer...)) // which the endpoint may change
	q.resp.Body = &q.body
	if err := call.Read(a, &q.resp); err != nil {
		return nil, err
	}
	q.res = accounts.Result{Response: &q.resp, Target: to, Connection: conn, Attempt: a}
	return &q.res, nil
}

// hot is an ordinary call, which can be made again and again.
type hot struct {
	*Handler
	call *auth.Call
	in   stream.Bytes
	body []byte
}

func newHot(t testing.TB, encoding, vector string) *hot {
	d := provider.Lookup("openai")
	m := &store.Machine{Connections: []store.Connection{connection(d, "")}}
	q := &quick{
		answer: fmt.Appendf(nil, `{"object":"list","data":[{"object":"embedding","index":0,"embedding":%s}],"model":"bench","usage":{"prompt_tokens":5,"total_tokens":5}}`, vector),
		resp: upstream.Response{Status: 200, Owned: true, Header: httpmsg.Header{
			{Name: "content-type", Value: "application/json"}, {Name: "x-request-id", Value: "req_0123456789"},
			{Name: "x-ratelimit-remaining-requests", Value: "9999"}, {Name: "x-ratelimit-remaining-tokens", Value: "999999"},
		}},
	}
	q.space = make([]byte, 0, len(q.answer)+64)
	return &hot{
		Handler: &Handler{Accounts: q},
		call:    call(t, m, ""),
		body:    []byte(`{"model":"openai/bench","input":"The food was delicious and the waiter friendly.","encoding_format":"` + encoding + `"}`),
	}
}

func (h *hot) create() (*httpmsg.Response, error) {
	h.in.Reset(h.body)
	h.call.Body = &h.in
	return h.Create(context.Background(), h.call)
}

func base64Vector() string {
	return `"` + base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{0, 0, 0x80, 0x3f}, 1536)) + `"`
}

func TestAnswerIsCopiedUnlessOwned(t *testing.T) {
	for _, owned := range []bool{true, false} {
		h := newHot(t, "base64", base64Vector())
		q := h.Accounts.(*quick)
		q.resp.Owned = owned
		before := string(q.answer)
		resp, err := h.create()
		if err != nil {
			t.Fatal(err)
		}
		got, _ := stream.ReadAll(resp.Body, maxAnswer)
		if want := strings.Replace(before, `"bench"`, `"openai/bench"`, 1); string(got) != want {
			t.Errorf("owned %v: got …%s", owned, got[len(got)-100:])
		}
		if changed := string(q.space[:len(before)]) != before; changed != owned {
			t.Errorf("owned %v: the upstream's bytes changed: %v", owned, changed)
		}
	}
}

// A call allocates the exchange, its attempt, the function that builds attempts, the
// model's name, the body that goes up, the answer, and the address of the upstream. The
// upstream's body is not copied.
func TestAllocationsOfACall(t *testing.T) {
	for _, tt := range []struct{ encoding, vector string }{{"base64", base64Vector()}, {"float", string(benchVector(1536))}} {
		h := newHot(t, tt.encoding, tt.vector)
		got := testing.AllocsPerRun(100, func() {
			if _, err := h.create(); err != nil {
				t.Fatal(err)
			}
		})
		const most = 7
		if t.Logf("%s: %.0f allocations", tt.encoding, got); got > most {
			t.Errorf("%s: %.0f allocations, at most %d", tt.encoding, got, most)
		}
	}
}

func BenchmarkCall(b *testing.B) {
	for _, bb := range []struct{ encoding, vector string }{{"base64", base64Vector()}, {"float", string(benchVector(1536))}} {
		b.Run(bb.encoding, func(b *testing.B) {
			h := newHot(b, bb.encoding, bb.vector)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := h.create(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
