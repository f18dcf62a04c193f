package models

import (
	"context"
	"fmt"
	"testing"

	"weir/internal/nulls"
	"weir/pkg/provider"
	"weir/pkg/store"
)

// A null member of an upstream's list equals an absent one.
func TestNullInListEqualsAbsent(t *testing.T) {
	type list struct{ provider, kinds, answer string }
	var lists []list
	for _, v := range vendorLists {
		lists = append(lists, list{v.provider, v.kinds, v.answer})
	}
	lists = append(lists,
		list{compatibleID, "llm", `{"object":"list","data":[{"id":"a","name":"A","model":"m"},{"name":"b"}],"models":[{"id":"x"}],"results":[{"id":"y"}]}`},
		list{"openrouter", "llm", `{"data":[{"id":"a/b","name":"B","context_length":1234,"architecture":{"input_modalities":["text","image","file"],"output_modalities":["text"]},
			"pricing":{"prompt":"0.0000025","completion":"0.00001","input_cache_read":"0.00000025"},"supported_parameters":["tools","structured_outputs"],"top_provider":{"context_length":12,"max_completion_tokens":99}}]}`},
		list{"anthropic", "llm", `{"data":[{"type":"model","id":"claude-new","display_name":"New","max_input_tokens":5,"max_tokens":4,"lifecycle":"active",
			"capabilities":{"image_input":{"supported":true},"pdf_input":{"supported":false},"thinking":{"supported":true,"types":{}},"structured_outputs":{"supported":true}}}],"has_more":false,"last_id":"claude-new"}`},
		list{"anthropic", "llm", `{"data":[{"id":"a"}],"has_more":true,"last_id":"a"}`},
		list{"gemini", "llm", `{"models":[{"name":"models/gemini-4","displayName":"G","inputTokenLimit":7,"outputTokenLimit":3,"thinking":true,"supportedGenerationMethods":["generateContent"]}],"nextPageToken":"n"}`},
		list{"mistral", "llm", `{"data":[{"id":"m","name":"M","max_context_length":9,"capabilities":{"completion_chat":true,"function_calling":true,"vision":false},"type":"base"}]}`},
		list{"together", "llm", `[{"id":"a/b","type":"chat","display_name":"B","context_length":5,"pricing":{"input":1}}]`},
		list{"deepinfra", "llm", `{"data":[{"id":"a/b","metadata":{"context_length":5,"max_tokens":3,"tags":["vision"]}}]}`},
		list{"fireworks", "llm", `{"models":[{"name":"accounts/fireworks/models/a","displayName":"A","contextLength":5}],"nextPageToken":"x","totalSize":1}`},
		list{"cohere", "llm", `{"models":[{"name":"command-x","endpoints":["chat"],"context_length":5,"features":["tools"]}],"next_page_token":"t"}`},
	)
	outcome := func(l list, answer []byte) string {
		conn := store.Connection{Provider: l.provider, Data: store.ProviderData{Vars: map[string]string{"account_id": "acc"}}}
		if l.provider == compatibleID {
			conn = compat("https://a.example/v1")
		}
		w := newWorld(conn)
		w.up.json("https://", 200, string(answer))
		c := w.call("")
		c.Params = []string{l.kinds}
		out := nulls.Without([]byte(body(w.Kind(context.Background(), c))))
		for _, s := range w.up.Seen {
			out += "\n" + s.URL
		}
		return out
	}
	n := 0
	for i, l := range lists {
		n += nulls.Of(nil, []byte(l.answer)).Compare(t, fmt.Sprint(i, " ", l.provider), []byte(l.answer), func(document []byte) string { return outcome(l, document) })
	}
	if n < 150 {
		t.Errorf("only %d cases", n)
	}
}

// The same, for all that is read of a model, listed or not.
func TestNullInModelEqualsAbsent(t *testing.T) {
	for id, element := range map[string]string{
		compatibleID: `{"id":"a","name":"A","model":"m","max_tokens":4,"max_input_tokens":8,"top_provider":{"context_length":12,"max_completion_tokens":99},"active":true}`,
		"cloudflare": `{"id":"uuid","name":"@cf/a/vec","task":{"name":"Text Embeddings"}}`,
		"mistral":    `{"id":"hear","name":"H","max_tokens":4,"max_input_tokens":8,"capabilities":{"completion_chat":false,"audio_transcription":true},"type":"base"}`,
	} {
		row := provider.Lookup(id)
		nulls.Of(nil, []byte(element)).Compare(t, id, []byte(element), func(document []byte) string {
			list, ok := readList(row, []byte(`{"data":[`+string(document)+`],"result":[`+string(document)+`]}`))
			return fmt.Sprintf("%+v %v", list, ok)
		})
	}
}
