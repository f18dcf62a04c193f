package embeddings

import (
	"weir/pkg/endpoint"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/jsonscan"
)

const (
	maxInputs     = 2048
	maxDimensions = 1 << 16
)

// inputKind is the form of input.
type inputKind uint8

const (
	text       inputKind = iota // "a"
	texts                       // ["a","b"]
	tokens                      // [1,2]: one input
	tokenLists                  // [[1,2],[3]]
)

// request is a client's body and what is read of it.
type request struct {
	body  []byte
	model string
	kind  inputKind
	count int // inputs; a token array is one
	// base64 reports that vectors are wanted as base64, else as numbers.
	base64     bool
	dimensions int64 // 0 when not given
	further    bool  // a field may name fallback models

	at [len(names)]jsonscan.Value // where the fields of names lie

	gemini *geminiRequest // of a client of the Gemini API, else nil

	items []jsonscan.Span // of the inputs; made by spans
}

// The fields that are read.
const (
	fModel = iota
	fInput
	fEncoding
	fDimensions
	fUser
)

var names = [...]string{fModel: "model", fInput: "input", fEncoding: "encoding_format", fDimensions: "dimensions",
	fUser: "user"}

// parse checks a request's body: docs/reference/spec.md, 2.9 and 4.3.1. Errors
// are 400.
func (r *request) parse(body []byte) error {
	r.body = body
	var c jsonscan.Cursor
	c.Reset(body)
	if c.Kind() != jsonscan.Object {
		c.Skip()
		if err := c.End(); err != nil {
			return endpoint.BadJSON(err)
		}
		return apierr.Invalid("", "The body must be a JSON object.")
	}
	var bad error // the first complaint about a field; a broken document goes before it
	for c.Object(); c.Key(); {
		f := -1
		for i := range names {
			if c.KeyIs(names[i]) {
				f = i
				break
			}
		}
		if f < 0 {
			if name := c.Folded(); name != "" && bad == nil {
				bad = apierr.Invalid(name, "%s must be written in lower case.", name)
			}
			r.further = r.further || c.KeyFolds(endpoint.FurtherFields[:])
			c.Skip()
			continue
		}
		if r.at[f].Kind != jsonscan.Absent && bad == nil {
			bad = apierr.Invalid(names[f], "%s is given more than once.", names[f])
		}
		c.Lone()
		if f == fInput {
			if err := r.readInput(&c); err != nil && bad == nil {
				bad = err
			}
		} else {
			r.at[f] = c.Value()
		}
		if c.Lone() && bad == nil {
			bad = apierr.Invalid(names[f], "%s has half a surrogate pair.", names[f])
		}
	}
	if err := c.End(); err != nil {
		return endpoint.BadJSON(err)
	}
	if bad != nil {
		return bad
	}
	return r.check()
}

// check judges the fields once the document is known to be sound.
func (r *request) check() error {
	switch v := r.at[fModel]; {
	case v.Kind == jsonscan.Absent:
		return apierr.Invalid("model", "model is required.")
	case v.Kind != jsonscan.String:
		return apierr.Invalid("model", "model must be a string.")
	default:
		if r.model = jsonscan.Text(r.body, v); r.model == "" {
			return apierr.Invalid("model", "model must not be empty.")
		}
	}
	if r.at[fInput].Kind == jsonscan.Absent {
		return apierr.Invalid("input", "input is required.")
	}
	if v := r.at[fEncoding]; v.Kind != jsonscan.Absent {
		switch {
		case isText(r.body, v, "base64"):
			r.base64 = true
		case !isText(r.body, v, "float"):
			return apierr.Invalid("encoding_format", "encoding_format must be float or base64.")
		}
	}
	if v := r.at[fDimensions]; v.Kind > jsonscan.Null {
		raw := r.body[v.Start:v.End]
		if len(raw) <= 5 {
			for _, b := range raw {
				if b < '0' || b > '9' {
					r.dimensions = 0
					break
				}
				r.dimensions = r.dimensions*10 + int64(b-'0')
			}
		}
		if r.dimensions < 1 || r.dimensions > maxDimensions {
			r.dimensions = 0
			return apierr.Invalid("dimensions", "dimensions must be an integer from 1 to %d.", maxDimensions)
		}
	}
	return nil
}

