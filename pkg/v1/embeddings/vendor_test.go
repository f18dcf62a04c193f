package embeddings

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"
	"math"
	"strings"
	"testing"

	"weir/pkg/accounts"
	"weir/pkg/auth"
	"weir/pkg/provider"
	"weir/pkg/routing"
	"weir/pkg/snapshot"
	"weir/pkg/store"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/stream"
	"weir/pkg/wire/upstream"
)

// vectorOf is what every fake vendor makes of an input: numbers that a float32
// holds and that are short in decimal.
func vectorOf(in string, dims int) []float32 {
	if dims == 0 {
		dims = 4
	}
	h := fnv.New32a()
	h.Write([]byte(in))
	x := h.Sum32()
	v := make([]float32, dims)
	for i := range v {
		x = x*1664525 + 1013904223
		v[i] = float32(int8(x>>24)) / 64
	}
	return v
}

// rounded is vectorOf as a vendor of signed bytes sends it.
func rounded(in string, dims int) []int8 {
	var out []int8
	for _, f := range vectorOf(in, dims) {
		out = append(out, int8(f*16))
	}
	return out
}

func texts64(v []float32) string {
	var b []byte
	for _, f := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(f))
	}
	return base64.StdEncoding.EncodeToString(b)
}

// vendor answers an upstream request as the provider of a shape does: strictly,
// with a 4xx for what that one refuses.
func vendor(shape string, req *upstream.Request) (int, any) {
	raw, _ := stream.ReadAll(req.Body, 1<<30)
	var m map[string]any
	if err := json.Unmarshal(raw, &m); err != nil {
		return 400, map[string]any{"error": "not JSON: " + string(raw)}
	}
	bad := func(f string, a ...any) (int, any) { return 422, map[string]any{"detail": fmt.Sprintf(f, a...)} }
	only := func(names string) string {
		for k := range m {
			if !strings.Contains(" "+names+" ", " "+k+" ") {
				return k
			}
		}
		return ""
	}
	num := func(name string) int {
		f, _ := m[name].(float64)
		return int(f)
	}
	list := func(v any) []string {
		switch x := v.(type) {
		case string:
			return []string{x}
		case []any:
			if len(x) > 0 {
				if _, number := x[0].(float64); number {
					return []string{fmt.Sprint(x)}
				}
			}
			var out []string
			for _, e := range x {
				out = append(out, fmt.Sprint(e))
			}
			return out
		}
		return nil
	}
	openai := func(in []string, dims int, as64 bool) map[string]any {
		var data []any
		for i, s := range in {
			e := any(vectorOf(s, dims))
			if as64 {
				e = texts64(vectorOf(s, dims))
			}
			data = append(data, map[string]any{"object": "embedding", "index": i, "embedding": e})
		}
		return map[string]any{"object": "list", "data": data, "model": m["model"], "usage": map[string]any{"prompt_tokens": len(in), "total_tokens": len(in)}}
	}
	floats := func(in []string, dims int) (out [][]float32) {
		for _, s := range in {
			out = append(out, vectorOf(s, dims))
		}
		return out
	}
	switch shape {
	case "", "dashscope", "cloudflare", "mistral", "nvidia", "together", "voyage", "jina", "perplexity":
		in := list(m["input"])
		dims, as64, limit := num("dimensions"), m["encoding_format"] == "base64", 2048
		switch shape {
		case "dashscope":
			limit = 10
		case "cloudflare":
			limit = 100
		case "mistral":
			if k := only("model input encoding_format output_dimension output_dtype"); k != "" {
				return bad("extra input %s", k)
			}
			dims, limit = num("output_dimension"), 32
		case "nvidia":
			if m["input_type"] != "query" && m["input_type"] != "passage" {
				return bad("input_type is required")
			}
		case "together":
			if k := only("model input"); k != "" {
				return bad("extra input %s", k)
			}
		case "voyage":
			if k := only("model input input_type truncation output_dimension output_dtype encoding_format"); k != "" {
				return bad("extra input %s", k)
			}
			if _, given := m["encoding_format"]; given && !as64 {
				return bad("encoding_format must be base64")
			}
			dims, limit = num("output_dimension"), 1000
		case "jina":
			if k := only("model input embedding_type dimensions task late_chunking normalized truncate"); k != "" {
				return bad("extra input %s", k)
			}
			if _, ok := m["input"].([]any); !ok {
				return bad("input must be an array")
			}
			as64 = m["embedding_type"] == "base64"
		case "perplexity":
			if m["encoding_format"] != "base64_int8" {
				return bad("encoding_format")
			}
			limit = 512
		}
		if len(in) > limit {
			return bad("%d inputs", len(in))
		}
		out := openai(in, dims, as64)
		switch shape {
		case "together":
			delete(out, "usage")
		case "voyage", "jina":
			delete(out["usage"].(map[string]any), "prompt_tokens")
		case "perplexity":
			for i, d := range out["data"].([]any) {
				var b []byte
				for _, x := range rounded(in[i], dims) {
					b = append(b, byte(x))
				}
				d.(map[string]any)["embedding"] = base64.StdEncoding.EncodeToString(b)
			}
		}
		return 200, out
	case "gemini":
		one := func(r map[string]any) ([]float32, bool) {
			c, _ := r["content"].(map[string]any)
			parts, _ := c["parts"].([]any)
			if len(parts) != 1 || !strings.HasPrefix(fmt.Sprint(r["model"]), "models/") {
				return nil, false
			}
			d, _ := r["outputDimensionality"].(float64)
			return vectorOf(parts[0].(map[string]any)["text"].(string), int(d)), true
		}
		if strings.HasSuffix(req.URL, ":embedContent") {
			v, ok := one(m)
			if !ok {
				return bad("content")
			}
			return 200, map[string]any{"embedding": map[string]any{"values": v}}
		}
		reqs, _ := m["requests"].([]any)
		if len(reqs) > 100 || !strings.HasSuffix(req.URL, ":batchEmbedContents") {
			return bad("at most 100")
		}
		var out []any
		for _, r := range reqs {
			v, ok := one(r.(map[string]any))
			if !ok {
				return bad("content")
			}
			out = append(out, map[string]any{"values": v})
		}
		return 200, map[string]any{"embeddings": out}
	case "cohere":
		if k := only("model texts input_type embedding_types output_dimension truncate"); k != "" {
			return bad("extra input %s", k)
		}
		in := list(m["texts"])
		if m["input_type"] == nil || len(in) > 96 {
			return bad("input_type and at most 96 texts")
		}
		return 200, map[string]any{"id": "x", "embeddings": map[string]any{"float": floats(in, num("output_dimension"))}, "texts": in,
			"meta": map[string]any{"billed_units": map[string]any{"input_tokens": len(in)}}}
	case "vertex":
		ins, _ := m["instances"].([]any)
		if len(ins) > 250 {
			return bad("at most 250")
		}
		p, _ := m["parameters"].(map[string]any)
		d, _ := p["outputDimensionality"].(float64)
		var out []any
		for _, i := range ins {
			s := i.(map[string]any)["content"].(string)
			out = append(out, map[string]any{"embeddings": map[string]any{"values": vectorOf(s, int(d)), "statistics": map[string]any{"token_count": 1.0, "truncated": false}}})
		}
		return 200, map[string]any{"predictions": out}
	case "bedrock":
		if k := only("inputText dimensions normalize"); k != "" {
			return bad("extra input %s", k)
		}
		return 200, map[string]any{"embedding": vectorOf(m["inputText"].(string), num("dimensions")), "inputTextTokenCount": 1}
	case "huggingface":
		if k := only("inputs normalize truncate"); k != "" {
			return bad("extra input %s", k)
		}
		return 200, floats(list(m["inputs"]), 0)
	}
	return 500, map[string]any{"error": "no such vendor"}
}

