package oauth

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/jsonscan"
	"weir/pkg/wire/secret"
)

// Token has the used fields of a token endpoint's grant.
type Token struct {
	Access    secret.Secret
	Refresh   secret.Secret // zero when the endpoint sent none: an earlier one stays good
	ExpiresAt time.Time     // already 60 s ahead of the provider's word
}

// Kind is the meaning of a token endpoint's failure.
type Kind uint8

// The kinds.
const (
	// Transient: no usable response. The call may be repeated later.
	Transient Kind = iota
	// Lost: the endpoint granted a token, but its response is not usable. A rotating
	// refresh token is spent.
	Lost
	// Reauth: the grant is gone; only the user can renew it.
	Reauth
	// Refused: a repeated call fails too; the configuration is wrong.
	Refused
	// Pending, SlowDown, Expired and Denied are results of polling a device flow.
	Pending
	SlowDown
	Expired
	Denied
)

var kindNames = [...]string{"no usable answer", "the answer was lost", "the grant is no longer valid", "refused",
	"authorization is pending", "slow down", "the code has expired", "access was denied"}

func (k Kind) String() string { return kindNames[k] }

// Failure is a token endpoint's failure. It contains no text of the response.
type Failure struct {
	Kind       Kind
	Status     int           // of the answer; 0 when there was none
	Code       string        // RFC 6749 5.2, [a-z_]; "" when there was none
	RetryAfter time.Duration // as asked for, 1 s – 30 min; zero when it was not
	Err        error         // what the call failed with
}

// Unknown reports whether the endpoint may have granted the request: it is then unknown
// whether a rotating refresh token is still valid.
func (f *Failure) Unknown() bool { return f.Kind == Lost || f.Kind == Transient && f.Status == 0 }

func (f *Failure) Error() string {
	s := "token endpoint: " + f.Kind.String()
	if f.Status != 0 {
		s += ", status " + strconv.Itoa(f.Status)
	}
	if f.Code != "" {
		s += ", " + f.Code
	}
	if f.Err != nil {
		s += ": " + f.Err.Error()
	}
	return s
}

// Unwrap returns the error of the call.
func (f *Failure) Unwrap() error { return f.Err }

const (
	maxAnswer  = 64 << 10 // bytes of an answer
	minToken   = 8        // a shorter one cannot be kept out of texts
	maxAccess  = 8<<10 - len("Bearer ")
	maxRefresh = 32 << 10

	clockSkew     = 60 * time.Second // docs/reference/reliability.md, T62
	minLife       = 30 * time.Second
	maxLife       = 90 * 24 * time.Hour
	defaultLife   = time.Hour // when expires_in is missing or not a number
	maxRetryAfter = 30 * time.Minute
)

// ReadToken reads the response of a token endpoint, RFC 6749 5.1 and 5.2. The error is a
// *Failure. A 2xx with an error in its body, which some providers send, counts as that
// error.
func ReadToken(status int, header httpmsg.Header, body []byte, now time.Time) (Token, error) {
	ok := status >= 200 && status <= 299
	if !jsonscan.Valid(body) || !gjson.ParseBytes(body).IsObject() {
		kind := Transient // HTML of something in between
		if ok {
			kind = Lost
		}
		return Token{}, failure(kind, status, header, "")
	}
	access := gjson.GetBytes(body, "access_token")
	code := gjson.GetBytes(body, "error")
	switch {
	case !ok || code.Exists() && code.Type != gjson.Null && access.Str == "":
		return Token{}, refusal(status, header, code.Str)
	case access.Type != gjson.String || !isVisible(access.Str) || len(access.Str) < minToken ||
		len(access.Str) > maxAccess:
		return Token{}, failure(Lost, status, header, "")
	}
	if kind := gjson.GetBytes(body, "token_type").Str; kind != "" && !strings.EqualFold(kind, "bearer") {
		return Token{}, failure(Refused, status, header, "unsupported_token_type")
	}
	t := Token{Access: secret.New(access.Str), ExpiresAt: now.Add(Life(gjson.GetBytes(body, "expires_in")))}
	if r := gjson.GetBytes(body, "refresh_token"); r.Type == gjson.String && r.Str != "" {
		if !isVisible(r.Str) || len(r.Str) < minToken || len(r.Str) > maxRefresh {
			return Token{}, failure(Lost, status, header, "")
		}
		t.Refresh = secret.New(r.Str)
	}
	return t, nil
}

// Life returns the lifetime for an expires_in: 60 s less, at least 30 s and at most 90
// days; an hour less 60 s if it is missing or not a number. Numbers in strings are
// accepted. See docs/reference/reliability.md, T62.
func Life(expiresIn gjson.Result) time.Duration {
	seconds := math.NaN()
	switch expiresIn.Type {
	case gjson.Number:
		seconds = expiresIn.Num
	case gjson.String:
		if n, err := strconv.ParseFloat(strings.TrimSpace(expiresIn.Str), 64); err == nil {
			seconds = n
		}
	}
	switch {
	case math.IsNaN(seconds):
		return defaultLife - clockSkew
	case seconds < (minLife + clockSkew).Seconds():
		return minLife
	case seconds > (maxLife + clockSkew).Seconds():
		return maxLife
	}
	return time.Duration(seconds*float64(time.Second)) - clockSkew
}

// refusal classifies an error response. A status of 5xx, 408 or 429 is transient for
// every body.
func refusal(status int, header httpmsg.Header, code string) *Failure {
	if !isCode(code) {
		code = ""
	}
	kind := Refused
	switch {
	case status >= 500 || status == 408 || status == 429 && code != "slow_down" || status < 200 || status >= 300 &&
		status < 400:
		kind = Transient
	default:
		switch code {
		case "invalid_grant", "bad_refresh_token": // the second is GitHub's
			kind = Reauth
		case "authorization_pending":
			kind = Pending
		case "slow_down":
			kind = SlowDown
		case "expired_token":
			kind = Expired
		case "access_denied", "authorization_declined": // the second is Microsoft's
			kind = Denied
		case "temporarily_unavailable", "server_error":
			kind = Transient
		}
	}
	return failure(kind, status, header, code)
}

func failure(kind Kind, status int, header httpmsg.Header, code string) *Failure {
	f := &Failure{Kind: kind, Status: status, Code: code}
	if n, err := strconv.Atoi(header.Get("retry-after")); err == nil && n > 0 {
		f.RetryAfter = min(time.Duration(min(n, 86400))*time.Second, maxRetryAfter)
	}
	return f
}

func isCode(s string) bool {
	for i := 0; i < len(s); i++ {
		if c := s[i]; !(c >= 'a' && c <= 'z' || c == '_') {
			return false
		}
	}
	return len(s) <= 64
}
