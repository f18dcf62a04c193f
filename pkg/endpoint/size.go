package endpoint

import (
	"strconv"
	"strings"
)

// ParseSize returns width and height of a size such as "1280x720", 0 for any other text.
func ParseSize(size string) (w, h int) {
	a, b, ok := strings.Cut(size, "x")
	x, errX := strconv.Atoi(a)
	y, errY := strconv.Atoi(b)
	if !ok || errX != nil || errY != nil || x < 1 || y < 1 || x > 16384 || y > 16384 {
		return 0, 0
	}
	return x, y
}

// NearestRatio returns the one of some ratios, such as "16:9", that is nearest to the
// ratio of a width and a height.
func NearestRatio(w, h int, ratios ...string) string {
	best, least := "", 0.0
	for _, r := range ratios {
		x, y, _ := strings.Cut(r, ":")
		rw, _ := strconv.Atoi(x)
		rh, _ := strconv.Atoi(y)
		d := float64(w*rh) / float64(h*rw)
		if d < 1 {
			d = 1 / d
		}
		if best == "" || d < least {
			best, least = r, d
		}
	}
	return best
}
