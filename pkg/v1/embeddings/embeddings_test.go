package embeddings

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"weir/internal/golden"
	"weir/pkg/provider"
	"weir/pkg/routing"
	"weir/pkg/store"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/stream"
	"weir/pkg/wire/upstream"
)

// rows are the providers with embeddings, and one of each compatible family.
func rows() []*provider.Descriptor {
	var out []*provider.Descriptor
	for _, d := range provider.All() {
		if d.Serves("embeddings") {
			out = append(out, d)
		}
	}
	return append(out, provider.Lookup("openai-compatible-0123abcd"), provider.Lookup("anthropic-compatible-0123abcd"))
}

type answered struct {
	Object string
	Data   []struct {
		Object    string
		Index     int
		Embedding json.RawMessage
	}
	Model string
	Usage struct {
		PromptTokens *int `json:"prompt_tokens"`
		TotalTokens  *int `json:"total_tokens"`
	}
}

func (a *answered) vector(t *testing.T, i int, as64 bool) []float32 {
	t.Helper()
	var v []float32
	if !as64 {
		if err := json.Unmarshal(a.Data[i].Embedding, &v); err != nil {
			t.Fatalf("vector %d: %v", i, err)
		}
		return v
	}
	var s string
	if err := json.Unmarshal(a.Data[i].Embedding, &s); err != nil {
		t.Fatalf("vector %d: %v", i, err)
	}
	b, err := base64.StdEncoding.DecodeString(s)
	if err != nil || len(b)%4 != 0 {
		t.Fatalf("vector %d: %d bytes, %v", i, len(b), err)
	}
	for ; len(b) > 0; b = b[4:] {
		v = append(v, math.Float32frombits(binary.LittleEndian.Uint32(b)))
	}
	return v
}

// TestEveryProviderEmbeds calls each row in every form of input and encoding.
func TestEveryProviderEmbeds(t *testing.T) {
	many := make([]string, 250)
	for i := range many {
		many[i] = fmt.Sprintf("text %d \"é\" \\ \n", i)
	}
	manyJSON, _ := json.Marshal(many)
	inputs := []struct {
		name, input string
		texts       []string
	}{
		{"text", `"héllo\n\"w\" \u00e9 \ud83d\ude00"`, []string{"héllo\n\"w\" é 😀"}},
		{"texts", `[ "a" , "b\\c" ]`, []string{"a", `b\c`}},
		{"one_text_in_an_array", `["a"]`, []string{"a"}},
		{"texts_over_every_batch", string(manyJSON), many},
		{"tokens", `[1,2,3]`, []string{"[1 2 3]"}},
		{"token_lists", `[[1,2],[3]]`, []string{"[1 2]", "[3]"}},
	}
	for _, d := range rows() {
		shape := shapeOf(d)
		if shape == nil {
			t.Errorf("%s: no shape %q", d.ID, d.Embed)
			continue
		}
		for _, in := range inputs {
			for _, enc := range []string{"", "float", "base64"} {
				if enc == "float" && in.name != "text" {
					continue
				}
				t.Run(d.ID+"/"+in.name+"/"+enc, func(t *testing.T) {
					model := "org/model-1"
					if d.ID == "huggingface" && in.name == "text" {
						model = "plain"
					}
					extra := ""
					if enc != "" {
						extra = `,"encoding_format":"` + enc + `"`
					}
					body := `{"input":` + in.input + `,"model":"` + d.Alias + "/" + model + `"` + extra + `,"dimensions":8,"user":"u-1"}`
					if d.ID == "bedrock" && len(in.texts) > maxCalls {
						return // one text a call: refused, see below
					}
					m := &store.Machine{Connections: []store.Connection{connection(d, base(d))}}
					p := &pool{t: t, answer: fakeVendor}
					h := &Handler{Accounts: p}
					c := call(t, m, body)
					resp, err := h.Create(context.Background(), c)
					if strings.HasPrefix(in.name, "token") && shape.textOnly {
						var e *apierr.Error
						if !errors.As(err, &e) || e.Status != 400 || e.Param != "input" || len(p.sent) != 0 {
							t.Fatalf("tokens where only text is taken: %v, %d calls", err, len(p.sent))
						}
						return
					}
					if err != nil {
						t.Fatal(err)
					}
					raw, _ := stream.ReadAll(resp.Body, 1<<30)
					var a answered
					if err := json.Unmarshal(raw, &a); err != nil {
						t.Fatalf("%s: %v", raw, err)
					}
					if a.Object != "list" || a.Model != d.Alias+"/"+model || a.Usage.PromptTokens == nil || a.Usage.TotalTokens == nil || len(a.Data) != len(in.texts) {
						t.Fatalf("answer %.300s", raw)
					}
					if (d.ID != "together" && d.ID != "huggingface") != (*a.Usage.PromptTokens > 0) || *a.Usage.TotalTokens < *a.Usage.PromptTokens {
						t.Errorf("usage %d of %d", *a.Usage.PromptTokens, *a.Usage.TotalTokens)
					}
					dims := 8
					if strings.Contains(strings.Join(c.Trace.Dropped, " "), "dimensions") {
						dims = 0
					}
					for i, text := range in.texts {
						if a.Data[i].Index != i || a.Data[i].Object != "embedding" {
							t.Fatalf("item %d is %+v", i, a.Data[i])
						}
						got, want := a.vector(t, i, enc == "base64"), vectorOf(text, dims)
						if d.Embed == "perplexity" {
							want = nil
							for _, x := range rounded(text, dims) {
								want = append(want, float32(x))
							}
						}
						if fmt.Sprint(got) != fmt.Sprint(want) {
							t.Fatalf("vector %d: got %v, want %v", i, got, want)
						}
					}
					for _, req := range p.sent {
						if req.Method != "POST" || req.MaxBody <= 0 || req.HeaderTimeout <= 0 || req.Header.Get("content-type") != "application/json" {
							t.Errorf("request %+v", req)
						}
					}
					if n := shape.limit(model); n > 0 && len(p.sent) != (len(in.texts)+n-1)/n {
						t.Errorf("%d calls for %d inputs at %d a call", len(p.sent), len(in.texts), n)
					} else if n == 0 && len(p.sent) != 1 {
						t.Errorf("%d calls", len(p.sent))
					}
				})
			}
		}
	}
}

