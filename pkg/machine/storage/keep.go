package storage

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"github.com/tidwall/gjson"
)

// ownedPrefixes are the prefixes of the rows with settings of an owner.
var ownedPrefixes = [...]string{ConnectionPrefix, KeyPrefix, ComboPrefix, CustomModelPrefix, AliasPrefix,
	DisabledPrefix, BudgetPrefix, DestinationPrefix, SettingsRow}

// isOwned reports whether the row with a key keeps the fields that this version does not
// know. In other rows a newer version computes what is missing again.
func isOwned(key string) bool {
	return slices.ContainsFunc(ownedPrefixes[:], func(p string) bool { return strings.HasPrefix(key, p) })
}

// encode returns the JSON of a row.
func encode(v any) []byte {
	if b, ok := generated(v); ok {
		return b
	}
	b, err := json.Marshal(v)
	if err != nil {
		panic("machine: a row that has no JSON form") // the types are ours
	}
	return b
}

// keepUnknown returns row, the JSON of v, with the fields of the stored row that the type
// of v does not have: a newer version has written them, and reads them again.
func keepUnknown(row, stored []byte, v any) []byte {
	typ := reflect.TypeOf(v)
	if typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	was := reflect.New(typ)
	if decode(stored, was.Interface()) != nil {
		return row
	}
	known := encode(was.Elem().Interface())
	if bytes.Equal(known, stored) {
		return row
	}
	return appendUnknown(nil, gjson.ParseBytes(row), gjson.ParseBytes(stored), gjson.ParseBytes(known))
}

// appendUnknown appends the object row with the members of stored that known lacks.
func appendUnknown(out []byte, row, stored, known gjson.Result) []byte {
	next, all := stored.Map(), known.Map()
	out = append(out, '{')
	row.ForEach(func(name, value gjson.Result) bool {
		out = append(append(out, name.Raw...), ':')
		if was, is := next[name.Str], all[name.Str]; value.IsObject() && was.IsObject() && is.IsObject() {
			out = appendUnknown(out, value, was, is)
		} else {
			out = append(out, value.Raw...)
		}
		out = append(out, ',')
		return true
	})
	own := row.Map()
	stored.ForEach(func(name, value gjson.Result) bool {
		_, is := all[name.Str]
		if _, has := own[name.Str]; !is && !has {
			out = append(append(append(out, name.Raw...), ':'), value.Raw...)
			out = append(out, ',')
		}
		return true
	})
	return append(bytes.TrimSuffix(out, []byte{','}), '}')
}
