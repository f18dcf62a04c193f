// Package upstream is the provider of the demo machine: models and a search
// service that answer from the request alone, on this computer. Its embeddings
// and chat answers equal those of the test upstream (test/upstream).
package upstream

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"regexp"
	"strings"
	"unicode/utf16"
)

// created is the time of every model and chat answer.
const created = 1700000000

// Handler returns the provider: OpenAI's API under /v1, SearXNG's at /search.
func Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/models", models)
	mux.HandleFunc("POST /v1/chat/completions", chat)
	mux.HandleFunc("POST /v1/embeddings", embeddings)
	mux.HandleFunc("POST /v1/audio/speech", speech)
	mux.HandleFunc("POST /v1/audio/transcriptions", transcription)
	mux.HandleFunc("POST /v1/audio/translations", transcription)
	mux.HandleFunc("POST /v1/images/generations", images)
	mux.HandleFunc("POST /v1/images/edits", images)
	mux.HandleFunc("POST /v1/moderations", moderations)
	mux.HandleFunc("POST /v1/rerank", rerank)
	mux.HandleFunc("GET /search", search)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		fail(w, http.StatusNotFound, "no such path: "+r.URL.Path)
	})
	return mux
}

type object = map[string]any

func reply(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(value) // fails if the caller has left
}

func fail(w http.ResponseWriter, status int, message string) {
	reply(w, status, object{"error": object{"message": message, "type": "invalid_request_error", "param": nil, "code": nil}})
}

// decode reads a JSON body into v, or answers 400.
func decode(w http.ResponseWriter, r *http.Request, v any) bool {
	if err := json.NewDecoder(r.Body).Decode(v); err != nil {
		fail(w, http.StatusBadRequest, "the body is not the JSON of this endpoint: "+err.Error())
		return false
	}
	return true
}

func models(w http.ResponseWriter, r *http.Request) {
	var data []object
	for _, id := range []string{"test-embed", "test-embed-large", "test-chat", "test-image", "test-tts", "vendor/nested-model"} {
		data = append(data, object{"id": id, "object": "model", "created": created, "owned_by": "test"})
	}
	reply(w, http.StatusOK, object{"object": "list", "data": data})
}

type chatRequest struct {
	Model         string          `json:"model"`
	Messages      json.RawMessage `json:"messages"`
	Stream        bool            `json:"stream"`
	StreamOptions struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
}

var pieces = regexp.MustCompile(`\S+\s*`)

// chat repeats the last message of the user, at once or as a stream of words.
func chat(w http.ResponseWriter, r *http.Request) {
	var q chatRequest
	if !decode(w, r, &q) {
		return
	}
	text := lastText(q.Messages)
	answer := pieces.FindAllString("You said: "+text, -1)
	digest := sha256.Sum256(q.Messages)
	in, out := tokens(text), len(answer)
	usage := object{"prompt_tokens": in, "completion_tokens": out, "total_tokens": in + out}
	// body returns an answer or a chunk of one.
	body := func(kind string, choices []object) object {
		return object{"id": "chatcmpl-" + hex.EncodeToString(digest[:8]), "created": created, "model": q.Model, "object": kind, "choices": choices}
	}
	if !q.Stream {
		message := object{"role": "assistant", "content": strings.Join(answer, ""), "refusal": nil}
		b := body("chat.completion", []object{{"index": 0, "message": message, "finish_reason": "stop", "logprobs": nil}})
		b["usage"] = usage
		reply(w, http.StatusOK, b)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	w.Header().Set("Cache-Control", "no-cache")
	flush := http.NewResponseController(w)
	send := func(choices []object, usage any) {
		b := body("chat.completion.chunk", choices)
		if q.StreamOptions.IncludeUsage {
			b["usage"] = usage
		}
		data, _ := json.Marshal(b)
		fmt.Fprintf(w, "data: %s\n\n", data)
		_ = flush.Flush() // fails if the caller has left
	}
	delta := func(d object, finish any) {
		send([]object{{"index": 0, "delta": d, "finish_reason": finish}}, nil)
	}
	delta(object{"role": "assistant", "content": ""}, nil)
	for _, piece := range answer {
		delta(object{"content": piece}, nil)
	}
	delta(object{}, "stop")
	if q.StreamOptions.IncludeUsage {
		send([]object{}, usage)
	}
	io.WriteString(w, "data: [DONE]\n\n")
}

// lastText returns the text of the last message of the user: a string, or the
// texts of its parts.
func lastText(messages json.RawMessage) string {
	var all []struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
	}
	_ = json.Unmarshal(messages, &all) // what cannot be read has no text
	for i := len(all) - 1; i >= 0; i-- {
		if all[i].Role == "user" {
			return textOf(all[i].Content)
		}
	}
	return ""
}

