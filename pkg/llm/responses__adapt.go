package llm

import (
	"bytes"
	"strings"

	"github.com/tidwall/gjson"
)

// responses takes out reasoning items that only other providers can read.
func adaptResponses(p patch, opt Options) patch {
	if !bytes.Contains(p.body, []byte(`"`+wrapMark)) {
		return p
	}
	p.each("input", func(item gjson.Result) (string, bool) {
		if strings.HasPrefix(str(item.Get("encrypted_content")), wrapMark) {
			p.note("input.reasoning")
			return "", false
		}
		return item.Raw, true
	})
	return p
}
