package redact

import "testing"

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
	} {
		if got := Patterns(tt[0]); got != tt[1] {
			t.Errorf("%q:\n got %q\nwant %q", tt[0], got, tt[1])
		}
	}
}

func TestPatternsLeaveErrorTextsReadable(t *testing.T) {
	for _, s := range []string{
		"", "The model `gpt-5` does not exist", `{"error":{"message":"Rate limit reached","code":"rate_limit_exceeded"}}`,
		"API key not valid. Please pass a valid API key.", "Missing bearer authentication in header",
		"see https://platform.openai.com/account/api-keys.", "http://example.com:8080/a@b", "task-0123456789abcdef012",
		"risk-based-assessment-of-x", "error code: 40400001", "password must be longer", "-----BEGIN CERTIFICATE-----",
		"This model's maximum context length is 8192 tokens", "sk-short",
	} {
		if got := Patterns(s); got != s {
			t.Errorf("got %q, want %q", got, s)
		}
	}
}
