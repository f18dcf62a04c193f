package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestOtherServersMachinesStayAsTheyAre(t *testing.T) {
	calls := 0
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { calls++ }))
	defer other.Close()
	g := &gateway{url: other.URL, state: t.TempDir()}
	started := filepath.Join(g.state, "started")
	code, err := g.run([]string{"touch", started}, false)
	if code != 1 || err == nil || !strings.Contains(err.Error(), "PORT=") {
		t.Errorf("%d, %v", code, err)
	}
	if _, err := os.Stat(started); err == nil || calls > 0 {
		t.Errorf("the gateway was started: %v; calls of the other one: %d", err == nil, calls)
	}
}

func TestOutputOfAStartIsShownOnlyIfItFails(t *testing.T) {
	o, err := newStartOutput(filepath.Join(t.TempDir(), "start.log"))
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(o, "a table of 60 lines\n")
	var failed, shown strings.Builder
	o.show(&failed)
	if failed.String() != "a table of 60 lines\n" {
		t.Errorf("a failed start shows %q", &failed)
	}
	if o, err = newStartOutput(filepath.Join(t.TempDir(), "start.log")); err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(o, "a table of 60 lines\n")
	o.started()
	if o.show(&shown); shown.Len() > 0 {
		t.Errorf("the end of a gateway that had started shows %q", &shown)
	}
}

func TestGreetingHasOneLinkAndUsableLines(t *testing.T) {
	g, key := &gateway{url: "http://127.0.0.1:8787", token: "token", code: "once-code", own: "/m1", state: ".weir/serve", secrets: ".weir/serve/data/secrets.json"}, "sk-key"
	for _, k := range []*string{&key, nil} {
		text := g.greeting(k)
		if n := strings.Count(text, "http://127.0.0.1:8787/#/sign-in/once-code/m1\n"); n != 1 || strings.Contains(text, "token") {
			t.Errorf("%d sign-in links in %q", n, text)
		}
		if !strings.Contains(text, "build/weir init --data .weir/serve/data prints another") {
			t.Errorf("no command for another link: %q", text)
		}
		if lines := strings.Count(text, "\n"); lines > 16 {
			t.Errorf("%d lines: %q", lines, text)
		}
		if curls := strings.Count(text, "\ncurl -s "); (curls == 2) != (k != nil) || !strings.HasSuffix(text, "Ctrl-C stops it.\n") {
			t.Errorf("%d curl lines: %q", curls, text)
		}
		// Beside the demo's machine the commands need a name, as in the guide.
		names := ".weir/serve/data WEIR_MACHINE=main"
		if !strings.Contains(text, "export PATH=$PWD/build:$PATH DATA_DIR="+names+"; weir ") || !strings.Contains(text, "\nData: .weir/serve/data\n") {
			t.Errorf("%q is not in the greeting:\n%s", names, text)
		}
		for _, name := range []string{"guides/self-hosting.md", "quick-start.md"} {
			page, err := os.ReadFile("../../../docs/" + name)
			if !strings.Contains(string(page), "export PATH=$PWD/build:$PATH DATA_DIR=$PWD/"+names) {
				t.Errorf("%q is not in %s: %v", names, name, err)
			}
		}
	}
}

// The change of a port that an end of the process interrupted.
func TestInterruptedChangeOfThePortIsRepeated(t *testing.T) {
	broken, addresses := false, map[string]string{}
	weir := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		var c struct{ ProviderSpecificData struct{ BaseURL string } }
		_ = json.Unmarshal(raw, &c)
		id := filepath.Base(r.URL.Path)
		switch {
		case r.URL.Path == "/api/machines":
			_, _ = io.WriteString(w, `{"machineId":"m","apiKey":"k"}`)
			return
		case r.Method == http.MethodPost:
			id = string(rune('a' + len(addresses)))
		case broken && id == "b":
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		addresses[id] = strings.TrimSuffix(c.ProviderSpecificData.BaseURL, "/v1")
		_, _ = io.WriteString(w, `{"id":"`+id+`"}`)
	}))
	defer weir.Close()
	g := &gateway{url: weir.URL, state: t.TempDir()}
	// The upstream of the first listens until the test ends, so that the next needs another port.
	first, err := g.demo(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	broken = true
	if _, err := g.demo(t.Context()); err == nil {
		t.Fatal("a connection could not be changed, and there is no error")
	}
	broken = false
	last, err := g.demo(t.Context())
	if err != nil || last.UpstreamPort == first.UpstreamPort || addresses["a"] != addresses["b"] || !strings.HasSuffix(addresses["a"], portSuffix(last)) {
		t.Errorf("%+v after %+v, %v: %v", last, first, err, addresses)
	}
}

func portSuffix(m *machine) string {
	raw, _ := json.Marshal(m.UpstreamPort)
	return ":" + string(raw)
}

// The native server's link works once; the operator's token works for ever.
func TestTheLinkOfTheNativeServerIsThatOfInit(t *testing.T) {
	program := filepath.Join(t.TempDir(), "weir")
	script := "#!/bin/sh\n[ \"$1\" = init ] && echo 'http://127.0.0.1:8787/#/sign-in/once-abc'\n"
	if err := os.WriteFile(program, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	if code, err := onceCode(t.Context(), program); code != "once-abc" || err != nil {
		t.Errorf("%q, %v", code, err)
	}
	if code, err := onceCode(t.Context(), "true"); code != "" || err == nil {
		t.Errorf("%q, %v", code, err)
	}
}
