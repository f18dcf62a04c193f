package llm

import (
	"bytes"
	"slices"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"weir/pkg/wire/jsonscan"
)

// patch changes a body field by field, on copies.
type patch struct {
	body    []byte
	dropped []string
	err     error
}

func (p *patch) has(name string) bool { return gjson.GetBytes(p.body, name).Exists() }

func (p *patch) set(path, raw string) {
	if p.err == nil {
		p.body, p.err = sjson.SetRawBytes(p.body, path, []byte(raw))
	}
}

func (p *patch) del(path string) {
	if p.err == nil {
		p.body, p.err = sjson.DeleteBytes(p.body, path)
	}
}

func (p *patch) drop(name string) {
	if p.has(name) {
		p.del(name)
		p.dropped = append(p.dropped, name)
	}
}

// only keeps the named members, in one pass, and removes refused members of the
// schemas.
func (p *patch) only(names []string) {
	if p.err != nil {
		return
	}
	marked := bytes.Contains(p.body, []byte(schemaMark))
	p.body = []byte(members(gjson.ParseBytes(p.body), func(name string, v gjson.Result) (string, bool) {
		if !slices.Contains(names, name) {
			if v.Type != gjson.Null && len(p.dropped) < maxDropped {
				p.note(name)
			}
			return "", false
		}
		if marked && (name == "tools" || name == "response_format") {
			return withoutMarks(v.Raw), true
		}
		return v.Raw, true
	}))
}

// rename moves a value to another name, unless that is taken.
func (p *patch) rename(from, to string) {
	v := gjson.GetBytes(p.body, from)
	if from == to || !v.Exists() {
		return
	}
	raw := v.Raw
	p.del(from)
	if !p.has(to) {
		p.set(to, raw)
	}
}

// shortUser replaces user ids over the limit with hashes.
func (p *patch) shortUser(limit int) {
	for _, name := range [...]string{"user", "safety_identifier"} {
		id := str(gjson.GetBytes(p.body, name))
		if short := ShortUser(id, limit); short != id {
			p.set(name, quoted(short))
		}
	}
}

// each rebuilds the array at a path: change gives what stands for an element,
// itself mostly, and false to leave it out. Elements that stay keep their bytes.
func (p *patch) each(path string, change func(v gjson.Result) (raw string, keep bool)) {
	list := gjson.GetBytes(p.body, path)
	if !list.IsArray() || list.Index == 0 {
		return
	}
	d := doc{b: make([]byte, 0, len(list.Raw))}
	d.open("", '[')
	forEach(list, func(_, v gjson.Result) bool {
		if raw, keep := change(v); keep {
			d.raw("", raw)
		}
		return true
	})
	d.close(']')
	p.body = jsonscan.Splice(p.body, jsonscan.Span{Start: list.Index, End: list.Index + len(list.Raw)}, d.b)
}

func (p *patch) note(name string) {
	for _, d := range p.dropped {
		if d == name {
			return
		}
	}
	p.dropped = append(p.dropped, name)
}
