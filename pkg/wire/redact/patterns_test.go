package redact

import (
	"math/rand/v2"
	"strings"
	"testing"
)

func TestPatterns(t *testing.T) {
	for _, tt := range [][2]string{
		{"Authorization: Bearer abc123DEF456", "Authorization: Bearer ***"},
		{"bearer   abcdefgh12", "bearer   ***"},
		{`{"api_key": "0123456789abcdef"}`, `{"api_key": "***"}`},
		{"x-goog-api-key: 0123456789", "x-goog-api-key: ***"},
		{"x-api-key=0123456789&y=1", "x-api-key=***&y=1"},
		{`\"apiKey\":\"0123456789\"`, `\"apiKey\":\"***\"`},
		{"Incorrect API key provided: sk-proj-0123456789abcdefXYZ_-. Find it", "Incorrect API key provided: *** Find it"},
		{"client secret ek_68af296e8e408191a1120ab6383263c2", "client secret ***"},
		{"key sk-ant-api03-0123456789abcdef!", "key ***!"},
		{"(sk-or-v1-0123456789abcdef0123)", "(***)"},
		{"gsk_0123456789abcdef xai-0123456789abcdef hf_0123456789abcdef", "*** *** ***"},
		{"AIzaSyA0123456789abcdefghijklmnopqrstuv.", "***"},
		{"ya29.a0AfH6SMBx 1//0gabcdefghij", "*** ***"},
		{"ghp_0123456789abcdefghij github_pat_0123456789abcdef", "*** ***"},
		{"id AKIAIOSFODNN7EXAMPLE, ASIAIOSFODNN7EXAMPLE", "id ***, ***"},
		{"aws_secret_access_key = wJalrXUtnFEMI/K7MDENG", "aws_secret_access_key = ***"},
		{"t=eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc-_1;", "t=***;"},
		{`"access_token":"opaque0123","refresh_token":"opaque4567"`, `"access_token":"***","refresh_token":"***"`},
		{"client_secret=s3cr3tvalue", "client_secret=***"},
		{"?code=4/0AbcdefGh&state=1", "?code=***&state=1"},
		{"-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----\nrest", "***\nrest"},
		{"-----BEGIN PRIVATE KEY-----\nMIIE", "***"},
		{"dial http://user:pa55@proxy:8080/x", "dial http://***@proxy:8080/x"},
		{"gw1_0123456789", "***"},
		{"AKIAIOSFODNN7EXAMPLEeyJhbGciOiJIUzI1NiJ9", "******"},
	} {
		if got := Patterns(tt[0]); got != tt[1] {
			t.Errorf("%q:\n got %q\nwant %q", tt[0], got, tt[1])
		}
	}
}

// Random credentials of each shape: their prefix, and as many characters as vendors
// document.
func TestEveryShapeOfACredentialIsMasked(t *testing.T) {
	const hex, letters, upper = "0123456789abcdef", "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
	r := rand.New(rand.NewPCG(1, 2))
	text := func(alphabet string, n int) string {
		b := make([]byte, n)
		for i := range b {
			b[i] = alphabet[r.IntN(len(alphabet))]
		}
		return string(b)
	}
	shapes := map[string]func() string{
		"bedrock": func() string { return "ABSK" + text(letters, 128) }, "google": func() string { return "AIza" + text(letters, 35) },
		"aws": func() string { return "AKIA" + text(upper, 16) }, "jwt": func() string { return "eyJ" + text(letters, 30) + "." + text(letters, 60) },
		"slack": func() string { return "xoxb-" + text(hex, 12) + "-" + text(letters, 24) }, "slack app": func() string { return "xapp-1-A" + text(letters, 40) },
		"sendgrid": func() string { return "SG." + text(letters, 22) + "." + text(letters, 43) }, "twilio": func() string { return "SK" + text(hex, 32) },
		"databricks": func() string { return "dapi" + text(hex, 32) }, "key id of google": func() string { return `"private_key_id": "` + text(hex, 40) + `"` },
		"cloudflare": func() string { return "v1.0-" + text(hex, 24) + "-" + text(hex, 146) }, "firecrawl": func() string { return "fc-" + text(hex, 32) },
		"cookie": func() string { return "Cookie: sid=" + text(letters, 20) + "; theme=" + text(letters, 9) },
		"lease":  func() string { return "setup-" + text(hex, 16) + "-" + text(hex, 26) + "-" + text(hex, 8) }, "sign-in code": func() string { return "once-" + text(letters, 43) },
		"sign-in token": func() string { return "wp_" + text(letters, 43) }, "invitation": func() string { return "wi_" + text(letters, 43) },
		"session of a program": func() string { return "wt_registry." + text(letters, 43) + "." + text(hex, 32) },
	}
	for prefix, n := range map[string]int{
		"pplx-": 48, "fw_": 24, "tvly-dev-": 32, "jina_": 60, "r8_": 37, "nvapi-": 64, "csk-": 48, "gsk_": 52, "xai-": 80, "tgp_v1_": 43, "pa-": 43,
		"sk-": 48, "sk-ant-api03-": 95, "sk-proj-": 156, "sk_live_": 24, "sk_": 48, "rk_live_": 24, "hf_": 34, "npm_": 36, "glpat-": 20,
		"dop_v1_": 64, "pypi-AgEIcHlwaS5vcmc": 60, "lin_api_": 40, "ghp_": 36, "github_pat_": 82, "whsec_": 32, "dckr_pat_": 27, "ntn_": 46,
		"key_": 128, "BSA": 28, "al-": 43, "api_org_": 34, "GOCSPX-": 28, "ATATT3": 186, "glsa_": 41, "dckr_oat_": 32, "sbp_": 40, "NRAK-": 27,
		"pscale_tkn_": 43, "rubygems_": 48, "phx_": 43,
	} {
		shapes[prefix] = func() string { return prefix + text(letters, n) }
	}
	for name, shape := range shapes {
		for range 50 {
			secret := shape()
			said := "My key is " + secret + " and it fails"
			got := Patterns(said)
			for i := 0; i+12 <= len(secret); i++ {
				if part := secret[i : i+12]; strings.Contains(got, part) && !strings.Contains("\"private_key_id\": \"Cookie: sid=My key is", part) {
					t.Fatalf("%s: %q leaves %q", name, said, got)
				}
			}
		}
	}
}

func TestPatternsLeaveErrorTextsReadable(t *testing.T) {
	for _, s := range []string{
		"", "The model `gpt-5` does not exist", `{"error":{"message":"Rate limit reached","code":"rate_limit_exceeded"}}`,
		"API key not valid. Please pass a valid API key.", "Missing bearer authentication in header",
		"see https://platform.openai.com/account/api-keys.", "http://example.com:8080/a@b", "task-0123456789abcdef012",
		"risk-based-assessment-of-x", "error code: 40400001", "password must be longer", "-----BEGIN CERTIFICATE-----",
		"fc-barcelona", "the setup-guide-of-the-tool", "once-in-a-while", "SKIP this cookie: not set", "an npm_package", "pa-system",
		"key_unavailable", "key_refused by al-Khwarizmi", "BSA-compliant", "phx_airport", "This model's maximum context length is 8192 tokens", "sk-short",
	} {
		if got := Patterns(s); got != s {
			t.Errorf("got %q, want %q", got, s)
		}
	}
}
