package embeddings

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"weir/pkg/apierr"
	"weir/pkg/internal/nulls"
	"weir/pkg/provider"
	"weir/pkg/routing"
	"weir/pkg/store"
	"weir/pkg/stream"
	"weir/pkg/upstream"
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
	resp, err := (&Handler{Router: routing.Router{}, Accounts: p}).Create(context.Background(), call(t, m, string(request)))
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
	files, err := filepath.Glob("testdata/vendors/*.json")
	if err != nil {
		t.Fatal(err)
	}
	type record struct {
		Provider, Purpose string
		Request           json.RawMessage
		Answers           []json.RawMessage
	}
	records := map[string]record{}
	var requests [][]byte
	for _, f := range files {
		if strings.HasSuffix(f, ".golden.json") {
			continue
		}
		raw, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		var r record
		if err := json.Unmarshal(raw, &r); err != nil {
			t.Fatal(err)
		}
		records[filepath.Base(f)] = r
		requests = append(requests, r.Request)
	}
	n := 0
	known := nulls.Of(nil, requests...)
	for name, r := range records {
		d := provider.Lookup(r.Provider)
		known.Each(t, r.Request, func(member string, null, absent []byte) {
			if member == "[] encoding_format" {
				return
			}
			n++
			if got, want := outcome(t, d, r.Purpose, null, r.Answers), outcome(t, d, r.Purpose, absent, r.Answers); got != want {
				t.Errorf("%s: request with %s null gives\n%s\nabsent\n%s", name, member, got, want)
			}
		})
		for i, a := range r.Answers {
			nulls.Of(nil, a).Each(t, a, func(member string, null, absent []byte) {
				n++
				with, without := append([]json.RawMessage(nil), r.Answers...), append([]json.RawMessage(nil), r.Answers...)
				with[i], without[i] = null, absent
				if got, want := outcome(t, d, r.Purpose, r.Request, with), outcome(t, d, r.Purpose, r.Request, without); got != want {
					t.Errorf("%s: answer with %s null gives\n%s\nabsent\n%s", name, member, got, want)
				}
			})
		}
	}
	if n < 200 {
		t.Errorf("only %d cases", n)
	}
}
