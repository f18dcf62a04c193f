package store

import (
	"slices"
	"strings"
	"testing"
)

func TestTagsOfTheFieldsOfABody(t *testing.T) {
	for _, tt := range []struct{ body, fields, want string }{
		{`{"user":"ann","metadata":{"project":"atlas","n":7}}`, "user metadata.project metadata.n", "user=ann project=atlas n=7"},
		{`{"metadata":{"user_id":"u1"}}`, "metadata.user_id user", "user_id=u1"},
		{`{"safety_identifier":"abc"}`, "safety_identifier", "safety_identifier=abc"},
		{`{"user":"a,b"}`, "user", ""},
		{`{"user":"a\nb"}`, "user", ""},
		{`{"user":""}`, "user", ""},
		{`{"user":{"name":"x"},"metadata":["project"]}`, "user metadata.project", ""},
		{`{"user":true}`, "user", ""},
		{`{"user":"` + strings.Repeat("u", MaxTag) + `"}`, "user", ""},
		{`not json`, "user", ""},
		{``, "user", ""},
	} {
		if got := TagsOfBody([]byte(tt.body), strings.Fields(tt.fields)); !slices.Equal(got, strings.Fields(tt.want)) {
			t.Errorf("%s: got %q, want %s", tt.body, got, tt.want)
		}
	}
}

func TestFieldsThatMayBeTags(t *testing.T) {
	for field, want := range map[string]bool{
		"user": true, "safety_identifier": true, "metadata.user_id": true, "metadata.a-B9": true,
		"metadata": false, "metadata.": false, "metadata.a.b": false, "metadata.#": false, "metadata.*": false, "messages": false, "": false,
		"metadata." + strings.Repeat("a", 41): false,
	} {
		if got := IsTagField(field); got != want {
			t.Errorf("IsTagField(%q) = %t", field, got)
		}
	}
}
