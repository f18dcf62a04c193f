package gateway

import (
	"testing"

	"weir/pkg/api"
	"weir/pkg/auth/session"
	"weir/pkg/endpoint"
	"weir/pkg/wire/clientheader"
)

// The platform's JavaScript knows only the classes, by which it picks header
// fields and answers the requests that the gateway never receives.
func TestRouteClassesHaveTheCORSRuleOfTheirRoutes(t *testing.T) {
	for _, r := range routes(&handlers{management: &api.Handlers{Sessions: &session.Sessions{}}}) {
		c := clientheader.ClassOf(r.Pattern)
		if open := r.Cors != endpoint.NoCors; open != c.CORS {
			t.Errorf("%s: CORS is %v here and %v in class %s of package clientheader", r.Pattern, open, c.CORS, c.Name)
		}
	}
}
