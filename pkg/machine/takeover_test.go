package machine

import (
	"strings"
	"testing"
)

// A machine may have reported to the new program before the old one hands over.
func TestTakeOverAddsToWhatIsBuffered(t *testing.T) {
	o := &Object{}
	o.TakeOver([]byte(`{"m":{"requests":[{"id":"req_new"}],"size":5,"at":2}}`))
	o.TakeOver([]byte(`{"m":{"requests":[{"id":"req_old"}],"size":7,"at":1}}`))
	left := string(o.HandOver())
	for _, want := range []string{"req_old", "req_new", `"size":12`, `"at":2`} {
		if !strings.Contains(left, want) {
			t.Errorf("%s is not in %s", want, left)
		}
	}
}
