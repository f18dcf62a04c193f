package gateway

import (
	"context"
	"testing"
	"time"

	"weir/internal/testgw/fake"
	"weir/internal/testgw/sealed"
	"weir/pkg/accounts"
	"weir/pkg/auth"
	"weir/pkg/budget"
	"weir/pkg/endpoint"
	"weir/pkg/llm"
	"weir/pkg/llm/proxy"
	"weir/pkg/snapshot"
	"weir/pkg/store"
	"weir/pkg/v1/audio"
	"weir/pkg/v1/embeddings"
	"weir/pkg/v1/images"
	"weir/pkg/v1/moderations"
	"weir/pkg/v1/rerank"
	"weir/pkg/v1/responses"
	"weir/pkg/v1/search"
	"weir/pkg/v1/videos"
	"weir/pkg/v1/web"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/stream"
)

// A machine's setting replaces the default on every endpoint that forwards a
// request, whether it is shorter or longer. Search and web fetch have their own.
func TestSettingReplacesTimeLimitOnEveryEndpoint(t *testing.T) {
	const form = "multipart/form-data; boundary=b"
	part := func(head, body string) string {
		return "--b\r\nContent-Disposition: form-data; name=" + head + "\r\n\r\n" + body + "\r\n"
	}
	sound := part(`"model"`, "openai/whisper-1") + part(`"file"; filename="a.mp3"`, "x") + "--b--\r\n"
	picture := part(`"model"`, "openai/gpt-image-1") + part(`"prompt"`, "p") + part(`"image"; filename="a.png"`, "x") + "--b--\r\n"
	const chatBody, streamed = `"messages":[{"role":"user","content":"hi"}]`, `"stream":true,`
	now := func() time.Time { return time.UnixMilli(1_800_000_000_000) }
	doer := &fake.Upstream{Answer: func(*fake.Seen) fake.Answer { return fake.Answer{Err: errPlanned} }}
	keys := sealed.Keys(t)
	p := &accounts.Pool{Doer: doer, Keys: keys, Now: now}
	talks := &proxy.Proxy{Accounts: p, Now: now}
	sounds := &audio.Handler{Accounts: p, Now: now}
	pictures := &images.Handler{Accounts: p, Now: now}
	films := &videos.Handler{Accounts: p}
	type handler = func(context.Context, *auth.Call) (*httpmsg.Response, error)
	const answer, event, own = store.WholeAnswer, store.FirstEvent, -1
	for _, e := range []struct {
		name    string
		call    handler
		kind    string
		body    string
		usual   time.Duration // own is a limit of the endpoint
		waiting time.Duration // of own
	}{
		{"embeddings", (&embeddings.Handler{Accounts: p}).Create, "", `{"model":"openai/text-embedding-3-small","input":"hi"}`, answer, 0},
		{"chat", talks.Handler(llm.Chat), "", `{"model":"openai/gpt-4o",` + chatBody + `}`, answer, 0},
		{"chat streamed", talks.Handler(llm.Chat), "", `{` + streamed + `"model":"openai/gpt-4o",` + chatBody + `}`, event, 0},
		{"messages", talks.Handler(llm.Messages), "", `{"model":"openai/gpt-4o","max_tokens":9,` + chatBody + `}`, answer, 0},
		{"messages streamed", talks.Handler(llm.Messages), "", `{` + streamed + `"model":"openai/gpt-4o","max_tokens":9,` + chatBody + `}`, event, 0},
		{"responses", (&responses.Handler{Proxy: talks}).Create, "", `{"model":"openai/gpt-4o","input":"hi"}`, answer, 0},
		{"speech", sounds.Speech, "", `{"model":"openai/tts-1","input":"hi","voice":"alloy"}`, answer, 0},
		{"transcriptions", sounds.Transcriptions, form, sound, answer, 0},
		{"images", pictures.Generations, "", `{"model":"openai/gpt-image-1","prompt":"p"}`, answer, 0},
		{"images of a form", pictures.Edits, form, picture, answer, 0},
		{"images of another shape", pictures.Generations, "", `{"model":"fal/fal-ai/flux/dev","prompt":"p"}`, answer, 0},
		{"videos", films.Generations, "", `{"model":"xai/grok-imagine-video","prompt":"p"}`, answer, 0},
		{"rerank", (&rerank.Handler{Accounts: p}).Create, "", `{"model":"cohere/rerank-v3.5","query":"q","documents":["d"]}`, answer, 0},
		{"moderations", (&moderations.Handler{Accounts: p}).Create, "", `{"model":"openai/omni-moderation-latest","input":"hi"}`, answer, 0},
		{"search", (&search.Handler{Accounts: p, Now: now}).Create, "", `{"model":"tavily","query":"q"}`, own, 10 * time.Second},
		{"web fetch", (&web.Handler{Accounts: p, Now: now}).Fetch, "", `{"model":"tavily","url":"https://a.example/"}`, own, 30 * time.Second},
	} {
		for _, set := range []time.Duration{0, 7 * time.Second, 900 * time.Second} {
			m := &store.Machine{Version: 1, ID: sealed.MachineID}
			for _, id := range []string{"openai", "fal", "xai", "cohere", "tavily"} {
				m.Connections = append(m.Connections, store.Connection{ID: id, Provider: id, Secrets: sealed.APIKey(t, keys, id, "key-0123456789")})
			}
			m.Settings.FirstByteSeconds, m.Settings.IdleSeconds = int(set/time.Second), int(set/time.Second)
			first, idle := set, set
			if set == 0 {
				first, idle = e.usual, store.Silence
			}
			if e.usual == own {
				first = e.waiting
			}
			kind := e.kind
			if kind == "" {
				kind = "application/json"
			}
			doer.Seen = nil
			r := &httpmsg.Request{
				Method: "POST", Origin: "https://weir.example", Header: httpmsg.Header{{Name: "content-type", Value: kind}},
				Body: stream.FromString(e.body), Length: int64(len(e.body)), Start: now(),
			}
			_, err := e.call(context.Background(), &auth.Call{Request: r, Machine: snapshot.New(m), MachineID: m.ID, MaxBody: 1 << 20})
			if len(doer.Seen) == 0 {
				t.Errorf("%s: nothing was sent: %v", e.name, err)
				continue
			}
			if sent := doer.Seen[len(doer.Seen)-1].Request; sent.HeaderTimeout != first || sent.Idle != idle {
				t.Errorf("%s with %v: first byte %v, silence %v; want %v, %v", e.name, set, sent.HeaderTimeout, sent.Idle, first, idle)
			}
		}
	}
}

