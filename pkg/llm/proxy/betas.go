package proxy

import (
	"bytes"
	"context"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"weir/pkg/llm"
	"weir/pkg/llm/ir"
	"weir/pkg/provider"
	"weir/pkg/wire/clientheader"
	"weir/pkg/wire/jsonscan"
)

// hostedBetas are the beta features of Anthropic's API that hosted Claude
// supports. The clouds refuse all others. Source: Bedrock User Guide,
// "Anthropic Claude Messages API"; Anthropic's documentation of each feature.
var hostedBetas = [...]struct {
	name, sent      string // sent is the cloud's name for it, where that is another
	bedrock, vertex bool
}{
	{"compact-2026-01-12", "", true, true},
	{"computer-use-2025-01-24", "", true, true},
	{"computer-use-2025-11-24", "", true, true},
	{"context-1m-2025-08-07", "", true, true},
	{"context-management-2025-06-27", "", true, true},
	{"interleaved-thinking-2025-05-14", "", true, true},
	{"tool-search-tool-2025-10-19", "", true, true},
	{"advanced-tool-use-2025-11-20", "tool-search-tool-2025-10-19", true, true},
	{"effort-2025-11-24", "", true, false},
	{"fine-grained-tool-streaming-2025-05-14", "", true, false},
	{"web-search-2025-03-05", "", false, true},
}

// betaFields are the fields of a request that mean something only with a beta feature
// of Anthropic's API. A server that does not get the feature refuses them
// (docs/reference/clients.md, 1.5). Source: Anthropic's API reference; Claude Code's
// requests.
var betaFields = [...]struct {
	beta  string // the name without its date
	paths []string
}{
	{"prompt-caching-scope-", []string{"system.*.cache_control.scope", "tools.*.cache_control.scope",
		"messages.*.content.*.cache_control.scope"}},
	{"task-budgets-", []string{"output_config.task_budget"}},
	{"fast-mode-", []string{"speed"}},
	{"fine-grained-tool-streaming-", []string{"tools.*.eager_input_streaming"}},
	{"context-management-", []string{"context_management"}},
	{"server-side-fallback-", []string{"fallbacks"}},
	{"fallback-credit-", []string{"fallback_credit_token"}},
	{"cache-diagnosis-", []string{"diagnostics"}},
	{"user-profiles-", []string{"user_profile_id"}},
}

// anthropicHost is the address of Anthropic's own API.
const anthropicHost = "https://api.anthropic.com"

// atAnthropic reports whether the account is called at Anthropic's own address.
func (a *attempt) atAnthropic() bool {
	base := a.Connection.Data.BaseURL
	if base == "" {
		return a.Target.Provider.ID == "anthropic"
	}
	rest, ok := strings.CutPrefix(strings.TrimSpace(base), anthropicHost)
	return ok && (rest == "" || rest[0] == '/')
}

// betas returns the beta features that a client of the Messages dialect asks
// for and that the cloud has, and the others. Claude 3 refuses interleaved thinking
// at the clouds.
func (a *attempt) betas() (known, others []string) {
	bedrock := a.Target.Provider.Cloud == provider.Bedrock
	for _, f := range provider.RequestHeader(a.call.Header, clientheader.ToMessages) {
		if f.Name != "anthropic-beta" {
			continue
		}
	next:
		for _, name := range betaNames(f.Value) {
			for i := range hostedBetas {
				b := &hostedBetas[i]
				if b.name != name || bedrock && !b.bedrock || !bedrock && !b.vertex || strings.HasPrefix(name, "interleaved") &&
					strings.Contains(a.Target.Model, "claude-3") {
					continue
				}
				if b.sent != "" {
					name = b.sent
				}
				if a.forms.refusesBeta(name) {
					break
				}
				known = append(known, name)
				continue next
			}
			others = append(others, name)
		}
	}
	return known, others
}

// lacking returns the beta features that a client of the Messages dialect asks for and
// that this upstream of the same dialect does not get.
func (a *attempt) lacking() (names []string) {
	if a.api.dialect != llm.Messages || a.req.Dialect != llm.Messages {
		return nil
	}
	if a.api.hosted {
		_, names = a.betas()
		return names
	}
	if !a.forms.changes() {
		return nil
	}
	for _, f := range a.call.Header {
		if f.Name != betaField {
			continue
		}
		for _, name := range betaNames(f.Value) {
			if a.forms.refusesBeta(name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// leaveOutFeatures returns a request without the fields of the beta features that the
// upstream does not get.
func (a *attempt) leaveOutFeatures(ctx context.Context, body []byte) ([]byte, error) {
	names := a.lacking()
	if len(names) == 0 {
		return body, nil
	}
	if err := a.memoryToOmit(ctx, body); err != nil {
		return nil, err
	}
	for i := range betaFields {
		f := &betaFields[i]
		if !slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(name, f.beta) }) {
			continue
		}
		for _, path := range f.paths {
			last := path[strings.LastIndexByte(path, '.')+1:]
			if !bytes.Contains(body, []byte(`"`+last+`"`)) {
				continue
			}
			var had bool
			if body, had = ir.Omit(body, path); had {
				a.lost(strings.ReplaceAll(path, ".*", ""))
			}
		}
	}
	return body, nil
}

// addBetas writes the beta features of a hosted Claude: for Vertex AI into the
// header, for Bedrock into the body.
func (a *attempt) addBetas(body []byte) (out []byte, header string) {
	if !a.api.hosted || a.api.dialect != llm.Messages || a.req.Dialect != llm.Messages {
		return body, ""
	}
	known, others := a.betas()
	if len(others) > 0 {
		a.Dropped = append(a.Dropped[:len(a.Dropped):len(a.Dropped)], "anthropic-beta")
	}
	switch {
	case len(known) == 0:
		return body, ""
	case a.Target.Provider.Cloud != provider.Bedrock:
		return body, strings.Join(known, ",")
	case gjson.GetBytes(body, "anthropic_beta").Exists():
		return body, ""
	}
	at := 0
	for body[at] != '{' {
		at++
	}
	out = append(make([]byte, 0, len(body)+64*len(known)+32), `{"anthropic_beta":[`...)
	for i, name := range known {
		if i > 0 {
			out = append(out, ',')
		}
		out = jsonscan.Quote(out, name)
	}
	// anthropic_version is always a member.
	return append(append(out, "],"...), body[at+1:]...), ""
}
