// Package words has what rows of providers are written in where they say how an
// answer is read: lists of words, and of paths. Besides, it writes the small
// parts of JSON answers.
package words

import (
	"math"
	"strings"

	"github.com/tidwall/gjson"

	"weir/pkg/wire/jsonscan"
)

// Has tells whether a word is in a list of them; they are separated by spaces.
func Has(list, word string) bool {
	for list != "" {
		var w string
		if w, list, _ = strings.Cut(list, " "); w == word {
			return true
		}
	}
	return false
}

// Value gives the value of a name in a list of "name=value", or "".
func Value(list, name string) string {
	for list != "" {
		var pair string
		pair, list, _ = strings.Cut(list, " ")
		if n, v, _ := strings.Cut(pair, "="); n == name {
			return v
		}
	}
	return ""
}

// OneOf gives the first string that is not blank among fields of an object;
// the paths are separated by bars.
func OneOf(v gjson.Result, paths string) string {
	for paths != "" {
		var path string
		path, paths, _ = strings.Cut(paths, "|")
		if s := v.Get(path); s.Type == gjson.String && strings.TrimSpace(s.Str) != "" {
			return s.Str
		}
	}
	return ""
}

// Each calls f for each element of an array, or member of an object, until it
// returns false. For any other value it does nothing, while gjson's ForEach calls
// f once for null.
func Each(v gjson.Result, f func(k, v gjson.Result) bool) {
	if v.Type == gjson.JSON {
		v.ForEach(f)
	}
}

// Number gives the number at a path as it is written, "" for what is none.
func Number(v gjson.Result, path string) string {
	if v = v.Get(path); path == "" || v.Type != gjson.Number || math.IsInf(v.Num, 0) || math.IsNaN(v.Num) {
		return ""
	}
	return v.Raw
}

// List gives a list of texts in JSON, "" for an empty one.
func List(texts []string) string {
	if len(texts) == 0 {
		return ""
	}
	b := []byte{'['}
	for i, s := range texts {
		if i > 0 {
			b = append(b, ',')
		}
		b = jsonscan.Quote(b, s)
	}
	return string(append(b, ']'))
}

// Quote gives a text in JSON.
func Quote(s string) string { return string(jsonscan.Quote(nil, s)) }

// Fill appends a template in JSON with its places filled: each $ is a text, and
// each # a value in JSON, in the order of values; "" is null.
func Fill(b []byte, template string, values ...string) []byte {
	for {
		i := strings.IndexAny(template, "$#")
		if i < 0 || len(values) == 0 {
			return append(b, template...)
		}
		b = append(b, template[:i]...)
		switch v := values[0]; {
		case v == "":
			b = append(b, "null"...)
		case template[i] == '$':
			b = jsonscan.Quote(b, v)
		default:
			b = append(b, v...)
		}
		template, values = template[i+1:], values[1:]
	}
}
