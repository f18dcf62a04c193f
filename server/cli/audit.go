package cli

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"regexp"
	"strings"
)

//go:embed audit.json
var auditJSON []byte

// auditWords are the words of the audit log, which the dashboard reads from the same file.
var auditWords = func() (words struct{ Verbs, Kinds, Sentences, Fields, Actors map[string]string }) {
	if err := json.Unmarshal(auditJSON, &words); err != nil {
		panic("audit.json: " + err.Error())
	}
	return words
}()

var (
	parameter = regexp.MustCompile(`/\{[^/]*`)
	camel     = regexp.MustCompile(`([a-z])([A-Z])`)
	separator = regexp.MustCompile(`[-_/]+`)
)

// spaced splits a name of the API: custom models of customModels.
func spaced(name string) string {
	return strings.ToLower(separator.ReplaceAllString(camel.ReplaceAllString(name, "$1 $2"), " "))
}

// fieldText returns a field of a record in words. A route and a text are not the name of one, and
// modelPrices.openai/gpt-5 is that of a model.
func fieldText(name string) string {
	field, of, _ := strings.Cut(name, ".")
	switch {
	case strings.Contains(name, " "):
		return name
	case of != "":
		return fieldText(field) + " of " + of
	}
	return cmp.Or(auditWords.Fields[name], spaced(name))
}

// actionText returns an action in words: Changed API key of PUT /api/keys/{id}.
func actionText(action string) string {
	if known := auditWords.Sentences[action]; known != "" {
		return known
	}
	method, path, ok := strings.Cut(action, " /api/")
	if !ok {
		return spaced(action)
	}
	kind, rest, _ := strings.Cut(parameter.ReplaceAllString(path, ""), "/")
	text := cmp.Or(auditWords.Verbs[method], method) + " " + cmp.Or(auditWords.Kinds[kind], spaced(kind))
	if rest != "" {
		text += " " + spaced(rest)
	}
	return text
}
