package multipart

import (
	"strings"
	"testing"
)

func TestDigestIgnoresBoundary(t *testing.T) {
	sum := func(body, boundary string) [32]byte {
		t.Helper()
		got, err := Digest(strings.NewReader(body), boundary, 40)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	base := form(field("a", "1"), file("f", "content"))
	if sum(base, "b") != sum(strings.ReplaceAll(base, "--b", "--other"), "other") {
		t.Error("the boundary is part of the digest")
	}
	for name, other := range map[string]string{
		"value":   form(field("a", "2"), file("f", "content")),
		"name":    form(field("b", "1"), file("f", "content")),
		"content": form(field("a", "1"), file("f", "contenu")),
		"order":   form(file("f", "content"), field("a", "1")),
		"more":    form(field("a", "1"), file("f", "content"), field("c", "")),
		"moved":   form(field("a", "1c"), file("f", "ontent")),
		"kind":    form(field("a", "1"), field("f", "content")),
	} {
		if sum(base, "b") == sum(other, "b") {
			t.Errorf("another %s has the same digest", name)
		}
	}
	if _, err := Digest(strings.NewReader(base[:40]), "b", 40); err == nil {
		t.Error("a cut form has a digest")
	}
}
