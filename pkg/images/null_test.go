package images

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weir/pkg/edge"
	"weir/pkg/internal/nulls"
	"weir/pkg/internal/script"
)

// A null member of a request or of a vendor's answer equals an absent one.
func TestNullEqualsAbsent(t *testing.T) {
	type up struct {
		Status int
		Type   string
		Body   json.RawMessage
	}
	type record struct {
		Provider string
		Edit     bool
		Form     []string
		Request  json.RawMessage
		Answers  []up
	}
	files, err := filepath.Glob("testdata/vendors/*.json")
	if err != nil {
		t.Fatal(err)
	}
	outcome := func(r record, request []byte, answers []up) string {
		w := script.New(t, r.Provider, r.Provider)
		w.Answer = func(*script.Seen) script.Answer {
			a := answers[min(len(w.Seen), len(answers))-1]
			if a.Status == 0 {
				a.Status = 200
			}
			return script.Answer{Status: a.Status, Header: edge.Header{{Name: "content-type", Value: "application/json"}}, Body: string(a.Body)}
		}
		h := handler(w)
		do := h.Generations
		if r.Edit {
			do = h.Edits
		}
		out := script.Outcome(do(context.Background(), w.Post(string(request))))
		head, body, _ := strings.Cut(out, "{")
		out = head + nulls.Without([]byte("{"+body))
		if strings.HasPrefix(head, "4") {
			out = head
		}
		for _, s := range w.Seen {
			out += "\n" + s.Method + " " + s.URL + " " + nulls.Without([]byte(s.Body))
		}
		return out
	}
	n := 0
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
		if json.Unmarshal(raw, &r) == nil && r.Form == nil {
			requests = append(requests, r.Request)
		}
	}
	known := nulls.Of(nil, requests...)
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
		plain := r.Form == nil
		for _, a := range r.Answers {
			plain = plain && a.Type == ""
		}
		if !plain {
			continue
		}
		name := filepath.Base(f)
		known.Each(t, r.Request, func(member string, null, absent []byte) {
			n++
			if got, want := outcome(r, null, r.Answers), outcome(r, absent, r.Answers); got != want {
				t.Errorf("%s: request with %s null gives\n%s\nabsent\n%s", name, member, got, want)
			}
		})
		for i, a := range r.Answers {
			nulls.Of(nil, a.Body).Each(t, a.Body, func(member string, null, absent []byte) {
				n++
				with, without := append([]up(nil), r.Answers...), append([]up(nil), r.Answers...)
				with[i].Body, without[i].Body = null, absent
				if got, want := outcome(r, r.Request, with), outcome(r, r.Request, without); got != want {
					t.Errorf("%s: answer %d with %s null gives\n%s\nabsent\n%s", name, i, member, got, want)
				}
			})
		}
	}
	if n < 100 {
		t.Errorf("only %d cases", n)
	}
}
