package accounts

import (
	"slices"
	"strings"
	"unicode/utf8"

	"weir/pkg/setup"
	"weir/pkg/snapshot"
	"weir/pkg/store"
	"weir/pkg/usage"
	"weir/pkg/wire/httpmsg"
)

// Tags returns the tags of a request: those of its key, those of its header x-weir-tags, texts
// between commas, and those of its body. A name, the text before "=", has one value: the key's,
// else the first. Those that are too long, too many or not UTF-8 are left out, and the name "person",
// which keys alone have.
func (t *Trace) Tags(m *snapshot.Machine, r *httpmsg.Request) []string {
	if t.tagged {
		return t.tags
	}
	t.tagged, t.tags = true, m.KeyTags(t.KeyID)
	for tag := range strings.SplitSeq(r.Header.Get("x-weir-tags"), ",") {
		t.addTag(strings.TrimSpace(tag))
	}
	for _, tag := range t.FieldTags {
		t.addTag(tag)
	}
	return t.tags
}

func (t *Trace) addTag(tag string) {
	name := store.TagName(tag)
	if tag == "" || name == store.PersonTag || len(tag) > store.MaxTag || len(t.tags) >= store.MaxTags ||
		!utf8.ValidString(tag) || slices.ContainsFunc(t.tags, func(had string) bool { return store.TagName(had) == name }) {
		return
	}
	t.tags = append(slices.Clip(t.tags), strings.Clone(tag))
}

// label adds the counts of a row to the labels of the request: its tool, and its tags with a value.
func (t *Trace) label(list []usage.Label, m *snapshot.Machine, r *httpmsg.Request, row *usage.Row) []usage.Label {
	list = usage.AddLabel(list, usage.ByTool, "", setup.ToolOf(r.Header.Get("user-agent")), row)
	for _, tag := range t.Tags(m, r) {
		if name, value, ok := strings.Cut(tag, "="); ok && name != "" {
			list = usage.AddLabel(list, usage.ByName, strings.TrimSpace(name), strings.TrimSpace(value), row)
		}
	}
	return list
}
