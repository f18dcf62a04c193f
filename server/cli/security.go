package cli

import (
	"cmp"
	"context"
	"net"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/tidwall/gjson"
)

// examineSecurity examines what is not safe: the server of this computer, or the way to another one,
// and the keys.
func (a *app) examineSecurity(ctx context.Context) (out findings) {
	c, err := a.open(ctx)
	if err != nil {
		out.add(failure, "%v", err)
		return out
	}
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	if c.token == "" {
		lines, err := a.Security(ctx, a.data)
		if err != nil {
			out.add(failure, "%v", err)
		}
		for _, line := range lines {
			out.add(warning, "%s", line)
		}
	} else if u, err := url.Parse(c.base); err == nil && u.Scheme == "http" && !IsLoopback(u.Hostname()) {
		out.add(warning, "%s is reached without TLS, so the credential crosses the network in plain text; use https", c.base)
	}
	if err := out.keysOfAll(ctx, a, c); err != nil {
		out.add(failure, "%v", err)
	}
	if len(out) == 0 {
		out.add(well, "files, network, secrets and keys")
	}
	return out
}

// IsLoopback reports whether a host is this computer.
func IsLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// wideKey is a key whose leak costs more than it must.
type wideKey struct {
	name, may  string
	advice     string
	adviceMany string // where there are many such keys
}

// manyKeys is from how many keys of a kind on they are one finding.
const manyKeys = 6

// firstOf returns the first names of a list, as "a, b, …".
func firstOf(names []string) string {
	if len(names) > manyKeys {
		names = append(slices.Clip(names[:manyKeys]), "…")
	}
	return strings.Join(names, ", ")
}

// keysOfAll examines the keys of every machine that the credential may read.
func (f *findings) keysOfAll(ctx context.Context, a *app, c *client) error {
	machines, err := c.glance(ctx)
	if err != nil {
		return err
	}
	var all []wideKey
	for _, m := range machines {
		of, at := "", ""
		if len(machines) > 1 {
			of, at = " of "+m.name, " --machine "+ShellWord(m.name)
		}
		c.prefix = &m.prefix
		keys, shown, err := wideKeys(ctx, a, c)
		if err != nil {
			return err
		}
		if n := len(shown); n > 0 {
			f.add(warning, "keys%s created before 2026-11-30, of which lists, logs and backups show all but four characters: %d (%s); "+
				"replace each: weir keys rotate NAME%s", of, n, firstOf(shown), at)
		}
		for _, k := range keys {
			all = append(all, wideKey{k.name + of, k.may, k.advice + at, k.adviceMany + at})
		}
	}
	count, folded := map[string]int{}, map[string]bool{}
	for _, k := range all {
		count[k.may]++
	}
	for _, k := range all {
		if n := count[k.may]; n < manyKeys {
			f.add(warning, "key %s %s; %s", k.name, k.may, k.advice)
		} else if !folded[k.may] {
			folded[k.may] = true
			f.add(warning, "key %s %s, like %d others; %s", k.name, k.may, n-1, k.adviceMany)
		}
	}
	return nil
}

// wideKeys returns the keys of a machine whose leak costs more than it must, and the names of those of
// which lists, logs and backups show all but four characters.
func wideKeys(ctx context.Context, a *app, c *client) (wide []wideKey, shown []string, err error) {
	keys, err := c.call(ctx, "GET", "/api/keys", nil)
	if err != nil {
		return nil, nil, err
	}
	budgets, err := c.call(ctx, "GET", "/api/budgets", nil)
	if err != nil {
		return nil, nil, err
	}
	for _, k := range array(keys, "data") {
		state := keyState(a, k).text
		if end := num(k, "expiresAt"); state == "expired" || state == "paused" ||
			end > 0 && end <= a.Now().Add(callLife).UnixMilli() { // that of weir call, or of the playground
			continue
		}
		name := cmp.Or(str(k, "name"), str(k, "id"))
		word := ShellWord(name)
		if is(k, "idInKey") {
			shown = append(shown, clean(name))
		}
		var scopes []string
		for _, s := range array(k, "scopes") {
			scopes = append(scopes, s.String())
		}
		endless := !has(k, "expiresAt")
		end := "weir keys set " + word + " --expires 30d"
		switch {
		case endless && slices.Contains(scopes, "export"):
			wide = append(wide, wideKey{name, "may export all secrets and does not expire", end, end})
		case endless && slices.Contains(scopes, "manage"):
			wide = append(wide, wideKey{name, "may change everything and does not expire", end, end})
		case slices.Contains(scopes, "data") && !limited(k, array(budgets, "data")):
			may := "may spend without a limit"
			if endless {
				may += " and does not expire"
			}
			wide = append(wide, wideKey{name, may, "weir budgets add " + word + " 20/month --key " + word,
				"one budget for all keys: weir budgets add all 100/month"})
		}
	}
	return wide, shown, nil
}

// limited reports whether a budget, which may be that of its person, or a daily limit bounds what a key may use.
func limited(key gjson.Result, budgets []gjson.Result) bool {
	return num(key, "dailyMax") > 0 || slices.ContainsFunc(budgets, func(b gjson.Result) bool {
		of := str(b, "keyId")
		tag, person := str(b, "tag"), str(key, "person")
		return (of == "" || of == str(key, "id")) && !has(b, "models") && str(b, "tool") == "" &&
			(tag == "" || person != "" && tag == "person="+person)
	})
}

// ShellWord returns a path or a name as one word of a command line.
func ShellWord(path string) string {
	if !strings.ContainsFunc(path, func(c rune) bool {
		return c < 0x80 && c != filepath.Separator && !unicode.IsLetter(c) && !unicode.IsDigit(c) &&
			!strings.ContainsRune("/:._-+@,=%", c)
	}) {
		return path
	}
	if filepath.Separator == '\\' {
		return `"` + path + `"` // a Windows path has no quote
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}
