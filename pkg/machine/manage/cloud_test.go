package manage_test

import (
	"fmt"
	"strings"
	"testing"
)

func TestKeyFileSetsProject(t *testing.T) {
	const file = `{"type":"service_account","project_id":%q,"client_email":"weir@acme.iam.gserviceaccount.com","private_key":"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"}`
	for _, tt := range []struct{ project, data, want string }{
		{"acme-prod", ``, "acme-prod"},
		{"acme-prod", `,"providerSpecificData":{"location":"eu"}`, "acme-prod"},
		{"acme-prod", `,"providerSpecificData":{"project":"mine"}`, "mine"},
		{"../x", ``, ""},
		{"", ``, ""},
	} {
		w := newWorld(t)
		w.Create()
		w.Connect(`{"provider":"vertex","serviceAccount":` + fmt.Sprintf(file, tt.project) + tt.data + `}`)
		c := w.Replica().Connections[0]
		if got := c.Data.Vars["project"]; got != tt.want {
			t.Errorf("%q and %s: project %q, want %q", tt.project, tt.data, got, tt.want)
		}
	}
}

// Invalid key files and host labels are refused when they are saved, before the
// first call.
func TestUnusableSettingsAreNotSaved(t *testing.T) {
	const pem = `-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n`
	key := func(s string) string { return `{"provider":"vertex","serviceAccount":` + s + `}` }
	aws := func(region string) string {
		return `{"provider":"bedrock","apiKey":"bedrock-key","providerSpecificData":{"region":"` + region + `"}}`
	}
	w := newWorld(t)
	w.Create()
	for body, param := range map[string]string{
		key(`[]`): "serviceAccount", key(`5`): "serviceAccount", key(`true`): "serviceAccount", key(`{}`): "serviceAccount", key(`"{}"`): "serviceAccount", key(`"null"`): "serviceAccount",
		key(`{"client_email":"a@b.example","private_key":"` + pem + `"}`):                                                                "serviceAccount",
		key(`{"type":"authorized_user","client_email":"a@b.example","private_key":"` + pem + `"}`):                                       "serviceAccount",
		key(`{"type":"service_account","client_email":"nobody","private_key":"` + pem + `"}`):                                            "serviceAccount",
		key(`{"type":"service_account","client_email":"a@b.example","private_key":["` + pem + `"]}`):                                     "serviceAccount",
		key(`{"type":"service_account","client_email":"a@b.example","private_key":"` + strings.ReplaceAll(pem, "PRI", "RSA PRI") + `"}`): "serviceAccount",
		`{"provider":"vertex","apiKey":"vertex-key","providerSpecificData":{"location":"x.evil.com/"}}`:                                  "providerSpecificData.location",
		`{"provider":"vertex","apiKey":"vertex-key","providerSpecificData":{"location":"x@evil"}}`:                                       "providerSpecificData.location",
		`{"provider":"azure","apiKey":"azure-key","providerSpecificData":{"resource":"evil.com/x"}}`:                                     "providerSpecificData.resource",
		`{"provider":"azure","apiKey":"azure-key","providerSpecificData":{"resource":"https://evil.openai.azure.com"}}`:                  "providerSpecificData.resource",
		`{"provider":"azure","apiKey":"azure-key","providerSpecificData":{"resource":"evil#"}}`:                                          "providerSpecificData.resource",
		`{"provider":"azure","apiKey":"azure-key","providerSpecificData":{"resource":"a.b"}}`:                                            "providerSpecificData.resource",
		aws("x.local:8443#"): "providerSpecificData.region", aws("eu-central-1.evil.com"): "providerSpecificData.region",
	} {
		if status, a := w.API("POST", "/api/providers", body); status != 400 || a.Get("body.error.param").Str != param && !strings.Contains(a.Raw, param) {
			t.Errorf("%s: %d %s", body, status, a.Raw)
		} else if strings.Contains(a.Raw, "BEGIN") || strings.Contains(a.Raw, "evil") {
			t.Errorf("%s: told in %s", body, a.Raw)
		}
	}
	for _, body := range []string{
		key(`{"type":"service_account","client_email":"a@b.example","private_key":"` + pem + `"}`), key(`null`), key(`""`), aws("EU-CENTRAL-1"),
		`{"provider":"vertex","apiKey":"vertex-key","providerSpecificData":{"location":"europe-west4"}}`,
		`{"provider":"openai-compatible-0acbe001","apiKey":"some-key","providerSpecificData":{"baseUrl":"https://api.example.com/v1","location":"my office"}}`,
	} {
		if status, a := w.API("POST", "/api/providers", body); status != 200 || a.Get("status").Int() != 201 {
			t.Errorf("%s: %d %s", body, status, a.Raw)
		}
	}
}
