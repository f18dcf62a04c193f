package llm

import (
	"strconv"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"weir/pkg/wire/jsonscan"
)

// doc writes JSON and puts the commas itself: a value follows a comma unless
// an opening bracket, a colon or a space of the frame stands before it. An
// empty key is an element of an array.
type doc struct {
	b    []byte
	pace *pacer // nil never pauses
	done int    // bytes that the pacer has counted
}

func (d *doc) key(name string) {
	if n := len(d.b); n > 0 {
		switch d.b[n-1] {
		case '{', '[', ':', ' ', '\n':
		default:
			d.b = append(d.b, ',')
		}
	}
	if name != "" {
		d.b = append(append(append(d.b, '"'), name...), '"', ':')
	}
}

func (d *doc) open(key string, bracket byte) { d.key(key); d.b = append(d.b, bracket) }

func (d *doc) close(bracket byte) {
	d.b = append(d.b, bracket)
	if d.pace != nil {
		d.pace.did(pieceWork + max(0, len(d.b)-d.done))
		d.done = len(d.b)
	}
}

func (d *doc) str(key, value string) {
	d.key(key)
	if d.pace == nil || len(value) <= maxWork {
		d.b = jsonscan.Quote(d.b, value)
		return
	}
	d.b = append(d.b, '"')
	for len(value) > maxWork {
		n := maxWork
		for n > maxWork-utf8.UTFMax && !utf8.RuneStart(value[n]) {
			n--
		}
		d.b = jsonscan.Escape(d.b, value[:n])
		d.pace.did(n)
		d.done = len(d.b)
		value = value[n:]
	}
	d.b = append(jsonscan.Escape(d.b, value), '"')
}

// opt writes a string that is not empty.
func (d *doc) opt(key, value string) {
	if value != "" {
		d.str(key, value)
	}
}

// raw writes JSON as it is.
func (d *doc) raw(key, value string) { d.key(key); d.b = append(d.b, value...) }

// optRaw writes JSON that is not empty.
func (d *doc) optRaw(key, value string) {
	if value != "" {
		d.raw(key, value)
	}
}

// esc writes a string that is already escaped.
func (d *doc) esc(key, value string) {
	d.key(key)
	d.b = append(append(append(d.b, '"'), value...), '"')
}

func (d *doc) int(key string, n int64) { d.key(key); d.b = strconv.AppendInt(d.b, n, 10) }

func (d *doc) bool(key string, v bool) { d.key(key); d.b = strconv.AppendBool(d.b, v) }

func (d *doc) null(key string) { d.raw(key, "null") }

func quoted(s string) string {
	d := doc{}
	d.str("", s)
	return string(d.b)
}

func quoteList(list []string) string {
	d := doc{}
	d.open("", '[')
	for _, s := range list {
		d.str("", s)
	}
	d.close(']')
	return string(d.b)
}

// members rebuilds an object: change gives what stands for a member's value,
// and false to leave the member out.
func members(v gjson.Result, change func(name string, v gjson.Result) (raw string, keep bool)) string {
	d := doc{b: make([]byte, 0, len(v.Raw))}
	d.open("", '{')
	forEach(v, func(k, x gjson.Result) bool {
		if raw, keep := change(k.Str, x); keep {
			d.raw("", k.Raw)
			d.b = append(append(d.b, ':'), raw...)
		}
		return true
	})
	d.close('}')
	return string(d.b)
}

// oneLine takes line ends out of JSON; within strings they are escaped.
func oneLine(json string) string {
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
