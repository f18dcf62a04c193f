package otlp

import (
	"encoding/binary"

	"github.com/tidwall/gjson"
)

// FormatOf returns the format of a body that this package has written.
func FormatOf(body []byte) Format {
	if len(body) > 0 && body[0] == '{' {
		return JSON
	}
	return Protobuf
}

// Rejected returns how many items an answer of 200 says that were not taken, and why. An
// answer that cannot be read rejects nothing, for it must not lead to a repeat.
//
//	{"partialSuccess":{"rejectedSpans":"3","errorMessage":"…"}}, or the same in protobuf
func Rejected(answer []byte) (n int64, message string) {
	if FormatOf(answer) == JSON {
		p := gjson.GetBytes(answer, "partialSuccess")
		for _, name := range [...]string{"rejectedSpans", "rejectedDataPoints", "rejectedLogRecords"} {
			n = max(n, p.Get(name).Int()) // an answer has one of them
		}
		return n, p.Get("errorMessage").String()
	}
	partial, _ := field(answer, 1)
	_, rejected := field(partial, 1)
	text, _ := field(partial, 2)
	return max(int64(rejected), 0), string(text)
}

// field returns the first field of a number of a protobuf message: its bytes, or the value
// of a varint. Both are empty for a message that is not valid.
func field(b []byte, number uint64) (data []byte, value uint64) {
	for len(b) > 0 {
		tag, n := binary.Uvarint(b)
		if n <= 0 {
			return nil, 0
		}
		b = b[n:]
		length := 0
		switch tag & 7 {
		case varint:
			if value, n = binary.Uvarint(b); n <= 0 {
				return nil, 0
			}
			length = n
		case wide:
			length = 8
		case narrow:
			length = 4
		case lengthy:
			size, n := binary.Uvarint(b)
			if n <= 0 || size > uint64(len(b)-n) {
				return nil, 0
			}
			b, length = b[n:], int(size)
		default:
			return nil, 0
		}
		if length > len(b) {
			return nil, 0
		}
		if tag>>3 == number {
			return b[:length], value
		}
		b, value = b[length:], 0
	}
	return nil, 0
}
