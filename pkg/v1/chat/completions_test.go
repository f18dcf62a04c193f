package chat

import (
	"context"
	"errors"
	"testing"

	"weir/pkg/auth"
	"weir/pkg/llm"
	"weir/pkg/llm/proxy"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/stream"
)

type desk struct{ request *proxy.Request }

func (d *desk) Answer(_ context.Context, _ *auth.Call, a *proxy.Request) (*proxy.Result, error) {
	d.request = a
	return &proxy.Result{Response: &httpmsg.Response{Status: 200}}, nil
}

func TestCompleteSpeaksChat(t *testing.T) {
	d := &desk{}
	h := &Handler{Proxy: d}
	call := func(body string) *auth.Call {
		return &auth.Call{Request: &httpmsg.Request{Body: stream.FromString(body)}, MaxBody: 100}
	}
	resp, err := h.Complete(context.Background(), call(`{"model":"a/b","messages":[],"stream":true}`))
	if err != nil || resp.Status != 200 || d.request.Dialect != llm.Chat || d.request.Model != "a/b" || !d.request.Stream || d.request.WantsUsage {
		t.Errorf("%v, request %+v", err, d.request)
	}
	var e *apierr.Error
	if _, err := h.Complete(context.Background(), call(`{"model":"a/b"}`)); !errors.As(err, &e) || e.Param != "messages" {
		t.Errorf("without messages: %v", err)
	}
}
