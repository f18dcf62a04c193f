// Package endpoint has what the endpoints share: the targets of a call, the fields of
// JSON requests and forms, creations that happen once, answers, and event streams that
// must not end without their terminator.
package endpoint

import (
	"errors"
	"net/url"
	"strconv"
	"strings"

	"weir/pkg/auth"
	"weir/pkg/catalog"
	"weir/pkg/routing"
	"weir/pkg/store"
	"weir/pkg/wire/apierr"
)

// MaxForm is the largest body that is held or read whole, in bytes.
const MaxForm = 25 << 20

// MaxParts is the largest number of parts of a form.
const MaxParts = 40

// Targets resolves a model and returns the targets that the key may use and for which
// usable returns nil. Without any it returns the error of the first one left out.
func Targets(c *auth.Call, model string, kind catalog.Kind,
	usable func(*routing.Target) error) ([]routing.Target, error) {
	c.Trace.Asked = model
	all, err := routing.Resolve(model, c.Machine, kind, c.Session())
	if err != nil {
		return nil, Unresolved(err, c.Key, model)
	}
	return FilterTargets(all, c.Key, model, usable)
}

// Unresolved returns the error of a name that was not resolved. A key that may not use it
// does not learn from the error what the machine's other models, combos and accounts are named.
func Unresolved(err error, key *store.Key, asked string) error {
	var e *apierr.Error
	if asked == "" || auth.AllowsModel(key, asked) || !errors.As(err, &e) || e.Status != 400 {
		return err
	}
	switch e.Code {
	case "no_credentials":
		return NotAllowed(key)
	case "model_not_found":
	default:
		return err
	}
	plain := apierr.Invalid("model", "Unknown model %s. GET /v1/models lists those that this API key can call.",
		strconv.Quote(apierr.ShortName(asked)))
	plain.Code = e.Code
	return plain
}

// FilterTargets is Targets for resolved targets.
func FilterTargets(all []routing.Target, key *store.Key, asked string,
	usable func(*routing.Target) error) ([]routing.Target, error) {
	whole := asked != "" && auth.AllowsModel(key, asked)
	kept := all[:0]
	var refusal error
	for i := range all {
		err := usable(&all[i])
		if err == nil && !whole && !auth.AllowsModel(key, all[i].ID()) {
			err = NotAllowed(key)
		}
		if err == nil {
			kept = append(kept, all[i])
		} else if refusal == nil {
			refusal = err
		}
	}
	if len(kept) == 0 {
		return nil, refusal
	}
	return kept, nil
}

// maxNamed is the number of a key's models that an error names.
const maxNamed = 10

// NotAllowed returns the 403 of a key that may not use a model. It names the models
// that the key is limited to.
func NotAllowed(key *store.Key) error {
	e := apierr.New(403, "model_not_allowed", "This API key may not use the model.")
	if key != nil && len(key.Models) > 0 {
		names, more := key.Models, ""
		if len(names) > maxNamed {
			names, more = names[:maxNamed], ", …"
		}
		e.Message += " It may use: " + strings.Join(names, ", ") + more + "."
	}
	return e
}

// Query returns the first value of a parameter of a query string, decoded.
func Query(query, name string) string {
	for query != "" {
		var pair string
		pair, query, _ = strings.Cut(query, "&")
		key, value, _ := strings.Cut(pair, "=")
		if k, err := url.QueryUnescape(key); err == nil && k == name {
			if v, err := url.QueryUnescape(value); err == nil {
				return v
			}
		}
	}
	return ""
}
