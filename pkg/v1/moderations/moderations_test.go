package moderations

import (
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"weir/internal/testgw"
	"weir/internal/testgw/fake"
	"weir/pkg/store"
)

const own = "openai-compatible-0123abcd"

func world(t *testing.T, body string) (*testgw.World, *Handler) {
	w := testgw.Recorded(t)
	w.Connect(own, "c1", store.ProviderData{BaseURL: "https://mod.example.com/v1", Prefix: "mod"})
	w.Answer = func(*fake.Seen) fake.Answer { return fake.Answer{Body: body} }
	return w, &Handler{Accounts: w.Pool}
}

func TestBadInputNamesTheField(t *testing.T) {
	for body, param := range map[string]string{
		`{`: "", `{"model":"mod/m"}`: "input", `{"model":"mod/m","input":""}`: "input", `{"model":"mod/m","input":[]}`: "input",
		`{"model":"mod/m","input":["a",{"type":"text","text":"b"}]}`: "input", `{"model":"mod/m","input":[{"type":"audio"}]}`: "input",
		`{"model":"mod/m","input":5}`: "input", `{"model":"mod/m","input":[1]}`: "input", `{"model":"cohere/rerank-v3.5","input":"a"}`: "model", `{"model":"mistral/mistral-moderation-latest","input":"a"}`: "model", `{"model":1,"input":"a"}`: "model", `{"model":"","input":"a"}`: "model", `{"input":"a"}`: "model",
	} {
		w, h := world(t, "")
		_, err := h.Create(t.Context(), w.Ask("/v1/moderations", body))
		if e := testgw.Refused(t, err, 400); e.Param != param || len(w.Seen) > 0 {
			t.Errorf("%s: param %q, want %q", body, e.Param, param)
		}
	}
	w := testgw.Recorded(t, "cohere")
	_, err := (&Handler{Accounts: w.Pool}).Create(t.Context(), w.Ask("/v1/moderations", `{"input":"a"}`))
	if e := testgw.Refused(t, err, 400); e.Code != "no_credentials" {
		t.Errorf("without an account: code %q", e.Code)
	}
}

func TestModerationVerdict(t *testing.T) {
	w, h := world(t, `{"id":"m","model":"up","results":[{"categories":{"hate":true},"category_scores":{"hate":0.9}},{"categories":{"hate":false}},{"flagged":true,"categories":{}}]}`)
	resp, err := h.Create(t.Context(), w.Ask("/v1/moderations", `{"input":["a","b","c"],"model":"mod/m","extra":{"kept":1.50}}`))
	got := gjson.Parse(testgw.Body(t, resp, err))
	if got.Get("results.#.flagged").Raw != "[true,false,true]" || got.Get("model").Str != "mod/m" || got.Get("results.0.category_scores.hate").Num != 0.9 {
		t.Errorf("got %s", got.Raw)
	}
	if want := `{"input":["a","b","c"],"model":"m","extra":{"kept":1.50}}`; w.Seen[0].Body != want || w.Seen[0].URL != "https://mod.example.com/v1/moderations" {
		t.Errorf("sent %s to %s", w.Seen[0].Body, w.Seen[0].URL)
	}
}

// A category that a model does not judge is null, and so may the verdict be.
func TestNullEqualsAbsent(t *testing.T) {
	w, h := world(t, `{"results":[ {"flagged":null,"categories":{"hate":true,"illicit":null}} , {"categories":{"hate":false,"illicit":null},"flagged":null}]}`)
	resp, err := h.Create(t.Context(), w.Ask("/v1/moderations", `{"input":["a","b"],"model":"mod/m"}`))
	got := gjson.Parse(testgw.Body(t, resp, err))
	if !gjson.Valid(got.Raw) || got.Get("results.#.flagged").Raw != "[true,false]" || strings.Count(got.Raw, "flagged") != 2 {
		t.Errorf("got %s", got.Raw)
	}
}

func TestBrokenAnswers(t *testing.T) {
	for _, body := range []string{"", "null", `{}`, `{"results":{}}`, `{"results":[1]}`, `{"results":[{}]}`, `{"results":[`,
		`{"results":[{"categories":{}}]}`, `{"results":[{"flagged":null,"categories":{"hate":null}}]}`, `{"results":[{"flagged":"yes","categories":{"hate":true}}]}`,
		`{"results":[{"categories":{"hate":"yes"}}]}`, `{"results":[{"categories":{"hate":true,"violence":1}}]}`} {
		w, h := world(t, body)
		_, err := h.Create(t.Context(), w.Ask("/v1/moderations", `{"input":"a","model":"mod/m"}`))
		if err == nil {
			t.Errorf("%s: an answer", body)
			continue
		}
		testgw.Refused(t, err, 502)
	}
}

// A verdict that is missing must not read as a good one.
func TestEveryInputHasAVerdict(t *testing.T) {
	for input, want := range map[string]int{`"a"`: 1, `["a"]`: 1, `["a","b"]`: 2, `["a","b","c"]`: 3, `[{"type":"text","text":"a"},{"type":"text","text":"b"}]`: 1} {
		for n := range 4 {
			w, h := world(t, `{"results":[`+strings.TrimPrefix(strings.Repeat(`,{"flagged":false,"categories":{}}`, n), ",")+`]}`)
			_, err := h.Create(t.Context(), w.Ask("/v1/moderations", `{"model":"mod/m","input":`+input+`}`))
			if n < want {
				testgw.Refused(t, err, 502)
			} else if err != nil {
				t.Errorf("%s, %d results: %v", input, n, err)
			}
		}
	}
}
