package machine

import (
	"fmt"
	"testing"
	"time"

	"weir/pkg/machine/storage"
)

// Refusals of a connection's server are remembered for a day at most, and are
// in the replica.
func TestReportedRefusalsAreInTheReplica(t *testing.T) {
	w := newWorld(t)
	w.Create()
	id := w.Connect(`{"provider":"openai-compatible-0123abcd","apiKey":"sk-0123456789abcdef","providerSpecificData":{"baseUrl":"https://up.example/v1","prefix":"up"}}`)
	now := w.Clock.Now().UnixMilli()
	say := func(field string, until int64) {
		w.Want(200, "report", fmt.Sprintf(`{"refusals":[{"connectionId":%q,"field":%q,"until":%d}]}`, id, field, until))
	}
	say("developer", now+7000)
	say("max_completion_tokens", now+90*24*3600_000)
	w.Want(200, "report", `{"refusals":[{"connectionId":"nobody","field":"developer","until":9999999999999}]}`)
	got := w.Replica().Refusals
	if len(got) != 2 || got[0].Field != "developer" || got[0].Until != now+7000 || got[1].Until != now+24*3600_000 || got[1].ConnectionID != id {
		t.Fatalf("%+v", got)
	}
	gen := w.Replica().Generation
	say("developer", now+7000)
	if w.Replica().Generation != gen {
		t.Error("a refusal moved the generation")
	}
	say("developer", 0)
	if got := w.Replica().Refusals; len(got) != 1 || got[0].Field != "max_completion_tokens" {
		t.Errorf("after it was lifted: %+v", got)
	}
	for i := range 100 {
		say(fmt.Sprintf("f%d", i), now+3600_000)
	}
	if got := w.Replica().Refusals; len(got) > storage.MaxRefusals {
		t.Errorf("%d are kept", len(got))
	}
	w.Clock.Add(25 * time.Hour)
	if got := w.Replica().Refusals; len(got) != 0 {
		t.Errorf("a day later: %+v", got)
	}
	say("developer", w.Clock.Now().UnixMilli()+7000)
	w.OK("PUT", "/api/providers/"+id, `{"providerSpecificData":{"baseUrl":"https://other.example/v1","prefix":"up"},"apiKey":"sk-0123456789abcdef"}`)
	if got := w.Replica().Refusals; len(got) != 0 {
		t.Errorf("at a new address: %+v", got)
	}
}
