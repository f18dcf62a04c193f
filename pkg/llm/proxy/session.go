package proxy

import (
	"github.com/tidwall/gjson"

	"weir/pkg/llm/ir"
	"weir/pkg/routing"
	"weir/pkg/wire/jsonscan"
)

// sessionParts are where the fields are by which a session is recognized.
type sessionParts struct {
	id, cacheKey, metadata, system, messages jsonscan.Span
}

// readSession notes where the fields are that ReadRequest has found.
func (a *Request) readSession(set *jsonscan.Set) {
	client := a.Dialect.Client()
	at := func(names ...string) jsonscan.Span {
		for _, name := range names {
			if v := set.Get(name); v.Kind > jsonscan.Null {
				return v.Span
			}
		}
		return jsonscan.Span{}
	}
	a.session = sessionParts{
		id:       at("session_id"),
		cacheKey: at("prompt_cache_key"),
		metadata: at("metadata"),
		system:   at(client.System...),
		messages: at(client.Messages...),
	}
}

// SessionField returns the field that names the session of the request, and its value.
func (a *Request) SessionField() (name, value string) {
	if v := a.text(a.session.id); v != "" {
		return "session_id", v
	}
	if v := gjson.Get(a.view(a.session.metadata), "session_id"); v.Type == gjson.String && v.Str != "" {
		return "metadata.session_id", v.Str
	}
	if v := a.text(a.session.cacheKey); v != "" {
		return "prompt_cache_key", v
	}
	if v := gjson.Get(a.view(a.session.metadata), "user_id"); v.Type == gjson.String && v.Str != "" {
		return "metadata.user_id", v.Str
	}
	return "", ""
}

// Opening returns the digest of the texts of the system prompt and of the first message
// of the user. Marks for a prompt cache, which move from call to call, are not in it.
func (a *Request) Opening() (routing.Digest, bool) {
	d := addTexts(routing.DigestOf(""), gjson.Parse(a.view(a.session.system)))
	list := gjson.Parse(a.view(a.session.messages))
	if list.Type == gjson.String { // input of a Responses request
		return d.Text(list.Raw), true
	}
	one := false
	list.ForEach(func(key, m gjson.Result) bool {
		if key.Type == gjson.String { // contents of a Gemini request is one message
			m = list
		}
		if !m.IsObject() {
			return true
		}
		switch m.Get("role").Str {
		case "system", "developer":
			d = addTexts(d, content(m))
		case "user", "":
			if m.Get("type").Str == "" || m.Get("type").Str == "message" {
				d, one = addTexts(d, content(m)), true
			}
		}
		return !one && key.Type != gjson.String
	})
	return d, one
}

// content returns the content of a message.
func content(m gjson.Result) gjson.Result {
	if c := m.Get("content"); c.Exists() {
		return c
	}
	return m.Get("parts")
}

// addTexts adds the texts of a content to a digest: a string, blocks with a text, or an
// object with parts. Texts are compared as the client has escaped them.
func addTexts(d routing.Digest, c gjson.Result) routing.Digest {
	switch {
	case c.Type == gjson.String:
		return d.Text(c.Raw)
	case c.IsObject():
		c = c.Get("parts")
	}
	c.ForEach(func(_, part gjson.Result) bool {
		if t := part.Get("text"); t.Type == gjson.String {
			d = d.Text(t.Raw)
		}
		return true
	})
	return d
}

// view returns a part of the body without a copy.
func (a *Request) view(at jsonscan.Span) string { return ir.View(a.Body[at.Start:at.End]) }

// text returns the content of a part that is a string, else "".
func (a *Request) text(at jsonscan.Span) string {
	if v := gjson.Parse(a.view(at)); v.Type == gjson.String {
		return v.Str
	}
	return ""
}

var _ routing.Conversation = (*Request)(nil)
