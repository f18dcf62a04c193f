package upstream

import (
	"bytes"
	"encoding/base64"
	"image/png"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
)

func send(t *testing.T, method, path, body string) string {
	t.Helper()
	w := httptest.NewRecorder()
	Handler().ServeHTTP(w, httptest.NewRequest(method, path, strings.NewReader(body)))
	if w.Code != http.StatusOK {
		t.Fatalf("%s %s: %d %s", method, path, w.Code, w.Body)
	}
	return w.Body.String()
}

func TestChatRepeatsTheLastMessage(t *testing.T) {
	const messages = `"messages":[{"role":"user","content":"no"},{"role":"assistant","content":"x"},{"role":"user","content":[{"type":"text","text":"hello"},{"type":"text","text":" there"}]}]`
	whole := gjson.Parse(send(t, "POST", "/v1/chat/completions", `{"model":"test-chat",`+messages+`}`))
	if got := whole.Get("choices.0.message.content").Str; got != "You said: hello there" {
		t.Errorf("content is %q", got)
	}
	if got := whole.Get("usage.total_tokens").Int(); got != 7 {
		t.Errorf("total_tokens is %d, want 3 of the message and 4 words", got)
	}
	stream := send(t, "POST", "/v1/chat/completions", `{"model":"test-chat","stream":true,"stream_options":{"include_usage":true},`+messages+`}`)
	var text string
	var usage gjson.Result
	events := strings.Split(strings.TrimSuffix(stream, "\n\n"), "\n\n")
	for _, e := range events[:len(events)-1] {
		data := gjson.Parse(strings.TrimPrefix(e, "data: "))
		text += data.Get("choices.0.delta.content").Str
		usage = data.Get("usage")
	}
	if last := events[len(events)-1]; text != "You said: hello there" || last != "data: [DONE]" {
		t.Errorf("the stream says %q and ends with %q", text, last)
	}
	if usage.Raw != whole.Get("usage").Raw {
		t.Errorf("usage of the stream is %s, of the answer %s", usage.Raw, whole.Get("usage").Raw)
	}
}

// The values are those of vector in test/upstream/openai.mjs.
func TestEmbeddingsEqualThoseOfTheTestUpstream(t *testing.T) {
	floats := send(t, "POST", "/v1/embeddings", `{"model":"test-embed","input":["hello",[1,2,3]],"dimensions":2}`)
	want := `[[-0.9607404470443726,0.4983310401439667],[-0.19511188566684723,-0.7644385695457458]]`
	if got := gjson.Get(floats, "data.#.embedding").Raw; got != want {
		t.Errorf("embeddings are %s, want %s", got, want)
	}
	if got := gjson.Get(floats, "usage.prompt_tokens").Int(); got != 5 {
		t.Errorf("prompt_tokens is %d", got)
	}
	if got := len(gjson.Get(send(t, "POST", "/v1/embeddings", `{"input":[1,2,3]}`), "data").Array()); got != 1 {
		t.Errorf("a list of tokens is %d items", got)
	}
	b64 := gjson.Get(send(t, "POST", "/v1/embeddings", `{"input":"hello","dimensions":2,"encoding_format":"base64"}`), "data.0.embedding").Str
	if b64 != "FvN1vz8l/z4=" {
		t.Errorf("base64 is %s", b64)
	}
}

func TestMediaAreFilesOfTheirFormats(t *testing.T) {
	wav := send(t, "POST", "/v1/audio/speech", `{"model":"test-tts","input":"one two one"}`)
	if !strings.HasPrefix(wav, "RIFF") || wav[8:16] != "WAVEfmt " || len(wav) != 44+2*2*2240 {
		t.Errorf("speech is %d bytes, which start with %q", len(wav), wav[:16])
	}
	data := gjson.Get(send(t, "POST", "/v1/images/generations", `{"prompt":"sea","n":2}`), "data.#.b64_json").Array()
	if len(data) != 2 || data[0].Str == data[1].Str {
		t.Fatalf("%d images, or twice the same", len(data))
	}
	raw, err := base64.StdEncoding.DecodeString(data[0].Str)
	if err != nil {
		t.Fatal(err)
	}
	if img, err := png.Decode(bytes.NewReader(raw)); err != nil || img.Bounds().Dx() != 256 {
		t.Errorf("image: %v", err)
	}
	if got := send(t, "POST", "/v1/audio/transcriptions", "12345"); !strings.Contains(got, "5 bytes") {
		t.Errorf("transcription: %s", got)
	}
}

func TestRerankPutsTheBestDocumentFirst(t *testing.T) {
	got := send(t, "POST", "/v1/rerank", `{"query":"red fish","documents":["blue bird",{"text":"a fish"},"Red FISH"],"top_n":2}`)
	if order := gjson.Get(got, "results.#.index").Raw; order != "[2,1]" {
		t.Errorf("order is %s in %s", order, got)
	}
}

func TestOtherEndpointsAnswer(t *testing.T) {
	if got := gjson.Get(send(t, "POST", "/v1/moderations", `{"input":["a","b"]}`), "results.#").Int(); got != 2 {
		t.Errorf("%d moderations of 2 texts", got)
	}
	if got := gjson.Get(send(t, "GET", "/search?q=weir", ""), "results.0.title").Str; got != "What it is: weir" {
		t.Errorf("first result is %q", got)
	}
	if got := gjson.Get(send(t, "GET", "/v1/models", ""), "data.0.id").Str; got != "test-embed" {
		t.Errorf("first model is %q", got)
	}
	w := httptest.NewRecorder()
	Handler().ServeHTTP(w, httptest.NewRequest("POST", "/v1/responses", nil))
	if body, _ := io.ReadAll(w.Body); w.Code != http.StatusNotFound || gjson.GetBytes(body, "error.message").Str == "" {
		t.Errorf("unknown path: %d %s", w.Code, body)
	}
}
