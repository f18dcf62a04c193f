package rpc

import "testing"

// For any answer of an object with a failure the client gets the status of an error, a
// message and no negative wait.
func FuzzReadFailure(f *testing.F) {
	f.Add(429, []byte(`{"error":{"message":"m","type":"t","code":"c","retryAfterMs":5}}`))
	f.Add(200, []byte(`{"error":{"message":"m","retryAfterMs":-9223372036854775808}}`))
	f.Add(503, []byte(`<html>`))
	f.Fuzz(func(t *testing.T, status int, answer []byte) {
		if e := ReadFailure(status, answer); e.Status < 400 || e.Status > 599 || e.Message == "" || e.RetryAfter < 0 {
			t.Errorf("%+v", e)
		}
	})
}
