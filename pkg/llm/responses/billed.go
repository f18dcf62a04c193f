package responses

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"weir/pkg/llm/ir"
)

// The types of the items whose tools are billed beside the tokens. Their names are in no
// answer without these tools: see BilledMarks.
const (
	webSearch  = "web_search_call"
	fileSearch = "file_search_call"
	codeRun    = "code_interpreter_call"
	imageMade  = "image_generation_call"
)

// BilledMarks are in an answer that has one of these items.
var BilledMarks = [...]string{`_search_call"`, `"` + codeRun + `"`, `"` + imageMade + `"`}

func hasBilled(raw string) bool {
	return slices.ContainsFunc(BilledMarks[:], func(mark string) bool { return strings.Contains(raw, mark) })
}

// countItem adds what an item of the output is billed by. Opening a page and searching in
// one are free. Runs of code in one container follow each other: the container is billed,
// and last is the one of the run before.
func countItem(u *ir.Usage, last *string, item gjson.Result) {
	switch item.Get("type").Str {
	case webSearch:
		if a := item.Get("action.type").Str; a == "" || a == "search" {
			u.Searches++
		}
	case fileSearch:
		u.FileSearches++
	case codeRun:
		if id := item.Get("container_id").Str; id == "" || id != *last {
			u.Code++
			*last = strings.Clone(id)
		}
	case imageMade:
		u.NoRate("image_generation")
	}
}

// countTools adds what the tools of an answer are billed by. OpenAI states the searches
// that it bills in tool_usage.web_search.num_requests, xAI all tools in its usage: then
// the items are not counted.
func countTools(u *ir.Usage, root gjson.Result) {
	if u.ToolsFinal || !hasBilled(root.Raw) {
		return
	}
	last := ""
	ir.Each(root.Get("output"), func(_, item gjson.Result) bool {
		countItem(u, &last, item)
		u.ToolsFinal = true
		return true
	})
	if n := root.Get("tool_usage.web_search.num_requests"); n.Type == gjson.Number {
		u.Searches, u.ToolsFinal = ir.Count(n), true
	}
	toolOptions(u, root)
}

// toolOptions notes what the rates of the tools depend on, which an answer and its first
// events repeat from the request: the preview of web search, and the memory of a
// container. A container that the client has created was billed then.
func toolOptions(u *ir.Usage, root gjson.Result) {
	ir.Each(root.Get("tools"), func(_, t gjson.Result) bool {
		switch kind := t.Get("type").Str; {
		case strings.HasPrefix(kind, "web_search_preview"):
			u.ToolOption("preview")
		case kind == "code_interpreter" && t.Get("container").IsObject():
			size := cmp.Or(t.Get("container.memory_limit").Str, "1g")
			u.ToolOption(strings.Clone(size))
		}
		return true
	})
}

// SeenBilled reads what is billed in a part of a long line: the service tier of the
// answer.
func SeenBilled(u *ir.Usage, part []byte) {
	_, rest, _ := bytes.Cut(part, []byte(`"service_tier":`))
	if v := gjson.ParseBytes(rest[:min(len(rest), 64)]); v.Type == gjson.String {
		u.Serve(v.Str)
	}
}
