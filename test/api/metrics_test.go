package api

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"weir/pkg/wire/httpmsg"
)

// Only the operator and keys of scope metrics read metrics, and such a key can do nothing
// else.
func TestScopeMetrics(t *testing.T) {
	w := newWorld(t)
	machine, dataKey := w.tenant(1)
	other, _ := w.tenant(0)
	_, key := w.minted(machine, `["metrics"]`)
	_, manager := w.minted(machine, `["manage","export"]`)
	keyID, paused := w.minted(machine, `["metrics"]`)
	w.get(200, w.do("PUT", "/"+machine+"/api/keys/"+keyID, adminToken, `{"paused":true}`), nil)
	for _, tt := range []struct {
		path, token string
		status      int
		machines    []string
	}{
		{"/metrics", key, 200, []string{machine}},
		{"/" + machine + "/metrics", key, 200, []string{machine}},
		{"/" + other + "/metrics", key, 401, nil},
		{"/metrics?machine=" + machine, key, 400, nil},
		{"/metrics", adminToken, 200, []string{machine, other}},
		{"/metrics?machine=" + other, adminToken, 200, []string{other}},
		{"/metrics?machine=", adminToken, 200, nil},
		{"/" + other + "/metrics", adminToken, 200, []string{other}},
		{"/metrics", dataKey, 403, nil},
		{"/metrics", manager, 403, nil},
		{"/metrics", paused, 403, nil},
		{"/metrics", "", 401, nil},
		{"/metrics?machine=x", adminToken, 400, nil},
		{"/metrics?machine=" + strings.Repeat(machine+",", 20) + machine, adminToken, 400, nil},
		{"/metrics?x=1", adminToken, 400, nil},
		{"/metrics?keys=1", adminToken, 400, nil},
		{"/m_0000000000000000/metrics", adminToken, 404, nil},
		{"/v1/models", key, 403, nil},
		{"/v1/usage", key, 403, nil},
		{"/" + machine + "/api/keys", key, 403, nil},
		{"/" + machine + "/api/usage", key, 403, nil},
		{"/api/version", key, 401, nil},
	} {
		r := w.do("GET", tt.path, tt.token, "")
		if r.status != tt.status {
			t.Errorf("GET %s: %d, want %d: %.200s", tt.path, r.status, tt.status, r.body)
			continue
		}
		for _, id := range []string{machine, other} {
			want := false
			for _, m := range tt.machines {
				want = want || m == id
			}
			if has := strings.Contains(r.body, `weir_machine_info{machine="`+id+`"`); has != want {
				t.Errorf("GET %s: machine %s: %v", tt.path, id, has)
			}
		}
		// A tenant sees nothing of the process.
		process := tt.status == 200 && tt.token == adminToken && strings.HasPrefix(tt.path, "/metrics")
		if strings.Contains(r.body, "weir_build_info") != process {
			t.Errorf("GET %s: the process: %v", tt.path, !process)
		}
	}
	if r := w.do("POST", "/v1/chat/completions", key, `{"model":"openai/gpt-4o","messages":[]}`); r.status != 403 {
		t.Errorf("a call: %d", r.status)
	}
	if r := w.do("HEAD", "/metrics", key, ""); r.status != 200 || r.body != "" || !strings.HasPrefix(r.header.Get("content-type"), "text/plain; version=0.0.4") {
		t.Errorf("HEAD: %d %q", r.status, r.body)
	}
	if r := w.do("GET", "/metrics", key, "", httpmsg.Field{Name: "accept", Value: "application/openmetrics-text"}); !strings.HasSuffix(r.body, "# EOF\n") {
		t.Errorf("OpenMetrics: %s", r.body)
	}
}

// 10,000 invented models, keys and tags leave a bounded answer, which does not get slower or
// larger with their number. Counters do not fall over a restart and a prune.
func TestMetricsAreBounded(t *testing.T) {
	w := newWorld(t)
	_, key := w.tenant(1)
	read := func() (body string, lines int) {
		r := w.do("GET", "/metrics?keys=true", adminToken, "")
		if r.status != 200 {
			t.Fatalf("%d %s", r.status, r.body)
		}
		for line := range strings.Lines(r.body) {
			if !strings.HasPrefix(line, "#") {
				lines++
			}
		}
		return r.body, lines
	}
	for i := range 2000 {
		for _, model := range []string{fmt.Sprint("nobody/", i), fmt.Sprint("up/invented-", i), "\"\n\\🦦"} {
			token := key
			if i%3 == 0 {
				token = fmt.Sprint("sk-", i)
			}
			w.do("POST", "/v1/embeddings", token, fmt.Sprintf(`{"model":%q,"input":"x"}`, model), httpmsg.Field{Name: "x-weir-tags", Value: fmt.Sprint("t", i)})
		}
		if i%100 == 0 {
			w.Add(11 * time.Second)
		}
	}
	body, lines := read()
	if lines > 2000 || strings.Contains(body, "nobody/") {
		t.Errorf("%d lines", lines)
	}
	requests := func(body string) (n int) {
		for line := range strings.Lines(body) {
			if strings.HasPrefix(line, "weir_requests_total") {
				var v int
				fmt.Sscan(line[strings.LastIndexByte(line, ' ')+1:], &v)
				n += v
			}
		}
		return n
	}
	was := requests(body)
	if was != 3999 { // the others have no valid key
		t.Errorf("%d requests", was)
	}
	for range 3 {
		w.Restart()
		w.Add(200 * 24 * time.Hour)
		w.embed(key)
		body, _ = read()
		if now := requests(body); now <= was {
			t.Errorf("the counter falls from %d to %d", was, now)
		} else {
			was = now
		}
	}
}
