package provider

import (
	"fmt"
	"slices"
	"strings"

	"weir/pkg/store"
)

const (
	vertexHost   = "https://{location}-aiplatform.googleapis.com"
	vertexGlobal = "https://aiplatform.googleapis.com"
	google       = "/publishers/google/"
)

// Express reports whether the connection calls Vertex AI in express mode, with an API
// key: Google's models only, at a URL without project and location, whatever else the
// connection has. The addresses of a project take no keys of express mode. Source:
// cloud.google.com, "Vertex AI in express mode REST API reference".
func (d *Descriptor) Express(conn *store.Connection) bool {
	if d.Cloud != Vertex || conn == nil || conn.Secrets[store.APIKey] == "" {
		return false
	}
	return !slices.ContainsFunc([]string{store.ServiceAccount, store.AccessToken, store.RefreshToken},
		func(f string) bool { return conn.Secrets[f] != "" })
}

// InExpress reports whether express mode serves a model: one of Google's own, whose
// ids have no publisher and are not Claude's.
func InExpress(model string) bool {
	return !strings.Contains(model, "/") && !strings.Contains(model, "claude")
}

// ListedInExpress reports whether a list with an API key alone has a model: one that
// generateContent serves, the only method of models that express mode documents beside
// the counting of tokens. Others may still be called: some keys are of a project.
func ListedInExpress(model string) bool {
	return strings.HasPrefix(model, "gemini-") && !strings.Contains(model, "embedding")
}

// vertexTemplate returns the URL for the connection: in express mode, or below its own
// base URL. That replaces Google's host if it has no path, else everything before
// /publishers.
func (d *Descriptor) vertexTemplate(tmpl string, conn *store.Connection) (string, error) {
	base := d.BaseURL
	if d.Express(conn) {
		_, model, ok := strings.Cut(tmpl, google)
		if !ok {
			return "", fmt.Errorf("with an API key: %w", ErrNoEndpoint)
		}
		base = vertexGlobal + "/v1"
		tmpl = base + google + model
	}
	if conn == nil || conn.Data.BaseURL == "" {
		return tmpl, nil
	}
	own, err := ownBase(d, conn)
	if err != nil {
		return "", err
	}
	if own == Origin(own) {
		return own + tmpl[len(Origin(tmpl)):], nil
	}
	return strings.TrimSuffix(own, "/publishers/google") + strings.TrimPrefix(tmpl, base), nil
}

// location returns the connection's location, or "global", as in Google's own client.
func location(conn *store.Connection) string {
	if conn == nil {
		return ""
	}
	if loc := strings.ToLower(conn.Data.Vars["location"]); loc != "" {
		return loc
	}
	return "global"
}

// vertexHostOf returns Vertex AI's host for a location. "global" and the multi-regions
// have hosts of another form.
func vertexHostOf(conn *store.Connection) (string, error) {
	switch loc := location(conn); {
	case loc == "global":
		return vertexGlobal, nil
	case loc == "us" || loc == "eu":
		return "https://aiplatform." + loc + ".rep.googleapis.com", nil
	case !IsLabel(loc):
		return "", fmt.Errorf("location is not usable in a host name: %w", ErrIncomplete)
	default:
		return "https://" + loc + "-aiplatform.googleapis.com", nil
	}
}
