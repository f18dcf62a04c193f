// Command upstream is the benchmark's provider: as cheap as it can be, so that
// it does not take the CPU that is being measured. It also keeps the worker's
// KV, behind the interface that workerd speaks.
//
//	POST …/embeddings        one vector of 1,536 dimensions, base64, 8 KiB
//	POST …/chat/completions  with "stream":true: 200 chunks, 1 ms apart; else a short answer
//	POST …/messages          the same as Anthropic messages
//	POST …/responses         the same as a response; under /chatonly/ it is 404
//	GET  …/events            200 chunks, 1 ms apart
//	POST …/transcriptions    reads a form of over 24 MiB
//	POST …/videos/generations, GET …/videos/{id}, GET …/file.mp4: a job and its 24 MiB
//
// A stream of the model "slow" has 12 chunks, a second apart; one of "idle" a
// chunk, and the rest when nothing has come for 12 s.
//
//	/sink/…  takes everything, as a collector of telemetry and a store do
//
//	GET, PUT, DELETE /kv/…   on the second port
//
// It prints "<port> <kv port>" and stops when its standard input closes.
package main

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"
)

const (
	chunks = 200
	pace   = time.Millisecond
	large  = 24 << 20 // bytes of a file, up or down
)

var (
	embedding  = embeddingAnswer()
	chatAnswer = []byte(`{"id":"chatcmpl-1","object":"chat.completion","created":1700000000,"model":"bench","choices":[{"index":0,"message":{"role":"assistant","content":"Hello there."},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":3,"total_tokens":12}}`)
	msgAnswer  = []byte(`{"id":"msg_1","type":"message","role":"assistant","model":"bench","content":[{"type":"text","text":"Hello there."}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":9,"output_tokens":3}}`)
	respAnswer = []byte(`{"id":"resp_1","object":"response","created_at":1700000000,"status":"completed","model":"bench","output":[{"id":"msg_1","type":"message","role":"assistant","status":"completed","content":[{"type":"output_text","text":"Hello there.","annotations":[]}]}],"usage":{"input_tokens":9,"input_tokens_details":{"cached_tokens":0},"output_tokens":3,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":12}}`)
	chatChunk  = []byte(`data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1700000000,"model":"bench","choices":[{"index":0,"delta":{"content":"word "},"finish_reason":null}]}` + "\n\n")
	chatEnd    = []byte(`data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1700000000,"model":"bench","choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":200,"total_tokens":209}}` + "\n\ndata: [DONE]\n\n")
	msgStart   = []byte("event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"bench\",\"content\":[],\"stop_reason\":null,\"stop_sequence\":null,\"usage\":{\"input_tokens\":9,\"output_tokens\":1}}}\n\nevent: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n")
	msgChunk   = []byte("event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"word \"}}\n\n")
	respStart  = responseEvents(
		`{"type":"response.created","sequence_number":0,"response":{"id":"resp_1","object":"response","created_at":1700000000,"status":"in_progress","model":"bench","output":[],"usage":null}}`,
		`{"type":"response.in_progress","sequence_number":1,"response":{"id":"resp_1","object":"response","created_at":1700000000,"status":"in_progress","model":"bench","output":[],"usage":null}}`,
		`{"type":"response.output_item.added","sequence_number":2,"output_index":0,"item":{"id":"msg_1","type":"message","status":"in_progress","role":"assistant","content":[]}}`,
		`{"type":"response.content_part.added","sequence_number":3,"item_id":"msg_1","output_index":0,"content_index":0,"part":{"type":"output_text","text":"","annotations":[],"logprobs":[]}}`)
	respChunk = responseEvents(`{"type":"response.output_text.delta","sequence_number":4,"item_id":"msg_1","output_index":0,"content_index":0,"delta":"word ","logprobs":[]}`)
	respText  = strings.Repeat("word ", chunks)
	respItem  = `{"id":"msg_1","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","text":"` + respText + `","annotations":[],"logprobs":[]}]}`
	respEnd   = responseEvents(
		`{"type":"response.output_text.done","sequence_number":204,"item_id":"msg_1","output_index":0,"content_index":0,"text":"`+respText+`","logprobs":[]}`,
		`{"type":"response.content_part.done","sequence_number":205,"item_id":"msg_1","output_index":0,"content_index":0,"part":{"type":"output_text","text":"`+respText+`","annotations":[],"logprobs":[]}}`,
		`{"type":"response.output_item.done","sequence_number":206,"output_index":0,"item":`+respItem+`}`,
		`{"type":"response.completed","sequence_number":207,"response":{"id":"resp_1","object":"response","created_at":1700000000,"status":"completed","model":"bench","output":[`+respItem+`],"usage":{"input_tokens":9,"input_tokens_details":{"cached_tokens":0},"output_tokens":200,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":209}}}`)
	msgEnd = []byte("event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\nevent: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\",\"stop_sequence\":null},\"usage\":{\"output_tokens\":200}}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n")
)

