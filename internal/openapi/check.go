package openapi

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Checker compares answers of the gateway with the document. Unlike the published
// one, its document refuses fields that it does not describe.
type Checker struct {
	doc      object
	compiler *jsonschema.Compiler
	schemas  map[string]*jsonschema.Schema // by their place
	// Answered are the ids of the operations of which a success was checked.
	Answered map[string]bool
}

const place = "openapi.json"

// NewChecker returns a Checker of the current document.
func NewChecker() (*Checker, error) {
	doc, err := document(true)
	if err != nil {
		return nil, err
	}
	raw, err := json.Marshal(doc) // as a reader of the file has it
	if err != nil {
		return nil, err
	}
	plain, err := jsonschema.UnmarshalJSON(strings.NewReader(string(raw)))
	if err != nil {
		return nil, err
	}
	c := &Checker{doc: plain.(object), compiler: jsonschema.NewCompiler(), schemas: map[string]*jsonschema.Schema{},
		Answered: map[string]bool{}}
	return c, c.compiler.AddResource(place, plain)
}

// Operations returns the ids of all operations, in order.
func (c *Checker) Operations() []string {
	var ids []string
	for _, item := range c.doc["paths"].(object) {
		for _, op := range item.(object) {
			ids = append(ids, op.(object)["operationId"].(string))
		}
	}
	slices.Sort(ids)
	return ids
}

// Answer returns how an answer differs from the document, or nil. The path is the
// request's, without a machine; a path that the gateway does not have is not judged.
func (c *Checker) Answer(method, path string, status int, contentType, body string) error {
	pattern := c.find(method, path)
	if pattern == "" {
		return nil
	}
	op := c.doc["paths"].(object)[pattern].(object)[strings.ToLower(method)].(object)
	code, at := strconv.Itoa(status), ""
	answers := op["responses"].(object)
	answer, ok := answers[code].(object)
	switch {
	case ok:
		at = pointer("paths", pattern, strings.ToLower(method), "responses", code)
	case status < 400:
		return fmt.Errorf("%s %s: status %d is not described", method, pattern, status)
	default:
		name := answers["default"].(object)["$ref"].(string)
		at = strings.TrimPrefix(name, "#")
		answer = c.doc["components"].(object)["responses"].(object)[name[strings.LastIndex(name, "/")+1:]].(object)
	}
	content, _ := answer["content"].(object)
	if len(content) == 0 {
		if body != "" {
			return fmt.Errorf("%s %s: the answer of %d has a body: %.100s", method, pattern, status, body)
		}
		return c.answered(op, ok)
	}
	kind, _, _ := strings.Cut(contentType, ";")
	if _, ok := content[kind]; !ok && !matches(content, kind) {
		return fmt.Errorf("%s %s: an answer of %d has the type %q", method, pattern, status, contentType)
	}
	if kind != "application/json" {
		return c.answered(op, ok)
	}
	schema, err := c.compiled(at + pointer("content", kind, "schema"))
	if err != nil {
		return err
	}
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(body))
	if err == nil {
		err = schema.Validate(v)
	}
	if err != nil {
		return fmt.Errorf("%s %s, status %d: %w\n%.400s", method, pattern, status, err, body)
	}
	return c.answered(op, ok)
}

func (c *Checker) answered(op object, success bool) error {
	if success {
		c.Answered[op["operationId"].(string)] = true
	}
	return nil
}

// matches reports whether one of the types is a range, such as audio/*, that has kind.
func matches(content object, kind string) bool {
	major, _, _ := strings.Cut(kind, "/")
	return content[major+"/*"] != nil
}

func (c *Checker) compiled(at string) (*jsonschema.Schema, error) {
	if s := c.schemas[at]; s != nil {
		return s, nil
	}
	s, err := c.compiler.Compile(place + "#" + at)
	if err == nil {
		c.schemas[at] = s
	}
	return s, err
}

// pointer returns a JSON pointer (RFC 6901) as the fragment of a URL.
func pointer(names ...string) string {
	var b strings.Builder
	for _, name := range names {
		name = strings.NewReplacer("~", "~0", "/", "~1", "{", "%7B", "}", "%7D").Replace(name)
		b.WriteString("/" + name)
	}
	return b.String()
}

// find returns the pattern of a path that has the method: the one without
// parameters, else the one with the fewest.
func (c *Checker) find(method, path string) string {
	best, fewest := "", 1<<30
	for pattern, item := range c.doc["paths"].(object) {
		if item.(object)[strings.ToLower(method)] == nil || !fits(pattern, path) {
			continue
		}
		if n := strings.Count(pattern, "{"); n < fewest {
			best, fewest = pattern, n
		}
	}
	return best
}

func fits(pattern, path string) bool {
	want, got := strings.Split(pattern, "/"), strings.Split(path, "/")
	if strings.HasSuffix(pattern, "{model}") && len(got) > len(want) {
		got = got[:len(want)]
	}
	return slices.EqualFunc(want, got, func(w, g string) bool { return w == g || strings.HasPrefix(w, "{") && g != "" })
}
