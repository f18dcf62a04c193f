package endpoint

import (
	"github.com/tidwall/gjson"

	"weir/pkg/wire/apierr"
)

// MiniMaxError finds the error in an answer of MiniMax's own APIs, which comes
// with status 200 as base_resp{status_code, status_msg}; code 0 means success.
func MiniMaxError(raw []byte) error {
	base := gjson.GetBytes(raw, "base_resp")
	code := base.Get("status_code").Int()
	if code == 0 {
		return nil
	}
	status := 400
	switch code {
	case 1002, 1039, 1041, 2045:
		status = 429
	case 1004, 2049:
		status = 401
	case 1008:
		status = 402
	case 1000, 1001, 1013, 1024, 1033:
		status = 502
	}
	e := apierr.New(status, "", "The provider refused the call.")
	if msg := base.Get("status_msg").Str; msg != "" {
		e.Message = Excerpt(msg)
	}
	return e
}