// pool is a Sender of one account: Build, an answer, Read.
type pool struct {
	t      testing.TB
	answer func(to *routing.Target, req *upstream.Request) (int, []byte)
	sent   []*upstream.Request
}

func (p *pool) Send(_ context.Context, call *accounts.Call) (*accounts.Result, error) {
	to := &call.Targets[0]
	conn := to.Connections[0]
	a, err := call.Build(to, conn, nil)
	if err != nil {
		return nil, err
	}
	call.Trace.Dropped = a.Dropped
	p.sent = append(p.sent, &a.Request)
	status, body := p.answer(to, &a.Request)
	if status/100 != 2 {
		return nil, fmt.Errorf("upstream %d: %s", status, body)
	}
	resp := &upstream.Response{Status: status, Header: httpmsg.Header{
		{Name: "content-type", Value: "text/html"}, {Name: "set-cookie", Value: "a=b"}, {Name: "x-ratelimit-remaining-requests", Value: "9"},
	}, Body: stream.FromBytes(body)}
	if err := call.Read(a, resp); err != nil {
		return nil, err
	}
	return &accounts.Result{Response: resp, Target: to, Connection: conn, Attempt: a}, nil
}

// fakeVendor answers by the shape of the provider that is called.
func fakeVendor(to *routing.Target, req *upstream.Request) (int, []byte) {
	status, v := vendor(to.Provider.Embed, req)
	b, _ := json.Marshal(v)
	return status, b
}

func connection(d *provider.Descriptor, base string) store.Connection {
	c := store.Connection{ID: "c-" + d.ID, Provider: d.ID, Data: store.ProviderData{BaseURL: base, Vars: map[string]string{}}}
	for _, v := range d.Vars {
		c.Data.Vars[v] = "abc1"
	}
	return c
}

func call(t testing.TB, m *store.Machine, body string) *auth.Call {
	m.ID, m.Version = "abcdefghijklmnop", 1
	return &auth.Call{
		Request: &httpmsg.Request{Method: "POST", Path: "/v1/embeddings", Body: io.NopCloser(strings.NewReader(body)), Length: int64(len(body))},
		Machine: snapshot.New(m), MachineID: m.ID, MaxBody: 8 << 20,
	}
}
