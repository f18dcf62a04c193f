package gateway

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"weir/pkg/accounts"
	"weir/pkg/auth"
	"weir/pkg/catalog"
	"weir/pkg/llm"
	"weir/pkg/llm/proxy"
	"weir/pkg/provider"
	"weir/pkg/snapshot"
	"weir/pkg/store"
	"weir/pkg/v1/audio"
	"weir/pkg/v1/embeddings"
	"weir/pkg/v1/images"
	"weir/pkg/v1/models"
	"weir/pkg/v1/rerank"
	"weir/pkg/v1/videos"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/secret"
	"weir/pkg/wire/stream"
)

// planned is the Sender that builds the first call and makes none.
type planned struct{ url string }

var errPlanned = errors.New("planned")

func (p *planned) Send(_ context.Context, call *accounts.Call) (*accounts.Result, error) {
	p.url = ""
	for i := range call.Targets {
		to := &call.Targets[i]
		for _, conn := range to.Connections {
			a, err := call.Build(to, conn, nil)
			if err != nil {
				return nil, err
			}
			p.url = a.Request.URL
			return nil, errPlanned
		}
	}
	return nil, errors.New("no connection")
}

// Listed models can be called: for every listed model of every provider and
// kind there is a call plan.
func TestListedModelsHaveACallPlan(t *testing.T) {
	p := &planned{}
	now := func() time.Time { return time.UnixMilli(1_800_000_000_000) }
	chats := &proxy.Proxy{Accounts: p, Now: now}
	sound := &audio.Handler{Accounts: p, Now: now}
	const boundary = "b0undary"
	recording := func(model string) string {
		part := func(head, body string) string {
			return "--" + boundary + "\r\nContent-Disposition: form-data; name=" + head + "\r\n\r\n" + body + "\r\n"
		}
		return part(`"model"`, model) + part(`"file"; filename="a.mp3"`, "SOUND") + "--" + boundary + "--\r\n"
	}
	conversation := chats.Handler(llm.Chat)
	kinds := []struct {
		kind catalog.Kind
		call func(context.Context, *auth.Call) (*httpmsg.Response, error)
		body func(model string) string
	}{
		{catalog.LLM, conversation, func(m string) string { return `{"model":"` + m + `","messages":[{"role":"user","content":"hi"}]}` }},
		{catalog.ImageToText, conversation, func(m string) string { return `{"model":"` + m + `","messages":[{"role":"user","content":"hi"}]}` }},
		{catalog.Embedding, (&embeddings.Handler{Accounts: p}).Create, func(m string) string { return `{"model":"` + m + `","input":"hi"}` }},
		{catalog.Rerank, (&rerank.Handler{Accounts: p}).Create, func(m string) string { return `{"model":"` + m + `","query":"q","documents":["d"]}` }},
		{catalog.Image, (&images.Handler{Accounts: p, Now: now}).Generations, func(m string) string { return `{"model":"` + m + `","prompt":"p"}` }},
		{catalog.Video, (&videos.Handler{Accounts: p}).Generations, func(m string) string { return `{"model":"` + m + `","prompt":"p"}` }},
		{catalog.TTS, sound.Speech, func(m string) string { return `{"model":"` + m + `","input":"hi","voice":"v"}` }},
		{catalog.STT, sound.Transcriptions, recording},
	}
	called := 0
	for _, row := range provider.All() {
		conn := store.Connection{ID: "c", Provider: row.ID, Secrets: map[string]secret.Sealed{store.APIKey: "x"}}
		conn.Data.Vars = map[string]string{}
		for _, v := range row.Vars {
			conn.Data.Vars[v] = "v-" + strings.ReplaceAll(v, "_", "-")
		}
		record := &store.Machine{Version: 1, ID: "abcdefgh01234567", Connections: []store.Connection{conn}}
		machine := snapshot.New(record)
		for _, k := range kinds {
			for _, m := range models.List(record, nil, []catalog.Kind{k.kind}, nil) {
				if m.Kind != k.kind {
					continue
				}
				body := k.body(m.ID)
				r := &httpmsg.Request{Method: "POST", Path: "/v1", Origin: "https://weir.example", Body: stream.FromString(body), Length: int64(len(body)), Start: now()}
				if r.Header.Add("content-type", "application/json"); k.kind == catalog.STT {
					r.Header.Set("content-type", "multipart/form-data; boundary="+boundary)
				}
				_, err := k.call(context.Background(), &auth.Call{Request: r, Machine: machine, MachineID: machine.ID, MaxBody: 1 << 20})
				if !errors.Is(err, errPlanned) || p.url == "" {
					t.Errorf("%s is listed as %s and cannot be called: %v", m.ID, k.kind, err)
				}
				called++
			}
		}
	}
	if called < 1000 {
		t.Errorf("%d models were tried", called)
	}
	// The catalogue also knows models that cannot be called.
	hidden := 0
	for _, row := range provider.All() {
		for _, m := range catalog.Models(row.Alias) {
			if !row.Callable(m.Kind, m.ID) {
				hidden++
			}
		}
	}
	if hidden == 0 {
		t.Error("the table of models that are not listed names none of the catalogue")
	}
}
