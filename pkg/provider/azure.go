package provider

import (
	"cmp"
	"fmt"
	"strings"

	"weir/pkg/store"
)

const azureRoot = "https://{resource}.openai.azure.com/openai"

// audioVersion is the version of the addresses that only a version makes,
// where the connection names none. Source: learn.microsoft.com, Azure OpenAI
// REST API preview reference.
const audioVersion = "2025-04-01-preview"

// azureTemplate returns a URL in the style of the connection's api_version:
//
//	none                 …/openai/v1/chat/completions; speech and transcriptions as with audioVersion
//	v1, latest, preview  …/openai/v1/chat/completions?api-version=preview
//	YYYY-MM-DD[-preview] …/openai/deployments/{deployment}/chat/completions?api-version=…
//
// A socket of the Realtime API is at …/openai/v1/realtime?model=…, or with a dated
// version at …/openai/realtime?api-version=…&deployment=….
//
// {deployment} is the model. The list of models and the Responses API have no
// deployment. The connection's own base URL is that of the resource, or any of the
// above up to /openai, /openai/v1 or /openai/deployments.
func (d *Descriptor) azureTemplate(tmpl string, conn *store.Connection) (string, error) {
	rest, ok := strings.CutPrefix(tmpl, azureRoot)
	if !ok {
		return tmpl, nil
	}
	version, root := "", azureRoot
	if conn != nil {
		version = cmp.Or(conn.Data.Vars["api_version"], conn.Data.Vars["apiVersion"])
		if conn.Data.BaseURL != "" {
			own, err := ownBase(d, conn)
			if err != nil {
				return "", err
			}
			for _, end := range [...]string{"/openai/deployments", "/openai/v1", "/openai"} {
				if cut, found := strings.CutSuffix(own, end); found {
					own = cut
					break
				}
			}
			root = own + "/openai"
		}
	}
	for i := 0; i < len(version); i++ {
		if c := version[i]; !(c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c == '-') {
			return "", fmt.Errorf("api_version is not usable in an address: %w", ErrIncomplete)
		}
	}
	name, plain := strings.CutPrefix(rest, "/v1/")
	if !plain {
		version = cmp.Or(version, audioVersion)
		name, _, _ = strings.Cut(strings.TrimPrefix(rest, "/deployments/{deployment}/"), "?")
	}
	switch {
	case strings.HasPrefix(name, "realtime?"): // the versions of its own name the deployment in the query
		if version == "" || version[0] < '0' || version[0] > '9' {
			return root + "/v1/" + name, nil
		}
		return root + "/realtime?api-version=" + version + "&deployment={deployment}", nil
	case version == "":
		return root + "/v1/" + name, nil
	case version[0] < '0' || version[0] > '9':
		return root + "/v1/" + name + "?api-version=" + version, nil
	case name == "models" || name == "responses":
		return root + "/" + name + "?api-version=" + version, nil
	}
	return root + "/deployments/{deployment}/" + name + "?api-version=" + version, nil
}
