package oauth

import (
	"strings"
	"testing"
)

// In any OAUTH_PROVIDERS a row without a mistake has addresses of https and an
// id, and no mistake quotes a secret.
func FuzzParseProviders(f *testing.F) {
	const hidden = "client-secret-0123456789"
	f.Add(`[{"id":"acme","name":"Acme","tokenUrl":"https://a.example/t","authorizeUrl":"https://a.example/a","clientId":"c","clientSecret":"` + hidden + `","baseUrl":"https://a.example/v1","prefix":"ac"}]`)
	f.Add(`[null,{"id":1},{"clientSecret":["` + hidden + `"]},{"tokenUrl":"http://` + hidden + `@x"}]`)
	f.Fuzz(func(t *testing.T, config string) {
		rows, err := ParseProviders(config, false)
		if err != nil && strings.Contains(err.Error(), hidden) {
			t.Error(err)
		}
		for _, r := range rows {
			switch p := r.Provider; {
			case strings.Contains(r.Wrong, hidden):
				t.Errorf("%q quotes the secret", r.Wrong)
			case r.Wrong == "" && (!isID(p.ID) || !strings.HasPrefix(strings.ToLower(p.TokenURL), "https://")):
				t.Errorf("%+v", p)
			}
		}
	})
}
