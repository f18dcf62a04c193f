package download

import "strings"

// DataURI takes a data: address with base64 apart; ok is false for any other.
func DataURI(address string) (mime, base64 string, ok bool) {
	rest, ok := strings.CutPrefix(address, "data:")
	if !ok {
		return "", "", false
	}
	mime, base64, ok = strings.Cut(rest, ";base64,")
	return mime, base64, ok && mime != ""
}

// SameSite reports whether an address is on the origin of base, or https on a
// host of the same owner: the last two labels are the same.
func SameSite(address, base string) bool {
	site := func(origin string) string {
		host, ok := strings.CutPrefix(origin, "https://")
		labels := strings.Split(host, ".")
		if !ok || len(labels) < 2 || strings.ContainsAny(host, ":@[]\\") {
			return ""
		}
		return strings.Join(labels[len(labels)-2:], ".")
	}
	a, b := Origin(address), Origin(base)
	return a != "" && a == b || site(a) != "" && site(a) == site(b)
}
