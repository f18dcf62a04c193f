package endpoint_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"weir/internal/testgw"
	"weir/internal/testgw/fake"
	"weir/pkg/accounts"
	"weir/pkg/auth"
	"weir/pkg/catalog"
	"weir/pkg/endpoint"
	"weir/pkg/endpoint/download"
	"weir/pkg/snapshot"
	"weir/pkg/store"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/stream"
	"weir/pkg/wire/upstream"
)

func TestEndingSeesATextCutAnywhere(t *testing.T) {
	const done = `data: {"type": "speech.audio.done","usage":{}}` + "\n\n"
	for at := range done {
		for _, cause := range []error{nil, stream.ErrReset, stream.ErrIdle, stream.ErrClient} {
			e := &endpoint.StreamWatcher{Result: &accounts.Result{}, Last: []string{`"type":"speech.audio.done"`}}
			e.Push([]byte(strings.Repeat("x", 1000)+done[:at]), nil)
			e.Push([]byte(done[at:]), nil)
			tail := string(e.End(cause, nil))
			if cut := cause == stream.ErrReset || cause == stream.ErrIdle; cut != (tail != "") {
				t.Fatalf("cut at %d, ended with %v: %q", at, cause, tail)
			}
		}
	}
	for text, want := range map[string]bool{"data: [DONE]\n\n": false, "event: error\ndata: {}\n\n": false, `data: {"error":{"message":"x"}}`: false, "data: {}\n\n": true, "": true} {
		e := &endpoint.StreamWatcher{Result: &accounts.Result{}}
		e.Push([]byte(text), nil)
		if got := len(e.End(nil, nil)) > 0; got != want {
			t.Errorf("%q ends with an error event: %v", text, got)
		}
	}
}

func TestDownloads(t *testing.T) {
	moved := func(to string) fake.Answer {
		return fake.Answer{Status: 302, Header: httpmsg.Header{{Name: "location", Value: to}}}
	}
	tests := []struct {
		name, from string
		pages      map[string]fake.Answer
		want       string
	}{
		{"plain", "https://a.example/1?x=y", map[string]fake.Answer{"https://a.example/1?x=y": fake.OK("video/mp4", "V")}, "V after 1"},
		{"absolute", "https://a.example/1", map[string]fake.Answer{"https://a.example/1": moved("https://b.example/2"), "https://b.example/2": fake.OK("", "V")}, "V after 2"},
		{"same_host", "https://a.example/d/1?x", map[string]fake.Answer{"https://a.example/d/1?x": moved("/2"), "https://a.example/2": moved("3"), "https://a.example/3": fake.OK("", "V")}, "V after 3"},
		{"no_scheme", "https://a.example/1", map[string]fake.Answer{"https://a.example/1": moved("//b.example/2"), "https://b.example/2": fake.OK("", "V")}, "V after 2"},
		{"loop", "https://a.example/1", map[string]fake.Answer{"https://a.example/1": moved("https://a.example/1")}, "502 after 4"},
		{"to_a_private_host", "https://a.example/1", map[string]fake.Answer{"https://a.example/1": moved("http://127.0.0.1/2")}, "502 after 1"},
		{"to_the_gateway", "https://a.example/1", map[string]fake.Answer{"https://a.example/1": moved("https://gw.example/v1/videos/j/content")}, "502 after 1"},
		{"the_gateway", "https://gw.example/health", nil, "502 after 0"},
		{"another_name_of_the_gateway", "https://weir.example/health", nil, "502 after 0"},
		{"private", "https://10.0.0.1/1", nil, "502 after 0"},
		{"credentials", "https://u:p@a.example/1", nil, "502 after 0"},
		{"scheme", "file:///etc/passwd", nil, "502 after 0"},
		{"long", "https://a.example/" + strings.Repeat("x", 20<<10), nil, "502 after 0"},
		{"gone", "https://a.example/1", map[string]fake.Answer{"https://a.example/1": {Status: 410}}, "404 after 1"},
		{"failed", "https://a.example/1", map[string]fake.Answer{"https://a.example/1": {Status: 500}}, "502 after 1"},
		{"page", "https://a.example/1", map[string]fake.Answer{"https://a.example/1": fake.OK("text/html", "<p>sign in")}, "502 after 1"},
		{"network", "https://a.example/1", map[string]fake.Answer{"https://a.example/1": {Err: upstream.ErrNetwork}}, "502 after 1"},
	}
	for _, tt := range tests {
		w := testgw.New(t)
		w.Answer = func(s *fake.Seen) fake.Answer {
			if with := s.Header.Get("x-key") != ""; with != (len(w.Seen) == 1) {
				t.Errorf("%s: the credential with call %d: %v", tt.name, len(w.Seen), with)
			}
			if got := s.Header.Get("x-weir-hop"); got != "3" {
				t.Errorf("%s: call %d has hop count %q", tt.name, len(w.Seen), got)
			}
			return tt.pages[s.URL]
		}
		d := &download.Downloads{Do: w, OwnHosts: []string{"weir.example"}}
		client := &httpmsg.Request{Origin: "https://gw.example", Header: httpmsg.Header{{Name: "x-weir-hop", Value: "2"}}}
		resp, err := d.Get(context.Background(), client, tt.from, httpmsg.Header{{Name: "x-key", Value: "v"}}, 0)
		got := ""
		var e *apierr.Error
		if errors.As(err, &e) {
			got = fmt.Sprint(e.Status)
		} else {
			b, _ := io.ReadAll(resp.Body)
			got = string(b)
		}
		if got = fmt.Sprintf("%s after %d", got, len(w.Seen)); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.name, got, tt.want)
		}
	}
}

