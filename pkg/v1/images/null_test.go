package images

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"weir/internal/nulls"
	"weir/internal/testgw"
	"weir/internal/testgw/fake"
	"weir/pkg/wire/httpmsg"
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
	outcome := func(r record, request []byte, answers []up) string {
		w := testgw.New(t, r.Provider, r.Provider)
		w.Answer = func(*fake.Seen) fake.Answer {
			a := answers[min(len(w.Seen), len(answers))-1]
			if a.Status == 0 {
				a.Status = 200
			}
			return fake.Answer{Status: a.Status, Header: httpmsg.Header{{Name: "content-type", Value: "application/json"}}, Body: string(a.Body)}
		}
		h := handler(w)
		do := h.Generations
		if r.Edit {
			do = h.Edits
		}
		out := testgw.Outcome(do(context.Background(), w.Post(string(request))))
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
	records := nulls.Records[record](t, "testdata/vendors/*.json")
	var requests [][]byte
	for _, r := range records {
		if r.Form == nil {
			requests = append(requests, r.Request)
		}
	}
	known := nulls.Of(nil, requests...)
	for name, r := range records {
		plain := r.Form == nil
		for _, a := range r.Answers {
			plain = plain && a.Type == ""
		}
		if !plain {
			continue
		}
		n += known.Compare(t, name+": request", r.Request, func(request []byte) string { return outcome(r, request, r.Answers) })
		for i, a := range r.Answers {
			n += nulls.Of(nil, a.Body).Compare(t, name+": answer", a.Body, func(body []byte) string {
				answers := slices.Clone(r.Answers)
				answers[i].Body = body
				return outcome(r, r.Request, answers)
			})
		}
	}
	if n < 100 {
		t.Errorf("only %d cases", n)
	}
}
