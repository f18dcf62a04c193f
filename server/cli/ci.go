package cli

import (
	"context"
	"errors"
	"net/url"
	"regexp"
	"strings"
)

// sessionPrefix begins the tokens of POST /api/token, which have the roles of a person.
const sessionPrefix = "wt_"

// inCI reports whether the environment has an ID token of the CI job, or can get one.
func (a *app) inCI() bool {
	return a.variable("WEIR_ID_TOKEN") != "" || a.variable("ACTIONS_ID_TOKEN_REQUEST_URL") != ""
}

// ciToken exchanges the ID token of the CI job for a token of a gateway. In GitHub Actions the job asks for one for
// this gateway; GitLab puts one into the variable that .gitlab-ci.yml names.
func (a *app) ciToken(ctx context.Context, address string) (string, error) {
	id := strings.TrimSpace(a.variable("WEIR_ID_TOKEN"))
	if id == "" {
		u, err := url.Parse(a.variable("ACTIONS_ID_TOKEN_REQUEST_URL"))
		if err != nil || u.Host == "" {
			return "", Usagef("no ID token: in GitHub Actions set permissions: id-token: write, elsewhere WEIR_ID_TOKEN")
		}
		q := u.Query()
		q.Set("audience", address)
		u.RawQuery = q.Encode()
		v, err := a.plain(u.Scheme+"://"+u.Host, a.variable("ACTIONS_ID_TOKEN_REQUEST_TOKEN")).call(ctx, "GET", u.RequestURI(), nil)
		if err != nil {
			return "", err
		}
		id = str(v, "value")
	}
	v, err := a.plain(address, "").call(ctx, "POST", "/api/token", map[string]any{"token": id})
	if err == nil && str(v, "token") == "" {
		err = errors.New("the gateway returned no token")
	}
	return str(v, "token"), err
}

// plain returns a client whose paths are of no machine.
func (a *app) plain(base, token string) *client {
	c, none := newClient(base, token, a.Version, nil), ""
	c.prefix = &none
	return c
}

var machineID = regexp.MustCompile(`^[a-z0-9]{16}$`)

// ownMachine returns the machine of a token of /api/token: the one that is named by its id, else the only
// one of its roles.
func (c *client) ownMachine(ctx context.Context) (string, error) {
	if machineID.MatchString(c.machine) {
		return c.machine, nil
	}
	none := ""
	c.prefix = &none
	v, err := c.call(ctx, "GET", "/api/session", nil)
	c.prefix = nil
	if err != nil {
		return "", err
	}
	roles := v.Get("roles").Map()
	if _, all := roles["*"]; c.machine == "" && !all && len(roles) == 1 {
		for id := range roles {
			return id, nil
		}
	}
	return "", Usagef("name the machine by its id, with --machine or WEIR_MACHINE")
}