func TestDownloadInGatewayLoopIsRefused(t *testing.T) {
	w := testgw.New(t)
	d := &download.Downloads{Do: w}
	client := &httpmsg.Request{Origin: "https://gw.example", Header: httpmsg.Header{{Name: "x-weir-hop", Value: "3"}}}
	_, err := d.Get(context.Background(), client, "https://a.example/1", nil, 0)
	var e *apierr.Error
	if !errors.As(err, &e) || e.Status != 508 || len(w.Seen) != 0 {
		t.Errorf("got %v after %d calls, want 508 without a call", err, len(w.Seen))
	}
}

// A key learns the names of models and combos only if it may use them.
func TestUnknownModelOfLimitedKeyNamesNoOther(t *testing.T) {
	m := snapshot.New(&store.Machine{
		Combos:       []store.Combo{{Name: "board", Models: []string{"gone/x"}}, {Name: "mine", Models: []string{"gone/x"}}},
		ModelAliases: map[string]string{"merger": "openai/x"},
	})
	limited := &store.Key{Models: []string{"mine"}}
	for _, tt := range []struct {
		asked string
		key   *store.Key
		other string // named in the error
		named bool
	}{
		{"bord", nil, `"board"`, true},
		{"bord", limited, `"board"`, false},
		{"merge", limited, `"merger"`, false},
		{"board", &store.Key{}, `"gone/x"`, true},
		{"board", limited, `"gone/x"`, false},
		{"mine", limited, `"gone/x"`, true},
	} {
		_, err := endpoint.Targets(&auth.Call{Machine: m, Key: tt.key}, tt.asked, catalog.LLM, nil)
		var e *apierr.Error
		if !errors.As(err, &e) || e.Status != 400 || e.Code != "model_not_found" || strings.Contains(e.Message, tt.other) != tt.named || !tt.named && !strings.Contains(e.Message, `"`+tt.asked+`"`) {
			t.Errorf("%s: %v", tt.asked, err)
		}
	}
}

func TestQuery(t *testing.T) {
	for query, want := range map[string]string{"model=a%2Fb": "a/b", "x=1&model=a+b": "a b", "model": "", "": "", "mode=l": "", "model=%zz&model=ok": "ok", "%6dodel=x": "x"} {
		if got := endpoint.Query(query, "model"); got != want {
			t.Errorf("%q: %q", query, got)
		}
	}
}

func TestWholeJSON(t *testing.T) {
	for body, ok := range map[string]bool{`{"a":1}`: true, ` {}`: true, `[]`: false, `null`: false, `"a"`: false, `{"a":`: false, ``: false, `{}{}`: false, "{\"a\":\"\xff\"}": false} {
		resp := &upstream.Response{Status: 200, Header: httpmsg.Header{{Name: "content-type", Value: "application/json; charset=utf-8"}}, Body: io.NopCloser(strings.NewReader(body))}
		if err := endpoint.CheckJSON(resp); (err == nil) != ok {
			t.Errorf("%q: %v", body, err)
		}
		resp = &upstream.Response{Status: 200, Header: httpmsg.Header{{Name: "content-type", Value: "audio/mpeg"}}, Body: io.NopCloser(strings.NewReader(body))}
		if err := endpoint.CheckJSON(resp); err != nil {
			t.Errorf("%q as audio: %v", body, err)
		}
		resp.Header[0].Value = "Text/HTML; charset=utf-8"
		if err := endpoint.CheckJSON(resp); err == nil {
			t.Errorf("%q as a page is an answer", body)
		}
	}
}

func TestPassedBodyThatBreaksIsCut(t *testing.T) {
	for _, broken := range []error{stream.ErrIdle, stream.ErrReset} {
		body := io.NopCloser(io.MultiReader(strings.NewReader("sound"), iotest.ErrReader(broken)))
		resp := endpoint.Forward(snapshot.New(&store.Machine{}), &accounts.Result{Response: &upstream.Response{Status: 200, Body: body}})
		if got, err := io.ReadAll(resp.Body); string(got) != "sound" || !errors.Is(err, broken) {
			t.Errorf("%v: got %q, %v", broken, got, err)
		}
	}
	resp := endpoint.Forward(snapshot.New(&store.Machine{}), &accounts.Result{Response: &upstream.Response{Status: 200, Body: io.NopCloser(strings.NewReader("sound"))}})
	if got, err := io.ReadAll(resp.Body); string(got) != "sound" || err != nil {
		t.Errorf("a whole body: got %q, %v", got, err)
	}
}
