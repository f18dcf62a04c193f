package responses

import (
	"bytes"
	"strings"

	"github.com/tidwall/gjson"

	"weir/pkg/llm/ir"
)

// Adapt removes reasoning items that only other providers can read.
func Adapt(p ir.Patch, opt ir.Options) ir.Patch {
	if !bytes.Contains(p.Body, []byte(`"`+ir.SignatureMark)) {
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
