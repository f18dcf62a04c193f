package proxy

import (
	"strings"

	"github.com/tidwall/gjson"

	"weir/pkg/llm"
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
// for and that the cloud has; others reports that it asks for more. Claude 3
// refuses interleaved thinking at the clouds.
func (a *attempt) betas() (known []string, others bool) {
	bedrock := a.Target.Provider.Family == provider.Bedrock
	for _, f := range provider.RequestHeader(a.call.Header, clientheader.ToMessages) {
		if f.Name != "anthropic-beta" {
			continue
		}
	next:
		for name := range strings.SplitSeq(f.Value, ",") {
			name = strings.TrimSpace(name)
			for i := range hostedBetas {
				b := &hostedBetas[i]
				if b.name != name || bedrock && !b.bedrock || !bedrock && !b.vertex || strings.HasPrefix(name, "interleaved") && strings.Contains(a.Target.Model, "claude-3") {
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
			others = others || name != ""
		}
	}
	return known, others
}

// addBetas writes the beta features of a hosted Claude: for Vertex AI into the
// header, for Bedrock into the body.
func (a *attempt) addBetas(body []byte) (out []byte, header string) {
	if !a.api.hosted || a.api.dialect != llm.Messages || a.req.Dialect != llm.Messages {
		return body, ""
	}
	known, others := a.betas()
	if others {
		a.Dropped = append(a.Dropped[:len(a.Dropped):len(a.Dropped)], "anthropic-beta")
	}
	switch {
	case len(known) == 0:
		return body, ""
	case a.Target.Provider.Family != provider.Bedrock:
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
