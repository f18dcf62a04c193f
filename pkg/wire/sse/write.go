package sse

import "bytes"

// Named appends an event. Data of several lines becomes several data fields;
// an empty name writes no event field.
func Named(dst []byte, name string, data []byte) []byte {
	if name != "" {
		dst = append(append(append(dst, "event: "...), name...), '\n')
	}
	for {
		dst = append(dst, "data: "...)
		i := bytes.IndexAny(data, "\r\n")
		if i < 0 {
			return append(append(dst, data...), "\n\n"...)
		}
		dst = append(append(dst, data[:i]...), '\n')
		if data[i] == '\r' && i+1 < len(data) && data[i+1] == '\n' {
			i++
		}
		data = data[i+1:]
	}
}

// Comment appends a comment line, which readers pass over. It keeps a silent
// connection alive. text has no line end.
func Comment(dst []byte, text string) []byte {
	return append(append(append(dst, ": "...), text...), "\n\n"...)
}

// Done appends the terminator of OpenAI's data-only streams.
func Done(dst []byte) []byte { return append(dst, "data: [DONE]\n\n"...) }
