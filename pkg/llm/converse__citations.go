package llm

import "github.com/tidwall/gjson"

// converseCite reads a citation of Bedrock, which applies to the whole block too.
func converseCite(v gjson.Result) (c citation, ok bool) {
	c = citation{url: str(v.Get("location.web.url")), title: str(v.Get("title")), quote: str(v.Get("sourceContent.0.text"))}
	return c, c.url != ""
}
