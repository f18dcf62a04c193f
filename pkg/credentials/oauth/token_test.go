package oauth

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/secret"
	"weir/pkg/wire/stream"
	"weir/pkg/wire/upstream"
)

var t0 = time.UnixMilli(1_700_000_000_000)

func TestLifetimesAreSane(t *testing.T) { // docs/reference/reliability.md, T62
	for in, want := range map[string]time.Duration{
		``:                      59 * time.Minute,
		`,"expires_in":null`:    59 * time.Minute,
		`,"expires_in":3600`:    59 * time.Minute,
		`,"expires_in":"3600"`:  59 * time.Minute,
		`,"expires_in":7200.5`:  119*time.Minute + 500*time.Millisecond,
		`,"expires_in":-1`:      30 * time.Second,
		`,"expires_in":0`:       30 * time.Second,
		`,"expires_in":"-1e99"`: 30 * time.Second,
		`,"expires_in":1e18`:    90 * 24 * time.Hour,
		`,"expires_in":1e400`:   90 * 24 * time.Hour,
		`,"expires_in":"NaN"`:   59 * time.Minute,
		`,"expires_in":"+Inf"`:  90 * 24 * time.Hour,
		`,"expires_in":"soon"`:  59 * time.Minute,
		`,"expires_in":{}`:      59 * time.Minute,
		`,"expires_in":true`:    59 * time.Minute,
	} {
		tok, err := ReadToken(200, nil, []byte(`{"access_token":"access-1"`+in+`}`), t0)
		if got := tok.ExpiresAt.Sub(t0); err != nil || got != want {
			t.Errorf("%q: %v %v, want %v", in, got, err, want)
		}
	}
}

