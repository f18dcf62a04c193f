package endpoint

import (
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"weir/pkg/wire/apierr"
	"weir/pkg/wire/jsonscan"
)

// Reader reads a request. After a failure all fields read as if absent.
type Reader struct {
	// Err is the first failure, an *apierr.Error of status 400.
	Err error
	set jsonscan.Set
}

// Read begins to read a body, which must be a JSON object; names are the fields
// that are known.
func Read(body []byte, names ...string) *Reader {
	r := &Reader{}
	var err error
	if r.set, err = jsonscan.Read(body, names...); err != nil {
		r.Err = BadJSON(err)
	}
	return r
}

// Fail notes a failure of a field, unless there is one.
func (r *Reader) Fail(name, message string) {
	if r.Err == nil {
		r.Err = apierr.Invalid(name, "%s", apierr.Sentence(message))
	}
}

// absent reports whether a field is not there, or null.
func (r *Reader) absent(name string) bool {
	k := r.set.Get(name).Kind
	return k == jsonscan.Absent || k == jsonscan.Null
}

// Text returns a string that is not empty; "" when it is absent or null and not
// required.
func (r *Reader) Text(name string, required bool) string {
	if r.Err != nil {
		return ""
	}
	v, _, err := r.set.String(name)
	switch {
	case r.absent(name):
		if required {
			r.Fail(name, name+" is required")
		}
	case err != nil, strings.TrimSpace(v) == "":
		r.Fail(name, name+" must be a non-empty string")
	}
	return v
}

// Model returns what model or provider name; "" for neither.
func (r *Reader) Model() string {
	model, provider := r.Text("model", false), r.Text("provider", false)
	if model != "" && provider != "" && model != provider {
		r.Fail("provider", "model and provider name two different things")
	}
	return model + provider[min(len(model), len(provider)):]
}

// Choice returns one of a list of words, the first one when it is absent.
func (r *Reader) Choice(name string, words ...string) string {
	if r.Err != nil || r.absent(name) {
		return words[0]
	}
	v, _, err := r.set.String(name)
	for _, w := range words {
		if err == nil && v == w {
			return w
		}
	}
	r.Fail(name, name+" must be one of "+strings.Join(words, ", "))
	return words[0]
}

// Int returns an integer, def when it is absent.
func (r *Reader) Int(name string, def, min, max int) int {
	if r.Err != nil {
		return def
	}
	n, ok, err := r.set.Int(name, int64(min), int64(max))
	if err != nil {
		r.Fail(name, name+" must be an integer from "+strconv.Itoa(min)+" to "+strconv.Itoa(max))
	}
	if err != nil || !ok {
		return def
	}
	return int(n)
}

// Bool returns true or false, false when it is absent.
func (r *Reader) Bool(name string) bool {
	if r.Err != nil {
		return false
	}
	v, _, err := r.set.Bool(name)
	if err != nil {
		r.Fail(name, name+" must be true or false")
	}
	return v
}

// Value returns a field as it is; one that does not exist when it is absent or
// null.
func (r *Reader) Value(name string) gjson.Result {
	if r.Err != nil {
		return gjson.Result{}
	}
	v := gjson.ParseBytes(r.set.Raw(name))
	if v.Type == gjson.Null {
		return gjson.Result{}
	}
	return v
}
