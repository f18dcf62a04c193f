package multipart

import (
	"bytes"
	"cmp"
)

// Sink receives what a Scanner finds. Every byte of the form is handed out
// exactly once and in order, in one of the slices, which are valid only during
// the call. An error ends the scan.
type Sink interface {
	// Part begins a part. raw is its delimiter and header block.
	Part(p *Part, raw []byte) error
	// Data is the next piece of the part's content.
	Data(b []byte) error
	// Close has the closing delimiter, Rest what comes after it.
	Close(raw []byte) error
	Rest(b []byte) error
}

// Scanner finds the parts of a form in chunks cut anywhere.
type Scanner struct {
	Sink     Sink
	MaxParts int // 0 is MaxParts

	delim []byte      // CRLF, two dashes, the boundary
	skip  [256]uint16 // Horspool's table for delim
	state state
	parts int
	rest  int
	buf   []byte
	err   error
}

type state uint8

const (
	atStart state = iota
	atDelim       // delim has been seen and starts buf
	inHead        // buf starts with delim and the end of its line
	atData        // the first bytes of a content
	inData
	afterEnd
)

// NewScanner makes a scanner for a boundary that Boundary gave.
func NewScanner(boundary string, sink Sink) *Scanner {
	s := &Scanner{Sink: sink, delim: append([]byte("\r\n--"), boundary...)}
	m := len(s.delim)
	for i := range s.skip {
		s.skip[i] = uint16(m)
	}
	for i, c := range s.delim[:m-1] {
		s.skip[c] = uint16(m - 1 - i)
	}
	return s
}

// Push takes the next chunk. After an error the scanner takes nothing more.
func (s *Scanner) Push(chunk []byte) error {
	if s.err != nil {
		return s.err
	}
	s.buf = append(s.buf, chunk...)
	left := s.buf
	for {
		n, err := s.step(left)
		if err != nil {
			s.err, s.buf = err, nil
			return err
		}
		if n == 0 {
			break
		}
		left = left[n:]
	}
	s.buf = s.buf[:copy(s.buf, left)]
	return nil
}

// End reports whether the form is complete: its closing delimiter was there.
func (s *Scanner) End() error {
	if s.err == nil && s.state != afterEnd {
		s.err = bad("the closing delimiter is missing")
	}
	return s.err
}

// step consumes the beginning of b and returns the number of consumed bytes, 0 if it
// needs more.
func (s *Scanner) step(b []byte) (int, error) {
	switch s.state {
	case atStart:
		return s.start(b)
	case atDelim:
		return s.line(b)
	case inHead:
		return s.head(b)
	case atData:
		// Some parsers take a boundary right after the header for a delimiter.
		open := s.delim[2:]
		if n := min(len(b), len(open)); bytes.Equal(b[:n], open[:n]) {
			if n == len(open) {
				return 0, bad("a part's content begins with the boundary")
			}
			return 0, nil
		}
		s.state = inData
		return s.data(b)
	case inData:
		return s.data(b)
	}
	if len(b) == 0 {
		return 0, nil
	}
	if s.rest += len(b); s.rest > maxEpilogue {
		return 0, bad("there is too much after the closing delimiter")
	}
	return len(b), s.Sink.Rest(b)
}

// start expects the first delimiter, whose own CRLF may be missing. Nothing may
// come before it: no form has a preamble.
func (s *Scanner) start(b []byte) (int, error) {
	first := s.delim[2:]
	if len(b) >= 1 && b[0] == '\r' {
		first = s.delim
	}
	if n := min(len(b), len(first)); !bytes.Equal(b[:n], first[:n]) {
		return 0, bad("it does not begin with its boundary")
	}
	if len(b) < len(first) {
		return 0, nil
	}
	s.state = atDelim
	return s.line(b)
}

// line reads what follows a delimiter on its line: two dashes at the end of the
// form, else nothing but blanks.
func (s *Scanner) line(b []byte) (int, error) {
	at := len(s.delim)
	if b[0] == '-' { // the first delimiter, without its CRLF
		at -= 2
	}
	i := at
	if len(b) < i+2 {
		return 0, nil
	}
	if b[i] == '-' && b[i+1] == '-' {
		s.state = afterEnd
		return i + 2, s.Sink.Close(b[:i+2])
	}
	for i < len(b) && (b[i] == ' ' || b[i] == '\t') {
		i++
	}
	switch {
	case i-at > maxPadding:
		return 0, bad("a delimiter is not alone on its line")
	case len(b) < i+2:
		if len(b) == i+1 && b[i] != '\r' {
			return 0, bad("a delimiter is not alone on its line")
		}
		return 0, nil
	case b[i] != '\r' || b[i+1] != '\n':
		return 0, bad("a delimiter is not alone on its line")
	}
	s.state = inHead
	return s.head(b)
}

// head waits for the end of a part's header.
func (s *Scanner) head(b []byte) (int, error) {
	from := bytes.Index(b[2:], crlf) + 2 // the end of the delimiter's line
	end := bytes.Index(b[from:], blank)
	if end < 0 {
		if len(b) > from+maxHead {
			return 0, bad("a part's header is over %d bytes", maxHead)
		}
		return 0, nil
	}
	if end > maxHead {
		return 0, bad("a part's header is over %d bytes", maxHead)
	}
	limit := cmp.Or(s.MaxParts, MaxParts)
	if s.parts++; s.parts > limit {
		return 0, bad("it has more than %d parts", limit)
	}
	to := from + end + len(blank)
	p, err := parsePart(b[min(from+2, to-2) : to-2])
	if err != nil {
		return 0, err
	}
	s.state = atData
	return to, s.Sink.Part(&p, b[:to])
}

var (
	crlf  = []byte("\r\n")
	blank = []byte("\r\n\r\n")
)

// data hands out content up to the next delimiter, or up to what may be the
// beginning of one.
func (s *Scanner) data(b []byte) (int, error) {
	m := len(s.delim)
	at := 0
	for at+m <= len(b) {
		c := b[at+m-1]
		if c == s.delim[m-1] && bytes.Equal(b[at:at+m], s.delim) {
			if at > 0 {
				return at, s.Sink.Data(b[:at])
			}
			s.state = atDelim
			return s.line(b)
		}
		at += int(s.skip[c])
	}
	if at = min(at, len(b)); at == 0 {
		return 0, nil
	}
	return at, s.Sink.Data(b[:at])
}
