package storage_test

import (
	"slices"
	"strings"
	"testing"

	"weir/internal/testgw/objects"
	"weir/pkg/machine/storage"
	"weir/pkg/store"
)

const refusalsOfA = "refusal:a"

func refusal(field string, until int64) store.Refusal {
	return store.Refusal{ConnectionID: "a", Field: field, Until: until}
}

func TestRefusalIsStoredReplacedOrLifted(t *testing.T) {
	full := func(n int) (list []store.Refusal) {
		for i := range n {
			list = append(list, refusal(string(rune('a'+i)), noon+minute))
		}
		return list
	}
	long := strings.Repeat("f", 64)
	for _, tt := range []struct {
		name    string
		had     []store.Refusal
		add     store.Refusal
		want    []store.Refusal
		changes bool
	}{
		{"the first", nil, refusal("x", noon+1), []store.Refusal{refusal("x", noon+1)}, true},
		{"for longer than a day", nil, refusal("x", noon+2*day), []store.Refusal{refusal("x", noon+day)}, true},
		{"another", []store.Refusal{refusal("x", noon+1)}, refusal("y", noon+2), []store.Refusal{refusal("x", noon+1), refusal("y", noon+2)}, true},
		{"the same", []store.Refusal{refusal("x", noon+minute)}, refusal("x", noon+minute), []store.Refusal{refusal("x", noon+minute)}, false},
		{"a shorter one", []store.Refusal{refusal("x", noon+minute)}, refusal("x", noon+1), []store.Refusal{refusal("x", noon+minute)}, false},
		{"a longer one", []store.Refusal{refusal("x", noon+1)}, refusal("x", noon+minute), []store.Refusal{refusal("x", noon+minute)}, true},
		{"lifted", []store.Refusal{refusal("x", noon+minute), refusal("y", noon+1)}, refusal("x", 0), []store.Refusal{refusal("y", noon+1)}, true},
		{"the last lifted", []store.Refusal{refusal("x", noon+minute)}, refusal("x", 0), nil, true},
		{"ends now", []store.Refusal{refusal("x", noon+minute)}, refusal("x", noon), nil, true},
		{"unknown and lifted", nil, refusal("x", 0), nil, false},
		{"unknown and ends now", nil, refusal("x", noon), nil, false},
		{"beside one that has ended", []store.Refusal{refusal("x", noon)}, refusal("y", noon+1), []store.Refusal{refusal("y", noon+1)}, true},
		{"the last that fits", full(storage.MaxRefusals - 1), refusal("x0", noon+minute), append(full(storage.MaxRefusals-1), refusal("x0", noon+minute)), true},
		{"one too many", full(storage.MaxRefusals), refusal("x0", noon+minute), full(storage.MaxRefusals), true},
		{"no field", nil, refusal("", noon+1), nil, false},
		{"the longest name", nil, refusal(long, noon+1), []store.Refusal{refusal(long, noon+1)}, true},
		{"a longer name", nil, refusal(long+"f", noon+1), nil, false},
		{"an invisible character", nil, refusal("x\n", noon+1), nil, false},
	} {
		st := objects.NewStorage()
		if tt.had != nil {
			st.Rows[refusalsOfA] = storage.Encode(tt.had)
		}
		tx := at(st, noon)
		tx.AddRefusal(tt.add)
		var got []store.Refusal
		tx.Load(refusalsOfA, &got)
		if _, row := tx.Get(refusalsOfA); !slices.Equal(got, tt.want) || row != (tt.want != nil) || changed(tx) != tt.changes {
			t.Errorf("%s: got %+v, changed %v; want %+v, %v", tt.name, got, changed(tx), tt.want, tt.changes)
		}
	}
}

func TestEndedRefusalsAreNotListedAndPruned(t *testing.T) {
	for _, tt := range []struct {
		name   string
		until  []int64
		exists bool
		listed int
		stays  bool
	}{
		{"active", []int64{noon + 1}, true, 1, true},
		{"ends now", []int64{noon}, true, 0, false},
		{"one of two is active", []int64{noon - 1, noon + 1}, true, 1, true},
		{"of a connection that is gone", []int64{noon + 1}, false, 1, false},
	} {
		st := objects.NewStorage()
		var list []store.Refusal
		for _, until := range tt.until {
			list = append(list, refusal("x", until))
		}
		st.Rows[refusalsOfA] = storage.Encode(list)
		if tt.exists {
			st.Rows[storage.ConnectionPrefix+"a"] = []byte(`{"id":"a"}`)
		}
		tx := at(st, noon)
		if got := tx.Replica().Refusals; len(got) != tt.listed {
			t.Errorf("%s: %+v", tt.name, got)
		}
		tx.PruneRefusals()
		if _, ok := tx.Get(refusalsOfA); ok != tt.stays {
			t.Errorf("%s: stays %v", tt.name, ok)
		}
	}
}
