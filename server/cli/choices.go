package cli

import (
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"weir/pkg/catalog"
	"weir/pkg/provider"
	"weir/pkg/setup"
)

// choice are the values that a flag, an argument or a setting takes.
type choice struct {
	of     string          // the command, or its group, and the flag or argument; of all commands the flag alone
	fixed  string          // the values, between spaces
	values func() []string // in place of fixed ones
	list   bool            // several, between commas
	also   func(string) bool
	// see says what lists them, where they are many. The gateway may know others then: only one that
	// is nearly another is refused.
	see string
}

// choices are the values of flags and arguments. The help, the completion and the errors of mistyped values are
// made of them.
var choices = [...]choice{
	{of: "accounts sign-in PROVIDER", values: providerIDs, see: seeProviders},
	{of: "accounts timeline --by", fixed: "account provider model", list: true},
	{of: "budgets --unpriced", values: func() []string { return enumOf(reflect.TypeFor[FileBudget](), "unpriced") }},
	{of: "combos --kind", fixed: "llm embedding image tts stt video music rerank imageToText webSearch webFetch"},
	{of: "combos --strategy", values: func() []string { return enumOf(reflect.TypeFor[FileCombo](), "strategy") }},
	{of: "combos --split-by", values: func() []string { return enumOf(reflect.TypeFor[FileCombo](), "splitBy") }},
	{of: "destinations add KIND", fixed: "slack discord teams google-chat ntfy email smtp webhook otlp s3",
		see: "weir destinations kinds lists them"},
	{of: "identity-providers --kind", fixed: "cloudflare-access google-iap ci passkey"},
	{of: "keys --scopes", fixed: "data manage export metrics", list: true},
	{of: "models ls --kind", fixed: "llm embedding image tts stt video music rerank web image-to-text"},
	{of: "models --kind", values: func() []string { return enumOf(reflect.TypeFor[FileModel](), "type") }},
	{of: "requests --outcome", fixed: "succeeded provider_failed no_account refused left"},
	{of: "requests --provider", values: providerIDs, see: seeProviders},
	{of: "requests --reason", fixed: "key_limit budget concurrency key model request"},
	{of: "requests --status", fixed: "429 4xx 5xx error client_left", also: isStatus},
	{of: "usage --by", fixed: "key person account model provider endpoint tool tag:NAME month day hour", list: true, also: isTag},
	{of: "--role", values: func() []string { return enumOf(reflect.TypeFor[FilePerson](), "role") }},
	{of: "--span", fixed: "24h 30d"},
	{of: "--tool", values: toolIDs, also: setup.IsTool, see: "weir setup lists them"},
}

const seeProviders = "weir accounts providers lists them"

// isStatus reports whether a text is a status or a class of them, such as 418 or 2xx.
func isStatus(text string) bool {
	_, err := strconv.Atoi(strings.TrimSuffix(text, "xx"))
	return err == nil && len(text) == 3 && text[0] != '-'
}

// isTag reports whether a text names a tag, as tag:team.
func isTag(text string) bool { return strings.HasPrefix(text, "tag:") && len(text) > len("tag:") }

// choiceOf returns the values of a flag, written --flag, or of an argument of a command; nil if it takes any.
func choiceOf(command, param string) *choice {
	group, _, _ := strings.Cut(command, " ")
	for _, name := range [...]string{command + " " + param, group + " " + param, param} {
		for i := range choices {
			if choices[i].of == name {
				return &choices[i]
			}
		}
	}
	return nil
}

// all returns the values.
func (c *choice) all() []string {
	if c.values != nil {
		return c.values()
	}
	return strings.Fields(c.fixed)
}

// check returns an error if a text is not one of the values.
func (c *choice) check(param, text string) error {
	values, texts := c.all(), []string{text}
	if c.list {
		texts = strings.Split(text, ",")
	}
	for _, one := range texts {
		if slices.Contains(values, one) || c.also != nil && c.also(one) {
			continue
		}
		if c.see == "" {
			return Mistyped(param, text, one, values)
		}
		if near := closest(one, values); near != "" {
			return Usagef("%s %s: %s%s", param, text, maybe(near), c.see)
		}
	}
	return nil
}

// complete is the completion of a flag.
func (c *choice) complete(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return c.all(), cobra.ShellCompDirectiveNoFileComp
}

// help returns the text of a flag with its values.
func (c *choice) help(text string) string {
	if c.see != "" {
		return text
	}
	return text + ": " + or(c.all())
}

// Mistyped returns the error of a text that is not a value of a parameter, or has a part that is not.
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
func enumOf(of reflect.Type, field string) []string {
	for i := range of.NumField() {
		tag := of.Field(i).Tag
		if name, _, _ := strings.Cut(tag.Get("json"), ","); name == field && tag.Get("enum") != "" {
			return strings.Split(tag.Get("enum"), ",")
		}
	}
	return nil
}

func providerIDs() (all []string) {
	for _, d := range provider.All() {
		all = append(all, d.ID)
	}
	return all
}

func toolIDs() (all []string) {
	for i := range setup.Tools {
		all = append(all, setup.Tools[i].ID)
	}
	return all
}
