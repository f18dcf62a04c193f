package apierr

import (
	"slices"
	"testing"
)

// A regression: a provider's code "overloaded" was shown as weir's own, which says that the
// gateway has too many calls.
func TestVendorCodeNeverLooksLikeOneOfTheGateway(t *testing.T) {
	if !slices.IsSorted(own[:]) {
		t.Fatal("the codes are not sorted")
	}
	for _, tt := range []struct {
		code, vendor string // of the status, of the vendor
		own          bool
		want         string
		vendors      bool
	}{
		{"", "voice_not_found", false, "voice_not_found", true},
		{"rate_limit_exceeded", "tokens", false, "tokens", true},
		{"upstream_overloaded", "overloaded", false, "upstream_overloaded", false},
		{"", "overloaded", false, "upstream_overloaded", false},
		{"", "not_found", false, "", false},
		{"", "not_found", true, "not_found", true},
		{"", "model_not_found", false, "model_not_found", true},
		{"upstream_failed", "stale", false, "upstream_failed", false},
	} {
		e := &Error{Code: tt.code, Own: tt.own}
		e.SetVendorCode(tt.vendor)
		if code, vendors := e.ShownCode(); code != tt.want || vendors != tt.vendors || e.VendorCode != tt.vendor {
			t.Errorf("%q of a vendor, %q of the status: %q, %v; want %q, %v", tt.vendor, tt.code, code, vendors, tt.want, tt.vendors)
		}
	}
	replaced := &Error{Code: "context_length_exceeded", Own: true}
	if code, vendors := replaced.ShownCode(); code != "context_length_exceeded" || vendors {
		t.Errorf("%q, %v", code, vendors)
	}
}
