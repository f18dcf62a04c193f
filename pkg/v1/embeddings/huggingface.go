package embeddings

import (
	"strconv"

	"weir/pkg/wire/jsonscan"
)

// huggingFace is the shape of the feature-extraction task:
//
//	{inputs: string[], normalize?, truncate?} → a vector per input, or a vector per token of each
//
// Vectors of tokens are averaged. There is no usage.
var huggingFace = shape{name: "huggingface", textOnly: true, read: readFeatures, build: func(p *part) []byte {
	p.drop(fUser)
	p.drop(fDimensions)
	out := make([]byte, 0, len(p.body)+64)
	out = p.list(append(out, `{"inputs":`...))
	for _, name := range [...]string{"normalize", "truncate"} {
		if raw := p.other(name); raw != nil {
			out = append(append(append(append(out, `,"`...), name...), `":`...), raw...)
		}
	}
	return append(out, '}')
}}

func readFeatures(a *answer, r *request) error {
	c := a.begin()
	if c.Kind() != jsonscan.Array {
		return errShape
	}
	for c.Array(); c.Elem(); {
		if c.Kind() != jsonscan.Array {
			return errShape
		}
		start := c.Offset()
		n, _, ok := c.Numbers()
		switch {
		case ok && n > 0:
			a.items = append(a.items, item{index: len(a.items), raw: trimmed(a.body, start, c.Offset())})
		case !ok && n == 0 && c.Kind() == jsonscan.Array:
			if err := a.pool(c); err != nil {
				return err
			}
		default:
			return errShape
		}
	}
	return c.End()
}

// pool averages the vectors of one input's tokens. The cursor stands at the
// first of them, within their array.
func (a *answer) pool(c *jsonscan.Cursor) error {
	var sum []float64
	rows := 0
	for more := true; more; more = c.Elem() {
		if c.Kind() != jsonscan.Array {
			return errShape
		}
		start := c.Offset()
		n, _, ok := c.Numbers()
		if !ok || n == 0 || rows > 0 && n != len(sum) {
			return errShape
		}
		if sum == nil {
			sum = make([]float64, n)
		}
		if !addTo(sum, trimmed(a.body, start, c.Offset())) {
			return errVector
		}
		rows++
	}
	if c.Err() != nil {
		return c.Err()
	}
	out := append(make([]byte, 0, 12*len(sum)), '[')
	for i, x := range sum {
		if i > 0 {
			out = append(out, ',')
		}
		out = strconv.AppendFloat(out, x/float64(rows), 'g', -1, 32)
	}
	a.items = append(a.items, item{index: len(a.items), raw: append(out, ']')})
	return nil
}

// addTo adds the numbers of a checked array to sum.
func addTo(sum []float64, array []byte) bool {
	i, end := 1, len(array)-1
	for k := range sum {
		for i < end && (array[i] <= ' ' || array[i] == ',') {
			i++
		}
		start := i
		for i < end && array[i] > ' ' && array[i] != ',' {
			i++
		}
		f, ok := parseFloat32(array[start:i])
		if !ok {
			return false
		}
		sum[k] += float64(f)
	}
	return true
}
