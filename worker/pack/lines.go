package main

import (
	"bytes"
	"encoding/binary"
	"errors"
)

var errTable = errors.New("the program's function table is not that of Go 1.20 to 1.26")

// Fields of the table's header and of a function, in bytes from their start
// (runtime.pcHeader and runtime._func of Go 1.20 to 1.26 with 8-byte pointers).
const (
	headerSize = 72

	funcPCSP      = 16
	funcPCFile    = 20
	funcPCLine    = 24
	funcPCData    = 28 // how many
	funcUnit      = 32
	funcStartLine = 36
	funcSize      = 44
)

// dropLines zeroes what only a stack trace reads: the tables of files and
// lines. A function without them is printed by its name, which is what the
// runtime does for one it has no tables of. Tables that say something else as
// well (the linker keeps equal ones once) stay.
func dropLines(mem []byte) error {
	header := findTable(mem)
	if header < 0 {
		return errTable
	}
	field := func(i int) int { return int(binary.LittleEndian.Uint64(mem[header+8*i:])) }
	count, units, pcs, funcs := field(1), header+field(5), header+field(7), header+field(8)
	used, lines := map[uint32]bool{0: true}, map[uint32]bool{}
	u32 := func(at int) uint32 { return binary.LittleEndian.Uint32(mem[at:]) }
	for i := range count {
		entry := funcs + 8*i + 4
		if entry+4 > len(mem) {
			return errTable
		}
		f := funcs + int(u32(entry))
		if f+funcSize > len(mem) || f+funcSize+4*int(u32(f+funcPCData)) > len(mem) {
			return errTable
		}
		used[u32(f+funcPCSP)] = true
		for k := range int(u32(f + funcPCData)) {
			used[u32(f+funcSize+4*k)] = true
		}
		lines[u32(f+funcPCFile)], lines[u32(f+funcPCLine)] = true, true
		clear(mem[f+funcPCFile : f+funcPCData])
		clear(mem[f+funcUnit : f+funcStartLine+4])
	}
	for off := range lines {
		if used[off] {
			continue
		}
		n := tableSize(mem[pcs+int(off) : funcs])
		if n < 0 {
			return errTable
		}
		clear(mem[pcs+int(off) : pcs+int(off)+n])
	}
	clear(mem[units:pcs]) // the compilation units' files, and the file names
	return nil
}

// findTable gives the place of the function table's header, or -1.
func findTable(mem []byte) int {
	start := []byte{0xf1, 0xff, 0xff, 0xff, 0, 0, 1, 8}
	for at := 0; ; at += len(start) {
		i := bytes.Index(mem[at:], start)
		if i < 0 || at+i+headerSize > len(mem) {
			return -1
		}
		at += i
		ordered := true
		last := uint64(headerSize)
		for f := 4; f <= 8; f++ { // names, units, files, pcs, functions
			v := binary.LittleEndian.Uint64(mem[at+8*f:])
			ordered = ordered && v >= last && v < uint64(len(mem)-at)
			last = v
		}
		if count := binary.LittleEndian.Uint64(mem[at+8:]); ordered && count > 0 && count < uint64(len(mem))/funcSize {
			return at
		}
	}
}

// tableSize gives the length of a table of pairs (value, pc), each a varint,
// that ends with a value step of zero which is not its first; -1 if it has no
// end.
func tableSize(b []byte) int {
	at := 0
	for first := true; ; first = false {
		v, n := binary.Uvarint(b[at:])
		if n <= 0 {
			return -1
		}
		at += n
		if v == 0 && !first {
			return at
		}
		if _, n = binary.Uvarint(b[at:]); n <= 0 {
			return -1
		}
		at += n
	}
}
