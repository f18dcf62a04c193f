package machine

import (
	"fmt"
	"testing"
)

func TestAKeyFileBringsItsProject(t *testing.T) {
	const file = `{"type":"service_account","project_id":%q,"client_email":"weir@acme.iam.gserviceaccount.com","private_key":"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"}`
	for _, tt := range []struct{ project, data, want string }{
		{"acme-prod", ``, "acme-prod"},
		{"acme-prod", `,"providerSpecificData":{"location":"eu"}`, "acme-prod"},
		{"acme-prod", `,"providerSpecificData":{"project":"mine"}`, "mine"},
		{"../x", ``, ""},
		{"", ``, ""},
	} {
		w := newWorld(t)
		w.create()
		w.connect(`{"provider":"vertex","serviceAccount":` + fmt.Sprintf(file, tt.project) + tt.data + `}`)
		c := w.replica().Connections[0]
		if got := c.Data.Vars["project"]; got != tt.want {
			t.Errorf("%q and %s: project %q, want %q", tt.project, tt.data, got, tt.want)
		}
	}
}
