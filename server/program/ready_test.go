package program

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"weir/internal/openapi"
)

// The answers of /health/ready are those of the API's description, with each status.
func TestReadinessIsAsDescribed(t *testing.T) {
	check, err := openapi.NewChecker()
	if err != nil {
		t.Fatal(err)
	}
	v := &server{stack: &stack{}, gate: &gate{}}
	h := v.readiness(http.NotFoundHandler())
	for _, status := range []int{200, 503} {
		for _, method := range []string{"GET", "HEAD"} {
			res := httptest.NewRecorder()
			h.ServeHTTP(res, httptest.NewRequest(method, "/health/ready", nil))
			body := res.Body.String()
			if method == "HEAD" { // net/http sends no body
				body = ""
			}
			if res.Code != status {
				t.Errorf("%s: status %d, want %d", method, res.Code, status)
			}
			if err := check.Answer(method, "/health/ready", res.Code, res.Header().Get("Content-Type"), body); err != nil {
				t.Error(err)
			}
		}
		v.gate.leave()
	}
	if !check.Answered["ready"] || !check.Answered["headReady"] {
		t.Error("the description has no GET or HEAD of /health/ready")
	}
}
