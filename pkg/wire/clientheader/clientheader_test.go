package clientheader

import (
	"slices"
	"strings"
	"testing"
)

// These must not cross the gateway whoever asks for it: they authenticate the
// client, name it, or hold for one connection only.
const neverSent = "authorization x-api-key api-key x-goog-api-key cookie forwarded x-real-ip via connection keep-alive te trailer " +
	"transfer-encoding upgrade expect host content-length accept-encoding origin referer x-weir-hop x-csrf-token " +
	"proxy-authorization proxy-connection x-forwarded-for x-forwarded-host x-forwarded-proto cf-connecting-ip cf-worker"

func TestCredentialsAndHopFieldsAreNeverSent(t *testing.T) {
	for name := range strings.FieldsSeq(neverSent) {
		if Sent(name, ^Upstreams(0)) {
			t.Errorf("%s is forwarded", name)
		}
	}
}

func TestTableIsSound(t *testing.T) {
	var names []string
	for _, f := range fields {
		if f.Name != strings.ToLower(f.Name) || f.Name == "" || slices.Contains(names, f.Name) {
			t.Errorf("%q is not in lower case, empty or listed twice", f.Name)
		}
		names = append(names, f.Name)
		if f.Read == 0 {
			t.Errorf("%s is read on no route", f.Name)
		}
		if f.prefix() && f.Read&(Messages|Responses) != f.Read {
			t.Errorf("%s: a prefix makes the platform read all fields of a request, which is for the routes of Messages and Responses only", f.Name)
		}
		for _, route := range []struct {
			to   Upstreams
			from Routes
		}{{ToMessages, Messages}, {ToResponses, Responses}, {toMedia, Data}} {
			if f.Sent&route.to != 0 && f.Read&route.from == 0 {
				t.Errorf("%s is to be forwarded from routes that do not receive it", f.Name)
			}
		}
	}
}

func TestPrefixesStandForWholeNames(t *testing.T) {
	for name, want := range map[string]bool{
		"anthropic-beta": true, "anthropic-": true, "anthropic": false, "x-anthropic-beta": false,
		"x-app": true, "x-app-2": false, "x-claude-code-session": true, "x-codex-turn": false,
	} {
		if got := Sent(name, ToMessages); got != want {
			t.Errorf("%s to Messages: got %v, want %v", name, got, want)
		}
	}
}
