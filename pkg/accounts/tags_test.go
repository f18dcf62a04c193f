package accounts

import (
	"slices"
	"strings"
	"testing"

	"weir/pkg/snapshot"
	"weir/pkg/store"
	"weir/pkg/wire/httpmsg"
)

func TestTagsOfARequest(t *testing.T) {
	long := strings.Repeat("l", store.MaxTag)
	for _, tt := range []struct {
		name   string
		key    []string
		header string
		want   []string
	}{
		{"none", nil, "", nil},
		{"of the client", nil, " project=a, nightly ,,project=a", []string{"project=a", "nightly"}},
		{"the first value of a name counts", nil, "project=a,project=b,project", []string{"project=a"}},
		{"too long", nil, "a=1," + long + "x," + long, []string{"a=1", long}},
		{"too many", nil, "1,2,3,4,5,6,7,8,9", []string{"1", "2", "3", "4", "5", "6", "7", "8"}},
		{"of the key", []string{"project=atlas"}, "", []string{"project=atlas"}},
		{"the client cannot override them", []string{"project=atlas"}, "project=other, project =x,project,team=b",
			[]string{"project=atlas", "team=b"}},
		{"nor push them out", []string{"z=1"}, "1,2,3,4,5,6,7,8,9", []string{"z=1", "1", "2", "3", "4", "5", "6", "7"}},
	} {
		m := snapshot.New(&store.Machine{ID: "m", Keys: []store.Key{{ID: "k1", Tags: tt.key}, {ID: "k2", Tags: []string{"x=1"}}}})
		r := &httpmsg.Request{Header: httpmsg.Header{{Name: "x-weir-tags", Value: tt.header}}}
		for range 2 { // the second time they are known
			trace := Trace{KeyID: "k1"}
			if got := trace.Tags(m, r); !slices.Equal(got, tt.want) {
				t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
			}
		}
		if got := m.KeyTags("k1"); !slices.Equal(got, tt.key) {
			t.Errorf("%s: the key has %q", tt.name, got)
		}
	}
}
