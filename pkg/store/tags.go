package store

import (
	"strings"
	"unicode/utf8"

	"github.com/tidwall/gjson"
)

// Bounds of the tags of a request.
const (
	MaxTags = 8
	MaxTag  = 64 // bytes of one
)

// Bounds of Settings.TagsFrom.
const (
	MaxTagFields = 8
	maxFieldName = 40
)

// PersonTag is the name of the tag that says whose a key is. Calls cannot set it: it adds up what a
// person has used, and their budget.
const PersonTag = "person"

// IsTagField reports whether a field of bodies may be in Settings.TagsFrom.
func IsTagField(field string) bool {
	name, nested := strings.CutPrefix(field, "metadata.")
	if !nested {
		return field == "user" || field == "safety_identifier"
	}
	return name != "" && len(name) <= maxFieldName && strings.IndexFunc(name, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-')
	}) < 0
}

// TagsOfBody returns the tags that the fields of a JSON body are, at most one of each: those
// whose value is a text or a number, fits into a tag, and has no comma or control character.
func TagsOfBody(body []byte, fields []string) (tags []string) {
	for _, field := range fields {
		v := gjson.GetBytes(body, field)
		text := v.String()
		tag := strings.TrimPrefix(field, "metadata.") + "=" + text
		if (v.Type == gjson.String || v.Type == gjson.Number) && text != "" && len(tag) <= MaxTag && utf8.ValidString(text) &&
			strings.IndexFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f || r == ',' }) < 0 {
			tags = append(tags, tag)
		}
	}
	return tags
}

// TagName returns the name of a tag: "project" of "project=atlas", and the tag itself without "=".
func TagName(tag string) string {
	name, _, _ := strings.Cut(tag, "=")
	return strings.TrimSpace(name)
}

// SameTag reports whether two tags have the same name and value. Spaces around "=" are not a part
// of them.
func SameTag(a, b string) bool {
	if a == b {
		return true
	}
	name, value, valued := strings.Cut(a, "=")
	name2, value2, valued2 := strings.Cut(b, "=")
	return valued == valued2 && strings.TrimSpace(name) == strings.TrimSpace(name2) &&
		strings.TrimSpace(value) == strings.TrimSpace(value2)
}
