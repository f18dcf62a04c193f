package images

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand"
	std "mime/multipart"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weir/internal/golden"
	"weir/internal/testgw"
	"weir/internal/testgw/fake"
	"weir/pkg/auth"
	"weir/pkg/endpoint"
	"weir/pkg/endpoint/download"
	"weir/pkg/provider"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/upstream"
)

func handler(w *testgw.World) *Handler {
	return &Handler{
		Accounts: w.Pool, Pause: w, Now: w.Now,
		Downloads: &download.Downloads{Do: w},
	}
}

const picture = `{ "model":"openai/gpt-image-1.5","prompt":"a cat","n":1,"x":1e400 }`

func TestGenerationsPass(t *testing.T) {
	events := "event: image_generation.partial_image\ndata: {\"type\":\"image_generation.partial_image\"}\n\nevent: image_generation.completed\ndata: {\"type\":\"image_generation.completed\",\"b64_json\":\"AA\"}\n\n"
	tests := []struct {
		name string
		up   fake.Answer
		want string
	}{
		{"answer", fake.JSON(`{ "created":1,"data":[{"b64_json":"AA=="}] }`), `200 application/json { "created":1,"data":[{"b64_json":"AA=="}] }`},
		{"events", fake.OK("text/event-stream", events), "200 text/event-stream " + events},
		{"events_cut", fake.OK("text/event-stream", events[:80]), "200 text/event-stream " + events[:80] + string(endpoint.CutEvent)},
		{"cut", fake.Answer{Status: 200, Header: httpmsg.Header{{Name: "content-type", Value: "application/json"}}, Body: `{"data":[`, Cut: true}, "502 upstream_outcome_unknown"},
	}
	for _, tt := range tests {
		w := testgw.New(t, "openai")
		w.Answer = func(*fake.Seen) fake.Answer { return tt.up }
		if got := testgw.Outcome(handler(w).Generations(context.Background(), w.Post(picture))); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.name, got, tt.want)
		}
		if s := w.Seen[0]; s.Body != strings.Replace(picture, "openai/", "", 1) || s.URL != "https://api.openai.com/v1/images/generations" {
			t.Errorf("%s: sent %s to %s", tt.name, s.Body, s.URL)
		}
	}
}

// TestCreationIsRetriedOnlyAfterRefusal: an image is billed.
func TestCreationIsRetriedOnlyAfterRefusal(t *testing.T) {
	for _, tt := range []struct {
		first fake.Answer
		took  string
	}{
		{fake.Answer{Status: 401}, "ab"}, {fake.Answer{Status: 403}, "ab"}, {fake.Answer{Status: 429}, "ab"},
		{fake.Answer{Status: 400}, "a"}, {fake.Answer{Status: 500}, "a"}, {fake.Answer{Status: 503}, "a"},
		{fake.Answer{Err: upstream.ErrNetwork}, "a"}, {fake.Answer{Err: upstream.ErrTimeout}, "a"}, {fake.Answer{Status: 204}, "a"},
		{fake.JSON(`{"data":`), "a"}, {fake.JSON(``), "a"}, {fake.JSON(`[]`), "a"}, {fake.JSON(`{"error":{"message":"busy"}}`), "a"},
		{fake.OK("text/html", "<html>sign in</html>"), "a"}, {fake.Answer{Status: 302}, "a"},
	} {
		w := testgw.New(t, "openai", "openai")
		w.Answer = func(s *fake.Seen) fake.Answer {
			if len(w.Seen) == 1 {
				return tt.first
			}
			return fake.JSON(`{}`)
		}
		_, err := handler(w).Generations(context.Background(), w.Post(picture))
		if w.Accounts() != tt.took {
			t.Errorf("%+v: asked %s, want %s", tt.first, w.Accounts(), tt.took)
		}
		var e *apierr.Error
		if errors.As(err, &e); tt.took == "a" && tt.first.Status != 400 && (e == nil || e.Status < 500 || !e.NoRetry || strings.Contains(e.Message, "sign in")) {
			t.Errorf("%+v: the client is told %+v", tt.first, e)
		}
	}
}

const boundary = "b0undary"

func form(parts ...string) string {
	var b strings.Builder
	for _, p := range parts {
		b.WriteString("--" + boundary + "\r\n" + p + "\r\n")
	}
	return b.String() + "--" + boundary + "--\r\n"
}

