package images

import (
	"bytes"
	"encoding/base64"
	"strconv"
	"strings"

	"weir/pkg/endpoint/download"
	"weir/pkg/endpoint/upload"
	"weir/pkg/wire/multipart"
)

const (
	// maxInline is the most that images of a form may take in a body of JSON,
	// in bytes of base64. Gemini takes 20 MB a request.
	maxInline = 20 << 20
	// longInline is the length from which the base64 of a JSON body is not
	// copied about.
	longInline = 4 << 10
)

// inline keeps large images out of a body until it is complete. In their place
// stands a short mark: an image would else be copied for each step on its way
// into the body, and a few of them are all that an isolate can hold.
type inline struct {
	form  *upload.Upload
	files []inlined
	size  int64 // bytes of base64 of the form's images
	extra string
}

// inlined is one image: a part of the form, or base64 of the client's own.
type inlined struct {
	part *multipart.Field
	text string
}

const mark = "@weir-image-"

// avoid changes the mark when a text of the client's has it.
func (l *inline) avoid(text string) {
	for strings.Contains(text, mark+l.extra) {
		l.extra += "x"
	}
}

// part returns the mark of a file.
func (l *inline) part(f *multipart.Field) string {
	l.size += (f.To - f.From + 2) / 3 * 4
	return l.put(inlined{part: f})
}

func (l *inline) put(f inlined) string {
	l.files = append(l.files, f)
	return mark + l.extra + "-" + strconv.Itoa(len(l.files)-1) + "@"
}

// short returns an address with a mark for its base64 where that is long.
func (l *inline) short(address string) string {
	_, data, ok := download.DataURI(address)
	if !ok || len(data) < longInline || !plainBase64(data) {
		return address
	}
	return address[:len(address)-len(data)] + l.put(inlined{text: data})
}

func plainBase64(s string) bool {
	for i := 0; i < len(s); i++ {
		if c := s[i]; !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '+' || c == '/' ||
			c == '=') {
			return false
		}
	}
	return true
}

// fill puts the images in the place of their marks.
func (l *inline) fill(body []byte) ([]byte, error) {
	if len(l.files) == 0 {
		return body, nil
	}
	var out []byte
	for _, count := range []bool{true, false} {
		n := 0
		for rest := body; ; {
			text, file, after := l.cut(rest)
			n += len(text)
			if !count {
				out = append(out, text...)
			}
			if file == nil {
				break
			}
			size := file.size()
			n += size
			if !count {
				var err error
				if out, err = file.append(out, size, l.form); err != nil {
					return nil, err
				}
			}
			rest = after
		}
		if count {
			out = make([]byte, 0, n)
		}
	}
	return out, nil
}

// cut returns what stands before the next mark, the image of it, and what
// follows; without a mark all of it and nil.
func (l *inline) cut(b []byte) (text []byte, file *inlined, rest []byte) {
	name := []byte(mark + l.extra + "-")
	at := bytes.Index(b, name)
	if at < 0 {
		return b, nil, nil
	}
	number, rest, _ := bytes.Cut(b[at+len(name):], []byte("@"))
	i, err := strconv.Atoi(string(number))
	if err != nil || i < 0 || i >= len(l.files) {
		return b, nil, nil
	}
	return b[:at], &l.files[i], rest
}

func (f *inlined) size() int {
	if f.part == nil {
		return len(f.text)
	}
	return base64.StdEncoding.EncodedLen(int(f.part.To - f.part.From))
}

// append adds the base64, of size bytes, for which out has room.
func (f *inlined) append(out []byte, size int, form *upload.Upload) ([]byte, error) {
	if f.part == nil {
		return append(out, f.text...), nil
	}
	src := form.Part(f.part, nil, nil, true)
	defer src.Close()
	for size > 0 {
		n, err := src.Read(out[len(out) : len(out)+size])
		out = out[:len(out)+n]
		if size -= n; err != nil && size > 0 {
			return nil, err
		}
	}
	return out, nil
}