func base(d *provider.Descriptor) string {
	if d.Compatible {
		return "https://llm.example.com/v1/"
	}
	return ""
}

// TestVendors replays recorded answers: testdata/<name>.json holds provider,
// model, settings, request and the vendor's answer; the golden has what went up and what
// the client got.
func TestVendors(t *testing.T) {
	files, err := filepath.Glob("testdata/vendors/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no recorded answers: %v", err)
	}
	for _, f := range files {
		if strings.HasSuffix(f, ".golden.json") {
			continue
		}
		name := strings.TrimSuffix(filepath.Base(f), ".json")
		t.Run(name, func(t *testing.T) {
			raw, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			var rec struct {
				Provider string
				Purpose  string
				Request  json.RawMessage
				Answers  []json.RawMessage
			}
			if err := json.Unmarshal(raw, &rec); err != nil {
				t.Fatal(err)
			}
			d := provider.Lookup(rec.Provider)
			m := &store.Machine{Connections: []store.Connection{connection(d, base(d))}, Settings: store.Settings{EmbeddingInput: rec.Purpose}}
			n := 0
			p := &pool{t: t, answer: func(*routing.Target, *upstream.Request) (int, []byte) {
				n++
				return 200, rec.Answers[n-1]
			}}
			h := &Handler{Accounts: p}
			c := call(t, m, string(rec.Request))
			resp, err := h.Create(context.Background(), c)
			if err != nil {
				t.Fatal(err)
			}
			if n != len(rec.Answers) {
				t.Errorf("%d calls, want %d", n, len(rec.Answers))
			}
			type up struct {
				URL  string          `json:"url"`
				Body json.RawMessage `json:"body"`
			}
			var got struct {
				Sent    []up              `json:"sent"`
				Dropped []string          `json:"dropped,omitempty"`
				Header  map[string]string `json:"header"`
				Answer  json.RawMessage   `json:"answer"`
			}
			for _, req := range p.sent {
				b, _ := stream.ReadAll(req.Body, 1<<20)
				got.Sent = append(got.Sent, up{req.URL, b})
			}
			got.Header = map[string]string{}
			for _, h := range resp.Header {
				got.Header[h.Name] = h.Value
			}
			got.Dropped = c.Trace.Dropped
			got.Answer, _ = stream.ReadAll(resp.Body, 1<<20)
			golden.JSON(t, "vendors/"+name, got)
		})
	}
}

