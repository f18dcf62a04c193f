package auth

import (
	"slices"
	"strings"
	"testing"

	"weir/pkg/snapshot"
	"weir/pkg/store"
	"weir/pkg/wire/capture"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/memory"
	"weir/pkg/wire/stream"
)

// A call has one session, which is that of its key.
func TestSessionIsOfTheKey(t *testing.T) {
	c := &Call{Request: &httpmsg.Request{}}
	if s := c.Session(); s.Request != c.Request || s.KeyID != "" || c.Session() != s {
		t.Errorf("without a key: %+v", s)
	}
	c.Key = &store.Key{ID: "k"}
	if s := c.Session(); s.KeyID != "" {
		t.Errorf("another one: %+v", s)
	}
	if s := c.Converse(nil, true); s.KeyID != "k" || !s.Stream {
		t.Errorf("with a key: %+v", s)
	}
}

// Fields of a body are tags if the machine's settings name them.
func TestBodyIsReadForTags(t *testing.T) {
	const body = `{"user":"ann"}`
	for _, tt := range []struct {
		machine *snapshot.Machine
		max     int64
		tags    int
		fails   bool
	}{
		{nil, 100, 0, false},
		{snapshot.New(&store.Machine{}), 100, 0, false},
		{snapshot.New(&store.Machine{Settings: store.Settings{TagsFrom: []string{"user"}}}), int64(len(body)), 1, false},
		{snapshot.New(&store.Machine{Settings: store.Settings{TagsFrom: []string{"user"}}}), int64(len(body)) - 1, 0, true},
	} {
		c := &Call{Request: &httpmsg.Request{Body: stream.FromBytes([]byte(body))}, Machine: tt.machine}
		got, err := c.ReadUpTo(tt.max)
		if (err != nil) != tt.fails || !tt.fails && string(got) != body {
			t.Errorf("%d bytes: %q, %v", tt.max, got, err)
		}
		if len(c.Trace.FieldTags) != tt.tags || tt.tags > 0 && !slices.ContainsFunc(c.Trace.FieldTags, func(tag string) bool {
			return strings.Contains(tag, "ann")
		}) {
			t.Errorf("%d bytes: tags %q", tt.max, c.Trace.FieldTags)
		}
	}
}

// A body is captured once it is read whole.
func TestBodyIsCapturedIfItIsRead(t *testing.T) {
	const body = `{"input":"hello"}`
	plain := func(s string) string { return s }
	for _, fails := range []bool{false, true} {
		collected, max := &capture.Collector{Memory: &memory.Budget{}}, int64(len(body))
		if fails {
			max--
		}
		c := &Call{Request: &httpmsg.Request{Header: httpmsg.Header{{Name: "content-type", Value: "application/json"}},
			Body: stream.FromBytes([]byte(body))}, Capture: collected.Begin("m")}
		if _, err := c.ReadUpTo(max); (err != nil) != fails {
			t.Fatalf("%d bytes: %v", max, err)
		}
		got := string(c.Capture.Document(plain))
		if strings.Contains(got, "hello") == fails || strings.Contains(got, "application/json") == fails {
			t.Errorf("fails %v: captured %s", fails, got)
		}
	}
}
