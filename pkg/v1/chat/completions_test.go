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

type desk struct{ asked *proxy.Ask }

func (d *desk) Answer(_ context.Context, _ *auth.Call, a *proxy.Ask) (*proxy.Reply, error) {
	d.asked = a
	return &proxy.Reply{Response: &httpmsg.Response{Status: 200}}, nil
}

func TestCompleteSpeaksChat(t *testing.T) {
	d := &desk{}
	h := &Handler{Dialog: d}
	call := func(body string) *auth.Call {
		return &auth.Call{Request: &httpmsg.Request{Body: stream.FromString(body)}, MaxBody: 100}
	}
	resp, err := h.Complete(context.Background(), call(`{"model":"a/b","messages":[],"stream":true}`))
	if err != nil || resp.Status != 200 || d.asked.Dialect != llm.Chat || d.asked.Model != "a/b" || !d.asked.Stream || d.asked.Usage {
		t.Errorf("%v, asked %+v", err, d.asked)
	}
	var e *apierr.Error
	if _, err := h.Complete(context.Background(), call(`{"model":"a/b"}`)); !errors.As(err, &e) || e.Param != "messages" {
		t.Errorf("without messages: %v", err)
	}
}
