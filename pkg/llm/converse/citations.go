package converse

import (
	"github.com/tidwall/gjson"

	"weir/pkg/llm/ir"
)

// readCitation reads a citation of Bedrock, which applies to the whole block.
func readCitation(v gjson.Result) (c ir.Citation, ok bool) {
	c = ir.Citation{URL: ir.Str(v.Get("location.web.url")), Title: ir.Str(v.Get("title")),
		Quote: ir.Str(v.Get("sourceContent.0.text"))}
	return c, c.URL != ""
}
