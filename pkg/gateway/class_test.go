package gateway

import (
	"strings"
	"testing"

	"weir/pkg/api"
	"weir/pkg/auth/session"
	"weir/pkg/wire/clientheader"
)

// The platform's JavaScript knows only the classes, by which it picks header
// fields and answers the requests that the gateway never receives.
func TestRouteClassesHaveTheCORSRuleOfTheirRoutes(t *testing.T) {
	for _, r := range routes(&handlers{management: &api.Handlers{Sessions: &session.Sessions{}}}) {
		for _, c := range clientheader.Classes() {
			belongs := false
			for _, p := range c.Paths {
				belongs = belongs || r.Pattern == p || strings.HasPrefix(r.Pattern, p+"/")
			}
			if !belongs {
				continue
			}
			if open := r.Cors != NoCors; open != c.CORS {
				t.Errorf("%s: CORS is %v here and %v in class %s of package clientheader", r.Pattern, open, c.CORS, c.Name)
			}
			break
		}
	}
}