// responseEvents returns events of a Responses stream, which are named by their type.
func responseEvents(events ...string) []byte {
	var b []byte
	for _, e := range events {
		name, _, _ := strings.Cut(strings.TrimPrefix(e, `{"type":"`), `"`)
		b = fmt.Appendf(b, "event: %s\ndata: %s\n\n", name, e)
	}
	return b
}

func embeddingAnswer() []byte {
	raw := make([]byte, 1536*4)
	for i := range raw {
		raw[i] = byte(i * 31)
	}
	for i := 3; i < len(raw); i += 4 {
		raw[i] = 0x3d // finite, small numbers
	}
	return fmt.Appendf(nil, `{"object":"list","data":[{"object":"embedding","index":0,"embedding":"%s"}],"model":"bench","usage":{"prompt_tokens":5,"total_tokens":5}}`, base64.StdEncoding.EncodeToString(raw))
}

func serve(w http.ResponseWriter, r *http.Request) {
	if strings.HasSuffix(r.URL.Path, "/transcriptions") {
		if n, err := io.Copy(io.Discard, r.Body); err != nil || n < large {
			http.Error(w, fmt.Sprint("a form of ", n, " bytes"), http.StatusBadRequest)
			return
		}
		answer(w, []byte(`{"text":"hello"}`))
		return
	}
	body, _ := io.ReadAll(r.Body)
	streamed := bytes.Contains(body, []byte(`"stream":true`))
	switch path := r.URL.Path; {
	case strings.HasPrefix(path, "/sink/"):
	case strings.HasSuffix(path, "/embeddings"):
		answer(w, embedding)
	case strings.HasSuffix(path, "/chat/completions") && !streamed:
		answer(w, chatAnswer)
	case strings.HasSuffix(path, "/chat/completions"), strings.HasSuffix(path, "/events"):
		stream(w, rhythmOf(body), nil, chatChunk, chatEnd)
	case strings.HasSuffix(path, "/messages") && !streamed:
		answer(w, msgAnswer)
	case strings.HasSuffix(path, "/responses") && strings.HasPrefix(path, "/chatonly/"):
		http.Error(w, "no such path", http.StatusNotFound)
	case strings.HasSuffix(path, "/responses") && !streamed:
		answer(w, respAnswer)
	case strings.HasSuffix(path, "/responses"):
		stream(w, rhythmOf(body), respStart, respChunk, respEnd)
	case strings.HasSuffix(path, "/messages"):
		stream(w, rhythmOf(body), msgStart, msgChunk, msgEnd)
	case strings.HasSuffix(path, "/videos/generations"):
		answer(w, []byte(`{"request_id":"job-1"}`))
	case strings.HasSuffix(path, "/videos/job-1"):
		answer(w, fmt.Appendf(nil, `{"status":"done","video":{"url":"http://%s/file.mp4"}}`, r.Host))
	case path == "/file.mp4":
		w.Header().Set("content-type", "video/mp4")
		w.Header().Set("content-length", fmt.Sprint(large))
		for range large / len(file) {
			w.Write(file)
		}
	default:
		http.Error(w, "no such path", http.StatusNotFound)
	}
}

func answer(w http.ResponseWriter, b []byte) {
	h := w.Header()
	h.Set("content-type", "application/json")
	h.Set("content-length", fmt.Sprint(len(b)))
	w.Write(b)
}

var file = bytes.Repeat([]byte("0123456789abcdef"), 4<<10) // a piece of it

// rhythm is how the chunks of a stream come.
type rhythm struct {
	chunks int
	pace   time.Duration
}

func rhythmOf(body []byte) rhythm {
	switch {
	case bytes.Contains(body, []byte(`"model":"slow"`)):
		return rhythm{12, time.Second}
	case bytes.Contains(body, []byte(`"model":"idle"`)):
		return rhythm{1, 12 * time.Second}
	}
	return rhythm{chunks, pace}
}

func stream(w http.ResponseWriter, r rhythm, head, chunk, tail []byte) {
	w.Header().Set("content-type", "text/event-stream")
	f := w.(http.Flusher)
	w.Write(head)
	f.Flush()
	for range r.chunks {
		if _, err := w.Write(chunk); err != nil {
			return
		}
		f.Flush()
		time.Sleep(r.pace)
	}
	w.Write(tail)
}

// kv is the interface of a KV namespace as workerd calls it: the key is the
// path, percent-encoded.
type kv struct{ values sync.Map }

func (k *kv) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.Method {
	case http.MethodGet:
		v, ok := k.values.Load(r.URL.Path)
		if !ok {
			http.Error(w, "not found", http.StatusNotFound)
			return
		}
		w.Write(v.([]byte))
	case http.MethodPut:
		b, _ := io.ReadAll(r.Body)
		k.values.Store(r.URL.Path, b)
	case http.MethodDelete:
		k.values.Delete(r.URL.Path)
	}
}

func listen(h http.Handler) int {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	go http.Serve(l, h)
	return l.Addr().(*net.TCPAddr).Port
}

func main() {
	fmt.Println(listen(http.HandlerFunc(serve)), listen(&kv{}))
	io.Copy(io.Discard, os.Stdin)
}