// readInput passes the input and judges it. After an error the rest of it has
// been passed too, so that a broken document is still found.
func (r *request) readInput(c *jsonscan.Cursor) error {
	v := jsonscan.Value{Kind: c.Kind()}
	v.Start = c.Offset()
	var err error
	switch v.Kind {
	case jsonscan.String:
		r.kind, r.count = text, 1
		v = c.Value()
		if v.End-v.Start <= 2 {
			err = apierr.Invalid("input", "input must not be empty.")
		}
	case jsonscan.Array:
		err = r.readArray(c)
		v.End = c.Offset()
	default:
		v = c.Value()
		err = wrongInput()
	}
	for v.End > v.Start && r.body[v.End-1] <= ' ' {
		v.End--
	}
	r.at[fInput] = v
	return err
}

func (r *request) readArray(c *jsonscan.Cursor) error {
	r.kind, r.count = tokens, 1
	n, integers, ok := c.Numbers()
	switch {
	case ok && n == 0:
		return apierr.Invalid("input", "input must not be empty.")
	case ok && !integers, !ok && n > 0:
		skipRest(c, ok)
		return wrongInput()
	case ok:
		return nil
	}
	// The cursor stands at the first element, which is no number.
	var err error
	first := c.Kind()
	r.kind = texts
	if first == jsonscan.Array {
		r.kind = tokenLists
	}
	r.count = 0
	for more := c.Err() == nil; more; more = c.Elem() {
		r.count++
		switch k := c.Kind(); {
		case k != first:
			c.Skip()
			err = wrongInput()
		case k == jsonscan.String:
			if v := c.Value(); v.End-v.Start <= 2 && err == nil {
				err = apierr.Invalid("input", "input must not have an empty string in it.")
			}
		case k == jsonscan.Array:
			if e := tokenList(c); e != nil && err == nil {
				err = e
			}
		default:
			c.Skip()
			err = wrongInput()
		}
	}
	if r.count > maxInputs {
		return apierr.Invalid("input", "input must have at most %d items.", maxInputs)
	}
	return err
}

// skipRest passes what is left of an array whose end has not been reached.
func skipRest(c *jsonscan.Cursor, ended bool) {
	for more := !ended && c.Err() == nil; more; more = c.Elem() {
		c.Skip()
	}
}

// tokenList passes one array of integers.
func tokenList(c *jsonscan.Cursor) error {
	n, integers, ok := c.Numbers()
	if !ok {
		skipRest(c, ok)
		return wrongInput()
	}
	if n == 0 {
		return apierr.Invalid("input", "input must not have an empty array in it.")
	}
	if !integers {
		return wrongInput()
	}
	return nil
}

func wrongInput() error {
	return apierr.Invalid("input", "input must be a string, an array of strings, an array of integers or an array of integer arrays.")
}

// spans returns where each input lies in the body.
func (r *request) spans() []jsonscan.Span {
	if r.items != nil {
		return r.items
	}
	in := r.at[fInput].Span
	if r.kind == text || r.kind == tokens {
		r.items = []jsonscan.Span{in}
		return r.items
	}
	r.items = make([]jsonscan.Span, 0, r.count)
	var c jsonscan.Cursor
	c.Reset(r.body[in.Start:in.End])
	for c.Array(); c.Elem(); {
		v := c.Value()
		r.items = append(r.items, jsonscan.Span{Start: in.Start + v.Start, End: in.Start + v.End})
	}
	return r.items
}

// raw returns one of the fields that are read as it stands, nil when absent.
func (r *request) raw(field int) []byte {
	v := r.at[field]
	if v.Kind == jsonscan.Absent {
		return nil
	}
	return r.body[v.Start:v.End]
}

// estimate returns about how many tokens the inputs have: a quarter of their
// bytes, at least one each.
func (r *request) estimate(from, to int) int64 {
	n := int64(0)
	for _, s := range r.spans()[from:to] {
		n += int64(max(1, (s.End-s.Start-2+3)/4))
	}
	return n
}
