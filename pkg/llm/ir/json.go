package ir

import (
	"strconv"
	"unicode/utf8"
	"unsafe"

	"github.com/tidwall/gjson"

	"weir/pkg/wire/jsonscan"
)

// Writer writes JSON and adds the commas: a value follows a comma unless an
// opening bracket, a colon or a space of the frame precedes it. An empty key is
// an element of an array.
type Writer struct {
	Buf   []byte
	Pacer *Pacer // nil never pauses
	// Spans says to refer to long texts that need no escapes instead of copying
	// them: the result is then that of Parts.
	Spans bool
	spans []span
	done  int // bytes that the pacer has counted
}

// span is a text that belongs between two bytes of a Writer's buffer.
type span struct {
	at   int
	text string
}

// MinSpan is the length of a text from which on it is not copied.
const MinSpan = 16 << 10

// Parts returns the JSON in parts: those of Buf, and texts of the request that
// was read. They must not be changed.
func (d *Writer) Parts() [][]byte {
	parts := make([][]byte, 0, 2*len(d.spans)+1)
	from := 0
	for _, s := range d.spans {
		parts = append(parts, d.Buf[from:s.at], unsafe.Slice(unsafe.StringData(s.text), len(s.text)))
		from = s.at
	}
	return append(parts, d.Buf[from:])
}

// span adds a text between quotes without copying it, if it may.
func (d *Writer) span(text string) bool {
	if !d.Spans || len(text) < MinSpan || !jsonscan.Plain(text) {
		return false
	}
	d.Buf = append(d.Buf, '"')
	d.spans = append(d.spans, span{len(d.Buf), text})
	d.Buf = append(d.Buf, '"')
	return true
}

// Key writes the name of a member, preceded by a comma if one is needed.
func (d *Writer) Key(name string) {
	if n := len(d.Buf); n > 0 {
		switch d.Buf[n-1] {
		case '{', '[', ':', ' ', '\n':
		default:
			d.Buf = append(d.Buf, ',')
		}
	}
	if name != "" {
		d.Buf = append(append(append(d.Buf, '"'), name...), '"', ':')
	}
}

// Open opens an object or array.
func (d *Writer) Open(key string, bracket byte) { d.Key(key); d.Buf = append(d.Buf, bracket) }

// Close closes an object or array.
func (d *Writer) Close(bracket byte) {
	d.Buf = append(d.Buf, bracket)
	if d.Pacer != nil {
		d.Pacer.Work(PieceWork + max(0, len(d.Buf)-d.done))
		d.done = len(d.Buf)
	}
}

// Str writes a string.
func (d *Writer) Str(key, value string) {
	d.Key(key)
	if d.span(value) {
		d.Pacer.Work(len(value) / 4)
		return
	}
	if d.Pacer == nil || len(value) <= maxWork {
		d.Buf = jsonscan.Quote(d.Buf, value)
		return
	}
	d.Buf = append(d.Buf, '"')
	for len(value) > maxWork {
		n := maxWork
		for n > maxWork-utf8.UTFMax && !utf8.RuneStart(value[n]) {
			n--
		}
		d.Buf = jsonscan.Escape(d.Buf, value[:n])
		d.Pacer.Work(n)
		d.done = len(d.Buf)
		value = value[n:]
	}
	d.Buf = append(jsonscan.Escape(d.Buf, value), '"')
}

// OptStr writes a string if it is not empty.
func (d *Writer) OptStr(key, value string) {
	if value != "" {
		d.Str(key, value)
	}
}

// StrOrNull writes a string, null if it is empty.
func (d *Writer) StrOrNull(key, value string) {
	if value == "" {
		d.Null(key)
	} else {
		d.Str(key, value)
	}
}

// Raw writes JSON unchanged.
func (d *Writer) Raw(key, value string) { d.Key(key); d.Buf = append(d.Buf, value...) }

// OptRaw writes JSON if it is not empty.
func (d *Writer) OptRaw(key, value string) {
	if value != "" {
		d.Raw(key, value)
	}
}

// Escaped writes a string that is already escaped.
func (d *Writer) Escaped(key, value string) {
	d.Key(key)
	if d.span(value) {
		return
	}
	d.Buf = append(append(append(d.Buf, '"'), value...), '"')
}

// Int writes a whole number.
func (d *Writer) Int(key string, n int64) { d.Key(key); d.Buf = strconv.AppendInt(d.Buf, n, 10) }

// Bool writes true or false.
func (d *Writer) Bool(key string, v bool) { d.Key(key); d.Buf = strconv.AppendBool(d.Buf, v) }

// Null writes null.
func (d *Writer) Null(key string) { d.Raw(key, "null") }

// Quote returns a text as a JSON string.
func Quote(s string) string {
	d := Writer{}
	d.Str("", s)
	return string(d.Buf)
}

// QuoteList returns texts as a JSON array of strings.
func QuoteList(list []string) string {
	d := Writer{}
	d.Open("", '[')
	for _, s := range list {
		d.Str("", s)
	}
	d.Close(']')
	return string(d.Buf)
}

// MapMembers rewrites an object: change returns the new value of a member, or
// false to omit the member.
func MapMembers(v gjson.Result, change func(name string, v gjson.Result) (raw string, keep bool)) string {
	return string(mapMembers(v, change))
}

// SetMember returns an object with another value of a member that it has.
func SetMember(v gjson.Result, name, raw string) string {
	return MapMembers(v, func(n string, x gjson.Result) (string, bool) {
		if n == name {
			return raw, true
		}
		return x.Raw, true
	})
}

func mapMembers(v gjson.Result, change func(name string, v gjson.Result) (raw string, keep bool)) []byte {
	d := Writer{Buf: make([]byte, 0, len(v.Raw))}
	d.Open("", '{')
	Each(v, func(k, x gjson.Result) bool {
		if raw, keep := change(k.Str, x); keep {
			d.Raw("", k.Raw)
			d.Buf = append(append(d.Buf, ':'), raw...)
		}
		return true
	})
	d.Close('}')
	return d.Buf
}

// OneLine replaces line ends in JSON with spaces; within strings they are
// escaped.
func OneLine(json string) string {
	for i := 0; i < len(json); i++ {
		if json[i] == '\n' || json[i] == '\r' {
			b := []byte(json)
			for j := i; j < len(b); j++ {
				if b[j] == '\n' || b[j] == '\r' {
					b[j] = ' '
				}
			}
			return string(b)
		}
	}
	return json
}