func field(name, value string) string {
	return "Content-Disposition: form-data; name=\"" + name + "\"\r\n\r\n" + value
}

func file(name, content string) string {
	return "Content-Disposition: form-data; name=\"" + name + "\"; filename=\"a.png\"\r\nContent-Type: image/png\r\n\r\n" + content
}

type flowing struct{ *strings.Reader }

func (flowing) Close() error { return nil }

func send(w *testgw.World, body string, header ...string) *auth.Call {
	return w.Call("POST", flowing{strings.NewReader(body)}, int64(len(body)), append([]string{"content-type", "multipart/form-data; boundary=" + boundary}, header...)...)
}

func TestEditsAsAForm(t *testing.T) {
	raw := make([]byte, 1<<20)
	rand.New(rand.NewSource(1)).Read(raw)
	many := []string{field("prompt", "p")}
	for range 16 {
		many = append(many, file("image[]", "x"))
	}
	tests := []struct {
		name, body string
		header     []string
		status     string
		again      bool
	}{
		{"model_first", form(field("model", "openai/gpt-image-1.5"), file("image", string(raw)), field("prompt", "p")), nil, "200", true},
		{"model_last_is_held", form(file("image", string(raw)), field("prompt", "p"), field("model", "openai/gpt-image-1.5")), nil, "200", true},
		{"query", form(append(many, file("mask", string(raw)))...), []string{"query", "model=openai/gpt-image-1.5"}, "200", true},
		{"sixteen_images", form(append(many, field("model", "openai/gpt-image-1.5"), field("quality", "low"), field("size", "auto"), field("n", "1"), field("user", "u"))...), nil, "200", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := testgw.New(t, "openai", "openai")
			h := handler(w)
			limited := false
			w.Answer = func(s *fake.Seen) fake.Answer {
				if limited && len(w.Seen) == 1 {
					return fake.Answer{Status: 429}
				}
				return fake.JSON(`{"data":[]}`)
			}
			if got := testgw.Outcome(h.Edits(context.Background(), send(w, tt.body, tt.header...))); !strings.HasPrefix(got, tt.status) {
				t.Fatal(got)
			}
			s := w.Seen[0]
			if s.URL != "https://api.openai.com/v1/images/edits" || s.Length != int64(len(s.Body)) {
				t.Errorf("%d bytes to %s, %d promised", len(s.Body), s.URL, s.Length)
			}
			f, err := std.NewReader(strings.NewReader(s.Body), boundary).ReadForm(8 << 20)
			if err != nil || fmt.Sprint(f.Value["model"]) != "[gpt-image-1.5]" {
				t.Errorf("%v, %v", f, err)
			}
			limited, w.Seen = true, nil
			handler(w).Edits(context.Background(), send(w, tt.body, tt.header...))
			if again := w.Accounts() == "ab"; again != tt.again || w.Memory.Used() != 0 {
				t.Errorf("asked %s after a 429; %d bytes are held", w.Accounts(), w.Memory.Used())
			}
		})
	}
}

