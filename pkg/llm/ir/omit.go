package ir

import (
	"slices"
	"strings"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"weir/pkg/wire/jsonscan"
	"weir/pkg/wire/vendortext"
)

// A path names a field of a request: the names of members separated by dots, "*" for
// every element of an array.
const (
	maxPath  = 48 // bytes
	maxDepth = 8  // names
	maxRead  = 16 // fields that one error names
)

// essential are the top-level fields without which a request means something else, or
// nothing.
var essential = [...]string{
	"model", "messages", "input", "contents", "prompt", "system", "instructions", "stream", "tools", "functions", "n",
	"max_tokens", "max_completion_tokens", "response_format", "output_format", "text", "modalities", "audio",
	"previous_response_id", "conversation", "background",
}

// detailed are the members of messages that may be left out.
var detailed = [...]string{
	"cache_control", "reasoning_content", "reasoning", "reasoning_details", "annotations", "refusal", "caller",
	"extra_content", "phase",
}

// toolParts are the members of tools that may not.
var toolParts = [...]string{"name", "type", "description", "parameters", "input_schema", "format"}

// omissible reports whether a request without the field is worth sending.
func omissible(path []string) bool {
	last := path[len(path)-1]
	if len(path) == 1 {
		return !slices.Contains(essential[:], last)
	}
	switch path[0] {
	case "messages", "input", "system":
		return slices.ContainsFunc(path, func(name string) bool { return slices.Contains(detailed[:], name) })
	case "tools":
		return !slices.ContainsFunc(path, func(name string) bool { return slices.Contains(toolParts[:], name) }) &&
			last != "function"
	case "output_config":
		return path[1] != "format"
	}
	return !slices.Contains(essential[:], path[0])
}

// refusedFields returns the paths of the fields that an error refuses. Fields that were not
// sent, and those that cannot be left out, are not among them.
func refusedFields(sent []byte, code, param, message string, raw []byte) (paths []string) {
	root := gjson.Parse(View(sent))
	read := 0
	add := func(names []string) {
		if read++; read > maxRead {
			return // each is a search through the request
		}
		if path := pathIn(root, names); path != "" && !slices.Contains(paths, path) {
			paths = append(paths, path)
		}
	}
	if fieldCode(code) || DefaultOnly(code, message) {
		add(namesOf(param))
	}
	eachForbidden(raw, func(loc []gjson.Result) {
		var names []string
		for i, v := range loc {
			if i > 0 || v.String() != "body" {
				names = append(names, v.String())
			}
		}
		add(names)
	})
	for _, name := range vendortext.Named(vendortext.RefusesField, message) {
		add(namesOf(name))
	}
	return paths
}

// namesOf splits a path as errors write it: "input[4].action.query", "tools.0.strict".
func namesOf(path string) []string {
	return strings.FieldsFunc(path, func(r rune) bool { return r == '.' || r == '[' || r == ']' })
}

// pathIn returns the path of a field that an error names, "" if the body does not
// have it or needs it. Names of variants between others are passed over:
// "tools.0.custom.strict" is the field strict of a tool.
func pathIn(v gjson.Result, names []string) string {
	if len(names) == 0 || len(names) > 2*maxDepth {
		return ""
	}
	var path []string
	for i, name := range names {
		if !isPlain(name) {
			return ""
		}
		last := i == len(names)-1
		switch next := v.Get(name); {
		case v.IsArray() && next.Exists():
			path, v = append(path, "*"), next
		case v.IsObject() && next.Exists() && (last || next.IsObject() || next.IsArray()):
			path, v = append(path, name), next
		case !last:
		case v.Get(snake(name)).Exists():
			path = append(path, snake(name))
		default:
			return ""
		}
	}
	joined := strings.Join(path, ".")
	if len(path) == 0 || path[len(path)-1] == "*" || len(path) > maxDepth || len(joined) > maxPath || !omissible(path) {
		return ""
	}
	return joined
}

// isPlain reports whether a name has letters, digits, - and _ alone.
func isPlain(name string) bool {
	for i := range len(name) {
		if c := name[i]; !IsLetter(c) && (c < '0' || c > '9') && c != '_' && c != '-' {
			return false
		}
	}
	return name != ""
}

// snake returns presencePenalty as presence_penalty.
func snake(name string) string {
	out := make([]byte, 0, len(name)+4)
	for i := range len(name) {
		c := name[i]
		if 'A' <= c && c <= 'Z' {
			out = append(out, '_')
			c |= 0x20
		}
		out = append(out, c)
	}
	return string(out)
}

// Omit returns a body without the field of a path, and reports whether it had one.
func Omit(body []byte, path string) ([]byte, bool) {
	name, rest, nested := strings.Cut(path, ".")
	v := gjson.Get(View(body), name)
	if !v.Exists() {
		return body, false
	}
	if !nested {
		out, err := sjson.DeleteBytes(body, name)
		return out, err == nil
	}
	raw, had := without(v, strings.Split(rest, "."))
	if !had || v.Index == 0 {
		return body, false
	}
	return jsonscan.Splice(body, jsonscan.Span{Start: v.Index, End: v.Index + len(v.Raw)}, []byte(raw)), true
}

// without returns a value without the field of a path in it.
func without(v gjson.Result, path []string) (raw string, had bool) {
	name, rest := path[0], path[1:]
	switch {
	case name == "*" && v.IsArray() && len(rest) > 0:
		d := Writer{Buf: make([]byte, 0, len(v.Raw))}
		d.Open("", '[')
		Each(v, func(_, element gjson.Result) bool {
			part, changed := without(element, rest)
			had = had || changed
			d.Raw("", part)
			return true
		})
		d.Close(']')
		raw = string(d.Buf)
	case name != "*" && v.IsObject():
		raw = MapMembers(v, func(key string, x gjson.Result) (string, bool) {
			if key != name {
				return x.Raw, true
			}
			if len(rest) == 0 {
				had = true
				return "", false
			}
			part, changed := without(x, rest)
			had = had || changed
			return part, true
		})
	}
	if !had {
		return v.Raw, false
	}
	return raw, true
}
