// Package jsonvalue reads values out of valid JSON with gjson, and writes small
// JSON documents. It treats null as an absent value.
package jsonvalue

import (
	"math"
	"strings"

	"github.com/tidwall/gjson"
)

// Each calls f for each element of an array or member of an object until f
// returns false. For any other value it does nothing, while gjson's ForEach
// calls f once for null.
func Each(v gjson.Result, f func(key, value gjson.Result) bool) {
	if v.Type == gjson.JSON {
		v.ForEach(f)
	}
}

// Text returns the first string that is not blank at the paths, or "".
func Text(v gjson.Result, paths ...string) string {
	for _, path := range paths {
		if s := v.Get(path); s.Type == gjson.String && strings.TrimSpace(s.Str) != "" {
			return s.Str
		}
	}
	return ""
}

// Number returns the finite number at a path as it is written, or "".
func Number(v gjson.Result, path string) string {
	if v = v.Get(path); v.Type != gjson.Number || math.IsInf(v.Num, 0) || math.IsNaN(v.Num) {
		return ""
	}
	return v.Raw
}

// FirstArray returns the first array at the paths. ok is false without one.
func FirstArray(v gjson.Result, paths ...string) (array gjson.Result, ok bool) {
	for _, path := range paths {
		if array = v.Get(path); array.IsArray() {
			return array, true
		}
	}
	return gjson.Result{}, false
}
