package program

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weir/server/dial/dnstest"
)

// The URL policy sees the name alone: what it resolves to is judged when it is dialed. The client
// reads what it reads of an unknown name, so that it cannot find out which names are private.
func TestRefusedAddressIsInTheLogOnly(t *testing.T) {
	dns, resolver := dnstest.New(t)
	dns.Set("private.example", "127.0.0.1 10.0.0.7")
	dns.Set("loop.example", "127.0.0.1")
	for _, tt := range []struct{ name, url, allow, log string }{
		{"private", "https://private.example/v1", "", "ALLOW_PRIVATE_UPSTREAMS"},
		{"itself", "http://loop.example:PORT/v1", "true", "the gateway itself"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			home := t.TempDir()
			s := &inProcess{T: t, signals: make(chan os.Signal, 2), code: make(chan int, 1)}
			env := environment(home, "ALLOW_PRIVATE_UPSTREAMS", tt.allow, "ADMIN_TOKEN", long("a"))
			r := &run{Options: Options{Signals: s.signals, Resolver: resolver}, env: env, stdout: &s.stdout, stderr: &s.stderr, limits: standardLimits()}
			go func() {
				s.code <- r.main([]string{"serve", "--listen", "127.0.0.1:0", "--data", filepath.Join(home, "data")})
			}()
			s.until("prints another link")
			s.base = baseURL.FindStringSubmatch(s.stdout.String())[1]
			out, err := askInit(t.Context(), filepath.Join(home, "data"), "own")
			if err != nil {
				t.Fatal(err)
			}
			_, port, _ := strings.Cut(strings.TrimPrefix(s.base, "http://"), ":")
			url := strings.Replace(tt.url, "PORT", strings.TrimSuffix(port, "/"), 1)
			machine := strings.Split(out.APIKey, "-")[1]
			if status, body, _ := answer(t, http.DefaultClient, "POST", s.base+"/"+machine+"/api/providers",
				`{"provider":"openai-compatible-0123abcd","name":"up","apiKey":"upstream-key","providerSpecificData":{"baseUrl":"`+url+`","prefix":"up"}}`,
				"Authorization", "Bearer "+long("a"), "Content-Type", "application/json"); status/100 != 2 {
				t.Fatalf("connect: %d %s", status, body)
			}
			status, body, _ := answer(t, http.DefaultClient, "POST", s.base+"/v1/embeddings", `{"model":"up/m","input":"a"}`,
				"Authorization", "Bearer "+out.APIKey, "Content-Type", "application/json")
			body, _, _ = strings.Cut(body, `"doc_url"`) // which has the gateway's own address
			if status != 502 || strings.Contains(body, "127.0.0.1") || strings.Contains(body, "PRIVATE") || !strings.Contains(body, "its host name cannot be resolved") {
				t.Errorf("%d %s", status, body)
			}
			s.logged("address policy", tt.log)
			s.signals <- os.Interrupt
			if code := s.end(); code != 0 {
				t.Errorf("exit code %d", code)
			}
		})
	}
}

// logged waits for a line of the log that has all of the texts.
func (s *inProcess) logged(texts ...string) {
	s.Helper()
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(2 * time.Millisecond) {
		for line := range strings.Lines(s.stdout.String() + s.stderr.String()) {
			has := true
			for _, text := range texts {
				has = has && strings.Contains(line, text)
			}
			if has {
				return
			}
		}
		if time.Now().After(deadline) {
			s.Fatalf("no line has %q:\n%s%s", texts, &s.stdout, &s.stderr)
		}
	}
}
