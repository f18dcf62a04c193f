package otlp

import (
	"encoding/binary"
	"encoding/hex"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// proto writes protobuf. A message has a length of one byte until it ends, and is moved if
// it is longer.
type proto struct {
	b       []byte
	from    []int // where the open messages begin
	numbers []int // of the open lists
}

// The wire types.
const (
	varint  = 0
	wide    = 1 // 64 bits
	lengthy = 2
	narrow  = 5 // 32 bits
)

func (p *proto) body() []byte { return p.b }
func (p *proto) size() int    { return len(p.b) }
func (p *proto) cut(size int) { p.b = p.b[:size] }

func (p *proto) tag(number, wire int) { p.b = binary.AppendUvarint(p.b, uint64(number<<3|wire)) }

func (p *proto) text(number int, _, v string) {
	if v == "" {
		return
	}
	if !utf8.ValidString(v) { // readers refuse the whole body
		v = strings.ToValidUTF8(v, "\uFFFD")
	}
	p.tag(number, lengthy)
	p.b = binary.AppendUvarint(p.b, uint64(len(v)))
	p.b = append(p.b, v...)
}

func (p *proto) id(number int, _ string, v []byte) {
	p.tag(number, lengthy)
	p.b = binary.AppendUvarint(p.b, uint64(len(v)))
	p.b = append(p.b, v...)
}

func (p *proto) enum(number int, name string, v int64) {
	if v != 0 {
		p.whole(number, name, v)
	}
}

func (p *proto) flag(number int, name string, v bool) {
	if v {
		p.whole(number, name, 1)
	}
}

func (p *proto) whole(number int, _ string, v int64) {
	p.tag(number, varint)
	p.b = binary.AppendUvarint(p.b, uint64(v))
}

func (p *proto) fixed64(number int, _ string, v uint64) {
	p.tag(number, wide)
	p.b = binary.LittleEndian.AppendUint64(p.b, v)
}

func (p *proto) fixed32(number int, _ string, v uint32) {
	if v != 0 {
		p.tag(number, narrow)
		p.b = binary.LittleEndian.AppendUint32(p.b, v)
	}
}

func (p *proto) double(number int, name string, v float64) {
	p.fixed64(number, name, math.Float64bits(v))
}

func (p *proto) fixed64s(number int, _ string, v []uint64) {
	p.tag(number, lengthy)
	p.b = binary.AppendUvarint(p.b, uint64(8*len(v)))
	for _, n := range v {
		p.b = binary.LittleEndian.AppendUint64(p.b, n)
	}
}

func (p *proto) doubles(number int, _ string, v []float64) {
	p.tag(number, lengthy)
	p.b = binary.AppendUvarint(p.b, uint64(8*len(v)))
	for _, n := range v {
		p.b = binary.LittleEndian.AppendUint64(p.b, math.Float64bits(n))
	}
}

func (p *proto) open(number int, _ string) {
	p.tag(number, lengthy)
	p.b = append(p.b, 0)
	p.from = append(p.from, len(p.b))
}

func (p *proto) close() {
	last := len(p.from) - 1
	from := p.from[last]
	p.from = p.from[:last]
	n := len(p.b) - from
	if n < 0x80 {
		p.b[from-1] = byte(n)
		return
	}
	var length [binary.MaxVarintLen64]byte
	p.b = slices.Replace(p.b, from-1, from, length[:binary.PutUvarint(length[:], uint64(n))]...)
}

func (p *proto) list(number int, _ string, _ int) { p.numbers = append(p.numbers, number) }

func (p *proto) item() { p.open(p.numbers[len(p.numbers)-1], "") }

func (p *proto) closeList(int) { p.numbers = p.numbers[:len(p.numbers)-1] }

// text writes JSON: ids in hexadecimal, enums as numbers, 64-bit integers as texts.
type text struct{ b []byte }

func (t *text) body() []byte { return append(t.b, '}') }
func (t *text) size() int    { return len(t.b) }
func (t *text) cut(size int) { t.b = t.b[:size] }

// key begins a member of the current object.
func (t *text) key(name string) {
	if t.b[len(t.b)-1] != '{' {
		t.b = append(t.b, ',')
	}
	t.b = append(t.b, '"')
	t.b = append(append(t.b, name...), `":`...)
}

func (t *text) text(_ int, name, v string) {
	if v == "" && name != "stringValue" {
		return
	}
	t.key(name)
	t.quote(v)
}

// quote writes a text as a JSON string.
func (t *text) quote(s string) {
	const digits = "0123456789abcdef"
	t.b = append(t.b, '"')
	for _, c := range s { // bytes that are not UTF-8 become U+FFFD
		switch {
		case c == '"' || c == '\\':
			t.b = append(t.b, '\\', byte(c))
		case c < 0x20 || c == 0x7f:
			t.b = append(t.b, `\u00`...)
			t.b = append(t.b, digits[c>>4], digits[c&15])
		default:
			t.b = utf8.AppendRune(t.b, c)
		}
	}
	t.b = append(t.b, '"')
}

func (t *text) id(_ int, name string, v []byte) {
	t.key(name)
	t.b = append(t.b, '"')
	t.b = hex.AppendEncode(t.b, v)
	t.b = append(t.b, '"')
}

func (t *text) enum(_ int, name string, v int64) {
	if v != 0 {
		t.key(name)
		t.b = strconv.AppendInt(t.b, v, 10)
	}
}

func (t *text) flag(_ int, name string, v bool) {
	if v {
		t.key(name)
		t.b = append(t.b, "true"...)
	}
}

func (t *text) whole(_ int, name string, v int64) {
	t.key(name)
	t.b = append(t.b, '"')
	t.b = strconv.AppendInt(t.b, v, 10)
	t.b = append(t.b, '"')
}

func (t *text) fixed64(_ int, name string, v uint64) {
	t.key(name)
	t.b = append(t.b, '"')
	t.b = strconv.AppendUint(t.b, v, 10)
	t.b = append(t.b, '"')
}

func (t *text) fixed32(number int, name string, v uint32) { t.enum(number, name, int64(v)) }

func (t *text) double(_ int, name string, v float64) {
	t.key(name)
	t.number(v)
}

func (t *text) number(v float64) {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		v = 0
	}
	t.b = strconv.AppendFloat(t.b, v, 'g', -1, 64)
}

func (t *text) fixed64s(_ int, name string, v []uint64) {
	t.array(name, len(v), func(i int) {
		t.b = append(t.b, '"')
		t.b = strconv.AppendUint(t.b, v[i], 10)
		t.b = append(t.b, '"')
	})
}

func (t *text) doubles(_ int, name string, v []float64) {
	t.array(name, len(v), func(i int) { t.number(v[i]) })
}

func (t *text) array(name string, n int, item func(i int)) {
	t.key(name)
	t.b = append(t.b, '[')
	for i := range n {
		if i > 0 {
			t.b = append(t.b, ',')
		}
		item(i)
	}
	t.b = append(t.b, ']')
}

func (t *text) open(_ int, name string) {
	t.key(name)
	t.b = append(t.b, '{')
}

func (t *text) close() { t.b = append(t.b, '}') }

// list writes nothing for an empty list.
func (t *text) list(_ int, name string, n int) {
	if n > 0 {
		t.key(name)
		t.b = append(t.b, '[')
	}
}

func (t *text) item() {
	if t.b[len(t.b)-1] != '[' {
		t.b = append(t.b, ',')
	}
	t.b = append(t.b, '{')
}

func (t *text) closeList(n int) {
	if n > 0 {
		t.b = append(t.b, ']')
	}
}
