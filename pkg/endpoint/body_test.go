package endpoint

import "testing"

func TestBodyTooLargeNamesTheLimit(t *testing.T) {
	for max, want := range map[int64]string{
		0:         "The request body is over 0 bytes.",
		1000:      "The request body is over 1000 bytes.",
		4 << 10:   "The request body is over 4 KiB.",
		8 << 20:   "The request body is over 8 MiB.",
		256 << 20: "The request body is over 256 MiB. On Cloudflare the limit is that of the zone's plan if it is lower: 100 MB on Free and Pro.",
	} {
		if e := BodyTooLarge(max); e.Status != 413 || e.Code != "request_too_large" || e.Message != want {
			t.Errorf("%d: %d %s %q", max, e.Status, e.Code, e.Message)
		}
	}
}
