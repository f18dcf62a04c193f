package cli

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"reflect"
	"strings"

	"github.com/tidwall/gjson"
)

// identitySecrets returns the secret of an identity provider.
func identitySecrets(item map[string]any) map[string]any {
	if ref := item["clientSecret"]; ref != nil {
		return map[string]any{"clientSecret": ref}
	}
	return nil
}

// identityBody returns an identity provider as a whole, with its secret where that differs or would be lost.
func (p *planner) identityBody(item map[string]any, row gjson.Result) (map[string]any, error) {
	body, err := keep(item, row, identityFields...), error(nil)
	if item["rules"] != nil {
		body["rules"], err = p.rules(itemsOf(item, "rules"))
	}
	if text, equal := p.secret("identityProviders", byName(item), "clientSecret"); text != "" && (moved(body, row) || !equal) {
		body["clientSecret"] = text
	}
	return body, err
}

// setIdentityProvider changes an identity provider, which is stored as a whole.
func (a *app) setIdentityProvider(ctx context.Context, in *input) error {
	if len(in.body) == 0 {
		return a.make(ctx, in) // which says so
	}
	list, err := in.client.call(ctx, "GET", "/api/identity-providers", nil)
	if err != nil {
		return err
	}
	row := list.Get(`data.#(id=="` + in.path[strings.LastIndexByte(in.path, '/')+1:] + `")`)
	clientSecret, given := in.body["clientSecret"]
	in.body = keep(in.body, row, identityFields...)
	if moved(in.body, row) && is(row, "hasSecret") && !given {
		return Usagef("the stored secret is of the client and the issuer of before: name the new one with --secret, or none")
	}
	if given {
		in.body["clientSecret"] = clientSecret
	}
	return a.make(ctx, in)
}

// identityFields are the fields of an identity provider, without the secret.
var identityFields = []string{"name", "kind", "issuer", "clientId", "scopes", "rules"}

// moved reports whether a provider has another issuer or client, for which the gateway keeps no secret.
func moved(body map[string]any, row gjson.Result) bool {
	return !same(body["issuer"], row.Get("issuer")) || !same(body["clientId"], row.Get("clientId"))
}

// keep returns fields of a row of the file, or else those of the stored one.
func keep(item map[string]any, row gjson.Result, fields ...string) map[string]any {
	body := map[string]any{}
	for _, name := range fields {
		if v, ok := item[name]; ok {
			body[name] = v
		} else if got := row.Get(name); got.Exists() {
			body[name] = got.Value()
		}
	}
	return body
}

// isDerived reports whether a row has its cause elsewhere: a person in a rule of an identity provider, a budget in
// the template of a person, the key of an hour in weir call.
func isDerived(row gjson.Result) bool {
	return is(row, "byRule") || strings.HasPrefix(str(row, "tag"), "person=") ||
		str(row, "name") == callKey && has(row, "expiresAt")
}

// rules returns rules with the ids of their machines.
func (p *planner) rules(rules []map[string]any) (out []any, err error) {
	out = []any{}
	for _, r := range rules {
		r = maps.Clone(r)
		if r["template"] = template(r["template"]); r["template"] == nil {
			delete(r, "template")
		}
		names, _ := r["machines"].([]any)
		ids := []any{}
		for _, name := range names {
			id := fmt.Sprint(name)
			if id != "*" {
				if id, err = p.machineOf(id); err != nil {
					return nil, fmt.Errorf("rules: %w", err)
				}
			}
			ids = append(ids, id)
		}
		r["machines"] = ids
		out = append(out, r)
	}
	return out, nil
}

// machineOf returns the id of a machine by its name or id, which may be that of one that is gone.
func (p *planner) machineOf(name string) (string, error) {
	if p.machines == nil {
		var err error
		if p.machines, err = p.client.machines(p.ctx, url.Values{}); err != nil {
			return "", err
		}
	}
	id, err := match("machine", name, p.machines, "/api/machines")
	if err != nil && machineID.MatchString(name) {
		return name, nil
	}
	return id, err
}

// template returns the limits of a member without zeros, nil without any.
func template(v any) any {
	fields, _ := v.(map[string]any)
	out := map[string]any{}
	for name, limit := range fields {
		if !isEmpty(limit) && !reflect.ValueOf(limit).IsZero() {
			out[name] = limit
		}
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// personBody returns the role of a person. One who is not there is named: a file that others apply cannot
// bring them back.
func (p *planner) personBody(item map[string]any, row gjson.Result) (map[string]any, error) {
	if !row.Exists() {
		fmt.Fprintf(p.Stderr, "weir: warning: no person of the machine has the id %s; weir people invite makes a link\n", clean(byID(item)))
		return nil, nil
	}
	body := keep(item, row, "role", "template")
	if body["template"] = template(body["template"]); body["template"] == nil {
		body["template"] = map[string]any{}
	}
	if body["role"] != "member" {
		delete(body, "template")
	}
	return body, nil
}
