package embeddings

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"weir/pkg/provider"
	"weir/pkg/routing"
	"weir/pkg/store"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/stream"
	"weir/pkg/wire/upstream"
)

// embedGemini asks a provider as a client of the Gemini API does, and returns the
// answer and the bodies that went up.
func embedGemini(t testing.TB, d *provider.Descriptor, model, body string, batch bool, answer func(*routing.Target, *upstream.Request) (int, []byte)) (got string, sent, dropped []string, err error) {
	m := &store.Machine{Connections: []store.Connection{connection(d, base(d))}}
	p := &pool{t: t, answer: func(to *routing.Target, req *upstream.Request) (int, []byte) {
		b, _ := stream.ReadAll(req.Body, 1<<20)
		sent = append(sent, string(b))
		req.Body = stream.FromBytes(b)
		return answer(to, req)
	}}
	c := call(t, m, body)
	resp, err := (&Handler{Accounts: p}).Gemini(context.Background(), c, d.Alias+"/"+model, batch)
	if err != nil {
		return "", sent, nil, err
	}
	raw, _ := stream.ReadAll(resp.Body, 1<<30)
	return string(raw), sent, c.Trace.Dropped, nil
}

// batchOf is the body of :batchEmbedContents as Google's client sends it.
func batchOf(texts []string, options string) string {
	var b strings.Builder
	for i, s := range texts {
		text, _ := json.Marshal(s)
		fmt.Fprintf(&b, `%s{"content":{"parts":[{"text":%s}],"role":"user"},"model":"models/x"%s}`, ",\n"[min(i, 1)^1:][:1], text, options)
	}
	return `{"requests":[` + b.String() + `]}`
}

func TestGeminiClientEmbedsWithEveryProvider(t *testing.T) {
	many := make([]string, 130)
	for i := range many {
		many[i] = fmt.Sprintf("text %d \"é\" \\ \n", i)
	}
	for _, d := range rows() {
		for _, texts := range [][]string{{"one"}, {"a", `b\c`}, many} {
			if d.ID == "bedrock" && len(texts) > maxCalls {
				continue // one text a call
			}
			for _, batch := range []bool{true, false} {
				if !batch && len(texts) > 1 {
					continue
				}
				t.Run(fmt.Sprintf("%s/%d/%v", d.ID, len(texts), batch), func(t *testing.T) {
					body := batchOf(texts, `,"outputDimensionality":8`)
					if !batch {
						body = gjson.Get(body, "requests.0").Raw
					}
					got, _, dropped, err := embedGemini(t, d, "org/model-1", body, batch, fakeVendor)
					if err != nil {
						t.Fatal(err)
					}
					dims := 8
					if strings.Contains(strings.Join(dropped, " "), "outputDimensionality") {
						dims = 0
					}
					vectors := gjson.Get(got, "embeddings.#.values").Array()
					if !batch {
						vectors = gjson.Get(got, "[embedding.values]").Array()
					}
					if len(vectors) != len(texts) {
						t.Fatalf("%d vectors: %.300s", len(vectors), got)
					}
					for i, text := range texts {
						want := fmt.Sprint(vectorOf(text, dims))
						if d.Embed == "perplexity" {
							want = fmt.Sprint(rounded(text, dims))
						}
						var v []float32
						json.Unmarshal([]byte(vectors[i].Raw), &v)
						if got := fmt.Sprint(v); got != want {
							t.Fatalf("vector %d: got %s, want %s", i, got, want)
						}
					}
					if d.Embed == "openai" && gjson.Get(got, "usageMetadata.promptTokenCount").Int() == 0 {
						t.Errorf("no usage: %.300s", got)
					}
				})
			}
		}
	}
}

