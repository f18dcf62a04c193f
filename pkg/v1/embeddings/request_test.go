package embeddings

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"weir/pkg/wire/apierr"
)

func parse(body []byte) (*request, error) {
	r := &request{}
	return r, r.parse(body)
}

func TestParse(t *testing.T) {
	strs := func(n int) string { return "[" + strings.TrimSuffix(strings.Repeat(`"a",`, n), ",") + "]" }
	lists := func(n int) string { return "[" + strings.TrimSuffix(strings.Repeat(`[1],`, n), ",") + "]" }
	ints := func(n int) string { return "[" + strings.TrimSuffix(strings.Repeat(`1,`, n), ",") + "]" }
	in := func(input string) string { return `{"model":"m","input":` + input + `}` }
	tests := []struct{ name, body, want string }{
		{"text", in(`"a"`), "text 1 float 0"},
		{"text_with_blanks", " { \"model\" : \"m\" , \"input\" : \"a\" } ", "text 1 float 0"},
		{"texts", in(`["a","b"]`), "texts 2 float 0"},
		{"tokens", in(`[1,2,3]`), "tokens 1 float 0"},
		{"token_lists", in(`[[1],[2,3]]`), "token lists 2 float 0"},
		{"texts_2048", in(strs(2048)), "texts 2048 float 0"},
		{"token_lists_2048", in(lists(2048)), "token lists 2048 float 0"},
		{"one_token_array_of_8192", in(ints(8192)), "tokens 1 float 0"},
		{"base64", `{"model":"m","input":"a","encoding_format":"base64"}`, "text 1 base64 0"},
		{"float", `{"model":"m","input":"a","encoding_format":"float"}`, "text 1 float 0"},
		{"dimensions", `{"dimensions":256,"model":"m","input":"a"}`, "text 1 float 256"},
		{"dimensions_null", `{"dimensions":null,"model":"m","input":"a"}`, "text 1 float 0"},
		{"unknown_fields", `{"model":"m","input":"a","x":{"model":1},"x":2,"Models":3,"streams":1}`, "text 1 float 0"},
		{"model_in_another_case", `{"model":"m","input":"a","Model":"n"}`, "400 model"},
		{"stream_in_another_case", `{"model":"m","input":"a","\u017ftream":1}`, "400 stream"},
		{"escaped_names", `{"m\u006fdel":"m","\u0069nput":"a"}`, "text 1 float 0"},
		{"lone_surrogate_elsewhere", `{"x":"\ud800","model":"m","input":"a"}`, "text 1 float 0"},

		{"empty_body", ``, "400  empty"},
		{"not_json", `{"model":`, "400  json"},
		{"trailing", `{"model":"m","input":"a"} x`, "400  json"},
		{"bom", "\ufeff" + in(`"a"`), "400  json"},
		{"not_utf8", in("\"\xff\""), "400  json"},
		{"deep", in(strings.Repeat("[", 129) + strings.Repeat("]", 129)), "400  json"},
		{"broken_after_a_bad_field", `{"model":1,"input":[null,`, "400  json"},
		{"array_body", `[1]`, "400  object"},
		{"string_body", `"a"`, "400  object"},
		{"null_body", `null`, "400  object"},
		{"model_missing", `{"input":"a"}`, "400 model"},
		{"model_empty", `{"model":"","input":"a"}`, "400 model"},
		{"model_number", `{"model":1,"input":"a"}`, "400 model"},
		{"model_null", `{"model":null,"input":"a"}`, "400 model"},
		{"model_twice", `{"model":"a","input":"a","model":"b"}`, "400 model"},
		{"model_twice_escaped", `{"model":"a","input":"a","mode\u006c":"b"}`, "400 model"},
		{"model_lone_surrogate", `{"model":"a\udc00","input":"a"}`, "400 model"},
		{"input_missing", `{"model":"m"}`, "400 input"},
		{"input_null", in(`null`), "400 input"},
		{"input_number", in(`1`), "400 input"},
		{"input_object", in(`{"text":"a"}`), "400 input"},
		{"input_bool", in(`true`), "400 input"},
		{"input_empty", in(`""`), "400 input"},
		{"input_empty_array", in(`[]`), "400 input"},
		{"input_empty_string_within", in(`["a",""]`), "400 input"},
		{"input_empty_list_within", in(`[[1],[]]`), "400 input"},
		{"input_mixed", in(`["a",1]`), "400 input"},
		{"input_mixed_2", in(`[1,"a"]`), "400 input"},
		{"input_mixed_3", in(`[[1],"a"]`), "400 input"},
		{"input_mixed_4", in(`["a",["b"]]`), "400 input"},
		{"input_lists_of_strings", in(`[["a"]]`), "400 input"},
		{"input_lists_mixed", in(`[[1,"a",2],[3]]`), "400 input"},
		{"input_objects", in(`[{"text":"a"}]`), "400 input"},
		{"input_null_within", in(`["a",null]`), "400 input"},
		{"input_fractions", in(`[1.5]`), "400 input"},
		{"input_fractions_within", in(`[[1],[2.0]]`), "400 input"},
		{"input_too_deep_for_tokens", in(`[[[1]]]`), "400 input"},
		{"input_2049", in(strs(2049)), "400 input"},
		{"input_2049_lists", in(lists(2049)), "400 input"},
		{"input_lone_surrogate", in(`["a","\ud83d"]`), "400 input"},
		{"input_twice", `{"model":"m","input":"a","input":"b"}`, "400 input"},
		{"encoding_other", `{"model":"m","input":"a","encoding_format":"int8"}`, "400 encoding_format"},
		{"encoding_number", `{"model":"m","input":"a","encoding_format":1}`, "400 encoding_format"},
		{"encoding_null", `{"model":"m","input":"a","encoding_format":null}`, "400 encoding_format"},
		{"encoding_twice", `{"model":"m","input":"a","encoding_format":"float","encoding_format":"base64"}`, "400 encoding_format"},
		{"dimensions_zero", `{"model":"m","input":"a","dimensions":0}`, "400 dimensions"},
		{"dimensions_negative", `{"model":"m","input":"a","dimensions":-1}`, "400 dimensions"},
		{"dimensions_fraction", `{"model":"m","input":"a","dimensions":1.5}`, "400 dimensions"},
		{"dimensions_exponent", `{"model":"m","input":"a","dimensions":1e2}`, "400 dimensions"},
		{"dimensions_string", `{"model":"m","input":"a","dimensions":"8"}`, "400 dimensions"},
		{"dimensions_huge", `{"model":"m","input":"a","dimensions":99999999999999999999}`, "400 dimensions"},
	}
	kinds := [...]string{text: "text", texts: "texts", tokens: "tokens", tokenLists: "token lists"}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r, err := parse([]byte(tt.body))
			var got string
			var e *apierr.Error
			switch {
			case errors.As(err, &e):
				got = fmt.Sprintf("%d %s", e.Status, e.Param)
				if strings.Contains(e.Message, "valid JSON") {
					got += " json"
				}
				if e.Message == "The body is empty." {
					got += " empty"
				}
				if strings.Contains(e.Message, "object") && e.Param == "" {
					got += " object"
				}
			case err != nil:
				got = err.Error()
			default:
				enc := "float"
				if r.base64 {
					enc = "base64"
				}
				got = fmt.Sprintf("%s %d %s %d", kinds[r.kind], r.count, enc, r.dimensions)
				if len(r.spans()) != r.count || r.model != "m" {
					t.Errorf("%d spans of %d inputs of %q", len(r.spans()), r.count, r.model)
				}
			}
			if got != tt.want {
				t.Errorf("got %q, want %q (%v)", got, tt.want, err)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{`{"model":"m","input":"a"}`, `{"model":"m","input":[[1,2],[3]],"dimensions":8}`, `{"input":["a","b"],"model":"x","encoding_format":"base64"}`, `{"model":"m","input":[1,2.5,"a"]}`, `[[[`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		r, err := parse(body)
		var e *apierr.Error
		if err != nil {
			if !errors.As(err, &e) || e.Status != 400 {
				t.Fatalf("%q: %v", body, err)
			}
			return
		}
		if r.count < 1 || r.count > maxInputs || len(r.spans()) != r.count || r.model == "" {
			t.Fatalf("%q: %d inputs, %d spans", body, r.count, len(r.spans()))
		}
		// Whatever is sent must say of model and input what was read.
		p := &part{request: r, model: "up/stream", to: r.count}
		back, err := parse(openAI.write(p))
		if err != nil || back.model != "up/stream" || back.count != r.count || back.kind != r.kind {
			t.Fatalf("%q: sent as %+v, %v", body, back, err)
		}
	})
}
