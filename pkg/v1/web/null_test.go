package web

import (
	"os"
	"testing"

	"weir/internal/nulls"
	"weir/internal/testgw"
	"weir/internal/testgw/fake"
	"weir/pkg/store"
)

// A null member of a request or of a vendor's answer equals an absent one.
func TestNullEqualsAbsent(t *testing.T) {
	n := 0
	for _, id := range vendors {
		answer, err := os.ReadFile("testdata/vendors/" + id + ".json")
		if err != nil {
			t.Fatal(err)
		}
		request := []byte(`{"provider":"` + id + `","url":"https://tea.example.com/guide","max_characters":500,"format":"text"}`)
		outcome := func(request, answer []byte) string {
			w := testgw.Recorded(t)
			w.Connect(id, "c1", store.ProviderData{})
			w.Answer = func(*fake.Seen) fake.Answer { return fake.Answer{Body: string(answer)} }
			resp, err := handler(w).Fetch(t.Context(), w.Ask("/v1/web/fetch", string(request)))
			out := ""
			if err != nil {
				out = "no page" // where the content is null, and not absent, the page has none
			} else {
				out = nulls.Without([]byte(testgw.Body(t, resp, nil)))
			}
			for _, c := range w.Seen {
				out += "\n" + c.URL + " " + nulls.Without([]byte(c.Body))
			}
			return out
		}
		n += nulls.Of(nil, request).Compare(t, id+": request", request, func(document []byte) string { return outcome(document, answer) })
		n += nulls.Of([]string{"raw"}, answer).Compare(t, id+": answer", answer, func(document []byte) string { return outcome(request, document) })
	}
	if n < 80 {
		t.Errorf("only %d cases", n)
	}
}