// textOf returns a string, the text of an object, or the texts of a list of them.
func textOf(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	var part struct {
		Text string `json:"text"`
	}
	if json.Unmarshal(raw, &part) == nil {
		return part.Text
	}
	var list []json.RawMessage
	_ = json.Unmarshal(raw, &list) // what cannot be read has no text
	var b strings.Builder
	for _, item := range list {
		b.WriteString(textOf(item))
	}
	return b.String()
}

// tokens returns a rough count: four UTF-16 units are a token.
func tokens(text string) int { return (len(utf16.Encode([]rune(text))) + 3) / 4 }

// embeddings answers texts and lists of token numbers.
func embeddings(w http.ResponseWriter, r *http.Request) {
	q := struct {
		Model      string          `json:"model"`
		Input      json.RawMessage `json:"input"`
		Dimensions int             `json:"dimensions"`
		Format     string          `json:"encoding_format"`
	}{Dimensions: 8}
	if !decode(w, r, &q) {
		return
	}
	if q.Dimensions < 1 || q.Dimensions > 1<<16 {
		fail(w, http.StatusBadRequest, "dimensions is out of range")
		return
	}
	data, total := []object{}, 0
	for i, input := range inputs(q.Input) {
		text, n := string(input), 0
		if json.Unmarshal(input, &text) == nil {
			n = tokens(text)
		} else {
			n = strings.Count(text, ",") + 1
		}
		total += n
		var embedding any = vector(text, q.Dimensions)
		if q.Format == "base64" {
			embedding = encode(vector(text, q.Dimensions))
		}
		data = append(data, object{"object": "embedding", "index": i, "embedding": embedding})
	}
	reply(w, http.StatusOK, object{"object": "list", "data": data, "model": q.Model, "usage": object{"prompt_tokens": total, "total_tokens": total}})
}

// inputs returns the items of an embeddings input. A list of numbers is one item.
func inputs(input json.RawMessage) []json.RawMessage {
	var list []json.RawMessage
	var first float64
	if json.Unmarshal(input, &list) != nil || len(list) > 0 && json.Unmarshal(list[0], &first) == nil {
		return []json.RawMessage{input}
	}
	return list
}

// vector returns numbers made from a hash of a text, each between -1 and 1.
func vector(text string, dimensions int) []float64 {
	digest := sha256.Sum256([]byte(text))
	s := binary.LittleEndian.Uint32(digest[:])
	if s == 0 {
		s = 1
	}
	v := make([]float64, dimensions)
	for i := range v {
		s ^= s << 13
		s ^= s >> 17
		s ^= s << 5
		v[i] = float64(float32(int32(s)) / (1 << 31))
	}
	return v
}

// encode returns the base64 form of a vector: little-endian float32 values.
func encode(v []float64) string {
	var b []byte
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(x)))
	}
	return base64.StdEncoding.EncodeToString(b)
}

func transcription(w http.ResponseWriter, r *http.Request) {
	n, err := io.Copy(io.Discard, r.Body)
	if err != nil {
		return // the caller has left
	}
	reply(w, http.StatusOK, object{"text": fmt.Sprintf("A recording of %d bytes, which the demo cannot hear.", n)})
}

func moderations(w http.ResponseWriter, r *http.Request) {
	var q struct {
		Model string          `json:"model"`
		Input json.RawMessage `json:"input"`
	}
	if !decode(w, r, &q) {
		return
	}
	var results []object
	for range inputs(q.Input) {
		results = append(results, object{"flagged": false, "categories": object{}, "category_scores": object{}})
	}
	reply(w, http.StatusOK, object{"id": "modr-demo", "model": q.Model, "results": results})
}

func search(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query().Get("q")
	var results []object
	for i, title := range []string{"What it is", "How it works", "Where to read more"} {
		results = append(results, object{
			"title":   title + ": " + q,
			"url":     fmt.Sprintf("https://example.com/%d", i+1),
			"content": fmt.Sprintf("The demo's search made this up for %q.", q),
			"score":   1 - float64(i)/4,
			"engine":  "demo",
		})
	}
	reply(w, http.StatusOK, object{"query": q, "number_of_results": len(results), "results": results})
}
