package ir

import "strconv"

// Version is a model generation: 4.5 is {4, 5}.
type Version struct{ Major, Minor int }

// Before reports whether v is older than w.
func (v Version) Before(w Version) bool {
	return v.Major < w.Major || v.Major == w.Major && v.Minor < w.Minor
}

// ParseVersion returns the version in the id of a model of a family: the first
// number of at most two digits before or after the family's name, and the one
// that follows it. Dates and sizes have more digits. Both orders exist:
// claude-3-5-sonnet-20241022, claude-sonnet-4-5-20250929, claude-opus-4.5.
func ParseVersion(id string) (v Version, ok bool) {
	n := 0
	for i := 0; i < len(id) && n < 2; {
		if id[i] < '0' || id[i] > '9' {
			// Only a dash or a dot joins two numbers.
			if n == 1 && id[i] != '-' && id[i] != '.' {
				break
			}
			i++
			continue
		}
		j := i
		for j < len(id) && id[j] >= '0' && id[j] <= '9' {
			j++
		}
		if j-i > 2 || i > 0 && IsLetter(id[i-1]) || j < len(id) && IsLetter(id[j]) {
			if n == 1 {
				break
			}
			i = j
			continue
		}
		num, _ := strconv.Atoi(id[i:j])
		if n == 0 {
			v.Major = num
		} else {
			v.Minor = num
		}
		n++
		i = j
	}
	return v, n > 0
}
