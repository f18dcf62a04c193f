// Package v1beta serves the Gemini API: the models under /v1beta/models, and the
// methods that follow a model's name in the path.
//
//	GET  /v1beta/models                     Handler.List
//	GET  /v1beta/models/{model}             Handler.Model
//	POST /v1beta/models/{model}:{method}    Handler.Call, by the table of methods
//
// See docs/reference/dialects.md, a.
package v1beta

import (
	"context"
	"strings"

	"weir/pkg/auth"
	"weir/pkg/endpoint"
	"weir/pkg/v1/models"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/httpmsg"
)

// embedder is the part of embeddings.Handler used here.
type embedder interface {
	Gemini(ctx context.Context, c *auth.Call, model string, batch bool) (*httpmsg.Response, error)
}

// Handler serves the Gemini API.
type Handler struct {
	Models     *models.Handler
	Embeddings embedder
	Chats      answerer
}

// method is a method of a model.
type method struct {
	name  string
	route string // as records and logs name it
	serve func(h *Handler, ctx context.Context, c *auth.Call, model string) (*httpmsg.Response, error)
}

// methods are the methods that are offered.
var methods = [...]method{
	{"generateContent", "/v1beta/models/{model}:generateContent", (*Handler).generate},
	{streaming, "/v1beta/models/{model}:streamGenerateContent", (*Handler).generateStream},
	{"countTokens", "/v1beta/models/{model}:countTokens", (*Handler).countTokens},
	{"embedContent", "/v1beta/models/{model}:embedContent", (*Handler).embed},
	{"batchEmbedContents", "/v1beta/models/{model}:batchEmbedContents", (*Handler).embedBatch},
}

// streaming is the name of the method whose answer is a stream.
const streaming = "streamGenerateContent"

// List serves GET /v1beta/models.
func (h *Handler) List(ctx context.Context, c *auth.Call) (*httpmsg.Response, error) {
	return h.Models.GeminiList(ctx, c)
}

// Model serves GET /v1beta/models/{model}.
func (h *Handler) Model(ctx context.Context, c *auth.Call) (*httpmsg.Response, error) {
	return h.Models.GeminiModel(ctx, c, c.Params[0])
}

// Call serves POST /v1beta/models/{model}:{method}.
func (h *Handler) Call(ctx context.Context, c *auth.Call) (*httpmsg.Response, error) {
	model, name := Split(c.Params[0])
	for i := range methods {
		if methods[i].name == name && model != "" {
			c.Route = methods[i].route
			return methods[i].serve(h, ctx, c, model)
		}
	}
	if model == "" || name == "" {
		return nil, apierr.New(404, "not_found",
			"Name a model and a method, as in /v1beta/models/openai/gpt-4o:generateContent.")
	}
	offered := make([]string, len(methods))
	for i := range methods {
		offered[i] = methods[i].name
	}
	e := apierr.New(501, "not_implemented", "This method is not offered by this gateway. Offered: %s.",
		strings.Join(offered, ", "))
	e.NoRetry = true
	return nil, e
}

// Split splits the end of a path into the model and the method, which is what
// follows the last colon: a model's name may have slashes and colons.
func Split(name string) (model, method string) {
	i := strings.LastIndexByte(name, ':')
	if i < 0 {
		return name, ""
	}
	return name[:i], name[i+1:]
}

// IsArray reports whether the answer to a call is a JSON array: that of a stream
// without ?alt=sse.
func IsArray(r *httpmsg.Request) bool {
	return strings.HasSuffix(r.Path, ":"+streaming) && endpoint.Query(r.Query, "alt") != "sse"
}
