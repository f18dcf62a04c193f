package clients

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/responses"
	"github.com/tidwall/gjson"

	"weir/internal/testgw/fake"
	"weir/pkg/wire/httpmsg"
)

var hello = []openai.ChatCompletionMessageParamUnion{openai.UserMessage("Hello")}

const (
	chatAnswer    = `{"id":"chatcmpl-1","object":"chat.completion","created":1700000000,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"Hi there","refusal":null},"finish_reason":"stop","logprobs":null}],"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5}}`
	messageAnswer = `{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"Hi there"}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":3,"output_tokens":2}}`
	chatStream    = `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"Hi "},"finish_reason":null}]}

data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":"there"},"finish_reason":null}]}

data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}

data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5}}

data: [DONE]

`
	slowDown      = `{"error":{"message":"slow down","type":"rate_limit_error","param":null,"code":"rate_limit_exceeded"}}`
	messageStream = `event: message_start
data: {"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":3,"output_tokens":1}}}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hi "}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"there"}}

event: content_block_stop
data: {"type":"content_block_stop","index":0}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":2}}

event: message_stop
data: {"type":"message_stop"}

`
)

// speak answers chat and messages, streamed or not.
func speak(r *fake.Seen, streamed bool) fake.Answer {
	messages := strings.HasSuffix(r.URL, "/messages")
	switch {
	case streamed && messages:
		return fake.OK("text/event-stream", messageStream)
	case streamed:
		return fake.OK("text/event-stream", chatStream)
	case messages:
		return fake.JSON(messageAnswer)
	}
	return fake.JSON(chatAnswer)
}

// upstreams are the two families that the client's chat is served from.
var upstreams = []string{"up/m", "an/m"}

func TestChat(t *testing.T) {
	w := newWorld(t)
	w.Answer = func(r *fake.Seen) fake.Answer { return speak(r, false) }
	c := w.client()
	for i, model := range upstreams {
		got, err := c.Chat.Completions.New(context.Background(), openai.ChatCompletionNewParams{Model: model, Messages: hello})
		if err != nil {
			t.Fatal(err)
		}
		if got.Choices[0].Message.Content != "Hi there" || got.Choices[0].FinishReason != "stop" || got.Usage.TotalTokens != 5 {
			t.Errorf("%s: %s", model, got.RawJSON())
		}
		if sent := gjson.Get(w.Seen[i].Body, "model").Str; sent != "m" {
			t.Errorf("%s: the provider was asked for %q", model, sent)
		}
	}
	if got := w.Seen[0].Header.Get("authorization") + w.Seen[1].Header.Get("x-api-key"); strings.Contains(got, w.key) || !strings.Contains(got, "upstream-key") {
		t.Errorf("credentials sent up: %q", got)
	}
}

func TestChatStream(t *testing.T) {
	w := newWorld(t)
	w.Answer = func(r *fake.Seen) fake.Answer { return speak(r, true) }
	c := w.client()
	for _, model := range upstreams {
		s := c.Chat.Completions.NewStreaming(context.Background(), openai.ChatCompletionNewParams{
			Model: model, Messages: hello, StreamOptions: openai.ChatCompletionStreamOptionsParam{IncludeUsage: openai.Bool(true)},
		})
		var all openai.ChatCompletionAccumulator
		for s.Next() {
			if !all.AddChunk(s.Current()) {
				t.Fatalf("%s: a chunk that does not fit: %s", model, s.Current().RawJSON())
			}
		}
		if err := s.Err(); err != nil {
			t.Fatalf("%s: %v", model, err)
		}
		if all.Choices[0].Message.Content != "Hi there" || all.Choices[0].FinishReason != "stop" || all.Usage.TotalTokens != 5 {
			t.Errorf("%s: %+v", model, all.ChatCompletion)
		}
	}
}

func TestCutStreamIsAnError(t *testing.T) {
	w := newWorld(t)
	w.Answer = func(r *fake.Seen) fake.Answer {
		a := speak(r, true)
		a.Body = a.Body[:len(a.Body)*2/3]
		return a
	}
	c := w.client()
	for _, model := range upstreams {
		s := c.Chat.Completions.NewStreaming(context.Background(), openai.ChatCompletionNewParams{Model: model, Messages: hello})
		for s.Next() {
		}
		if s.Err() == nil {
			t.Errorf("%s: no error", model)
		}
	}
}

func TestResponses(t *testing.T) {
	w := newWorld(t)
	w.Answer = func(r *fake.Seen) fake.Answer { return speak(r, true) }
	c := w.client()
	s := c.Responses.NewStreaming(context.Background(), responses.ResponseNewParams{Model: "an/m", Input: responses.ResponseNewParamsInputUnion{OfString: openai.String("Hello")}})
	var done responses.Response
	for s.Next() {
		if e := s.Current(); e.Type == "response.completed" {
			done = e.Response
		}
	}
	if err := s.Err(); err != nil || done.OutputText() != "Hi there" || done.Usage.TotalTokens != 5 {
		t.Errorf("%v, %s", err, done.RawJSON())
	}
}

