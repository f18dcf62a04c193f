package upgrade

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// IsRelease reports whether a version is one that can be compared, such as v1.2.0 or 1.3.0-rc.1.
func IsRelease(version string) bool {
	numbers, _ := split(version)
	return len(numbers) == 3
}

// Newer reports whether version a is above version b by the rules of https://semver.org. Both
// must be releases.
func Newer(a, b string) bool {
	x, pre := split(a)
	y, other := split(b)
	if c := slices.Compare(x, y); c != 0 {
		return c > 0
	}
	if pre == nil || other == nil { // what has none is above
		return pre == nil && other != nil
	}
	return slices.CompareFunc(pre, other, comparePart) > 0
}

// comparePart compares parts of what follows the numbers: numbers by value, below words.
func comparePart(a, b string) int {
	x, failed := strconv.ParseUint(a, 10, 64)
	y, bad := strconv.ParseUint(b, 10, 64)
	switch {
	case failed == nil && bad == nil:
		return cmp.Compare(x, y)
	case failed == nil:
		return -1
	case bad == nil:
		return 1
	}
	return strings.Compare(a, b)
}

// split returns the three numbers of a version and the parts behind them, nil for none. There
// are no numbers if it is no version.
func split(version string) (numbers []uint64, pre []string) {
	version, _, _ = strings.Cut(strings.TrimPrefix(version, "v"), "+")
	head, tail, has := strings.Cut(version, "-")
	if has {
		pre = strings.Split(tail, ".")
	}
	for part := range strings.SplitSeq(head, ".") {
		n, err := strconv.ParseUint(part, 10, 64)
		if err != nil {
			return nil, nil
		}
		numbers = append(numbers, n)
	}
	return numbers, pre
}
