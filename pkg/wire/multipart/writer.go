package multipart

import "strings"

// Writer makes the fields of a form that go before a file, and the head of the
// file's part.
type Writer struct {
	boundary string
	b        []byte
}

// NewWriter makes a form with a boundary. One that a client's form had is good
// for the same content.
func NewWriter(boundary string) *Writer { return &Writer{boundary: boundary} }

// Field adds a field.
func (w *Writer) Field(name, value string) {
	w.part(name, "")
	w.b = append(append(append(w.b, "\r\n"...), value...), "\r\n"...)
}

func (w *Writer) part(name, filename string) {
	w.b = append(append(append(w.b, "--"...), w.boundary...), "\r\nContent-Disposition: form-data; name=\""...)
	w.b = append(append(w.b, escape(name)...), '"')
	if filename != "" {
		w.b = append(append(append(w.b, "; filename=\""...), escape(filename)...), '"')
	}
	w.b = append(w.b, "\r\n"...)
}

// escape writes a name as browsers do (WHATWG HTML, 4.10.22.8).
func escape(s string) string {
	return strings.NewReplacer("\r", "%0D", "\n", "%0A", `"`, "%22").Replace(s)
}

// File ends the fields with the head of a file's part: its content goes
// between head and tail.
func (w *Writer) File(name, filename, contentType string) (head, tail []byte) {
	w.part(name, filename)
	if contentType != "" && !strings.ContainsAny(contentType, "\r\n") {
		w.b = append(append(append(w.b, "Content-Type: "...), contentType...), "\r\n"...)
	}
	return append(w.b, "\r\n"...), []byte("\r\n--" + w.boundary + "--\r\n")
}

// Close ends a form without a file.
func (w *Writer) Close() []byte {
	return append(append(append(w.b, "--"...), w.boundary...), "--\r\n"...)
}

// ContentType is that of the form.
func (w *Writer) ContentType() string {
	return `multipart/form-data; boundary="` + w.boundary + `"`
}
