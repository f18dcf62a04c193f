package usage

import (
	"testing"

	"weir/pkg/wire/apierr"
)

func TestCausesOfFailedAttempts(t *testing.T) {
	for _, c := range []struct {
		status int
		code   string
		want   string
	}{
		{429, "", "limited"}, {429, "insufficient_quota", "out_of_credit"}, {402, "", "out_of_credit"},
		{401, "invalid_api_key", "key_refused"}, {403, "", "key_refused"}, {403, "account_lacks_model", "refused"}, {403, "upstream_blocked_here", "blocked"},
		{500, "", "server_error"}, {529, "upstream_overloaded", "server_error"}, {502, "bad_upstream_body", "server_error"},
		{504, "upstream_timeout", "timeout"}, {504, "timeout", "timeout"}, {408, "", "timeout"},
		{502, "upstream_unreachable", "unreachable"}, {502, "upstream_cut", "unreachable"}, {502, "upstream_reset", "unreachable"},
		{400, "", "refused"}, {404, "model_not_found", "refused"},
	} {
		var r Row
		r.Causes.Count(&apierr.Error{Status: c.status, Code: c.code})
		if got := r.View().FailedBy; len(got) != 1 || got[c.want] != 1 {
			t.Errorf("%d %s: got %v, want %s", c.status, c.code, got, c.want)
		}
	}
}
