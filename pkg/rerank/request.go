package rerank

import (
	"errors"
	"strings"

	"github.com/tidwall/gjson"

	"weir/pkg/apierr"
	"weir/pkg/fields"
)

// maxDocuments is the most documents of one request: what the smallest of the
// providers takes in one call.
const maxDocuments = 1000

// request is a client's request. Spec-gaps, Rerank and moderation.
type request struct {
	model     string
	query     string
	documents []string
	given     []gjson.Result // the documents as the client wrote them
	top       int            // results wanted; 0 is all
	echo      bool           // documents are wanted with the results
}

// parse reads and checks a body.
func parse(body []byte) (*request, error) {
	s, err := fields.Read(body, "model", "query", "documents", "top_n", "return_documents")
	if err != nil {
		var e *fields.Error
		if errors.As(err, &e) && e.Field != "" {
			return nil, apierr.Invalid(e.Field, "%s", e.Error())
		}
		return nil, apierr.Invalid("", "the body is not valid JSON: %v", err)
	}
	r := &request{}
	for _, f := range [...]struct {
		name string
		to   *string
	}{{"model", &r.model}, {"query", &r.query}} {
		v, ok, err := s.String(f.name)
		switch {
		case err == nil && !ok:
			return nil, apierr.Invalid(f.name, "%s is required", f.name)
		case err != nil, strings.TrimSpace(v) == "":
			return nil, apierr.Invalid(f.name, "%s must be a non-empty string", f.name)
		}
		*f.to = v
	}
	if err := r.readDocuments(&s); err != nil {
		return nil, err
	}
	if n, ok, err := s.Int("top_n", 1, 1<<31-1); err != nil {
		return nil, apierr.Invalid("top_n", "top_n must be an integer of at least 1")
	} else if ok {
		r.top = min(int(n), len(r.documents))
	}
	if v, _, err := s.Bool("return_documents"); err != nil {
		return nil, apierr.Invalid("return_documents", "return_documents must be true or false")
	} else {
		r.echo = v
	}
	return r, nil
}

// readDocuments takes strings, and objects with a string under text.
func (r *request) readDocuments(s *fields.Set) error {
	v := s.Get("documents")
	if v.Kind == fields.Absent {
		return apierr.Invalid("documents", "documents is required")
	}
	if v.Kind != fields.Array {
		return apierr.Invalid("documents", "documents must be a list")
	}
	r.given = gjson.ParseBytes(s.Raw("documents")).Array()
	if n := len(r.given); n == 0 || n > maxDocuments {
		return apierr.Invalid("documents", "documents must have from 1 to %d items", maxDocuments)
	}
	r.documents = make([]string, 0, len(r.given))
	for _, d := range r.given {
		if d.IsObject() {
			d = d.Get("text")
		}
		if d.Type != gjson.String || d.Str == "" {
			return apierr.Invalid("documents", "documents must be non-empty strings, or objects with such a text")
		}
		r.documents = append(r.documents, d.Str)
	}
	return nil
}