func TestOpenAIShapedAnswerPassesWithOnlyTheModelChanged(t *testing.T) {
	d := provider.Lookup("openai")
	body := `{ "seed":9007199254740993,"x":0.1000,"y":1e400, "model" : "openai\/m" , "input":"a" }`
	answer := `{"object":"list", "id":"e-1","data":[ {"object":"embedding","index":0,"embedding":[ 0.1000, -1e-3 ],"extra":1} ],"model" : "m-2024","usage":{"prompt_tokens":1,"total_tokens":1,"cost":0.10},"z":1e400}`
	var sent string
	p := &pool{t: t, answer: func(_ *routing.Target, req *upstream.Request) (int, []byte) {
		b, _ := stream.ReadAll(req.Body, 1<<20)
		sent = string(b)
		return 200, []byte(answer)
	}}
	h := &Handler{Accounts: p}
	resp, err := h.Create(context.Background(), call(t, &store.Machine{Connections: []store.Connection{connection(d, "")}}, body))
	if err != nil {
		t.Fatal(err)
	}
	if want := strings.Replace(body, `"openai\/m"`, `"m"`, 1); sent != want {
		t.Errorf("sent %s, want %s", sent, want)
	}
	got, _ := stream.ReadAll(resp.Body, 1<<20)
	if want := strings.Replace(answer, `"m-2024"`, `"openai\/m"`, 1); string(got) != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestIncompleteAnswersAreCompleted(t *testing.T) {
	tests := []struct{ name, answer, want string }{
		{"no_model", `{"object":"list","data":[{"object":"embedding","index":0,"embedding":[1]},{"object":"embedding","index":1,"embedding":[2]}],"usage":{"prompt_tokens":1,"total_tokens":2}}`, "1 2"},
		{"no_index", `{"data":[{"embedding":[1]},{"embedding":[2]}],"model":"m","usage":{"prompt_tokens":1,"total_tokens":2}}`, "1 2"},
		{"no_usage", `{"object":"list","data":[{"object":"embedding","index":0,"embedding":[1]},{"object":"embedding","index":1,"embedding":[2]}],"model":"m"}`, "0 0"},
		{"usage_null", `{"object":"list","data":[{"object":"embedding","index":0,"embedding":[1]},{"object":"embedding","index":1,"embedding":[2]}],"model":"m","usage":null}`, "0 0"},
		{"total_only", `{"object":"list","data":[{"object":"embedding","index":0,"embedding":[1]},{"object":"embedding","index":1,"embedding":[2]}],"model":"m","usage":{"total_tokens":7}}`, "7 7"},
		{"prompt_only", `{"object":"list","data":[{"object":"embedding","index":0,"embedding":[1]},{"object":"embedding","index":1,"embedding":[2]}],"model":"m","usage":{"prompt_tokens":7}}`, "7 7"},
		{"out_of_order", `{"object":"list","data":[{"object":"embedding","index":1,"embedding":[2]},{"object":"embedding","index":0,"embedding":[1]}],"model":"m","usage":{"prompt_tokens":1,"total_tokens":2}}`, "1 2"},
		{"all_numbered_0", `{"object":"list","data":[{"object":"embedding","index":0,"embedding":[1]},{"object":"embedding","index":0,"embedding":[2]}],"model":"m","usage":{"prompt_tokens":1,"total_tokens":2}}`, "1 2"},
		{"base64_unasked", `{"object":"list","data":[{"object":"embedding","index":0,"embedding":"AACAPw=="},{"object":"embedding","index":1,"embedding":"AAAAQA=="}],"model":"m","usage":{"prompt_tokens":1,"total_tokens":2}}`, "1 2"},
	}
	d := provider.Lookup("openai")
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := &pool{t: t, answer: func(*routing.Target, *upstream.Request) (int, []byte) { return 200, []byte(tt.answer) }}
			h := &Handler{Accounts: p}
			resp, err := h.Create(context.Background(), call(t, &store.Machine{Connections: []store.Connection{connection(d, "")}}, `{"model":"openai/m","input":["a","b"]}`))
			if err != nil {
				t.Fatal(err)
			}
			got, _ := stream.ReadAll(resp.Body, 1<<20)
			use := strings.Fields(tt.want)
			want := `{"object":"list","data":[{"object":"embedding","index":0,"embedding":[1]},{"object":"embedding","index":1,"embedding":[2]}],"model":"openai/m","usage":{"prompt_tokens":` + use[0] + `,"total_tokens":` + use[1] + `}}`
			if string(got) != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		})
	}
}

