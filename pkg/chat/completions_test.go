package chat

import (
	"context"
	"errors"
	"testing"

	"weir/pkg/apierr"
	"weir/pkg/auth"
	"weir/pkg/dialog"
	"weir/pkg/edge"
	"weir/pkg/stream"
	"weir/pkg/translate"
)

type desk struct{ asked *dialog.Ask }

func (d *desk) Answer(_ context.Context, _ *auth.Call, a *dialog.Ask) (*dialog.Reply, error) {
	d.asked = a
	return &dialog.Reply{Response: &edge.Response{Status: 200}}, nil
}

func TestCompleteSpeaksChat(t *testing.T) {
	d := &desk{}
	h := &Handler{Dialog: d}
	call := func(body string) *auth.Call {
		return &auth.Call{Request: &edge.Request{Body: stream.FromString(body)}, MaxBody: 100}
	}
	resp, err := h.Complete(context.Background(), call(`{"model":"a/b","messages":[],"stream":true}`))
	if err != nil || resp.Status != 200 || d.asked.Dialect != translate.Chat || d.asked.Model != "a/b" || !d.asked.Stream || d.asked.Usage {
		t.Errorf("%v, asked %+v", err, d.asked)
	}
	var e *apierr.Error
	if _, err := h.Complete(context.Background(), call(`{"model":"a/b"}`)); !errors.As(err, &e) || e.Param != "messages" {
		t.Errorf("without messages: %v", err)
	}
}
