package eventstream

import (
	"encoding/binary"
	"hash/crc32"
)

// Append appends a message to dst. Names have 1–255 bytes, values of Bytes and
// String at most 65,535, all others the size of their type; a header that does
// not fit is left out.
func Append(dst []byte, headers []Header, payload []byte) []byte {
	at := len(dst)
	dst = append(dst, make([]byte, preludeLen)...)
	for _, h := range headers {
		if len(h.Name) == 0 || len(h.Name) > 255 || h.Type >= types || len(h.Value) > 1<<16-1 {
			continue
		}
		size := sizes[h.Type]
		if size >= 0 && size != len(h.Value) {
			continue
		}
		dst = append(append(append(dst, byte(len(h.Name))), h.Name...), byte(h.Type))
		if size < 0 {
			dst = binary.BigEndian.AppendUint16(dst, uint16(len(h.Value)))
		}
		dst = append(dst, h.Value...)
	}
	names := len(dst) - at - preludeLen
	dst = append(dst, payload...)
	binary.BigEndian.PutUint32(dst[at:], uint32(len(dst)-at+4))
	binary.BigEndian.PutUint32(dst[at+4:], uint32(names))
	binary.BigEndian.PutUint32(dst[at+8:], crc32.ChecksumIEEE(dst[at:at+8]))
	return binary.BigEndian.AppendUint32(dst, crc32.ChecksumIEEE(dst[at:]))
}

// Event appends an event with a JSON payload, as Bedrock sends them.
func Event(dst []byte, eventType string, payload []byte) []byte {
	return typed(dst, ":event-type", eventType, "event", payload)
}

// Exception appends an exception with a JSON payload, as Bedrock sends them.
func Exception(dst []byte, exceptionType string, payload []byte) []byte {
	return typed(dst, ":exception-type", exceptionType, "exception", payload)
}

func typed(dst []byte, name, value, message string, payload []byte) []byte {
	return Append(dst, []Header{
		{Name: []byte(name), Type: String, Value: []byte(value)},
		{Name: []byte(":content-type"), Type: String, Value: []byte("application/json")},
		{Name: []byte(":message-type"), Type: String, Value: []byte(message)},
	}, payload)
}