func TestEmbeddings(t *testing.T) {
	w := newWorld(t)
	w.Answer = func(*fake.Seen) fake.Answer {
		return fake.JSON(`{"object":"list","data":[{"object":"embedding","index":0,"embedding":[0.5,-1,2.25]},{"object":"embedding","index":1,"embedding":[1,2,3]}],"model":"m","usage":{"prompt_tokens":3,"total_tokens":3}}`)
	}
	c := w.client()
	got, err := c.Embeddings.New(context.Background(), openai.EmbeddingNewParams{Model: "up/m", Input: openai.EmbeddingNewParamsInputUnion{OfArrayOfStrings: []string{"a", "b"}}})
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Data) != 2 || got.Data[0].Embedding[2] != 2.25 || got.Data[1].Index != 1 || got.Usage.TotalTokens != 3 {
		t.Errorf("got %s", got.RawJSON())
	}
}

func TestModels(t *testing.T) {
	w := newWorld(t)
	w.Answer = func(*fake.Seen) fake.Answer {
		return fake.JSON(`{"object":"list","data":[{"id":"m","object":"model"}]}`)
	}
	c := w.client()
	list := c.Models.ListAutoPaging(context.Background())
	var ids []string
	for list.Next() {
		ids = append(ids, list.Current().ID)
	}
	if err := list.Err(); err != nil || strings.Join(ids, " ") != "up/m an/m" {
		t.Errorf("got %q, %v", ids, err)
	}
}

func TestErrorsAreTheClientsOwn(t *testing.T) {
	w := newWorld(t)
	w.Answer = func(*fake.Seen) fake.Answer {
		return fake.Reply(400, `{"error":{"message":"too hot","type":"invalid_request_error","param":"temperature","code":"bad_value"}}`)
	}
	c := w.client()
	_, err := c.Chat.Completions.New(context.Background(), openai.ChatCompletionNewParams{Model: "up/m", Messages: hello})
	var e *openai.Error
	if !errors.As(err, &e) || e.StatusCode != 400 || e.Message != "too hot" || e.Param != "temperature" || e.Code != "bad_value" {
		t.Errorf("got %+v", err)
	}
	if len(w.Seen) != 1 {
		t.Errorf("%d calls for a mistake of the client's", len(w.Seen))
	}
	_, err = c.Chat.Completions.New(context.Background(), openai.ChatCompletionNewParams{Model: "no/such", Messages: hello})
	if !errors.As(err, &e) || e.StatusCode != 400 || e.Type != "invalid_request_error" || e.Response.Header.Get("x-request-id") == "" {
		t.Errorf("got %+v", err)
	}
	w.key = "sk-wrong"
	wrong := w.client()
	_, err = wrong.Chat.Completions.New(context.Background(), openai.ChatCompletionNewParams{Model: "up/m", Messages: hello})
	if !errors.As(err, &e) || e.StatusCode != 400 && e.StatusCode != 401 {
		t.Errorf("got %+v", err)
	}
}

// The client waits as long as the gateway tells it, and is served then.
func TestClientRetriesAfterRetryAfter(t *testing.T) {
	w := newWorld(t)
	w.Answer = func(r *fake.Seen) fake.Answer {
		if len(w.Seen) == 1 {
			return fake.Reply(429, slowDown, httpmsg.Field{Name: "retry-after-ms", Value: "1000"})
		}
		return speak(r, false)
	}
	c := w.client()
	from := time.Now()
	got, err := c.Chat.Completions.New(context.Background(), openai.ChatCompletionNewParams{Model: "up/m", Messages: hello})
	if err != nil || got.Choices[0].Message.Content != "Hi there" {
		t.Fatal(err)
	}
	if waited := time.Since(from); len(w.Seen) != 2 || waited < time.Second {
		t.Errorf("%d calls after %v", len(w.Seen), waited)
	}
}

// The client does not repeat a call that would wait long.
func TestClientDoesNotWaitForLongRetryAfter(t *testing.T) {
	w := newWorld(t)
	w.Answer = func(*fake.Seen) fake.Answer {
		return fake.Reply(429, slowDown, httpmsg.Field{Name: "retry-after", Value: "600"})
	}
	c := w.client()
	_, err := c.Chat.Completions.New(context.Background(), openai.ChatCompletionNewParams{Model: "up/m", Messages: hello})
	var e *openai.Error
	if !errors.As(err, &e) || e.StatusCode != 429 || e.Response.Header.Get("retry-after") != "600" || len(w.Seen) != 1 {
		t.Errorf("%d calls, %+v", len(w.Seen), err)
	}
}