func TestGeminiEmbeddingsPassByteForByte(t *testing.T) {
	d := provider.Lookup("gemini")
	answer := `{ "embeddings":[ {"values":[0.1000,-1e-3],"x":1}, {"values":[1, 2]} ], "usageMetadata":{"promptTokenCount":7} }`
	one := `{"embedding":{"values":[ 0.10 ],"shape":[1]}}`
	for _, tt := range []struct{ name, body, sent, answer string }{
		{"batch",
			`{ "z":1e400,"requests" : [ {"model":"models/a\/b", "content":{"parts":[{"inline_data":{"data":"AAAA"}}]},"taskType":"CLUSTERING"} , { "content":{"parts":[{"text":"t"}]},"title":"x" } ] }`,
			`{ "z":1e400,"requests" : [ {"model":"models/m", "content":{"parts":[{"inline_data":{"data":"AAAA"}}]},"taskType":"CLUSTERING"} , {"model":"models/m", "content":{"parts":[{"text":"t"}]},"title":"x" } ] }`,
			answer},
		{"batch of one", `{"requests":[{"model":"models/x","content":{"parts":[{"text":"t"}]}}]}`, `{"requests":[{"model":"models/m","content":{"parts":[{"text":"t"}]}}]}`, `{"embeddings":[{"values":[1]}]}`},
		{"one", `{"content":{ "role":"user","parts":[{"text":"a"},{"text":"b"}] },"task_type":"RETRIEVAL_QUERY" }`, `{"content":{ "role":"user","parts":[{"text":"a"},{"text":"b"}] },"task_type":"RETRIEVAL_QUERY" }`, one},
		{"one with a model", `{"content":{"parts":[{"text":"a"}]},"model":"models/x" ,"later":1}`, `{"content":{"parts":[{"text":"a"}]},"model":"models/m" ,"later":1}`, one},
	} {
		got, sent, _, err := embedGemini(t, d, "m", tt.body, strings.HasPrefix(tt.name, "batch"), func(_ *routing.Target, r *upstream.Request) (int, []byte) {
			if want := ":embedContent"; strings.HasPrefix(tt.name, "batch") != strings.HasSuffix(r.URL, ":batchEmbedContents") || !strings.HasPrefix(tt.name, "batch") && !strings.HasSuffix(r.URL, want) {
				t.Errorf("%s: %s", tt.name, r.URL)
			}
			return 200, []byte(tt.answer)
		})
		if err != nil || len(sent) != 1 || sent[0] != tt.sent || got != tt.answer {
			t.Errorf("%s: %v\nsent %s\nwant %s\ngot  %s", tt.name, err, sent, tt.sent, got)
		}
	}
}

func TestGeminiOptionsOfEmbeddings(t *testing.T) {
	for _, tt := range []struct{ provider, body, want, dropped string }{
		{"cohere", batchOf([]string{"a"}, `,"taskType":"RETRIEVAL_QUERY","title":"t"`), `"input_type":"search_query"`, "title"},
		{"cohere", batchOf([]string{"a"}, `,"task_type":"RETRIEVAL_DOCUMENT"`), `"input_type":"search_document"`, ""},
		{"openai", batchOf([]string{"a"}, `,"taskType":"CLUSTERING","outputDimensionality":3`), `{"model":"m","input":["a"],"dimensions":3}`, "taskType"},
		{"openai", batchOf([]string{"a", "b"}, `,"taskType":null`), `{"model":"m","input":["a","b"]}`, ""},
		{"openai", `{"requests":[{"content":{"parts":[{"text":"a"},{"text":""},{"text":"b"}]}}]}`, `"input":["a\nb"]`, ""},
		{"together", batchOf([]string{"a"}, `,"outputDimensionality":3`), `"input":`, "outputDimensionality"},
		{"vertex", batchOf([]string{"a"}, `,"taskType":"CLUSTERING","title":"t"`), `{"content":"a","task_type":"CLUSTERING","title":"t"}`, ""},
		{"vertex", `{"requests":[{"content":{"parts":[{"text":"a"}]},"title":"x"},{"content":{"parts":[{"text":"b"}]}}]}`, `[{"content":"a"},{"content":"b"}]`, "title"},
	} {
		d := provider.Lookup(tt.provider)
		_, sent, dropped, err := embedGemini(t, d, "m", tt.body, true, fakeVendor)
		if err != nil || len(sent) != 1 || !strings.Contains(sent[0], tt.want) || strings.Join(dropped, " ") != tt.dropped {
			t.Errorf("%s %s: %v, dropped %q, sent %s, want %s", tt.provider, tt.body, err, dropped, sent, tt.want)
		}
	}
}

// A model of Vertex AI that takes a content gets the client's, with its media.
func TestGeminiContentForVertex(t *testing.T) {
	content := `{"parts":[{"inlineData":{"mimeType":"image/png","data":"AAAA"}}]}`
	got, sent, _, err := embedGemini(t, provider.Lookup("vertex"), "gemini-embedding-2", `{"content":`+content+`,"taskType":"CLUSTERING"}`, false, func(*routing.Target, *upstream.Request) (int, []byte) {
		return 200, []byte(`{"embedding":{"values":[1]},"usageMetadata":{"promptTokenCount":258}}`)
	})
	if err != nil || len(sent) != 1 || sent[0] != `{"content":`+content+`,"taskType":"CLUSTERING"}` || got != `{"embedding":{"values":[1]},"usageMetadata":{"promptTokenCount":258,"totalTokenCount":258}}` {
		t.Errorf("%v, sent %s, got %s", err, sent, got)
	}
}

