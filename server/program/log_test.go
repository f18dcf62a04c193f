package program

import (
	"encoding/json"
	"log"
	"strings"
	"testing"
)

func TestLinesOfTheStandardLogAreJSONWithoutAnswers(t *testing.T) {
	var b strings.Builder
	log.New(&logger{w: &b}, "", 0).Printf("Unsolicited response received on idle HTTP channel starting with %q; err=%v", "HTTP/1.1 200 OK\r\n\r\nsecret", nil)
	var line struct{ Level, Msg string }
	if err := json.Unmarshal([]byte(b.String()), &line); err != nil {
		t.Fatalf("%v: %s", err, b.String())
	}
	if line.Level != "warn" || line.Msg != "Unsolicited response received on idle HTTP channel" {
		t.Errorf("got %s", b.String())
	}
}
