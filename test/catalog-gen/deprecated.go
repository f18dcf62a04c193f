package main

import "strings"

// ends are the days on which models end, and their successors, of the vendors' pages.
var ends = []struct{ alias, ids, end string }{
	// https://developers.openai.com/api/docs/deprecations
	{"openai", "gpt-4 gpt-4-turbo gpt-4o-2024-05-13 o1 o1-pro o3-mini", "2026-10-23 gpt-5.6-sol"},
	{"openai", "o4-mini", "2026-10-23 gpt-5.6-terra"},
	{"openai", "gpt-4.1-nano", "2026-10-23"},
	{"openai", "gpt-4o gpt-4o-2024-08-06 gpt-4o-2024-11-20 gpt-4o-mini gpt-4.1 gpt-4.1-mini", "2027-01-14 gpt-6-luna"},
}

// deprecate marks the models that models.dev calls deprecated, and those of ends.
func deprecate(all map[string]list) {
	list := readList(modelsDev)
	for alias, l := range all {
		for key, r := range l {
			if list[alias+"/"+r.id].status == "deprecated" {
				r.deprecated = "-"
			}
			for _, e := range ends {
				for id := range strings.FieldsSeq(e.ids) {
					if e.alias == alias && id == r.id {
						r.deprecated = e.end
					}
				}
			}
			l[key] = r
		}
	}
}
