package media

import (
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"weir/pkg/apierr"
	"weir/pkg/routing"
	"weir/pkg/store"
)

// furtherFields are the fields by which an upstream that is a gateway itself
// is told other models to fall back to: OpenRouter's models, LiteLLM's and
// Bifrost's fallbacks. They pass as the rest of a body does.
var furtherFields = [...]string{"models", "fallbacks", "context_window_fallbacks", "content_policy_fallbacks", "providerOptions"}

// Further refuses a request whose key is limited to models, and whose body, valid
// JSON, names others for an upstream to fall back to. A name counts as one of
// each target. For other keys it costs nothing.
func Further(allows Allows, key *store.Key, body []byte, targets []routing.Target) error {
	if allows == nil || key == nil || len(key.Models) == 0 {
		return nil
	}
	f := further{allows, key, targets}
	ok := true
	gjson.ParseBytes(body).ForEach(func(name, v gjson.Result) bool {
		// Some parsers ignore case, others take the last of two.
		is := func(s string) bool { return strings.EqualFold(name.Str, s) }
		if !slices.ContainsFunc(furtherFields[:], is) {
			return true
		}
		if is("providerOptions") { // Vercel's gateway
			v = v.Get("gateway.models")
		}
		ok = f.may(v)
		return ok
	})
	if !ok {
		return apierr.New(403, "model_not_allowed", "this key may not use one of the models to fall back to")
	}
	return nil
}

type further struct {
	allows  Allows
	key     *store.Key
	targets []routing.Target
}

// may reports whether all models in a value may be used: a name, a list, or
// objects with a model or with lists.
func (f *further) may(v gjson.Result) bool {
	if v.Type == gjson.String {
		for i := range f.targets {
			if !f.allows(f.key, f.targets[i].Alias+"/"+v.Str) {
				return false
			}
		}
		return true
	}
	ok, object := true, v.IsObject()
	if !object && !v.IsArray() {
		return true
	}
	v.ForEach(func(name, v gjson.Result) bool {
		if !object || v.IsArray() || strings.EqualFold(name.Str, "model") {
			ok = f.may(v)
		}
		return ok
	})
	return ok
}
