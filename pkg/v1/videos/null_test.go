package videos

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"weir/internal/nulls"
	"weir/internal/testgw/fake"
)

// A null error of an operation is not a failure.
func TestNullErrorIsNotFailure(t *testing.T) {
	const video = `"response":{"generateVideoResponse":{"generatedSamples":[{"video":{"uri":"https://v.example.com/1"}}]}}}`
	for body, want := range map[string]string{
		`{"done":true,"error":null,` + video: "done", `{"done":true,` + video: "done",
		`{"done":true,"error":{"message":"no"}}`: "failed", `{"done":null,"error":null}`: "pending",
	} {
		if s, _ := readGemini("", 200, []byte(body)); s.Status != want {
			t.Errorf("%s: %s, want %s", body, s.Status, want)
		}
	}
}

// A null member of a request or of a vendor's answer equals an absent one.
func TestNullEqualsAbsent(t *testing.T) {
	type record struct {
		Provider string
		Request  json.RawMessage
		Created  json.RawMessage
		Polls    []json.RawMessage
	}
	without := func(out string) string {
		head, body, found := strings.Cut(out, "{")
		if !found {
			return out
		}
		return head + nulls.Without([]byte("{"+body))
	}
	outcome := func(r record) string {
		w := newWorld(t, r.Provider)
		n := 0
		w.Answer = func(*fake.Seen) fake.Answer {
			if n++; n == 1 {
				return fake.Answer{Status: 200, Body: string(r.Created)}
			}
			return fake.Answer{Status: 200, Body: string(r.Polls[min(n-2, len(r.Polls)-1)])}
		}
		created, c := w.create(string(r.Request))
		out := without(created) + " " + strings.Join(c.Trace.Dropped, ",")
		var id struct {
			ID string `json:"request_id"`
		}
		json.Unmarshal([]byte(strings.TrimPrefix(created, "200 ")), &id)
		for range r.Polls {
			if id.ID != "" {
				out += "\n" + without(w.poll(id.ID))
			}
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
		if r.Request != nil {
			requests = append(requests, r.Request)
		}
	}
	all := nulls.Of(nil, requests...)
	for name, r := range records {
		check := func(what string, known *nulls.Known, document []byte, with func(r *record, document []byte)) {
			n += known.Compare(t, name+": "+what, document, func(document []byte) string {
				c := r
				c.Polls = slices.Clone(r.Polls)
				with(&c, document)
				return outcome(c)
			})
		}
		check("request", all, r.Request, func(r *record, b []byte) { r.Request = b })
		check("creation", nulls.Of(nil, r.Created), r.Created, func(r *record, b []byte) { r.Created = b })
		for i, p := range r.Polls {
			check("poll", nulls.Of(nil, p), p, func(r *record, b []byte) { r.Polls[i] = b })
		}
	}
	if n < 400 {
		t.Errorf("only %d cases", n)
	}
}
