package models

import (
	"cmp"
	"context"
	"strconv"

	"weir/pkg/auth"
	"weir/pkg/catalog"
	"weir/pkg/endpoint"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/httpmsg"
)

// geminiKinds are the kinds of models that have methods in the Gemini API.
var geminiKinds = []catalog.Kind{catalog.LLM, catalog.Embedding}

// Limits of a page of Gemini's list (docs/reference/dialects.md, a.1).
const (
	geminiPageSize    = 50
	geminiMaxPageSize = 1000
)

// GeminiList serves GET /v1beta/models: the chat and embedding models.
//
//	?pageSize (1 to 1000, 50), pageToken → {"models":[…],"nextPageToken"?}
func (h *Handler) GeminiList(ctx context.Context, c *auth.Call) (*httpmsg.Response, error) {
	return h.list(ctx, c, "gemini", geminiKinds, gemini)
}

// GeminiModel serves GET /v1beta/models/{id}.
func (h *Handler) GeminiModel(ctx context.Context, c *auth.Call, id string) (*httpmsg.Response, error) {
	entry, v := h.entry(ctx, c, id, geminiKinds)
	if entry == nil {
		return nil, unknown(id)
	}
	resp := answerJSON(entry.appendGemini(nil))
	h.after(resp, c, v)
	return resp, nil
}

// geminiPage makes Gemini's form of a list. The token of the next page is the id of
// the last model of this one, so that a list may grow between two pages.
func geminiPage(list []Entry, query string) ([]byte, error) {
	size := geminiPageSize
	if s := endpoint.Query(query, "pageSize"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil || n < 0 {
			return nil, apierr.Invalid("pageSize", "pageSize must be a number from 1 to 1000.")
		}
		if n > 0 { // 0 is the default (Google's AIP-158)
			size = min(n, geminiMaxPageSize)
		}
	}
	if last := endpoint.Query(query, "pageToken"); last != "" {
		i := 0
		for i < len(list) && list[i].ID != last {
			i++
		}
		if i == len(list) {
			return nil, apierr.Invalid("pageToken",
				"pageToken is not valid for this list. Request the list again from its beginning.")
		}
		list = list[i+1:]
	}
	n := min(size, len(list))
	b := append(make([]byte, 0, 384*n+64), `{"models":[`...)
	for i := range list[:n] {
		if i > 0 {
			b = append(b, ',')
		}
		b = list[i].appendGemini(b)
	}
	b = append(b, ']')
	if n < len(list) {
		b = append(b, `,"nextPageToken":`...)
		b = appendString(b, list[n-1].ID)
	}
	return append(b, '}'), nil
}

// appendGemini writes the entry as Gemini's clients read it:
//
//	{"name":"models/<id>","displayName","inputTokenLimit"?,"outputTokenLimit"?,
//	 "supportedGenerationMethods":[],"thinking"?}
//
// See docs/reference/dialects.md, a.2.
func (e *Entry) appendGemini(b []byte) []byte {
	b = append(b, `{"name":`...)
	b = appendString(b, "models/"+e.ID)
	b = append(b, `,"displayName":`...)
	name := cmp.Or(e.Model.Name, e.ID)
	b = appendString(b, name)
	if e.Model.Context > 0 {
		b = append(b, `,"inputTokenLimit":`...)
		b = strconv.AppendInt(b, int64(e.Model.Context), 10)
	}
	if e.Model.MaxOutput > 0 {
		b = append(b, `,"outputTokenLimit":`...)
		b = strconv.AppendInt(b, int64(e.Model.MaxOutput), 10)
	}
	if e.Kind == catalog.Embedding {
		return append(b, `,"supportedGenerationMethods":["embedContent","batchEmbedContents"]}`...)
	}
	b = append(b, `,"supportedGenerationMethods":["generateContent","streamGenerateContent","countTokens"]`...)
	if thinks, known := e.Model.Caps.Get(catalog.Reasoning); known {
		b = append(b, `,"thinking":`...)
		b = strconv.AppendBool(b, thinks)
	}
	return append(b, '}')
}