func TestInvalidGeminiEmbeddings(t *testing.T) {
	ok := `{"content":{"parts":[{"text":"a"}]}}`
	for _, tt := range []struct{ provider, body, param string }{
		{"openai", ``, ""},
		{"openai", `{`, ""},
		{"openai", `[]`, ""},
		{"openai", `{}`, "requests"},
		{"openai", `{"requests":[]}`, "requests"},
		{"openai", `{"requests":{}}`, "requests"},
		{"openai", `{"requests":[1]}`, "requests"},
		{"openai", `{"requests":[` + ok + `],"requests":[]}`, "requests"},
		{"openai", `{"requests":[{"content":{"parts":[{"text":"a"}]},"content":{}}]}`, "requests"},
		{"openai", `{"requests":[{"model":"a","content":{"parts":[{"text":"a"}]},"model":"b"}]}`, "requests"},
		{"openai", `{"requests":[{}]}`, "content"},
		{"openai", `{"requests":[{"content":"a"}]}`, "content"},
		{"openai", `{"requests":[{"content":{"parts":[]}}]}`, "content"},
		{"openai", `{"requests":[{"content":{"parts":[{"text":""}]}}]}`, "content"},
		{"openai", `{"requests":[{"content":{"parts":[{"text":"\ud800"}]}}]}`, "content"},
		{"openai", `{"requests":[{"content":{"parts":[{"inlineData":{}}]}}]}`, "content"},
		{"openai", batchOf([]string{"a"}, `,"outputDimensionality":0`), "outputDimensionality"},
		{"openai", batchOf([]string{"a"}, `,"outputDimensionality":"8"`), "outputDimensionality"},
		{"openai", batchOf([]string{"a"}, `,"taskType":1`), "taskType"},
		{"openai", `{"requests":[` + ok + `,{"content":{"parts":[{"text":"b"}]},"outputDimensionality":3}]}`, "outputDimensionality"},
		{"cohere", `{"requests":[` + ok + `,{"content":{"parts":[{"text":"b"}]},"taskType":"CLUSTERING"}]}`, "taskType"},
		{"openai", batchOf(make([]string, 1), ""), "content"},
		{"gemini", batchOf(strings.Split(strings.Repeat("a ", maxInputs+1), " ")[:maxInputs+1], ""), "requests"},
	} {
		_, sent, _, err := embedGemini(t, provider.Lookup(tt.provider), "m", tt.body, true, fakeVendor)
		var e *apierr.Error
		if !errors.As(err, &e) || e.Status != 400 || e.Param != tt.param || len(sent) > 0 {
			t.Errorf("%s %.100s: %v, parameter %q, %d calls", tt.provider, tt.body, err, e.Param, len(sent))
		}
	}
}

// FuzzGeminiRequest checks that a request is read without a panic, and that what
// is read of it can be sent.
func FuzzGeminiRequest(f *testing.F) {
	for _, s := range []string{
		`{"content":{"parts":[{"text":"a"}]},"model":"models/x","outputDimensionality":3}`,
		`{"requests":[{"content":{"parts":[{"text":"a"},{"inlineData":{"data":"AA"}}]},"title":"t"},{"content":{"parts":[{"text":"\ud83d\ude00"}]}}]}`,
		`{"requests":[ ]}`, `{"content":{"parts":[{"text":"`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, batch := range []bool{true, false} {
			given := bytes.Clone(body)
			g, err := readGeminiRequest(body, batch)
			if err != nil {
				continue
			}
			r := request{gemini: g}
			if err := r.fromGemini("a/b"); err != nil {
				continue
			}
			if !json.Valid(r.body) {
				t.Fatalf("%s becomes %s", body, r.body)
			}
			for from := range min(r.count, 3) {
				p := &part{request: &r, model: "m", from: from, to: r.count}
				if out := g.write(p); !json.Valid(out) {
					t.Fatalf("%s becomes %s", body, out)
				}
			}
			if !bytes.Equal(body, given) {
				t.Fatal("the body has changed")
			}
		}
	})
}

// The parts of a content and the requests of a batch are joined in linear memory.
func TestReadingGeminiRequestsIsLinear(t *testing.T) {
	for name, of := range map[string]func(n int) string{
		"parts": func(n int) string {
			return `{"requests":[{"content":{"parts":[` + strings.Repeat(`{"text":"words and words"},`, n) + `{}]}}]}`
		},
		"requests": func(n int) string { return batchOf(make([]string, n), "") },
	} {
		cost := func(n int) float64 {
			body := []byte(of(n))
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			readGeminiRequest(body, true)
			runtime.ReadMemStats(&after)
			return float64(after.TotalAlloc-before.TotalAlloc) / float64(len(body))
		}
		if small, large := cost(200), cost(20_000); large > 4*small+8 {
			t.Errorf("%s: %.1f bytes a byte of a short request, %.1f of a long one", name, small, large)
		}
	}
}
