package embeddings

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"testing"

	"weir/internal/nulls"
	"weir/pkg/provider"
	"weir/pkg/routing"
	"weir/pkg/store"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/stream"
	"weir/pkg/wire/upstream"
)

// outcome is what the client gets of a request whose calls are answered so, and
// what went up.
func outcome(t *testing.T, d *provider.Descriptor, purpose string, request []byte, answers []json.RawMessage) string {
	t.Helper()
	m := &store.Machine{Connections: []store.Connection{connection(d, base(d))}, Settings: store.Settings{EmbeddingInput: purpose}}
	n := 0
	p := &pool{t: t, answer: func(*routing.Target, *upstream.Request) (int, []byte) {
		n++
		return 200, answers[min(n, len(answers))-1]
	}}
	resp, err := (&Handler{Accounts: p}).Create(context.Background(), call(t, m, string(request)))
	out := ""
	if err != nil {
		var e *apierr.Error
		if !errors.As(err, &e) {
			t.Fatal(err)
		}
		out = strconv.Itoa(e.Status) + " " + e.Param
	} else {
		b, _ := stream.ReadAll(resp.Body, 1<<20)
		out = nulls.Without(b)
	}
	for _, req := range p.sent {
		b, _ := stream.ReadAll(req.Body, 1<<20)
		out += "\n" + nulls.Without(b)
	}
	return out
}

// A null member equals an absent one, in requests and in answers, except for
// encoding_format, which is refused.
func TestNullEqualsAbsent(t *testing.T) {
	type record struct {
		Provider, Purpose string
		Request           json.RawMessage
		Answers           []json.RawMessage
	}
	records := nulls.Records[record](t, "testdata/vendors/*.json")
	var requests [][]byte
	for _, r := range records {
		requests = append(requests, r.Request)
	}
	n := 0
	known := nulls.Of(nil, requests...)
	for name, r := range records {
		d := provider.Lookup(r.Provider)
		n += known.Compare(t, name+": request", r.Request, func(request []byte) string {
			return outcome(t, d, r.Purpose, request, r.Answers)
		}, "[] encoding_format")
		for i, a := range r.Answers {
			n += nulls.Of(nil, a).Compare(t, name+": answer", a, func(body []byte) string {
				answers := slices.Clone(r.Answers)
				answers[i] = body
				return outcome(t, d, r.Purpose, r.Request, answers)
			})
		}
	}
	if n < 200 {
		t.Errorf("only %d cases", n)
	}
}
