package v1beta

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

type chats struct {
	answerer
	request *proxy.Request
}

func (d *chats) Answer(_ context.Context, _ *auth.Call, a *proxy.Request) (*proxy.Result, error) {
	d.request = a
	return &proxy.Result{Response: &httpmsg.Response{Status: 200}}, nil
}

func TestGenerateMethods(t *testing.T) {
	for _, tt := range []struct {
		name, query   string
		stream, array bool
	}{
		{"a/b:c:generateContent", "alt=sse", false, false},
		{"a/b:c:generateContent", "", false, false},
		{"a/b:c:streamGenerateContent", "key=x&alt=sse", true, false},
		{"a/b:c:streamGenerateContent", "", true, true},
		{"a/b:c:streamGenerateContent", "alt=json", true, true},
	} {
		d := &chats{}
		c := &auth.Call{Request: &httpmsg.Request{Query: tt.query, Body: stream.FromString(`{"contents":[]}`)}, MaxBody: 100, Params: []string{tt.name}}
		resp, err := (&Handler{Chats: d}).Call(context.Background(), c)
		if err != nil || resp.Status != 200 {
			t.Fatal(err)
		}
		if r := d.request; r.Dialect != llm.Gemini || r.Model != "a/b:c" || r.Stream != tt.stream || r.Array != tt.array {
			t.Errorf("%s?%s: %+v", tt.name, tt.query, r)
		}
		if want := "/v1beta/models/{model}" + tt.name[len("a/b:c"):]; c.Route != want {
			t.Errorf("route %s, want %s", c.Route, want)
		}
	}
	var e *apierr.Error
	c := &auth.Call{Request: &httpmsg.Request{Body: stream.FromString(`{}`)}, MaxBody: 100, Params: []string{"a:generateContent"}}
	if _, err := (&Handler{Chats: &chats{}}).Call(context.Background(), c); !errors.As(err, &e) || e.Status != 400 {
		t.Errorf("without contents: %v", err)
	}
	c = &auth.Call{Request: &httpmsg.Request{Body: stream.FromString(`{"contents":[]}`)}, MaxBody: 5, Params: []string{"a:generateContent"}}
	if _, err := (&Handler{Chats: &chats{}}).Call(context.Background(), c); !errors.Is(err, stream.ErrTooLarge) {
		t.Errorf("over the limit: %v", err)
	}
}
