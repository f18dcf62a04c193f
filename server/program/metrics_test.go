package program

import (
	"net"
	"net/http"
	"regexp"
	"strings"
	"testing"
)

var metricsURL = regexp.MustCompile(`Metrics: (http://\S+)/metrics`)

func TestMetricsHaveAnAddressOfTheirOwn(t *testing.T) {
	p, base := serving(t, t.TempDir(), nil, "--metrics", "127.0.0.1:0")
	m := metricsURL.FindStringSubmatch(p.stdout.String())
	if m == nil {
		t.Fatalf("no address in %q", &p.stdout)
	}
	get := func(method, path string, fields ...string) (int, string, http.Header) {
		return answer(t, http.DefaultClient, method, m[1]+path, "", fields...)
	}
	status, text, header := get("GET", "/metrics")
	if status != 200 || header.Get("Content-Type") != "text/plain; version=0.0.4; charset=utf-8" {
		t.Errorf("%d %s", status, header)
	}
	for _, name := range []string{"weir_build_info{version=", `weir_memory_bytes{kind="heap"} `, "weir_goroutines ", "weir_database_bytes ",
		"weir_start_time_seconds ", "weir_calls ", "weir_calls_queued ", "weir_calls_memory_bytes ", "weir_sockets ", "weir_machines_left_out 0"} {
		if !strings.Contains(text, "\n"+name) {
			t.Errorf("no %s in %s", name, text)
		}
	}
	if status, text, _ := get("HEAD", "/metrics"); status != 200 || text != "" {
		t.Errorf("HEAD: %d %q", status, text)
	}
	if _, text, _ := get("GET", "/metrics", "Accept", "application/openmetrics-text; version=1.0.0"); !strings.HasSuffix(text, "# EOF\n") {
		t.Errorf("OpenMetrics: %q", text)
	}
	for path, want := range map[string]int{"/": 404, "/api/machines": 404, "/health": 404, "/metrics?machine=x": 400, "/metrics?x=1": 400} {
		if status, _, _ := get("GET", path); status != want {
			t.Errorf("GET %s: %d, want %d", path, status, want)
		}
	}
	if status, _, _ := get("POST", "/metrics"); status != 405 {
		t.Errorf("POST: %d", status)
	}
	// A page whose name leads to this address reads nothing.
	req, _ := http.NewRequest("GET", m[1]+"/metrics", nil)
	req.Host = "attacker.example:9090"
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != 403 {
		t.Errorf("another host: %d", res.StatusCode)
	}
	if status, _, _ := answer(t, http.DefaultClient, "GET", base+"/metrics", ""); status != 401 {
		t.Errorf("without a token at the server itself: %d", status)
	}
	p.stop()
	if strings.Contains(p.stderr.String(), "is open to other computers, without a token") {
		t.Error("a warning of a loopback address")
	}
}

func TestMetricsAddressIsChecked(t *testing.T) {
	home := t.TempDir()
	for _, v := range []string{"9090", "unix:/tmp/x", "127.0.0.1:99999"} {
		if code, _, stderr := output(t, home, nil, "serve", "--listen", "127.0.0.1:0", "--data", home+"/data", "--metrics", v); code != 2 || !strings.Contains(stderr, "--metrics "+v) {
			t.Errorf("%s: %d %s", v, code, stderr)
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if code, _, stderr := output(t, home, nil, "serve", "--listen", "127.0.0.1:0", "--data", home+"/data", "--metrics", l.Addr().String()); code != 1 || !strings.Contains(stderr, "--metrics") {
		t.Errorf("an address in use: %d %s", code, stderr)
	}
}
