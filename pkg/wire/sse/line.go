package sse

import "encoding/binary"

// LineEnd returns the index of the first LF or CR in b, or -1. It examines eight
// bytes at a time for control characters, which lines of JSON do not contain:
// in wasm, that takes a fifth of the time of a search for each of the two.
func LineEnd(b []byte) int {
	const ones, high = 0x0101010101010101, 0x8080808080808080
	i := 0
	for ; i+8 <= len(b); i += 8 {
		w := binary.LittleEndian.Uint64(b[i:])
		// https://graphics.stanford.edu/~seander/bithacks.html#HasLessInWord
		if (w-0x20*ones)&^w&high == 0 {
			continue
		}
		for j := i; j < i+8; j++ {
			if b[j] == '\n' || b[j] == '\r' {
				return j
			}
		}
	}
	for ; i < len(b); i++ {
		if b[i] == '\n' || b[i] == '\r' {
			return i
		}
	}
	return -1
}
