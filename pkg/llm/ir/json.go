package ir

import (
	"strconv"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"weir/pkg/wire/jsonscan"
)

// Writer writes JSON and puts the commas itself: a value follows a comma unless
// an opening bracket, a colon or a space of the frame stands before it. An
// empty key is an element of an array.
type Writer struct {
	B    []byte
	Pace *Pacer // nil never pauses
	done int    // bytes that the pacer has counted
}

func (d *Writer) Key(name string) {
	if n := len(d.B); n > 0 {
		switch d.B[n-1] {
		case '{', '[', ':', ' ', '\n':
		default:
			d.B = append(d.B, ',')
		}
	}
	if name != "" {
		d.B = append(append(append(d.B, '"'), name...), '"', ':')
	}
}

func (d *Writer) Open(key string, bracket byte) { d.Key(key); d.B = append(d.B, bracket) }

func (d *Writer) Close(bracket byte) {
	d.B = append(d.B, bracket)
	if d.Pace != nil {
		d.Pace.Work(PieceWork + max(0, len(d.B)-d.done))
		d.done = len(d.B)
	}
}

func (d *Writer) Str(key, value string) {
	d.Key(key)
	if d.Pace == nil || len(value) <= maxWork {
		d.B = jsonscan.Quote(d.B, value)
		return
	}
	d.B = append(d.B, '"')
	for len(value) > maxWork {
		n := maxWork
		for n > maxWork-utf8.UTFMax && !utf8.RuneStart(value[n]) {
			n--
		}
		d.B = jsonscan.Escape(d.B, value[:n])
		d.Pace.Work(n)
		d.done = len(d.B)
		value = value[n:]
	}
	d.B = append(jsonscan.Escape(d.B, value), '"')
}

// OptStr writes a string that is not empty.
func (d *Writer) OptStr(key, value string) {
	if value != "" {
		d.Str(key, value)
	}
}

// Raw writes JSON as it is.
func (d *Writer) Raw(key, value string) { d.Key(key); d.B = append(d.B, value...) }

// OptRaw writes JSON that is not empty.
func (d *Writer) OptRaw(key, value string) {
	if value != "" {
		d.Raw(key, value)
	}
}

// Escaped writes a string that is already escaped.
func (d *Writer) Escaped(key, value string) {
	d.Key(key)
	d.B = append(append(append(d.B, '"'), value...), '"')
}

func (d *Writer) Int(key string, n int64) { d.Key(key); d.B = strconv.AppendInt(d.B, n, 10) }

func (d *Writer) Bool(key string, v bool) { d.Key(key); d.B = strconv.AppendBool(d.B, v) }

func (d *Writer) Null(key string) { d.Raw(key, "null") }

func Quote(s string) string {
	d := Writer{}
	d.Str("", s)
	return string(d.B)
}

func QuoteList(list []string) string {
	d := Writer{}
	d.Open("", '[')
	for _, s := range list {
		d.Str("", s)
	}
	d.Close(']')
	return string(d.B)
}

// MapMembers rebuilds an object: change gives what stands for a member's value,
// and false to leave the member out.
func MapMembers(v gjson.Result, change func(name string, v gjson.Result) (raw string, keep bool)) string {
	d := Writer{B: make([]byte, 0, len(v.Raw))}
	d.Open("", '{')
	Each(v, func(k, x gjson.Result) bool {
		if raw, keep := change(k.Str, x); keep {
			d.Raw("", k.Raw)
			d.B = append(append(d.B, ':'), raw...)
		}
		return true
	})
	d.Close('}')
	return string(d.B)
}

// OneLine takes line ends out of JSON; within strings they are escaped.
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
