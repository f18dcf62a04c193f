package ir

import (
	"bytes"

	"github.com/tidwall/gjson"

	"weir/pkg/wire/apierr"
	"weir/pkg/wire/jsonscan"
)

// MaxPieces is the maximum number of pieces of a translated request or answer. A
// piece is an element of an array: a message, an item, a content part, a tool, a
// stop sequence. Each takes a few hundred bytes of the middle form however short
// it is; the limit keeps memory below 8 times the body plus 16 MiB. A conversation
// that fills a context of a million tokens has a tenth of it.
const MaxPieces = 24_000

// opaque are the members whose values pass as raw JSON and cost only their length.
// At the top level the names have other meanings.
var opaque = [...]string{"input", "input_schema", "parameters", "schema", "arguments", "args", "logprobs",
	"logprobsResult"}

// CountPieces reports whether body is one JSON value, strictly, and counts its pieces.
func CountPieces(body []byte) (pieces int, err error) {
	var c jsonscan.Cursor
	c.Reset(body)
	countPieces(&c, 1, &pieces)
	return pieces, c.End()
}

func countPieces(c *jsonscan.Cursor, depth int, pieces *int) {
	switch c.Kind() {
	case jsonscan.Array:
		for c.Array(); c.Elem(); {
			*pieces++
			countPieces(c, depth+1, pieces)
		}
	case jsonscan.Object:
		for c.Object(); c.Key(); {
			if k := c.Kind(); k != jsonscan.Array && k != jsonscan.Object || depth > 1 && isOpaque(c) {
				c.Skip()
			} else {
				countPieces(c, depth+1, pieces)
			}
		}
	default:
		c.Skip()
	}
}

func isOpaque(c *jsonscan.Cursor) bool { return keyIn(c, opaque[:]) }

// keyIn reports whether the last name is one of names.
func keyIn(c *jsonscan.Cursor, names []string) bool {
	for _, name := range names {
		if c.KeyIs(name) {
			return true
		}
	}
	return false
}

// PieceMemory is what a piece takes in the middle form, in bytes.
const PieceMemory = 1 << 10

// Copied returns how many bytes of a request its translation copies: with spans, all
// but the long texts without escapes.
func Copied(body []byte, spans bool) int {
	n := len(body)
	if !spans {
		return n
	}
	for at := 0; ; {
		quote := bytes.IndexByte(body[at:], '"')
		if quote < 0 {
			return n
		}
		at += quote + 1
		from, plain := at, true
		for at < len(body) && body[at] != '"' {
			if body[at] == '\\' {
				plain = false
				at++
			}
			at++
		}
		if plain && at-from >= MinSpan {
			n -= at - from
		}
		at++
		if at >= len(body) {
			return n
		}
	}
}

// TooManyPieces returns the refusal of a request that is not translated.
func TooManyPieces(pieces int) *apierr.Error {
	return apierr.New(413, "request_too_large",
		"The conversation has %d messages, content parts and tools. At most %d can be translated for this model's provider.",
		pieces, MaxPieces)
}

// Many is the length of a list from which Reserve counts the array's elements.
const Many = 16

// Reserve returns list with the capacity for all elements of array once it has many:
// a list that grows by append alone is copied about five times.
func Reserve[T any](list []T, array gjson.Result) []T {
	if len(list) != Many || cap(list) >= 2*Many {
		return list
	}
	n := 0
	var c jsonscan.Cursor
	c.Reset([]byte(array.Raw))
	for c.Array(); c.Elem(); c.Skip() {
		n++
	}
	return append(make([]T, 0, max(n, 2*Many)), list...)
}

// grow returns list with the capacity for another element. If it has none, the
// capacity doubles, or quadruples for a long list, up to most.
func grow[T any](list []T, most int) []T {
	n := len(list)
	if n < cap(list) {
		return list
	}
	capacity := 2 * n
	if n >= 1<<10 {
		capacity = 4 * n
	}
	return append(make([]T, 0, max(min(capacity, most), n+1)), list...)
}
