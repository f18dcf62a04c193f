package ir

import (
	"strings"

	"github.com/tidwall/gjson"
)

// Record is an object that is read only once if it is long, however many members
// are looked up.
type Record struct {
	gjson.Result
	names   []string
	members []gjson.Result
}

// longRecord is the size from which an object is read once, in bytes.
const longRecord = 64 << 10

// RecordOf returns v as a Record.
func RecordOf(v gjson.Result) Record {
	r := Record{Result: v}
	if len(v.Raw) < longRecord || !v.IsObject() {
		return r
	}
	v.ForEach(func(k, x gjson.Result) bool {
		r.names, r.members = append(r.names, k.Str), append(r.members, x)
		return len(r.names) < Many
	})
	if len(r.names) == Many {
		r.names = nil // too many for a linear search
	}
	return r
}

// Get returns the value at a path.
func (r Record) Get(path string) gjson.Result {
	if r.names == nil || strings.IndexByte(path, '.') >= 0 {
		return r.Result.Get(path)
	}
	for i, name := range r.names {
		if name == path {
			return r.members[i]
		}
	}
	return gjson.Result{}
}
