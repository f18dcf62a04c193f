package multipart

import (
	"encoding/base64"
	"io"

	"weir/pkg/wire/stream"
)

// Field is one part of a form that was read, in the order of the form.
type Field struct {
	Part
	Value    string // of a part without a file name
	From, To int64  // where its content lies in the form
}

// Form is what Read found.
type Form struct {
	Fields []Field
}

// Read reads a whole form and returns its fields and the positions of its files. Values
// of fields are at most 64 KiB long, and 256 KiB together.
func Read(body io.Reader, boundary string, maxParts int) (*Form, error) {
	f := &former{form: &Form{}}
	s := NewScanner(boundary, f)
	s.MaxParts = maxParts
	buf := make([]byte, 32<<10)
	for {
		n, err := body.Read(buf)
		if pushed := s.Push(buf[:n]); pushed != nil {
			return nil, pushed
		}
		if err == io.EOF {
			return f.form, s.End()
		}
		if err != nil {
			return nil, err
		}
	}
}

// Get returns the value of a field that is not a file. Given twice it is refused.
func (f *Form) Get(name string) (value string, ok bool, err error) {
	for i := range f.Fields {
		if fd := &f.Fields[i]; fd.Name == name && !fd.File {
			if ok {
				return "", true, twice(name)
			}
			value, ok = fd.Value, true
		}
	}
	return value, ok, nil
}

// Text is Get for a field whose repetition does not matter: the first one.
func (f *Form) Text(name string) string {
	for i := range f.Fields {
		if fd := &f.Fields[i]; fd.Name == name && !fd.File {
			return fd.Value
		}
	}
	return ""
}

// All returns the values of an array field, written name or name[].
func (f *Form) All(name string) (values []string) {
	for i := range f.Fields {
		if fd := &f.Fields[i]; !fd.File && (fd.Name == name || fd.Name == name+"[]") {
			values = append(values, fd.Value)
		}
	}
	return values
}

// Field returns the part of a field that is not a file, or nil.
func (f *Form) Field(name string) *Field {
	for i := range f.Fields {
		if fd := &f.Fields[i]; fd.Name == name && !fd.File {
			return fd
		}
	}
	return nil
}

// File returns the file of a name, or nil. Given twice it is refused.
func (f *Form) File(name string) (found *Field, err error) {
	for i := range f.Fields {
		if fd := &f.Fields[i]; fd.Name == name && fd.File {
			if found != nil {
				return nil, twice(name)
			}
			found = fd
		}
	}
	return found, nil
}

// former is the Sink of Read.
type former struct {
	form *Form
	at   int64
	size int
}

func (f *former) last() *Field { return &f.form.Fields[len(f.form.Fields)-1] }

func (f *former) Part(p *Part, raw []byte) error {
	f.at += int64(len(raw))
	f.form.Fields = append(f.form.Fields, Field{Part: *p, From: f.at, To: f.at})
	return nil
}

func (f *former) Data(b []byte) error {
	f.at += int64(len(b))
	fd := f.last()
	fd.To = f.at
	if fd.File {
		return nil
	}
	if f.size += len(b); f.size > maxFields || fd.To-fd.From > maxField {
		return tooLong(fd.Name, maxField)
	}
	fd.Value += string(b)
	return nil
}

func (f *former) Close(raw []byte) error {
	f.at += int64(len(raw))
	return nil
}

func (f *former) Rest(b []byte) error {
	f.at += int64(len(b))
	return nil
}

// Cut is a stream.Transform that writes Head, the bytes of its source from From up to
// To, optionally in base64, and Tail.
type Cut struct {
	stream.Plain
	From, To   int64
	Head, Tail []byte
	Base64     bool

	at    int64
	begun bool
	carry [3]byte
	n     int // bytes in carry
}

// Length is the length of what comes out.
func (c *Cut) Length() int64 {
	n := c.To - c.From
	if c.Base64 {
		n = (n + 2) / 3 * 4
	}
	return n + int64(len(c.Head)+len(c.Tail))
}

// Push takes the next chunk.
func (c *Cut) Push(chunk, out []byte) []byte {
	if !c.begun {
		c.begun = true
		out = append(out, c.Head...)
	}
	from := min(max(c.From-c.at, 0), int64(len(chunk)))
	to := min(max(c.To-c.at, 0), int64(len(chunk)))
	c.at += int64(len(chunk))
	b := chunk[from:max(from, to)]
	if !c.Base64 {
		return append(out, b...)
	}
	for len(b) > 0 && (c.n > 0 || len(b) < 3) {
		c.carry[c.n] = b[0]
		c.n++
		b = b[1:]
		if c.n == 3 {
			out = base64.StdEncoding.AppendEncode(out, c.carry[:])
			c.n = 0
		}
	}
	whole := len(b) / 3 * 3
	out = base64.StdEncoding.AppendEncode(out, b[:whole])
	c.n += copy(c.carry[c.n:], b[whole:])
	return out
}

// End returns the tail, after a source that was whole.
func (c *Cut) End(cause error, out []byte) []byte {
	if cause != nil || c.at < c.To {
		return out
	}
	if !c.begun {
		out = append(out, c.Head...)
	}
	return append(base64.StdEncoding.AppendEncode(out, c.carry[:c.n]), c.Tail...)
}

// Splice is a stream.Transform that replaces the bytes of its source from From
// up to To.
type Splice struct {
	stream.Plain
	From, To int64
	With     []byte
	Size     int64 // of the source

	at   int64
	done bool
}

// Length is the length of what comes out.
func (s *Splice) Length() int64 { return s.Size - (s.To - s.From) + int64(len(s.With)) }

// Push takes the next chunk.
func (s *Splice) Push(chunk, out []byte) []byte {
	n := int64(len(chunk))
	before := min(max(s.From-s.at, 0), n)
	after := min(max(s.To-s.at, 0), n)
	out = append(out, chunk[:before]...)
	if !s.done && s.at+n >= s.From {
		s.done = true
		out = append(out, s.With...)
	}
	s.at += n
	return append(out, chunk[after:]...)
}

// End has nothing to add.
func (s *Splice) End(_ error, out []byte) []byte { return out }
