package embeddings

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"math"
	"strconv"

	"weir/pkg/wire/jsonscan"
)

var errVector = errors.New("a vector cannot be read")

// appendVector appends a vector in the wanted form. buf is scratch space that
// is handed on from vector to vector.
func appendVector(dst, buf []byte, v *item, want form) ([]byte, []byte, error) {
	if v.form == want && !v.escaped {
		return append(dst, v.raw...), buf, nil
	}
	// Everything else goes through little-endian float32 in buf.
	var err error
	switch v.form {
	case floats:
		buf, err = appendFloat32s(buf[:0], v.raw)
	case float32le:
		buf, err = decode(buf[:0], v)
		if err == nil && len(buf)%4 != 0 {
			err = errVector
		}
	case int8s:
		if buf, err = decode(buf[:0], v); err == nil {
			buf = widen(buf)
		}
	}
	if err != nil || len(buf) == 0 {
		return dst, buf, errVector
	}
	if want == float32le {
		dst = append(dst, '"')
		dst = base64.StdEncoding.AppendEncode(dst, buf)
		return append(dst, '"'), buf, nil
	}
	dst, err = appendNumbers(dst, buf)
	return dst, buf, err
}

// decode appends the bytes of a base64 string.
func decode(dst []byte, v *item) ([]byte, error) {
	text := v.raw[1 : len(v.raw)-1]
	if v.escaped {
		text = []byte(jsonscan.Text(v.raw, jsonscan.Value{Span: jsonscan.Span{End: len(v.raw)}, Kind: jsonscan.String,
			Escaped: true}))
	}
	enc := base64.StdEncoding
	if len(text)%4 != 0 {
		enc = base64.RawStdEncoding
	}
	return enc.AppendDecode(dst, text)
}

// widen turns signed bytes into float32, in place as far as there is room.
func widen(b []byte) []byte {
	n := len(b)
	if cap(b) < 4*n {
		b = append(make([]byte, 0, 4*n), b...)
	}
	b = b[:4*n]
	for i := n - 1; i >= 0; i-- { // from the back: nothing is overwritten unread
		binary.LittleEndian.PutUint32(b[4*i:], math.Float32bits(float32(int8(b[i]))))
	}
	return b
}

// appendNumbers appends float32s as an array of numbers: the shortest ones
// that give the same float32 again.
func appendNumbers(dst, b []byte) ([]byte, error) {
	dst = append(dst, '[')
	for i := 0; i+4 <= len(b); i += 4 {
		if i > 0 {
			dst = append(dst, ',')
		}
		f := float64(math.Float32frombits(binary.LittleEndian.Uint32(b[i:])))
		if math.IsNaN(f) || math.IsInf(f, 0) {
			return dst, errVector
		}
		dst = strconv.AppendFloat(dst, f, 'g', -1, 32)
	}
	return append(dst, ']'), nil
}

// appendFloat32s appends the numbers of an array, each rounded once to the
// nearest float32, as little-endian bytes. The array has been checked.
func appendFloat32s(dst, array []byte) ([]byte, error) {
	i, end := 1, len(array)-1
	for {
		for i < end && (array[i] <= ' ' || array[i] == ',') {
			i++
		}
		if i == end {
			return dst, nil
		}
		start := i
		for i < end && array[i] > ' ' && array[i] != ',' {
			i++
		}
		f, ok := parseFloat32(array[start:i])
		if !ok {
			return dst, errVector
		}
		dst = binary.LittleEndian.AppendUint32(dst, math.Float32bits(f))
	}
}

// pow10 are the powers of ten that a float64 holds exactly.
var pow10 = [...]float64{
	1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11,
	1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
}

// parseFloat32 returns the float32 nearest to a JSON number; ok is false where
// an invalid or infinite number.
//
// Up to 19 digits are taken as an integer and scaled by one multiplication, so
// the float64 is off by less than two units of its last place. That can matter
// for the float32 only close to the middle between two of them, and outside
// the normal range; those go the long way.
func parseFloat32(b []byte) (f float32, ok bool) {
	i, neg := 0, false
	if i < len(b) && b[i] == '-' {
		neg = true
		i++
	}
	var mant uint64
	digits, exp := 0, 0
	for ; i < len(b) && b[i]-'0' < 10; i++ {
		if digits > 0 || b[i] != '0' {
			digits++
		}
		mant = mant*10 + uint64(b[i]-'0')
	}
	if i < len(b) && b[i] == '.' {
		for i++; i < len(b) && b[i]-'0' < 10; i++ {
			if digits > 0 || b[i] != '0' {
				digits++
			}
			mant = mant*10 + uint64(b[i]-'0')
			exp--
		}
	}
	if i < len(b) && b[i]|0x20 == 'e' {
		i++
		minus := false
		if i < len(b) && (b[i] == '-' || b[i] == '+') {
			minus = b[i] == '-'
			i++
		}
		e := 0
		for ; i < len(b) && b[i]-'0' < 10 && e < 10_000; i++ {
			e = e*10 + int(b[i]-'0')
		}
		if minus {
			e = -e
		}
		exp += e
	}
	if i != len(b) || digits > 19 || exp < -22 || exp > 22 {
		return parseSlow(b)
	}
	if mant == 0 {
		if neg {
			return float32(math.Copysign(0, -1)), true
		}
		return 0, true
	}
	x := float64(mant)
	if exp < 0 {
		x /= pow10[-exp]
	} else {
		x *= pow10[exp]
	}
	// The 29 bits that a float32 does not have, seen from the middle.
	const half = 1 << 28
	low := math.Float64bits(x) & (2*half - 1)
	if low-(half-4) < 8 || x < 0x1p-126 || x >= 0x1p127 {
		return parseSlow(b)
	}
	if neg {
		x = -x
	}
	return float32(x), true
}

func parseSlow(b []byte) (float32, bool) {
	f, err := strconv.ParseFloat(string(b), 32)
	return float32(f), err == nil
}