func TestUnreadableAnswersAre502(t *testing.T) {
	ok := `{"object":"embedding","index":0,"embedding":[1]}`
	tests := []struct{ name, provider, answer string }{
		{"empty", "openai", ``},
		{"html", "openai", `<html><body>hi</body></html>`},
		{"null", "openai", `null`},
		{"array", "openai", `[]`},
		{"error_in_a_200", "openai", `{"error":{"message":"no"}}`},
		{"cut", "openai", `{"object":"list","data":[` + ok},
		{"cut_in_a_vector", "openai", `{"object":"list","data":[{"object":"embedding","index":0,"embedding":[1,2`},
		{"trailing", "openai", `{"object":"list","data":[` + ok + `],"model":"m"}{}`},
		{"too_few", "openai", `{"object":"list","data":[]}`},
		{"too_many", "openai", `{"object":"list","data":[` + ok + `,` + ok + `]}`},
		{"wrong_index", "openai", `{"object":"list","data":[{"index":5,"embedding":[1]}]}`},
		{"negative_index", "openai", `{"object":"list","data":[{"index":-1,"embedding":[1]}]}`},
		{"data_object", "openai", `{"data":{"embedding":[1]}}`},
		{"data_twice", "openai", `{"data":[` + ok + `],"data":[` + ok + `]}`},
		{"no_vector", "openai", `{"data":[{"index":0}]}`},
		{"vector_null", "openai", `{"data":[{"index":0,"embedding":null}]}`},
		{"vector_empty", "openai", `{"data":[{"index":0,"embedding":[]}]}`},
		{"vector_empty_text", "openai", `{"data":[{"index":0,"embedding":""}]}`},
		{"vector_of_strings", "openai", `{"data":[{"index":0,"embedding":["1"]}]}`},
		{"vector_of_vectors", "openai", `{"data":[{"index":0,"embedding":[[1]]}]}`},
		{"vector_of_nan", "openai", `{"data":[{"index":0,"embedding":[NaN]}]}`},
		{"vector_not_base64", "openai", `{"data":[{"index":0,"embedding":"????"}]}`},
		{"vector_with_a_nan_inside", "openai", `{"data":[{"index":0,"embedding":"AADAfw=="}]}`},
		{"not_utf8", "openai", "{\"data\":[" + ok + "],\"x\":\"\xff\"}"},
		{"gemini_empty", "gemini", `{}`},
		{"gemini_no_values", "gemini", `{"embedding":{}}`},
		{"gemini_strings", "gemini", `{"embedding":{"values":["a"]}}`},
		{"cohere_no_floats", "cohere", `{"embeddings":{"int8":[[1]]}}`},
		{"cohere_count", "cohere", `{"embeddings":{"float":[[1],[2]]}}`},
		{"vertex_no_embeddings", "vertex", `{"predictions":[{}]}`},
		{"vertex_null", "vertex", `{"predictions":[null]}`},
		{"bedrock_message", "bedrock", `{"message":"x"}`},
		{"bedrock_nova_without_vector", "bedrock", `{"embeddings":[{"embeddingType":"TEXT"}]}`},
		{"bedrock_nova_mixed", "bedrock", `{"embeddings":[{"embedding":[1]},[2]]}`},
		{"vertex_content_without_values", "vertex", `{"embedding":{}}`},
		{"huggingface_object", "huggingface", `{"error":"loading"}`},
		{"huggingface_ragged", "huggingface", `[[[1,2],[1]]]`},
		{"huggingface_too_deep", "huggingface", `[[[[1]]]]`},
		{"perplexity_cut", "perplexity", `{"data":[{"index":0,"embedding":"A"}]}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := provider.Lookup(tt.provider)
			p := &pool{t: t, answer: func(*routing.Target, *upstream.Request) (int, []byte) { return 200, []byte(tt.answer) }}
			h := &Handler{Accounts: p}
			_, err := h.Create(context.Background(), call(t, &store.Machine{Connections: []store.Connection{connection(d, "")}}, `{"model":"`+d.Alias+`/m","input":"a"}`))
			var e *apierr.Error
			if !errors.As(err, &e) || e.Status != 502 || e.Code != "bad_upstream_body" {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestRefusals(t *testing.T) {
	many := func(n int) string { return "[" + strings.TrimSuffix(strings.Repeat(`"a",`, n), ",") + "]" }
	tests := []struct{ name, body, want string }{
		{"provider_without_embeddings", `{"model":"anthropic/claude","input":"a"}`, "400 model "},
		{"no_credentials", `{"model":"mistral/m","input":"a"}`, "400 model no_credentials"},
		{"unknown_provider", `{"model":"nobody/m","input":"a"}`, "400 model model_not_found"},
		{"unknown_model", `{"model":"nothing","input":"a"}`, "400 model model_not_found"},
		{"traversal", `{"model":"openai/../x","input":"a"}`, "400 model "},
		{"disabled", `{"model":"openai/off","input":"a"}`, "404  model_not_found"},
		{"not_json", `{"model":`, "400  invalid_json"},
		{"too_many_for_the_provider", `{"model":"bedrock/amazon.titan-embed-text-v2:0","input":` + many(65) + `}`, "400 input "},
		{"not_allowed", `{"model":"openai/secret","input":"a"}`, "403  model_not_allowed"},
		{"combo_members_that_cannot_are_left_out", `{"model":"mixed","input":"a"}`, "200 openai/m"},
		{"combo_of_none_that_can", `{"model":"chatty","input":"a"}`, "400 model "},
		{"combo_allowed_by_name", `{"model":"named","input":"a"}`, "200 openai/secret"},
		{"fine", `{"model":"openai/m","input":"a"}`, "200 openai/m"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := &store.Machine{
				Connections: []store.Connection{
					connection(provider.Lookup("openai"), ""), connection(provider.Lookup("anthropic"), ""), connection(provider.Lookup("bedrock"), ""),
				},
				Disabled: []store.DisabledModels{{ProviderAlias: "openai", IDs: []string{"off"}}},
				Combos: []store.Combo{
					{Name: "mixed", Models: []string{"anthropic/claude", "mistral/m", "openai/secret", "openai/m"}},
					{Name: "chatty", Models: []string{"anthropic/claude"}},
					{Name: "named", Models: []string{"openai/secret"}},
				},
			}
			var used string
			p := &pool{t: t, answer: func(to *routing.Target, req *upstream.Request) (int, []byte) {
				used = to.ID()
				return fakeVendor(to, req)
			}}
			h := &Handler{Accounts: p}
			c := call(t, m, tt.body)
			c.Key = &store.Key{Models: []string{"named", "openai/m", "openai/off", "openai/../x", "anthropic/*", "mistral/*", "nobody/*", "nothing", "bedrock/*"}}
			_, err := h.Create(context.Background(), c)
			got := "200 " + used
			var e *apierr.Error
			if errors.As(err, &e) {
				got = fmt.Sprintf("%d %s %s", e.Status, e.Param, e.Code)
			} else if err != nil {
				got = err.Error()
			}
			if got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestBodyOverTheLimit(t *testing.T) {
	c := call(t, &store.Machine{}, `{"model":"openai/m","input":"`+strings.Repeat("a", 100)+`"}`)
	c.MaxBody = 64
	h := &Handler{Accounts: &pool{t: t}}
	if _, err := h.Create(context.Background(), c); !errors.Is(err, stream.ErrTooLarge) {
		t.Errorf("got %v", err)
	}
}

func TestBatchesStayWithFirstModel(t *testing.T) {
	cohere, openai := provider.Lookup("cohere"), provider.Lookup("openai")
	m := &store.Machine{
		Connections: []store.Connection{connection(openai, ""), connection(cohere, "")},
		Combos:      []store.Combo{{Name: "both", Models: []string{"cohere/embed", "openai/m"}}},
	}
	p := &pool{t: t}
	var ids []string
	p.answer = func(to *routing.Target, req *upstream.Request) (int, []byte) {
		ids = append(ids, to.ID())
		return fakeVendor(to, req)
	}
	h := &Handler{Accounts: p}
	in := "[" + strings.TrimSuffix(strings.Repeat(`"a",`, 200), ",") + "]"
	if _, err := h.Create(context.Background(), call(t, m, `{"model":"both","input":`+in+`}`)); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(ids, " "); got != "cohere/embed cohere/embed cohere/embed" {
		t.Errorf("asked %s", got)
	}
}

func BenchmarkReadOpenAI(b *testing.B) {
	body := []byte(`{"object":"list","data":[{"object":"embedding","index":0,"embedding":` + string(benchVector(1536)) + `}],"model":"m","usage":{"prompt_tokens":5,"total_tokens":5}}`)
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		a := answer{body: body}
		if err := readOpenAI(&a, &request{count: 1}); err != nil {
			b.Fatal(err)
		}
	}
}

// The pass that reads a request notes the fields with fallback models.
func TestLimitedKeyMayNotNameFallbackModels(t *testing.T) {
	m := &store.Machine{Connections: []store.Connection{connection(provider.Lookup("openai"), "")}}
	h := &Handler{Accounts: &pool{t: t, answer: fakeVendor}}
	for field, status := range map[string]int{`"user":"x"`: 0, `"models":["b"]`: 403, `"Fallba\u0063ks":["b"]`: 403, `"fallbacks":["a"]`: 0} {
		c := call(t, m, `{"model":"openai/a","input":"x",`+field+`}`)
		c.Key = &store.Key{Models: []string{"openai/a"}}
		_, err := h.Create(context.Background(), c)
		got := 0
		if e := (*apierr.Error)(nil); errors.As(err, &e) {
			got = e.Status
		}
		if got != status {
			t.Errorf("%s: got %v, want status %d", field, err, status)
		}
	}
}

// A model whose vectors have one size does not have the field for it.
func TestDimensionsOfModelsWithOneSize(t *testing.T) {
	for _, tt := range []struct {
		provider, model string
		sized           bool
	}{
		{"mistral", "mistral-embed", false}, {"mistral", "codestral-embed", true},
		{"cohere", "embed-english-v3.0", false}, {"cohere", "embed-multilingual-light-v3.0", false}, {"cohere", "embed-v4.0", true},
		{"bedrock", "cohere.embed-english-v3", false}, {"bedrock", "global.cohere.embed-v4:0", true},
		{"bedrock", "amazon.titan-embed-text-v1", false}, {"bedrock", "amazon.titan-embed-text-v2:0", true},
		{"openai", "mistral-embed", true}, // its bytes pass
	} {
		d := provider.Lookup(tt.provider)
		sent := ""
		p := &pool{t: t, answer: func(to *routing.Target, req *upstream.Request) (int, []byte) {
			b, _ := stream.ReadAll(req.Body, 1<<20)
			sent, req.Body = string(b), stream.FromBytes(b)
			return fakeVendor(to, req)
		}}
		c := call(t, &store.Machine{Connections: []store.Connection{connection(d, base(d))}}, `{"model":"`+d.Alias+"/"+tt.model+`","input":"a","dimensions":8}`)
		_, err := (&Handler{Accounts: p}).Create(context.Background(), c)
		if dropped := slices.Contains(c.Trace.Dropped, "dimensions"); sent == "" || strings.Contains(sent, "imension") != tt.sized || dropped == tt.sized {
			t.Errorf("%s/%s: %v, sent %s, dropped %v", tt.provider, tt.model, err, sent, c.Trace.Dropped)
		}
	}
}
