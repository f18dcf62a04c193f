package videos

import "testing"

// An operation's error that is null is none.
func TestNullErrorIsNoFailure(t *testing.T) {
	const video = `"response":{"generateVideoResponse":{"generatedSamples":[{"video":{"uri":"https://v.example.com/1"}}]}}}`
	for body, want := range map[string]string{
		`{"done":true,"error":null,` + video: "done", `{"done":true,` + video: "done",
		`{"done":true,"error":{"message":"no"}}`: "failed", `{"done":null,"error":null}`: "pending",
	} {
		if s, _ := readGemini("", 200, []byte(body)); s.Status != want {
			t.Errorf("%s: %s, want %s", body, s.Status, want)
		}
	}
}
