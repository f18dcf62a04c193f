package llm

import (
	"strconv"
	"unicode/utf8"
	"unsafe"

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

// view lends bytes as a string, for as long as they do not change.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// inner gives a JSON string without its quotes, escapes kept.
func inner(v gjson.Result) string {
	if v.Type != gjson.String || len(v.Raw) < 2 {
		return ""
	}
	return v.Raw[1 : len(v.Raw)-1]
}

// escape gives text as it stands between the quotes of a JSON string.
func escape(text string) string {
	b := jsonscan.Quote(nil, text)
	return view(b[1 : len(b)-1])
}

// unescape undoes escape.
func unescape(text string) string {
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' {
			return gjson.Parse(`"` + text + `"`).Str
		}
	}
	return text
}

// rawOf returns the JSON of a value, "" if it is null or absent.
func rawOf(v gjson.Result) string {
	if v.Type == gjson.Null {
		return ""
	}
	return v.Raw
}

// str gives the value of a string, and "" for anything else.
func str(v gjson.Result) string {
	if v.Type == gjson.String {
		return v.Str
	}
	return ""
}

// object tells whether text is a JSON object. An empty text is {}.
func object(text string) (string, bool) {
	i := 0
	for i < len(text) && (text[i] == ' ' || text[i] == '\n' || text[i] == '\t' || text[i] == '\r') {
		i++
	}
	if i == len(text) {
		return "{}", true
	}
	if text[i] != '{' || check([]byte(text)) != nil {
		return "", false
	}
	return text, true
}

// count reads a whole number that is not negative; anything else is 0.
func count(v gjson.Result) int64 {
	if v.Type != gjson.Number {
		return 0
	}
	if n := v.Int(); n > 0 {
		return n
	}
	return 0
}

// forEach calls f for each member of an object or element of an array, until it
// returns false. For any other value, such as null, it does nothing.
func forEach(v gjson.Result, f func(k, v gjson.Result) bool) {
	if v.Type == gjson.JSON {
		v.ForEach(f)
	}
}
