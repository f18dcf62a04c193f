package refresh

import (
	"errors"
	"fmt"
	"io"

	"weir/pkg/wire/jsonscan"
)

// Bounds of a document that is read as a stream.
const (
	MaxDocument = 64 << 20 // bytes
	MaxPart     = 4 << 20  // bytes of what is in memory: one provider, or a document of weir's own format
)

var errNotJSON = errors.New("it is not JSON")

// members splits the JSON object of a stream into its members. It has one value of a wanted
// name in memory at a time. Of the others it checks only where they end.
type members struct {
	r     io.Reader
	buf   [32 << 10]byte
	i, n  int   // the unread bytes of buf
	total int64 // bytes read
	err   error // of r, once buf is used up
	value []byte
}

// each calls take with the name and the value of each member that wanted names. The value
// is valid JSON, and is overwritten by the next one.
func (m *members) each(wanted func(name []byte) bool, take func(name string, value []byte) error) error {
	var name [64]byte
	if c, err := m.token(); err != nil || c != '{' {
		return notJSON(err)
	}
	for first := true; ; first = false {
		c, err := m.token()
		if err == nil && c == '}' && first {
			break
		}
		if err != nil || c != '"' {
			return notJSON(err)
		}
		key, err := m.key(name[:0])
		if err != nil {
			return err
		}
		if c, err := m.token(); err != nil || c != ':' {
			return notJSON(err)
		}
		keep := wanted(key)
		if err := m.skip(string(key), keep); err != nil {
			return err
		}
		if keep {
			if !jsonscan.Valid(m.value) {
				return errNotJSON
			}
			if err := take(string(key), m.value); err != nil {
				return err
			}
		}
		if c, err := m.token(); err != nil || c != ',' && c != '}' {
			return notJSON(err)
		} else if c == '}' {
			break
		}
	}
	if _, err := m.token(); err != io.EOF {
		return notJSON(err)
	}
	return nil
}

// notJSON returns the error of a stream that ends or goes on where it must not.
func notJSON(err error) error {
	if err == nil || err == io.EOF {
		return errNotJSON
	}
	return err
}

// fill reads the next bytes. The error is io.EOF at the end.
func (m *members) fill() error {
	for m.i == m.n {
		if m.err != nil {
			return m.err
		}
		m.i = 0
		m.n, m.err = m.r.Read(m.buf[:])
		if m.total += int64(m.n); m.total > MaxDocument {
			return fmt.Errorf("it has more than %d MiB", MaxDocument>>20)
		}
	}
	return nil
}

// token returns the next byte that is not blank.
func (m *members) token() (byte, error) {
	for {
		if err := m.fill(); err != nil {
			return 0, err
		}
		c := m.buf[m.i]
		m.i++
		if c != ' ' && c != '\n' && c != '\r' && c != '\t' {
			return c, nil
		}
	}
}

// key appends a name as it is written, up to the capacity of to, after its first quote.
func (m *members) key(to []byte) ([]byte, error) {
	for escaped := false; ; {
		if err := m.fill(); err != nil {
			return nil, notJSON(err)
		}
		c := m.buf[m.i]
		m.i++
		if c == '"' && !escaped {
			return to, nil
		}
		escaped = c == '\\' && !escaped
		if len(to) < cap(to) {
			to = append(to, c)
		}
	}
}

// skip reads a value up to the comma or the bracket that follows it, into m.value if it is
// kept.
func (m *members) skip(name string, keep bool) error {
	m.value = m.value[:0]
	depth, quoted, escaped := 0, false, false
	for {
		if err := m.fill(); err != nil {
			return notJSON(err)
		}
		chunk, end := m.buf[m.i:m.n], -1
		for i, c := range chunk {
			switch {
			case escaped:
				escaped = false
			case quoted:
				quoted, escaped = c != '"', c == '\\'
			case c == '"':
				quoted = true
			case c == '{' || c == '[':
				depth++
			case c == '}' || c == ']' || c == ',':
				if depth == 0 {
					end = i
				} else if c != ',' {
					depth--
				}
			}
			if end >= 0 {
				chunk = chunk[:end]
				break
			}
		}
		m.i += len(chunk)
		if keep {
			if len(m.value)+len(chunk) > MaxPart {
				return fmt.Errorf("%s has more than %d MiB", shorten(name), MaxPart>>20)
			}
			m.value = append(m.value, chunk...)
		}
		if end >= 0 {
			return nil
		}
	}
}
