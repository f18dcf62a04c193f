package responses

import (
	"strings"

	"github.com/tidwall/gjson"

	"weir/pkg/llm/ir"
)

// Marks are the strings in a request without which Adapt leaves its input unread.
var Marks = []string{ir.SignatureMark}

// Adapt removes reasoning items that only other providers can read.
func Adapt(p ir.Patch, opt ir.Options) ir.Patch {
	if !p.Marked(0) {
		return p
	}
	p.Each("input", func(item gjson.Result) (string, bool) {
		if strings.HasPrefix(ir.Str(item.Get("encrypted_content")), ir.SignatureMark) {
			p.Note("input.reasoning")
			return "", false
		}
		return item.Raw, true
	})
	return p
}