// TestLargeImages: what goes to a provider of another shape has the images
// byte for byte, whole forms of them and JSON, whatever else is in it.
func TestLargeImages(t *testing.T) {
	one, two := make([]byte, 700_001), make([]byte, 300_002)
	rand.New(rand.NewSource(2)).Read(one)
	rand.New(rand.NewSource(3)).Read(two)
	code := base64.StdEncoding.EncodeToString
	prompt := mark + "-0@ " + mark + "x-1@ " + mark
	source := func(b []byte) string { return "data:image/png;base64," + code(b) }
	asJSON := func(v any) string { b, _ := json.Marshal(v); return string(b) }
	for name, body := range map[string]string{
		"form": form(file("image", string(one)), file("image[]", string(two)), file("mask", "M"), field("prompt", prompt), field("model", "MODEL")),
		"json": asJSON(map[string]any{"model": "MODEL", "prompt": prompt, "image": []string{source(one), source(two)}, "mask": source([]byte("M"))}),
	} {
		for model, want := range map[string][]string{
			"gemini/m":      {`"data":"` + code(one), `"data":"` + code(two)},
			"fal/a/b":       {`"image_urls":["data:image/png;base64,` + code(one), `,` + code(two), `"mask_url":"data:image/png;base64,TQ=="`},
			"bfl/m":         {`"input_image":"` + code(one) + `"`, `"input_image_2":"` + code(two) + `"`},
			"xai/m":         {`"images":[{"type":"image_url","url":"data:image/png;base64,` + code(one), code(two)},
			"replicate/a/b": {`"image":"data:image/png;base64,` + code(one) + `"`, `"input_image":"data:image/png;base64,` + code(one) + `"`},
		} {
			id, _, _ := strings.Cut(model, "/")
			w := testgw.New(t, id, id)
			h := handler(w)
			w.Answer = func(*fake.Seen) fake.Answer { return fake.Answer{Status: 429} }
			c := w.Post(strings.Replace(body, "MODEL", model, 1))
			if name == "form" {
				c = send(w, strings.Replace(body, "MODEL", model, 1))
			}
			h.Edits(context.Background(), c)
			if w.Accounts() != "ab" || w.Seen[0].Body != w.Seen[1].Body {
				t.Fatalf("%s to %s: asked %s, or not twice the same", name, model, w.Accounts())
			}
			got := w.Seen[0].Body
			for _, part := range append(want, asJSON(prompt)) {
				if !strings.Contains(got, part) {
					t.Errorf("%s to %s: %.60s… is missing in %.300s…", name, model, part, got)
				}
			}
			if w.Memory.Used() != 0 {
				t.Errorf("%s to %s: %d bytes are held", name, model, w.Memory.Used())
			}
		}
	}
	w := testgw.New(t, "gemini")
	if got := testgw.Outcome(handler(w).Edits(context.Background(), send(w, form(file("image", strings.Repeat("x", 16<<20)), field("model", "gemini/m"))))); got != "413 request_too_large" || len(w.Seen) != 0 {
		t.Errorf("16 MiB in a form: %s, %d calls", got, len(w.Seen))
	}
}

func TestRefusals(t *testing.T) {
	tests := []struct{ name, path, body, want string }{
		{"no_model", "g", `{"prompt":"p"}`, "400"},
		{"n", "g", `{"model":"openai/m","prompt":"p","n":0}`, "400"},
		{"bad_json", "g", `{`, "400 invalid_json"},
		{"not_connected", "g", `{"model":"xai/m","prompt":"p"}`, "400 no_credentials"},
		{"no_images", "g", `{"model":"anthropic/m","prompt":"p"}`, "400 unsupported_endpoint"},
		{"no_edits", "e", `{"model":"cf/@cf/x/y","prompt":"p","image":"https://i.example/1.png"}`, "400 unsupported_endpoint"},
		{"no_edits", "e", `{"model":"stability/core","prompt":"p"}`, "400 unsupported_endpoint"},
		{"no_variations", "v", form(field("model", "openai/m"), file("image", "x")), "400 unsupported_endpoint"},
		{"form_without_image", "e", form(field("prompt", "p"), field("model", "openai/m"))[:0] + form(file("mask", "x"), field("model", "openai/m")), "400"},
		{"model_twice", "e", form(field("model", "openai/m"), file("image", "x"), field("model", "b")), "400 invalid_multipart"},
		{"gemini_url", "e", `{"model":"gemini/m","prompt":"p","image":"https://i.example/1.png"}`, "400"},
	}
	for _, tt := range tests {
		w := testgw.New(t, "openai", "anthropic", "cloudflare", "stability", "gemini")
		h := handler(w)
		w.Answer = func(*fake.Seen) fake.Answer { return fake.JSON(`{}`) }
		c := w.Post(tt.body)
		if strings.HasPrefix(tt.body, "--") {
			c = send(w, tt.body)
		}
		f := map[string]func(context.Context, *auth.Call) (*httpmsg.Response, error){"g": h.Generations, "e": h.Edits, "v": h.Variations}[tt.path]
		if got := testgw.Outcome(f(context.Background(), c)); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.name, got, tt.want)
		}
	}
}

