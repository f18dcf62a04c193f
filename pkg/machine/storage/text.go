package storage

import "unicode/utf8"

// IsPrintable reports whether s has only visible characters.
func IsPrintable(s string) bool {
	_, at := Hidden(s)
	return at == 0
}

// Hidden returns the first invisible character of s, or one that changes how
// others are displayed, and its position from 1: a control character, a line
// separator, a direction mark or override, a zero-width character. Joiners are
// allowed: emoji and some scripts need them.
func Hidden(s string) (r rune, at int) {
	for _, r := range s {
		at++
		switch {
		case r < 0x20, r >= 0x7f && r < 0xa0, r == utf8.RuneError,
			r == 0x061c, r == 0x200b, r == 0x200e, r == 0x200f, r >= 0x2028 && r <= 0x202e,
			r >= 0x2060 && r <= 0x206f, r == 0xfeff, r >= 0xfff9 && r <= 0xfffb, r >= 0xe0000 && r <= 0xe007f:
			return r, at
		}
	}
	return 0, 0
}
