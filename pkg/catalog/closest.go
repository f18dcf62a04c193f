package catalog

import "strings"

// Closest returns the known text most similar to a mistyped one: one that differs
// only in case, dots, dashes and the like, else one at an edit distance of at most
// two. Texts with different digits are different versions. It returns "" for none.
func Closest(typed string, known []string) string {
	fold := func(s string) string {
		return strings.Map(func(r rune) rune {
			if strings.ContainsRune("-_. :/", r) {
				return -1
			}
			return r
		}, strings.ToLower(s))
	}
	digits := func(s string) string {
		return strings.Map(func(r rune) rune {
			if r < '0' || r > '9' {
				return -1
			}
			return r
		}, s)
	}
	if len(typed) > 128 {
		return ""
	}
	want, best, least := fold(typed), "", 3
	if len(want) < 6 {
		least = 2 // two edits are too many for a short text
	}
	for _, k := range known {
		if k == typed {
			continue
		}
		f := fold(k)
		if f == want {
			return k
		}
		if d := len(f) - len(want); d >= least || -d >= least || digits(f) != digits(want) {
			continue
		}
		if d := distance(want, f); d < least {
			best, least = k, d
		}
	}
	return best
}

// distance returns the edit distance of two texts: insertions, deletions,
// replacements and swaps of adjacent bytes.
func distance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
