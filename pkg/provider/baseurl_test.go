package provider

import (
	"bufio"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"weir/pkg/wire/weburl"
)

type spelling struct{ typed, canonical, public, private string }

func spellings(t testing.TB) []spelling {
	f, err := os.Open("testdata/hosts.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var out []spelling
	for sc := bufio.NewScanner(f); sc.Scan(); {
		line := sc.Text()
		if line == "" || line[0] == '#' {
			continue
		}
		var s spelling
		dec := json.NewDecoder(strings.NewReader(line))
		if err := dec.Decode(&s.typed); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		cols := strings.Split(line[dec.InputOffset()+1:], "|")
		if len(cols) != 3 {
			t.Fatalf("%s: want three columns after the spelling, got %d", line, len(cols))
		}
		s.canonical, s.public, s.private = cols[0], cols[1], cols[2]
		out = append(out, s)
	}
	return out
}

func TestCheckBaseURLOverEverySpellingOfAHost(t *testing.T) {
	rows := spellings(t)
	if len(rows) < 100 {
		t.Fatalf("%d rows, want at least 100", len(rows))
	}
	word := func(err error) string {
		if err != nil {
			if !errors.Is(err, ErrBaseURL) {
				t.Errorf("%v is not ErrBaseURL", err)
			}
			return "no"
		}
		return "ok"
	}
	for _, r := range rows {
		if r.canonical == "-" {
			// The string must be refused too if a caller does not parse it.
			if r.public != "no" || r.private != "no" {
				t.Errorf("%q: a spelling that does not parse cannot be accepted", r.typed)
			}
			if CheckBaseURL(r.typed, false) == nil {
				t.Errorf("%q passes without the parser", r.typed)
			}
			continue
		}
		if got := word(CheckBaseURL(r.canonical, false)); got != r.public {
			t.Errorf("%q as %s, public only: got %s, want %s", r.typed, r.canonical, got, r.public)
		}
		if got := word(CheckBaseURL(r.canonical, true)); got != r.private {
			t.Errorf("%q as %s, private allowed: got %s, want %s", r.typed, r.canonical, got, r.private)
		}
	}
}

func TestEverySpellingOfAHostIsReadAsByWorkerdOrRefused(t *testing.T) {
	accepted := 0
	for _, r := range spellings(t) {
		got, ok := weburl.Canonical(r.typed)
		if !ok {
			continue
		}
		if accepted++; got != r.canonical {
			t.Errorf("%q: got %s, want %s", r.typed, got, r.canonical)
		}
	}
	if accepted < 100 {
		t.Errorf("%d spellings are accepted", accepted)
	}
}

func TestCheckBaseURLRefusesTheGatewayItself(t *testing.T) {
	tests := []struct {
		url  string
		own  []string
		want bool
	}{
		{"https://gw.example.com/v1", []string{"gw.example.com"}, false},
		{"https://gw.example.com/v1", []string{"GW.example.com."}, false},
		{"https://api.example.com/v1", []string{"gw.example.com", ""}, true},
		{"http://localhost:8787/v1", []string{"localhost:8787"}, false},
		{"http://localhost:11434/v1", []string{"localhost:8787"}, true},
		{"https://sub.gw.example.com/v1", []string{"gw.example.com"}, true},
	}
	for _, tt := range tests {
		if got := CheckBaseURL(tt.url, true, tt.own...) == nil; got != tt.want {
			t.Errorf("%s with own hosts %v: got %v, want %v", tt.url, tt.own, got, tt.want)
		}
	}
}

func TestCheckBaseURLNeverRepeatsTheAddress(t *testing.T) {
	for _, r := range spellings(t) {
		if err := CheckBaseURL(r.canonical, false); err != nil && len(r.canonical) > 8 && strings.Contains(err.Error(), r.canonical) {
			t.Errorf("%q names the address", err)
		}
	}
}

func FuzzCheckBaseURL(f *testing.F) {
	for _, r := range spellings(f) {
		f.Add(r.canonical)
		f.Add(r.typed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		public, private := CheckBaseURL(s, false) == nil, CheckBaseURL(s, true) == nil
		if public && !private {
			t.Fatalf("%q is taken as public and refused as private", s)
		}
		if !public {
			return
		}
		rest, ok := strings.CutPrefix(s, "https://")
		if !ok {
			t.Fatalf("%q: accepted without https", s)
		}
		host, _, _ := strings.Cut(rest, "/")
		host = strings.TrimSuffix(host, ":443")
		for i := 0; i < len(host); i++ {
			if c := host[i]; !(c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '.' || c == '-') {
				t.Fatalf("%q: host has %q", s, c)
			}
		}
		last := host[strings.LastIndexByte(host, '.')+1:]
		if !strings.Contains(host, ".") || last == "" || strings.Trim(last, "0123456789") == "" || strings.HasPrefix(last, "0x") {
			t.Fatalf("%q: the host is an address or a single label", s)
		}
		if strings.ContainsAny(s, "?#@\\ \t\r\n") && strings.ContainsAny(host, "?#@\\ \t\r\n") {
			t.Fatalf("%q: has more than scheme, host and path", s)
		}
	})
}

func TestRefusalSaysWhatToDo(t *testing.T) {
	private := "ALLOW_PRIVATE_UPSTREAMS=true weir serve"
	for _, tt := range []struct {
		address string
		private bool
		want    string
	}{
		{"http://127.0.0.1:11434/v1", false, private},
		{"http://localhost:8000/v1", false, private},
		{"https://box.lan/v1", false, private},
		{"https://host.example.com:8443/v1", false, private},
		{"http://127.0.0.1:11434/v1", true, ""},
		{"http://api.example.com/v1", false, "must begin with https://"},
		{"https://169.254.169.254/", false, "is refused: "},
		{"https://u:p@api.example.com/", false, "is refused: user and password"},
		{"https://api.example.com/v1", false, ""},
	} {
		if got := Refusal(tt.address, tt.private); !strings.Contains(got, tt.want) || (got == "") != (tt.want == "") {
			t.Errorf("%s, private %v: %q, want %q", tt.address, tt.private, got, tt.want)
		}
	}
}
