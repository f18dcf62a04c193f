package accounts

import (
	"strings"
	"testing"
	"unicode/utf8"

	"weir/pkg/provider"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/jsonscan"
	"weir/pkg/wire/secret"
)

// The text of any error of a provider reaches the client bounded, as
// UTF-8 and without the credential, and a body that passes is JSON.
func FuzzErrors(f *testing.F) {
	const key = "upstream-credential-0123456789"
	f.Add(400, `{"error":{"message":"the key `+key+` is wrong","code":"`+key+`","type":"invalid_request_error","param":"model"}}`)
	f.Add(429, `[{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","message":"quota","details":[{"reason":"`+key+`"}]}}]`)
	f.Add(500, `"text with \u0000 and \ud800 `+key+`"`)
	f.Add(403, "<html>"+key)
	f.Add(404, `{"detail":[{"msg":"m"}]}`)
	f.Fuzz(func(t *testing.T, status int, body string) {
		if status < 400 || status > 599 || len(body) > 1<<16 {
			return
		}
		cred := provider.Credential{APIKey: secret.New(key)}
		for _, form := range []ErrorForm{ErrorsByShape, ErrorsSame, ErrorsForeign} {
			e := &apierr.Error{Status: status}
			if jsonscan.Valid([]byte(body)) {
				read(e, []byte(body), cred)
			}
			pass(e, []byte(body), cred, form)
			clean(e, cred)
			all := e.Message + "\n" + e.Code + "\n" + e.Type + "\n" + e.Param + "\n" + string(e.Body)
			if strings.Contains(all, key) || e.Message == "" || len(e.Message) > 4096 || !utf8.ValidString(e.Message) || e.Body != nil && !jsonscan.Valid(e.Body) {
				t.Errorf("%d %q becomes %q", status, body, all)
			}
		}
	})
}
