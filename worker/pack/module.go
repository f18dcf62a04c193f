package main

import (
	"bytes"
	"encoding/binary"
	"errors"
)

// Sections of a module (WebAssembly core specification 2.0, 5.5).
const (
	sectionType      = 1
	sectionFunction  = 3
	sectionMemory    = 5
	sectionStart     = 8
	sectionCode      = 10
	sectionData      = 11
	sectionDataCount = 12
)

const pageSize = 64 << 10

var (
	errFormat = errors.New("not a module that the Go linker wrote")
	magic     = []byte("\x00asm\x01\x00\x00\x00")
)

type section struct {
	id   byte
	body []byte
}

// split reads a module's sections.
func split(module []byte) ([]section, error) {
	if !bytes.HasPrefix(module, magic) {
		return nil, errFormat
	}
	var sections []section
	for r := (reader{b: module[len(magic):]}); len(r.b) > 0; {
		id := r.byte()
		body := r.take(int(r.uint()))
		if r.bad {
			return nil, errFormat
		}
		sections = append(sections, section{id, body})
	}
	return sections, nil
}

// join writes them again.
func join(sections []section) []byte {
	out := bytes.Clone(magic)
	for _, s := range sections {
		out = append(out, s.id)
		out = binary.AppendUvarint(out, uint64(len(s.body)))
		out = append(out, s.body...)
	}
	return out
}

// find gives the index of the first section of a kind, or -1.
func find(sections []section, id byte) int {
	for i, s := range sections {
		if s.id == id {
			return i
		}
	}
	return -1
}

// image lays out the active segments of a data section: what memory holds
// before the program starts, to its last byte that is not zero.
func image(data []byte) ([]byte, error) {
	var mem []byte
	r := reader{b: data}
	for n := r.uint(); n > 0 && !r.bad; n-- {
		if r.uint() != 0 || r.byte() != 0x41 { // an active segment, i32.const
			return nil, errFormat
		}
		at := int(r.int())
		if r.byte() != 0x0b || at < 0 {
			return nil, errFormat
		}
		b := r.take(int(r.uint()))
		if end := at + len(b); end > len(mem) {
			mem = append(mem, make([]byte, end-len(mem))...)
		}
		copy(mem[at:], b)
	}
	if r.bad || len(r.b) > 0 {
		return nil, errFormat
	}
	return bytes.TrimRight(mem, "\x00"), nil
}

// reader reads LEB128 numbers and bytes; bad tells that there were too few.
type reader struct {
	b   []byte
	bad bool
}

func (r *reader) byte() byte {
	if len(r.b) == 0 {
		r.bad = true
		return 0
	}
	c := r.b[0]
	r.b = r.b[1:]
	return c
}

func (r *reader) take(n int) []byte {
	if n < 0 || n > len(r.b) {
		r.bad = true
		return nil
	}
	b := r.b[:n:n]
	r.b = r.b[n:]
	return b
}

func (r *reader) uint() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.bad = true
		return 0
	}
	r.b = r.b[n:]
	return v
}

// int reads a signed number; Go's varint is zigzag, WebAssembly's is not.
func (r *reader) int() int64 {
	var v int64
	for shift := 0; ; shift += 7 {
		c := r.byte()
		v |= int64(c&0x7f) << shift
		if c&0x80 == 0 || r.bad || shift > 56 {
			if c&0x40 != 0 {
				v |= -1 << (shift + 7)
			}
			return v
		}
	}
}

// appendInt appends a signed number.
func appendInt(b []byte, v int64) []byte {
	for {
		c := byte(v & 0x7f)
		v >>= 7
		if v == 0 && c&0x40 == 0 || v == -1 && c&0x40 != 0 {
			return append(b, c)
		}
		b = append(b, c|0x80)
	}
}
