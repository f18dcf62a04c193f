package responses

import (
	"github.com/tidwall/gjson"

	"weir/pkg/llm/ir"
)

// DropThoughts removes the reasoning items with encrypted content from the input.
func DropThoughts(p *ir.Patch) {
	p.Each("input", func(item gjson.Result) (string, bool) {
		if ir.Str(item.Get("type")) == "reasoning" && item.Get("encrypted_content").Type == gjson.String {
			p.Note("input.reasoning")
			return "", false
		}
		return item.Raw, true
	})
}
