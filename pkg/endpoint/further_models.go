package endpoint

import (
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"weir/pkg/auth"
	"weir/pkg/routing"
	"weir/pkg/store"
	"weir/pkg/wire/apierr"
)

// FurtherFields are the fields that name fallback models for an upstream that is
// a gateway itself: OpenRouter's models, LiteLLM's and Bifrost's fallbacks. They
// pass like the rest of a body. Some parsers ignore their case.
var FurtherFields = [...]string{"models", "fallbacks", "context_window_fallbacks", "content_policy_fallbacks",
	"providerOptions"}

// maxFurther is the nesting depth of lists and objects with fallback models; each
// level is read once more.
const maxFurther = 5

// CheckFurtherModels refuses a request whose key is limited to models, if its body, valid
// JSON, names fallback models for an upstream that the key may not use. A name is
// checked as a model of each target. For other keys it costs nothing.
func CheckFurtherModels(key *store.Key, body []byte, targets []routing.Target) error {
	if key == nil || len(key.Models) == 0 {
		return nil
	}
	f := further{key, targets}
	ok := true
	gjson.ParseBytes(body).ForEach(func(name, v gjson.Result) bool {
		// Some parsers ignore case, others take the last of two.
		is := func(s string) bool { return strings.EqualFold(name.Str, s) }
		if !slices.ContainsFunc(FurtherFields[:], is) {
			return true
		}
		if is("providerOptions") { // Vercel's gateway
			v = v.Get("gateway.models")
		}
		ok = f.may(v, maxFurther)
		return ok
	})
	if !ok {
		return apierr.New(403, "model_not_allowed", "This API key may not use one of the fallback models of the request. Leave it out, or allow it on the page Keys.")
	}
	return nil
}

type further struct {
	key     *store.Key
	targets []routing.Target
}

// may reports whether all models in a value may be used: a name, a list, or
// objects with a model or with lists. It returns false for a value that nests
// deeper than depth.
func (f *further) may(v gjson.Result, depth int) bool {
	if v.Type == gjson.String {
		for i := range f.targets {
			if !auth.AllowsModel(f.key, f.targets[i].Alias+"/"+v.Str) {
				return false
			}
		}
		return true
	}
	ok, object := true, v.IsObject()
	if !object && !v.IsArray() {
		return true
	}
	if depth == 0 {
		return false
	}
	v.ForEach(func(name, v gjson.Result) bool {
		if !object || v.IsArray() || strings.EqualFold(name.Str, "model") {
			ok = f.may(v, depth-1)
		}
		return ok
	})
	return ok
}
