package cli

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
)

// A route that is added has words: none is shown as its method and path.
func TestEveryActionHasWords(t *testing.T) {
	raw, err := os.ReadFile("../../docs/reference/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	actions := []string{"sign-in", "refresh", "adopt", "GET /oauth/callback", "POST /setup/claim", "sign-in.refused",
		"sessions.end", "role.refused", "identity-provider.create", "identity-provider.update", "identity-provider.delete",
		"passkey.create", "passkey.update", "passkey.delete", "invitation.accept", "link.use"}
	gjson.GetBytes(raw, "paths").ForEach(func(path, methods gjson.Result) bool {
		for method := range methods.Map() {
			if method != "get" && strings.HasPrefix(path.String(), "/api") {
				actions = append(actions, strings.ToUpper(method)+" "+path.String())
			}
		}
		return true
	})
	if len(actions) < 30 {
		t.Fatal(actions)
	}
	words := regexp.MustCompile(`^[A-Z][a-z]+(-[a-z]+)?( [\w-]+)+$`)
	for _, action := range actions {
		if text := actionText(action); !words.MatchString(text) {
			t.Errorf("%s: %q", action, text)
		}
	}
	for action, want := range map[string]string{
		"DELETE /api/keys/{id}":               "Deleted API key",
		"PUT /api/some-things/{id}/new_parts": "Changed some things new parts",
		"POST /api/customThings":              "Created custom things",
	} {
		if got := actionText(action); got != want {
			t.Errorf("%s: %q, want %q", action, got, want)
		}
	}
}

func TestFieldsOfRecordsAreWords(t *testing.T) {
	for field, want := range map[string]string{
		"wrong_credential":           "wrong token or invitation",
		"no_access":                  "no role",
		"state_used":                 "finished already",
		"template":                   "limits",
		"idleSeconds":                "stream idle timeout",
		"from 203.0.113.0/24":        "from 203.0.113.0/24",
		"GET /api/keys":              "GET /api/keys",
		"modelPrices.openai/gpt-4.1": "model price of openai/gpt-4.1",
		"customModels":               "custom models",
	} {
		if got := fieldText(field); got != want {
			t.Errorf("%s: %q, want %q", field, got, want)
		}
	}
}
