package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/tidwall/gjson"
)

// loginByDevice returns a key that someone approves in the dashboard. It
// is the client of RFC 8628, so it works on a computer without a browser.
func (a *app) loginByDevice(ctx context.Context, c *client) (key string, err error) {
	prefix := ""
	c.prefix = &prefix // both calls are without a credential
	host, _ := os.Hostname()
	device, err := c.call(ctx, "POST", "/api/device", map[string]any{"name": cmp.Or(host, "a computer")})
	var refused *apiError
	if errors.As(err, &refused) && refused.status == 404 {
		return "", errors.New("this version of the gateway has no sign-in by a code; use --token")
	}
	if err != nil {
		return "", err
	}
	fmt.Fprintf(a.Stderr, "Open %s\nand compare the code: %s. Approve it there; Ctrl-C ends the waiting.\n",
		clean(str(device, "verification_uri_complete")), clean(str(device, "user_code")))
	for wait := max(num(device, "interval"), 1); ; {
		if !pause(ctx, time.Duration(wait)*time.Second) {
			return "", errors.New("interrupted")
		}
		v, err := c.call(ctx, "POST", "/api/device/token", map[string]any{"device_code": str(device, "device_code")})
		if err == nil {
			return str(v, "apiKey"), nil
		}
		if !errors.As(err, &refused) {
			return "", err
		}
		switch gjson.GetBytes(refused.body, "error.code").String() {
		case "authorization_pending":
		case "slow_down":
			wait += 5
		default:
			return "", err
		}
	}
}
