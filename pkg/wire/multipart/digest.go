package multipart

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"io"
)

// Digest returns the SHA-256 digest of a form's parts in their order: names,
// file names, types and contents, but not the boundary between them.
func Digest(body io.Reader, boundary string, maxParts int) (sum [32]byte, err error) {
	d := &digester{all: sha256.New(), part: sha256.New()}
	s := NewScanner(boundary, d)
	s.MaxParts = maxParts
	buf := make([]byte, 32<<10)
	for {
		n, err := body.Read(buf)
		if pushed := s.Push(buf[:n]); pushed != nil {
			return sum, pushed
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return sum, err
		}
	}
	if err := s.End(); err != nil {
		return sum, err
	}
	d.all.Sum(sum[:0])
	return sum, nil
}

// digester is the Sink of Digest.
type digester struct {
	all, part hash.Hash
	inside    bool
}

// end adds the digest of the part that is over.
func (d *digester) end() {
	if d.inside {
		var sum [sha256.Size]byte
		d.all.Write(d.part.Sum(sum[:0]))
		d.part.Reset()
	}
}

func (d *digester) Part(p *Part, _ []byte) error {
	d.end()
	d.inside = true
	kind := byte(0)
	if p.File {
		kind = 1
	}
	d.all.Write([]byte{kind})
	for _, text := range []string{p.Name, p.Filename, p.ContentType} {
		var size [4]byte
		binary.BigEndian.PutUint32(size[:], uint32(len(text)))
		d.all.Write(size[:])
		d.all.Write([]byte(text))
	}
	return nil
}

func (d *digester) Data(b []byte) error {
	d.part.Write(b)
	return nil
}

func (d *digester) Close([]byte) error {
	d.end()
	d.inside = false
	return nil
}

func (d *digester) Rest([]byte) error { return nil }
