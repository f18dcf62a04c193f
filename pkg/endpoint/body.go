package endpoint

import (
	"strconv"

	"weir/pkg/wire/apierr"
)

// platformBody is the largest body, in bytes, that the edge platform passes on for a
// zone of its Free or Pro plan. It answers a larger one itself, with a 413 that is
// a page of HTML: https://developers.cloudflare.com/workers/platform/limits/
const platformBody = 100_000_000

// BodyTooLarge returns the error for a request body over max bytes.
func BodyTooLarge(max int64) *apierr.Error {
	size := strconv.FormatInt(max, 10) + " bytes"
	switch {
	case max >= 1<<20 && max%(1<<20) == 0:
		size = strconv.FormatInt(max>>20, 10) + " MiB"
	case max >= 1<<10 && max%(1<<10) == 0:
		size = strconv.FormatInt(max>>10, 10) + " KiB"
	}
	if max > platformBody {
		return apierr.New(413, "request_too_large",
			"The request body is over %s. On Cloudflare the limit is that of the zone's plan if it is lower: 100 MB on Free and Pro.", size)
	}
	return apierr.New(413, "request_too_large", "The request body is over %s.", size)
}