// A machine that is known to have as many calls under way as it may is refused before a byte of a
// chat is read. Counts of tokens are not calls under way.
func TestBodyOfARefusedCallIsNotRead(t *testing.T) {
	for _, tt := range []struct {
		name, path string
		limit      int
		refused    bool // by the object, of late
		status     int
		read       bool
	}{
		{"no limit", "/v1/chat", 0, false, 200, true},
		{"below the limit", "/v1/chat", 3, false, 200, true},
		{"at the limit", "/v1/chat", 3, true, 429, false},
		{"at the limit, the Gemini API", "/v1beta/models/m:generateContent", 3, true, 429, false},
		{"at the limit, a count", "/v1beta/models/m:countTokens", 3, true, 200, true},
		{"at the limit, another endpoint", "/v1/embeddings", 3, true, 200, true},
	} {
		f := newFixture()
		rec := &store.Machine{ID: machineID}
		rec.Settings.MaxParallel = tt.limit
		f.keys.machine = snapshot.New(rec)
		w := f.keys.machine.Local.Wallet(func() string { return "holder" })
		if tt.refused {
			w.Apply(&rec.Settings.Limits()[0], budget.Grant{Seq: 1, Refused: true, Busy: true, Wait: 2000}, 1, f.Now().UnixMilli())
		}
		handler := []Method{{Name: "POST", Handler: func(_ context.Context, c *auth.Call) (*httpmsg.Response, error) {
			_, err := c.ReadBody()
			return &httpmsg.Response{Status: 200}, err
		}}}
		f.SetRoutes([]Route{
			{Pattern: "/v1/chat", Access: endpoint.Data, Translates: true, MaxBody: maxChat, Methods: handler},
			{Pattern: "/v1/embeddings", Access: endpoint.Data, MaxBody: maxJSON, Methods: handler},
			{Pattern: "/v1beta/models/{model...}", Access: endpoint.Data, Dialect: llm.Gemini, Translates: true, MaxBody: maxChat, Methods: handler},
		})
		read := false
		r := &httpmsg.Request{Method: "POST", Path: tt.path, Start: f.Now(), Length: 100_000, Header: httpmsg.Header{{Name: "authorization", Value: "data"}}}
		r.Body = &pieces{left: r.Length, look: func() { read = true }}
		resp := f.Serve(context.Background(), r)
		if resp.Status != tt.status || read != tt.read || (resp.Get("retry-after") == "2") != (tt.status == 429) {
			t.Errorf("%s: status %d, retry-after %q, body read: %v", tt.name, resp.Status, resp.Get("retry-after"), read)
		}
	}
}