func TestAnswersOfTheTokenEndpoint(t *testing.T) {
	long := strings.Repeat("x", 8<<10)
	tests := []struct {
		name   string
		status int
		body   string
		kind   int // -1: a token
		code   string
	}{
		{"granted", 200, granted, -1, ""},
		{"created", 201, granted, -1, ""},
		{"null_error", 200, `{"access_token":"access-1","error":null}`, -1, ""},
		{"other_case_of_bearer", 200, `{"access_token":"access-1","token_type":"bearer"}`, -1, ""},
		{"refresh_token_over_8k", 200, `{"access_token":"access-1","refresh_token":"` + long + `x"}`, -1, ""},
		{"access_token_over_8k", 200, `{"access_token":"` + long + `"}`, int(Lost), ""},
		{"no_token", 200, `{}`, int(Lost), ""},
		{"short_token", 200, `{"access_token":"1234567"}`, int(Lost), ""},
		{"number_for_a_token", 200, `{"access_token":1}`, int(Lost), ""},
		{"line_break_in_token", 200, `{"access_token":"access\r\nx: 1"}`, int(Lost), ""},
		{"line_break_in_refresh_token", 200, `{"access_token":"access-1","refresh_token":"refresh\nb"}`, int(Lost), ""},
		{"bare_nan", 200, `{"access_token":"access-1","expires_in":NaN}`, int(Lost), ""},
		{"html_with_200", 200, `<html>`, int(Lost), ""},
		{"array", 200, `[]`, int(Lost), ""},
		{"empty", 200, ``, int(Lost), ""},
		{"mac_token", 200, `{"access_token":"access-1","token_type":"mac"}`, int(Refused), "unsupported_token_type"},
		{"error_with_200", 200, `{"error":"bad_refresh_token"}`, int(Reauth), "bad_refresh_token"},
		{"invalid_grant", 400, `{"error":"invalid_grant","error_description":"secret"}`, int(Reauth), "invalid_grant"},
		{"invalid_client", 401, `{"error":"invalid_client"}`, int(Refused), "invalid_client"},
		{"error_object", 400, `{"error":{"code":400}}`, int(Refused), ""},
		{"code_of_no_code", 400, `{"error":"Secret value"}`, int(Refused), ""},
		{"html_400", 400, `<html>invalid_grant`, int(Transient), ""},
		{"html_502", 502, `<html>`, int(Transient), ""},
		{"json_500_with_invalid_grant", 500, `{"error":"invalid_grant"}`, int(Transient), "invalid_grant"},
		{"busy", 400, `{"error":"temporarily_unavailable"}`, int(Transient), "temporarily_unavailable"},
		{"limited", 429, `{"error":"rate_limited"}`, int(Transient), "rate_limited"},
		{"slow_down_with_429", 429, `{"error":"slow_down"}`, int(SlowDown), "slow_down"},
		{"redirect", 302, `{}`, int(Transient), ""},
		{"microsofts_denial", 400, `{"error":"authorization_declined"}`, int(Denied), "authorization_declined"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tok, err := ReadToken(tt.status, nil, []byte(tt.body), t0)
			if tt.kind < 0 {
				if err != nil || tok.Access.IsZero() {
					t.Fatal(err)
				}
				return
			}
			var f *Failure
			if !errors.As(err, &f) || f.Kind != Kind(tt.kind) || f.Code != tt.code || f.Status != tt.status {
				t.Fatalf("got %v", err)
			}
			if strings.Contains(strings.ToLower(err.Error()), "secret") || !tok.Access.IsZero() {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestRetryAfterOfTheTokenEndpoint(t *testing.T) {
	for in, want := range map[string]time.Duration{"7": 7 * time.Second, "0": 0, "-1": 0, "999999999": 30 * time.Minute, "x": 0, "": 0} {
		_, err := ReadToken(503, httpmsg.Header{{Name: "retry-after", Value: in}}, nil, t0)
		if f := err.(*Failure); f.RetryAfter != want {
			t.Errorf("%q: %v, want %v", in, f.RetryAfter, want)
		}
	}
}

func TestRefreshKeepsTheOldRefreshToken(t *testing.T) { // docs/reference/reliability.md, F59
	for answer, want := range map[string]string{
		granted:                       "refresh-1",
		`{"access_token":"access-1"}`: "old+/=",
		`{"access_token":"access-1","refresh_token":""}`: "old+/=",
	} {
		w := newWorld(t, func(string, map[string]string) (int, string) { return 200, answer })
		tok, err := Refresh(ctx, w.idp, &w.Providers[3], secret.New("old+/="), t0)
		if err != nil || tok.Refresh.Reveal() != want {
			t.Errorf("%s: %q %v, want %q", answer, tok.Refresh.Reveal(), err, want)
		}
		c := w.idp.calls[0]
		if c["grant_type"] != "refresh_token" || c["refresh_token"] != "old+/=" || c["client_id"] != "c" || c["client_secret"] != "posted-secret" {
			t.Errorf("%v", c)
		}
	}
}

func TestCallsWithoutAnAnswer(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want Kind
	}{
		{upstream.ErrNetwork, Transient}, {upstream.ErrTimeout, Transient}, {upstream.ErrCanceled, Transient}, {stream.ErrTooLarge, Lost},
	} {
		w := newWorld(t, nil)
		w.idp.err = fmt.Errorf("call: %w", tt.err)
		_, err := Refresh(ctx, w.idp, &w.Providers[0], secret.New("r"), t0)
		var f *Failure
		if !errors.As(err, &f) || f.Kind != tt.want || !errors.Is(err, tt.err) {
			t.Errorf("%v: %v", tt.err, err)
		}
	}
	w := newWorld(t, func(string, map[string]string) (int, string) { return 200, strings.Repeat("x", 64<<10+1) })
	_, err := Refresh(ctx, w.idp, &w.Providers[0], secret.New("r"), t0)
	var f *Failure
	if !errors.As(err, &f) || f.Kind != Lost {
		t.Errorf("oversize: %v", err)
	}
}

func TestConfigurationIsStrict(t *testing.T) {
	row := func(s string) string { return `[{"id":"a","tokenUrl":"https://t.test/t","clientId":"c"` + s + `}]` }
	dev := `,"deviceUrl":"https://t.test/d"`
	tests := []struct{ name, in, want string }{
		{"blank", "  ", ""},
		{"good", row(dev), ""},
		{"object", `{}`, "array"},
		{"cut", `[{"id":`, "array"},
		{"text_after", row(dev) + "x", "array"},
		{"unknown_field", row(dev + `,"clientid2":"x"`), "clientid2"},
		{"only_refreshes", row(""), ""},
		{"base", row(`,"baseUrl":"https://api.test/v1","prefix":"acme","refreshEveryMs":1000`), ""},
		{"bad_base", row(`,"baseUrl":"https://u:p@api.test/v1"`), "baseUrl"},
		{"bad_prefix", row(`,"prefix":"a/b"`), "prefix"},
		{"too_often", row(`,"refreshEveryMs":1`), "refreshEveryMs"},
		{"http", row(`,"deviceUrl":"http://t.test/d"`), "deviceUrl"},
		{"userinfo", row(`,"deviceUrl":"https://u:p@t.test/d"`), "deviceUrl"},
		{"fragment", row(`,"authorizeUrl":"https://t.test/d#x"`), "authorizeUrl"},
		{"query_of_device", row(`,"deviceUrl":"https://t.test/d?x=1"`), "deviceUrl"},
		{"query_of_authorize", row(`,"authorizeUrl":"https://t.test/d?x=1"`), ""},
		{"own_state", row(`,"authorizeUrl":"https://t.test/d?state=1"`), "authorizeUrl"},
		{"plain_challenge", row(dev + `,"authorizeParams":[["code_challenge_method","plain"]]`), "authorizeParams"},
		{"backslash", row(`,"deviceUrl":"https://t.test\\@evil.test/"`), "deviceUrl"},
		{"upper_case_id", strings.Replace(row(dev), `"a"`, `"A"`, 1), "id"},
		{"slash_in_id", strings.Replace(row(dev), `"a"`, `"a/b"`, 1), "id"},
		{"short_secret", row(dev + `,"clientSecret":"short"`), "clientSecret"},
		{"basic_without_secret", row(dev + `,"basicAuth":true`), "basicAuth"},
		{"proxy", row(dev + `,"proxy":"proxy.test:3128","proxyAuth":"u:p"`), ""},
		{"proxy_url", row(dev + `,"proxy":"http://proxy.test:3128"`), "proxy"},
		{"proxy_port", row(dev + `,"proxy":"proxy.test:70000"`), "proxy"},
		{"proxy_auth_alone", row(dev + `,"proxyAuth":"u:p"`), "proxyAuth"},
		{"scope_with_blank", row(dev + `,"scopes":["a b"]`), "scopes"},
		{"no_client", strings.Replace(row(dev), `"c"`, `""`, 1), "clientId"},
		{"too_long", "[" + strings.Repeat(" ", 256<<10) + "]", "bytes"},
	}
	for _, tt := range tests {
		list, err := ParseProviders(tt.in, false)
		for i := range list {
			if list[i].Wrong != "" {
				err = errors.New(list[i].Wrong)
			}
		}
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
	list, err := ParseProviders(row(`,"deviceUrl":"http://127.0.0.1:99/d","clientSecret":"very-secret"`), true)
	if err != nil || len(list) != 1 || list[0].Wrong != "" || strings.Contains(fmt.Sprintf("%v %+v", list, list), "very-secret") {
		t.Errorf("%v %v", list, err)
	}
}

func FuzzReadToken(f *testing.F) {
	f.Add(200, granted)
	f.Add(400, `{"error":"invalid_grant"}`)
	f.Add(200, `{"access_token":"access-1","expires_in":1e400}`)
	f.Fuzz(func(t *testing.T, status int, body string) {
		tok, err := ReadToken(status, nil, []byte(body), t0)
		if (err == nil) == tok.Access.IsZero() {
			t.Fatalf("%v %v", tok, err)
		}
		if life := tok.ExpiresAt.Sub(t0); err == nil && (life < 30*time.Second || life > 90*24*time.Hour) {
			t.Fatalf("lifetime %v", life)
		}
	})
}

func FuzzParams(f *testing.F) {
	f.Add("a=1&b=%2F+x&a=2")
	f.Fuzz(func(t *testing.T, query string) {
		list, ok := params(query)
		if !ok {
			return
		}
		var again form
		for k, v := range list {
			again.add(k, v)
		}
		back, ok := params(string(again))
		for k, v := range list {
			if len(again) <= 16<<10 && (!ok || back[k] != v) {
				t.Fatalf("%q: %q became %q", query, v, back[k])
			}
		}
	})
}
