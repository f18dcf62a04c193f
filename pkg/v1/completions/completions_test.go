package completions

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

func TestCreate(t *testing.T) {
	d := &desk{}
	h := &Handler{Proxy: d}
	call := func(body string) (*httpmsg.Response, error) {
		return h.Create(context.Background(), &auth.Call{Request: &httpmsg.Request{Body: stream.FromString(body)}, MaxBody: 100})
	}
	resp, err := call(`{"model":"a/b","prompt":"x","stream":true,"stream_options":{"include_usage":true}}`)
	if err != nil || resp.Status != 200 || d.request.Dialect != llm.Completions || d.request.Model != "a/b" || !d.request.Stream || !d.request.WantsUsage {
		t.Errorf("%v, request %+v", err, d.request)
	}
	var e *apierr.Error
	if _, err := call(`{"prompt":"x"}`); !errors.As(err, &e) || e.Status != 400 {
		t.Errorf("without a model: %v", err)
	}
}
