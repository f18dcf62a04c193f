package manage

import (
	"slices"
	"strings"

	"weir/pkg/machine/storage"
	"weir/pkg/store"
	"weir/pkg/usage"
	"weir/pkg/wire/apierr"
)

// usageLabel is a label that usage is grouped or filtered by: tool, or a name of tags.
//
//	groupBy=tool   groupBy=tag:project   tool=claude-code   tag=project=atlas
//
// The rows of labels are those of days and keys: they have no hours, accounts, models and
// endpoints. Calls without a value, such as earlier ones, are a group of their own.
type usageLabel struct {
	kind, name string
	value      string // that is asked for
	filter     bool
}

const tagGroup = "tag:"

// isLabel reports whether a group is a label.
func isLabel(group string) bool {
	return group == usage.ByTool || len(group) > len(tagGroup) && strings.HasPrefix(group, tagGroup)
}

// labelOf returns the label that the query names, or nil. by are the groups.
func (c *change) labelOf(by []string) (*usageLabel, error) {
	var l *usageLabel
	several := false
	add := func(of usageLabel) {
		if l != nil && (l.kind != of.kind || l.name != of.name) {
			several = true
		}
		l = &of
	}
	for _, group := range by {
		if group == usage.ByTool {
			add(usageLabel{kind: usage.ByTool})
		} else if isLabel(group) {
			add(usageLabel{kind: usage.ByName, name: group[len(tagGroup):]})
		}
	}
	if tool := c.query("tool"); tool != "" {
		add(usageLabel{usage.ByTool, "", tool, true})
	}
	if tag := c.query("tag"); tag != "" {
		_, value, ok := strings.Cut(tag, "=")
		if !ok {
			return nil, apierr.Invalid("tag", "tag must be name=value. Usage is not added up by tags without a value.")
		}
		add(usageLabel{usage.ByName, store.TagName(tag), strings.TrimSpace(value), true})
	}
	if several {
		return nil, apierr.Invalid("groupBy", "Usage is added up by one of tool and the names of tags at a time.")
	}
	if l == nil {
		return nil, nil
	}
	for _, name := range [...]string{"hour", "connection", "provider", "model", "endpoint"} {
		if slices.Contains(by, name) || c.query(name) != "" {
			return nil, apierr.Invalid("groupBy", "Usage by tool or tag is that of days, months and keys. It has no %s.", name)
		}
	}
	return l, nil
}

// show sets the value of a row.
func (l *usageLabel) show(v *usage.View, value string) {
	switch {
	case value == "":
	case l.kind == usage.ByTool:
		v.Tool = value
	default:
		v.Tag = l.name + "=" + value
	}
}

// labelled calls add with the usage of each value of a label, by day and key. Without a filter
// that of calls without a value follows, as the rest of all usage.
func (c *change) labelled(from, to int64, l *usageLabel, want *usage.Row, add func(day, value string, r *usage.Row)) {
	type part struct{ day, key string }
	var order []part
	over := map[string]*usage.Row{} // by day: of keys that only one of the two has, beyond their bounds
	rest := map[part]*usage.Row{}
	if !l.filter {
		c.days(from, to, func(day string, r *usage.Row) {
			if !c.isOf(r, want) {
				return
			}
			of := part{day, r.KeyID}
			if rest[of] == nil {
				rest[of] = &usage.Row{KeyID: r.KeyID}
				order = append(order, of)
			}
			rest[of].AddCounts(r)
		})
	}
	c.Labels(from, min(to, c.Now), l.kind, l.name, func(day string, r *usage.LabelRow) {
		if !c.isOf(&r.Row, want) || l.filter && r.Value != l.value {
			return
		}
		add(day, r.Value, &r.Row)
		if sum := rest[part{day, r.KeyID}]; sum != nil {
			sum.Less(&r.Row)
		}
		if over[day] == nil {
			over[day] = &usage.Row{}
		}
		over[day].AddCounts(&r.Row)
	})
	for _, of := range order {
		r := rest[of]
		if more := over[of.day]; more != nil {
			r.Less(more)
		}
		if r.Calls+r.Requests+r.Errors > 0 {
			add(of.day, "", r)
		}
	}
}

// tagNames returns the names of the tags of the last week from one time to another.
func (c *change) tagNames(from, to int64) (names []string) {
	if c.member() != nil { // they are those of all
		return nil
	}
	for at := max(from, to-usageWeek+1); at <= to; at += storage.Day {
		names = append(names, c.TagNames(at)...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
