package multipart

import (
	"errors"
	"io"
)

// maxPeek is how much of a form is read in search of a field in front of the
// files, in bytes.
const maxPeek = 64 << 10

var errFound = errors.New("multipart: seen enough")

// Peek looks for a field that comes before any file, and reads no further than
// it must. head is what it has read: the form is head and then the rest of
// body. ok reports that the field was found and is complete; a value of more than max
// bytes is an error.
func Peek(body io.Reader, boundary, field string, max int) (head []byte, value string, ok bool, err error) {
	p := &peeker{field: field, max: max}
	s := NewScanner(boundary, p)
	buf := make([]byte, 4<<10)
	for len(head) < maxPeek {
		n, readErr := body.Read(buf)
		head = append(head, buf[:n]...)
		if err := s.Push(buf[:n]); err == errFound {
			return head, string(p.value), p.found, nil
		} else if err != nil {
			return head, "", false, err
		}
		if readErr == io.EOF {
			return head, "", false, s.End()
		}
		if readErr != nil {
			return head, "", false, readErr
		}
	}
	return head, "", false, nil
}

// peeker is the Sink of Peek.
type peeker struct {
	field  string
	max    int
	inside bool
	found  bool
	value  []byte
}

func (p *peeker) Part(part *Part, _ []byte) error {
	switch {
	case p.inside:
		p.found = true
		return errFound
	case part.File && part.Name == p.field:
		return bad("the field %s is a file: send it as text", p.field)
	case part.File:
		return errFound
	}
	p.inside = part.Name == p.field
	return nil
}

func (p *peeker) Data(b []byte) error {
	if !p.inside {
		return nil
	}
	if p.value = append(p.value, b...); len(p.value) > p.max {
		return tooLong(p.field, p.max)
	}
	return nil
}

func (p *peeker) Close([]byte) error {
	p.found = p.inside
	return errFound
}

func (p *peeker) Rest([]byte) error { return nil }

func tooLong(field string, max int) error {
	e := bad("the field %s is over %d bytes", field, max)
	e.Param = field
	return e
}
