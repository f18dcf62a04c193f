package responses

import (
	"strings"

	"github.com/tidwall/gjson"

	"weir/pkg/llm/ir"
)

// Marks are the strings in a request without which Adapt leaves its input unread,
// and the one of a request for a compaction.
var Marks = []string{ir.SignatureMark, triggerType}

// TriggerMark is the index in Marks of the mark of a request for a compaction.
const TriggerMark = 1

// Adapt removes reasoning items that only other providers can read, and replaces
// compactions made by weir with their texts.
func Adapt(p ir.Patch, opt ir.Options) ir.Patch {
	if !p.Marked(0) {
		return p
	}
	p.Each("input", func(item gjson.Result) (string, bool) {
		if strings.HasPrefix(ir.Str(item.Get("encrypted_content")), ir.SignatureMark) {
			if item.Get("type").Str == "compaction" {
				if text, ok := summaryOf(item); ok {
					return `{"type":"message","role":"user","content":[{"type":"input_text","text":` + ir.Quote(text) + `}]}`, true
				}
			}
			p.Note("input.reasoning")
			return "", false
		}
		return item.Raw, true
	})
	return p
}
