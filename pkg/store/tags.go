package store

import "strings"

// Bounds of the tags of a request.
const (
	MaxTags = 8
	MaxTag  = 64 // bytes of one
)

// TagName returns the name of a tag: "project" of "project=atlas", and the tag itself without "=".
func TagName(tag string) string {
	name, _, _ := strings.Cut(tag, "=")
	return strings.TrimSpace(name)
}