// TestVendors replays recorded answers: what went up, and what the client got.
func TestVendors(t *testing.T) {
	files, _ := filepath.Glob("testdata/vendors/*.json")
	tested := map[string]bool{}
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
				Edit     bool
				Form     []string // name=value, image=<bytes>
				Request  json.RawMessage
				Answers  []struct {
					Status int
					Type   string
					Body   json.RawMessage
				}
			}
			if err := json.Unmarshal(raw, &rec); err != nil {
				t.Fatal(err)
			}
			tested[rec.Provider] = true
			w := testgw.New(t, rec.Provider, rec.Provider)
			h := handler(w)
			w.Answer = func(*fake.Seen) fake.Answer {
				a := rec.Answers[min(len(w.Seen), len(rec.Answers))-1]
				if a.Status == 0 {
					a.Status = 200
				}
				body, kind := string(a.Body), a.Type
				if kind == "" {
					kind = "application/json"
				} else {
					json.Unmarshal(a.Body, &body)
				}
				return fake.Answer{Status: a.Status, Header: httpmsg.Header{{Name: "content-type", Value: kind}}, Body: body}
			}
			c := w.Post(string(rec.Request))
			if rec.Form != nil {
				var parts []string
				for _, p := range rec.Form {
					k, v, _ := strings.Cut(p, "=")
					if strings.HasPrefix(k, "image") || k == "mask" {
						parts = append(parts, file(k, v))
					} else {
						parts = append(parts, field(k, v))
					}
				}
				c = send(w, form(parts...))
			}
			do := h.Generations
			if rec.Edit {
				do = h.Edits
			}
			var got struct {
				Answer  string   `json:"answer"`
				Dropped []string `json:"dropped,omitempty"`
				Sent    []string `json:"sent"`
				Waited  string   `json:"waited,omitempty"`
			}
			got.Answer = testgw.Outcome(do(context.Background(), c))
			got.Dropped = c.Trace.Dropped
			for _, s := range w.Seen {
				got.Sent = append(got.Sent, s.Account+" "+s.Method+" "+s.URL+" "+s.Body)
			}
			if w.Paused() > 0 {
				got.Waited = w.Paused().String()
			}
			golden.JSON(t, "vendors/"+name, got)
		})
	}
	for _, s := range shapes {
		for _, id := range s.providers {
			if id != "vertex" && !tested[id] {
				t.Errorf("%s has no recorded answers", id)
			}
			if !provider.Lookup(id).Serves(s.at(generations)) {
				t.Errorf("%s has no images in its row", id)
			}
		}
	}
}

func TestEndlessJobTimesOut(t *testing.T) {
	w := testgw.New(t, "bfl", "bfl")
	w.Answer = func(s *fake.Seen) fake.Answer {
		if s.Method == "POST" {
			return fake.JSON(`{"id":"1"}`)
		}
		return fake.JSON(`{"status":"Pending"}`)
	}
	if got := testgw.Outcome(handler(w).Generations(context.Background(), w.Post(`{"model":"bfl/flux","prompt":"p"}`))); got != "504 upstream_timeout" {
		t.Errorf("got %s", got)
	}
	if took := w.Accounts(); strings.Contains(took, "b") || len(took) > 100 {
		t.Errorf("asked %s", took)
	}
	// A poll that fails now and then loses nothing.
	w = testgw.New(t, "bfl", "bfl")
	w.Answer = func(s *fake.Seen) fake.Answer {
		switch {
		case s.Method == "POST":
			return fake.JSON(`{"id":"1"}`)
		case len(w.Seen) < 4:
			return fake.Answer{Status: 503}
		}
		return fake.JSON(`{"status":"Ready","result":{"sample":"https://d.bfl.ai/1.png"}}`)
	}
	if got := testgw.Outcome(handler(w).Generations(context.Background(), w.Post(`{"model":"bfl/flux","prompt":"p"}`))); !strings.HasPrefix(got, "200") || strings.Count(w.Accounts(), "b") != 0 {
		t.Errorf("%s, asked %s", got, w.Accounts())
	}
}

// Kontext and Ultra have an aspect ratio in place of width and height.
func TestSizeOfBlackForestLabs(t *testing.T) {
	for model, want := range map[string]string{
		"flux-pro-1.1":       `{"height":1024,"prompt":"p","width":1536}`,
		"flux-2-pro":         `{"height":1024,"prompt":"p","width":1536}`,
		"flux-kontext-pro":   `{"aspect_ratio":"3:2","prompt":"p"}`,
		"flux-pro-1.1-ultra": `{"aspect_ratio":"3:2","prompt":"p"}`,
	} {
		r, err := parse([]byte(`{"model":"m","prompt":"p","size":"1536x1024"}`))
		if err != nil {
			t.Fatal(err)
		}
		in := r.input()
		if p, err := bfl.create(in, model); err != nil || string(p.body) != want || len(in.dropped()) > 0 {
			t.Errorf("%s: sent %s, dropped %v, %v; want %s", model, p.body, in.dropped(), err, want)
		}
	}
}

