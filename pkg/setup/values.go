package setup

import "strings"

// Values replace the placeholders of texts.
type Values struct {
	URL   string `json:"url"`
	Key   string `json:"key"`
	Model string `json:"model"`
	Small string `json:"smallModel"`
}

// Placeholders are the placeholders of Tool.AllTexts.
var Placeholders = Values{urlMark, keyMark, modelMark, smallMark}

// fill replaces the placeholders of a text.
func (v *Values) fill(text string) string {
	return strings.NewReplacer(urlMark, v.URL, keyMark, v.Key, modelMark, v.Model, smallMark, v.Small).Replace(text)
}

// MaxModel is the length of a model name in bytes.
const MaxModel = 320

// IsModel reports whether a model name can be put into a command, a script and every
// format of configuration without quoting: letters, digits and ._:/@+~-.
func IsModel(s string) bool {
	return s != "" && len(s) <= MaxModel && only(s, "._:/@+~-")
}

// IsOrigin reports whether an address is scheme and host, and can be put into a
// command without quoting.
func IsOrigin(s string) bool {
	host, ok := strings.CutPrefix(s, "https://")
	if !ok {
		host, ok = strings.CutPrefix(s, "http://")
	}
	return ok && host != "" && len(s) <= 300 && only(host, ".:_-")
}

// only reports whether s has ASCII letters, digits and the bytes of more alone.
func only(s, more string) bool {
	for i := 0; i < len(s); i++ {
		c := s[i]
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte(more, c) >= 0) {
			return false
		}
	}
	return true
}
