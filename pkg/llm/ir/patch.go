package ir

import (
	"bytes"
	"slices"
	"strings"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"weir/pkg/wire/jsonscan"
)

// Patch changes a body field by field, on copies.
type Patch struct {
	Body    []byte
	Dropped []string
	Err     error

	client []byte // the client's body
	marked *jsonscan.Marked
	added  []string // top-level members that client does not have
}

// NewPatch returns the patch of a client's body in which marked was found.
func NewPatch(body []byte, marked *jsonscan.Marked) Patch {
	return Patch{Body: body, client: body, marked: marked}
}

// Marked reports whether the client's body may have a string with the prefix of this
// number, among the marks of its dialect.
func (p *Patch) Marked(i int) bool { return p.marked.Has(i) }

// After returns the client's body behind the last string with the prefix of this
// number.
func (p *Patch) After(i int, prefix string) []byte {
	return p.client[p.marked.Last(i)+1+len(prefix):]
}

// lacks reports whether the body certainly has no value at a path, which spares a
// search through all of it.
func (p *Patch) lacks(path string) bool {
	name, _, _ := strings.Cut(path, ".")
	return p.marked.Lacks(p.client, name) && !slices.Contains(p.added, name)
}

// Get returns the value at a path.
func (p *Patch) Get(path string) gjson.Result {
	if p.lacks(path) {
		return gjson.Result{}
	}
	return gjson.GetBytes(p.Body, path)
}

// Has reports whether the body has a value at a path.
func (p *Patch) Has(path string) bool { return p.Get(path).Exists() }

// Set sets the value at a path.
func (p *Patch) Set(path, raw string) {
	if p.Err == nil {
		if p.lacks(path) {
			name, _, _ := strings.Cut(path, ".")
			p.added = append(p.added, name)
		}
		p.Body, p.Err = sjson.SetRawBytes(p.Body, path, []byte(raw))
	}
}

// Del deletes the value at a path.
func (p *Patch) Del(path string) {
	if p.Err == nil && !p.lacks(path) {
		p.Body, p.Err = sjson.DeleteBytes(p.Body, path)
	}
}

// Drop deletes a top-level field and notes it as dropped.
func (p *Patch) Drop(name string) {
	if p.Has(name) {
		p.Del(name)
		p.Dropped = append(p.Dropped, name)
	}
}

// Only omits all members but those named, in one pass, and removes refused
// members of the schemas. A body without any of them is not copied.
func (p *Patch) Only(names []string) {
	if p.Err != nil {
		return
	}
	marked := bytes.Contains(p.Body, []byte(schemaMark))
	hasMarks := func(name string) bool { return marked && (name == "tools" || name == "response_format") }
	root, changed := gjson.Parse(View(p.Body)), false
	Each(root, func(k, _ gjson.Result) bool {
		changed = !slices.Contains(names, k.Str) || hasMarks(k.Str)
		return !changed
	})
	if !changed {
		return
	}
	p.Body = mapMembers(root, func(name string, v gjson.Result) (string, bool) {
		if !slices.Contains(names, name) {
			if v.Type != gjson.Null && len(p.Dropped) < maxDropped {
				p.Note(strings.Clone(name))
			}
			return "", false
		}
		if hasMarks(name) {
			return WithoutSchemaMarks(v.Raw), true
		}
		return v.Raw, true
	})
}

// Rename moves a value to another name, unless that exists.
func (p *Patch) Rename(from, to string) {
	v := p.Get(from)
	if from == to || !v.Exists() {
		return
	}
	raw := v.Raw
	p.Del(from)
	if !p.Has(to) {
		p.Set(to, raw)
	}
}

// ShortUser replaces user ids over the limit with hashes.
func (p *Patch) ShortUser(limit int) {
	for _, name := range [...]string{"user", "safety_identifier"} {
		id := Str(p.Get(name))
		if short := ShortUser(id, limit); short != id {
			p.Set(name, Quote(short))
		}
	}
}

// Each rewrites the array at a path: change returns the new element, mostly the
// same, or false to omit it. Unchanged elements keep their bytes.
func (p *Patch) Each(path string, change func(v gjson.Result) (raw string, keep bool)) {
	list := p.Get(path)
	if !list.IsArray() || list.Index == 0 {
		return
	}
	d := Writer{Buf: make([]byte, 0, len(list.Raw))}
	d.Open("", '[')
	Each(list, func(_, v gjson.Result) bool {
		if raw, keep := change(v); keep {
			d.Raw("", raw)
		}
		return true
	})
	d.Close(']')
	p.Body = jsonscan.Splice(p.Body, jsonscan.Span{Start: list.Index, End: list.Index + len(list.Raw)}, d.Buf)
}

// Note notes a field as dropped.
func (p *Patch) Note(name string) {
	for _, d := range p.Dropped {
		if d == name {
			return
		}
	}
	p.Dropped = append(p.Dropped, name)
}