// A regression: a field that could not be removed was noted as left out.
func TestFieldThatStaysIsNotDropped(t *testing.T) {
	a := &attempt{body: []byte(`{"style":"vivid"}`)}
	refusal := &apierr.Error{Status: 400, Param: "style|@this", Code: "unknown_parameter"}
	if retry, instead := a.OtherForm(refusal, nil); retry || instead != nil || a.refused != nil || len(a.Dropped) > 0 {
		t.Errorf("retry %v, dropped %v, refused %v", retry, a.Dropped, a.refused)
	}
}

// A field that the model does not have is left out, a quality gets its other name.
func TestRefusedFieldsOfAnImage(t *testing.T) {
	refusal := func(param, code string) fake.Answer {
		return fake.Answer{Status: 400, Header: httpmsg.Header{{Name: "content-type", Value: "application/json"}}, Body: `{"error":{"message":"m","type":"invalid_request_error","param":"` + param + `","code":"` + code + `"}}`}
	}
	good := fake.JSON(`{"created":1,"data":[{"b64_json":"AA=="}]}`)
	for _, tt := range []struct {
		name, fields string
		answers      []fake.Answer
		sent         []string
		want         string
		dropped      string
	}{
		{"form of the answer", `,"response_format":"b64_json"`, []fake.Answer{refusal("response_format", "unknown_parameter"), good},
			[]string{`{"model":"gpt-image-2","prompt":"p","response_format":"b64_json"}`, `{"model":"gpt-image-2","prompt":"p"}`}, "200", "response_format"},
		{"two fields", `,"response_format":"url","style":"vivid"`, []fake.Answer{refusal("response_format", "unknown_parameter"), refusal("style", "unsupported_parameter"), good},
			[]string{`{"model":"gpt-image-2","prompt":"p","response_format":"url","style":"vivid"}`, `{"model":"gpt-image-2","prompt":"p","style":"vivid"}`, `{"model":"gpt-image-2","prompt":"p"}`}, "200", "response_format,style"},
		{"quality", `,"quality":"hd"`, []fake.Answer{refusal("quality", "invalid_value"), good},
			[]string{`{"model":"gpt-image-2","prompt":"p","quality":"hd"}`, `{"model":"gpt-image-2","prompt":"p","quality":"high"}`}, "200", "quality"},
		{"quality by both names", `,"quality":"hd"`, []fake.Answer{refusal("quality", "invalid_value"), refusal("quality", "invalid_value")}, []string{"", ""}, "400 invalid_value", "quality"},
		{"a wrong value", `,"size":"1x1"`, []fake.Answer{refusal("size", "invalid_value")}, []string{""}, "400 invalid_value", ""},
		{"a field that was not sent", ``, []fake.Answer{refusal("style", "unknown_parameter")}, []string{""}, "400 unknown_parameter", ""},
		{"what an image needs", ``, []fake.Answer{refusal("prompt", "unknown_parameter")}, []string{""}, "400 unknown_parameter", ""},
		{"another status", `,"style":"vivid"`, []fake.Answer{{Status: 500, Body: refusal("style", "unknown_parameter").Body}}, []string{""}, "500", ""},
	} {
		w := testgw.New(t, "openai", "openai")
		w.Answer = func(*fake.Seen) fake.Answer { return tt.answers[min(len(w.Seen), len(tt.answers))-1] }
		c := w.Post(`{"model":"openai/gpt-image-2","prompt":"p"` + tt.fields + `}`)
		got := testgw.Outcome(handler(w).Generations(context.Background(), c))
		if !strings.HasPrefix(got, tt.want) || len(w.Seen) != len(tt.sent) || strings.Trim(w.Accounts(), "a") != "" || strings.Join(c.Trace.Dropped, ",") != tt.dropped {
			t.Errorf("%s: got %s after %d calls to %s, dropped %v", tt.name, got, len(w.Seen), w.Accounts(), c.Trace.Dropped)
			continue
		}
		for i, want := range tt.sent {
			if want != "" && w.Seen[i].Body != want {
				t.Errorf("%s: sent %s, want %s", tt.name, w.Seen[i].Body, want)
			}
		}
	}
}
