package embeddings

import (
	"errors"
	"slices"
	"strconv"

	"weir/pkg/endpoint"
	"weir/pkg/wire/jsonscan"
)

// form is how a vector is written.
type form uint8

const (
	floats    form = iota // an array of numbers
	float32le             // base64 of little-endian float32, with its quotes
	int8s                 // base64 of signed bytes, with its quotes
)

// item is one vector as the upstream wrote it.
type item struct {
	index   int
	raw     []byte
	form    form
	escaped bool // a string with backslashes in it
}

// answer is what was read of the upstream's answers.
type answer struct {
	body  []byte // of the only call, while it may pass as it is
	owned bool   // body may be changed
	model jsonscan.Value
	// plain: body is OpenAI-shaped and complete, item by item.
	plain bool
	items []item
	space []item // for items, empty
	// tokens of the input and in all; -1 while not known.
	inputTokens, allTokens int64
}

var (
	errShape = errors.New("the answer has another shape")
	errCount = errors.New("the answer has another number of vectors than inputs")
)

// order brings the items of one call into the order of its inputs, and checks
// that there is exactly one for each of them.
func (a *answer) order(want int) error {
	if len(a.items) != want {
		return errCount
	}
	sorted := true
	for i := range a.items {
		sorted = sorted && a.items[i].index == i
	}
	if sorted {
		return nil
	}
	a.plain = false
	if !slices.ContainsFunc(a.items, func(x item) bool { return x.index != 0 }) {
		// Servers that count nothing number every vector 0.
		for i := range a.items {
			a.items[i].index = i
		}
		return nil
	}
	slices.SortFunc(a.items, func(x, y item) int { return x.index - y.index })
	for i := range a.items {
		if a.items[i].index != i {
			return errCount
		}
	}
	return nil
}

// merge adds the answer of a further call. only reports that there is no other.
func (a *answer) merge(b *answer, only bool) {
	if b.inputTokens < 0 {
		b.inputTokens = b.allTokens
	}
	if b.allTokens < 0 {
		b.allTokens = b.inputTokens
	}
	b.inputTokens, b.allTokens = max(0, b.inputTokens), max(0, b.allTokens)
	if only {
		*a = *b
		return
	}
	a.items = append(a.items, b.items...)
	a.inputTokens += b.inputTokens
	a.allTokens += b.allTokens
}

// write makes the body of the client's answer: docs/reference/spec.md, 2.9. A
// plain answer in the encoding asked for passes, with only the model changed.
func (a *answer) write(r *request) ([]byte, error) {
	want := floats
	if r.base64 {
		want = float32le
	}
	same, size := true, 0
	for i := range a.items {
		same = same && a.items[i].form == want
		size += len(a.items[i].raw) + 64
	}
	if a.plain && same && a.model.Kind == jsonscan.String {
		if a.owned {
			return jsonscan.Replace(a.body, a.model.Span, r.raw(fModel)), nil
		}
		return jsonscan.Splice(a.body, a.model.Span, r.raw(fModel)), nil
	}
	if !same && want == floats {
		size *= 2
	}
	out := make([]byte, 0, size+len(r.model)+128)
	out = append(out, `{"object":"list","data":[`...)
	var buf []byte
	var err error
	for i := range a.items {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, `{"object":"embedding","index":`...)
		out = strconv.AppendInt(out, int64(i), 10)
		out = append(out, `,"embedding":`...)
		if out, buf, err = appendVector(out, buf, &a.items[i], want); err != nil {
			return nil, endpoint.BadBody(err)
		}
		out = append(out, '}')
	}
	out = append(out, `],"model":`...)
	out = append(out, r.raw(fModel)...)
	out = append(out, `,"usage":{"prompt_tokens":`...)
	out = strconv.AppendInt(out, a.inputTokens, 10)
	out = append(out, `,"total_tokens":`...)
	out = strconv.AppendInt(out, a.allTokens, 10)
	return append(out, "}}"...), nil
}
