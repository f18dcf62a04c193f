// Package words has what rows of providers are written in where they say how an
// answer is read: lists of words, and of paths. Besides, it writes the small
// parts of JSON answers.
package words

import (
	"math"
	"strings"

	"github.com/tidwall/gjson"

	"weir/pkg/fields"
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

// Number gives a number as it is written, "" for what is none.
func Number(v gjson.Result) string {
	if v.Type != gjson.Number || math.IsInf(v.Num, 0) || math.IsNaN(v.Num) {
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
		b = fields.Quote(b, s)
	}
	return string(append(b, ']'))
}

// Quote gives a text in JSON.
func Quote(s string) string { return string(fields.Quote(nil, s)) }

// Text appends a name, which comes with its punctuation, and a text, or null
// for "".
func Text(b []byte, name, value string) []byte {
	if value == "" {
		return JSON(b, name, "")
	}
	return fields.Quote(append(b, name...), value)
}

// JSON appends a name, which comes with its punctuation, and a value in JSON,
// or null for "".
func JSON(b []byte, name, value string) []byte {
	if value == "" {
		value = "null"
	}
	return append(append(b, name...), value...)
}
