package vendorerror

import (
	"testing"

	"github.com/tidwall/gjson"
)

// Any error of a provider has a status of an error, and names without
// blanks alone.
func FuzzRead(f *testing.F) {
	f.Add(`{"error":{"message":"no","code":"model_not_found","type":"invalid_request_error","param":"model"}}`)
	f.Add(`[{"error":{"code":400,"status":"INVALID_ARGUMENT","details":[{"reason":"API_KEY_INVALID"}]}}]`)
	f.Add(`{"base_resp":{"status_code":1004,"status_msg":"login fail"},"detail":[{"msg":"m"}],"errors":["e"]}`)
	f.Add(`"text"`)
	f.Fuzz(func(t *testing.T, body string) {
		if !gjson.Valid(body) {
			return
		}
		root := gjson.Parse(body)
		e := Read(root)
		for _, s := range []string{e.Message, e.Code, e.Type, e.Status, e.Reason, e.Param} {
			if len(s) > len(body) {
				t.Errorf("%q of %q", s, body)
			}
		}
		if n := Status(root); n < 400 || n > 599 {
			t.Errorf("status %d", n)
		}
		if n := MiniMax(root); n != 0 && (n < 400 || n > 599) {
			t.Errorf("status %d of MiniMax", n)
		}
	})
}
