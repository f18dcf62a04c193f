package cli

import (
	"reflect"
	"regexp"
	"slices"
	"strings"

	"weir/pkg/catalog"
	"weir/pkg/machine/deliver"
	"weir/pkg/provider"
	"weir/pkg/setup"
	"weir/pkg/store"
)

// choice are the values that a flag, an argument or a setting takes.
type choice struct {
	values []string
	list   bool              // several, between commas
	also   func(string) bool // further ones; nil is none
	// see says what lists them, where they are many. The gateway may know others then: only one that
	// is nearly another is refused.
	see string
}

// choices are the values of flags and arguments by the command, or its group, and by the flag alone where all
// commands have the same. The help, the completion and the errors of mistyped values are made of them.
var choices = map[string]choice{
	"accounts sign-in PROVIDER": {values: providerIDs(), see: "weir accounts providers lists them"},
	"accounts timeline --by":    {values: []string{"account", "provider", "model"}, list: true},
	"combos --kind": {values: kindsOf(catalog.LLM, catalog.Embedding, catalog.Image, catalog.TTS, catalog.STT, catalog.Video, catalog.Music,
		catalog.Rerank, catalog.ImageToText, catalog.WebSearch, catalog.WebFetch)},
	"combos --strategy":         {values: enumOf[FileCombo]("strategy")},
	"combos --split-by":         {values: enumOf[FileCombo]("splitBy")},
	"budgets --unpriced":        {values: enumOf[FileBudget]("unpriced")},
	"destinations add KIND":     {values: destinationKinds(), see: "weir destinations kinds lists them"},
	"identity-providers --kind": {values: enumOf[FileIdentityProvider]("kind")},
	"keys --scopes":             {values: []string{"data", "manage", "export", "metrics"}, list: true},
	"models ls --kind":          {values: []string{"llm", "embedding", "image", "tts", "stt", "video", "music", "rerank", "web", "image-to-text"}},
	"models --kind":             {values: enumOf[FileModel]("type")},
	"requests --outcome":        {values: []string{store.Succeeded, store.ProviderFailed, store.NoAccount, store.Refused, store.Left}},
	"requests --provider":       {values: providerIDs(), see: "weir accounts providers lists them"},
	"requests --reason": {values: []string{store.RefusedByKeyLimit, store.RefusedByBudget, store.RefusedByConcurrency, store.RefusedByKey,
		store.RefusedByModel, store.RefusedByRequest}},
	"requests --status": {values: []string{"429", "4xx", "5xx", "error", "client_left"}, also: regexp.MustCompile(`^[1-9](\d\d|xx)$`).MatchString},
	"usage --by": {values: []string{"key", "person", "account", "model", "provider", "endpoint", "tool", "tag:NAME", "month", "day", "hour"}, list: true,
		also: regexp.MustCompile(`^tag:[^,]`).MatchString},
	"--role": {values: enumOf[FilePerson]("role")},
	"--span": {values: []string{"24h", "30d"}},
	"--tool": {values: toolIDs(), also: setup.IsTool, see: "weir setup lists them"},
}

// choiceOf returns the values of a flag, written --flag, or of an argument of a command.
func choiceOf(command, param string) (choice, bool) {
	group, _, _ := strings.Cut(command, " ")
	for _, name := range [...]string{command + " " + param, group + " " + param, param} {
		if c, ok := choices[name]; ok {
			return c, true
		}
	}
	return choice{}, false
}

// check returns an error if a text is none of the values.
func (c choice) check(param, text string) error {
	texts := []string{text}
	if c.list {
		texts = strings.Split(text, ",")
	}
	for _, one := range texts {
		if slices.Contains(c.values, one) || c.also != nil && c.also(one) {
			continue
		}
		if c.see == "" {
			return Mistyped(param, text, one, c.values)
		}
		if near := closest(one, c.values); near != "" {
			return Usagef("%s %s: %s%s", param, text, maybe(near), c.see)
		}
	}
	return nil
}

// help returns the text of a flag with its values.
func (c choice) help(text string) string {
	if c.see != "" {
		return text
	}
	return text + ": " + or(c.values)
}

// Mistyped returns the error of a text that is none of the values of a parameter, or has a part that is none.
func Mistyped(param, text, part string, values []string) error {
	if near := closest(part, values); near != "" {
		return Usagef("%s %s: %sIt takes %s", param, text, maybe(near), or(values))
	}
	return Usagef("%s %s: it takes %s", param, text, or(values))
}

// closest returns the value that a text is nearly, or the only one that begins with it; "" without one.
func closest(text string, values []string) string {
	if near := catalog.Closest(text, values); near != "" || len(text) < 3 {
		return near
	}
	begins := func(v string) bool { return strings.HasPrefix(strings.ToLower(v), strings.ToLower(text)) }
	if i := slices.IndexFunc(values, begins); i >= 0 && !slices.ContainsFunc(values[i+1:], begins) {
		return values[i]
	}
	return ""
}

// or returns values as a, b or c.
func or(values []string) string {
	if len(values) < 2 {
		return strings.Join(values, "")
	}
	last := len(values) - 1
	return strings.Join(values[:last], ", ") + " or " + values[last]
}

// enumOf returns the values of a field of weir.yaml, nil if it takes any.
func enumOf[T any](field string) []string {
	for f := range reflect.TypeFor[T]().Fields() {
		if tag, _, _ := strings.Cut(f.Tag.Get("json"), ","); tag == field && f.Tag.Get("enum") != "" {
			return strings.Split(f.Tag.Get("enum"), ",")
		}
	}
	return nil
}

func kindsOf(kinds ...catalog.Kind) (all []string) {
	for _, k := range kinds {
		all = append(all, string(k))
	}
	return all
}

func providerIDs() (all []string) {
	for _, d := range provider.All() {
		all = append(all, d.ID)
	}
	return all
}

func destinationKinds() (all []string) {
	for _, k := range deliver.Kinds() {
		all = append(all, k.Name)
	}
	return all
}

func toolIDs() (all []string) {
	for i := range setup.Tools {
		all = append(all, setup.Tools[i].ID)
	}
	return all
}
