package models

import (
	"cmp"
	"hash/fnv"
	"strconv"

	"weir/pkg/catalog"
	"weir/pkg/wire/httpmsg"
)

// maxCodexList is the length after which a list for Codex ends: it reads no more
// than 1 MiB.
const maxCodexList = 1_000_000

// codexInstructions are the instructions of a model that Codex does not know. It
// has no others once a model is in the list.
const codexInstructions = "You are a coding agent in Codex, which runs on the user's computer. " +
	"Work until the task is done: find out what the code does by reading it and by running commands, change it, and check the result with the project's own tests and tools. " +
	"Search with rg where it is installed. Edit files with apply_patch. Make the smallest change that solves the task at its cause, in the style of the code around it, and leave unrelated code as it is. " +
	"Files such as AGENTS.md have instructions for their folder and all below; those of the user come first. " +
	"Do not commit, and do not undo changes that you have not made, unless you are asked to. " +
	"Before a longer step say in a sentence what you are about to do. At the end say what has changed and how it was checked, briefly, with paths of files."

// appendCodexList writes a list as Codex reads it (docs/reference/clients.md, 2.3). A
// missing field of one entry would make it refuse the list.
//
//	{"models":[{"slug","display_name","context_window"?,…}]}
func appendCodexList(b []byte, list []Entry) []byte {
	b = append(b, `{"models":[`...)
	for i := range list {
		from := len(b)
		if i > 0 {
			b = append(b, ',')
		}
		if b = list[i].appendCodex(b, i); len(b) > maxCodexList {
			b = b[:from]
			break
		}
	}
	return append(b, "]}"...)
}

func (e *Entry) appendCodex(b []byte, priority int) []byte {
	m := e.Model
	name := cmp.Or(m.Name, e.ID)
	b = appendString(append(b, `{"slug":`...), e.ID)
	b = appendString(append(b, `,"display_name":`...), name)
	b = appendString(append(b, `,"description":`...), e.OwnedBy)
	reasons, _ := m.Caps.Get(catalog.Reasoning)
	if reasons {
		b = append(b, `,"default_reasoning_level":"medium","supported_reasoning_levels":[`+
			`{"effort":"low","description":"Answers quickly"},{"effort":"medium","description":"Thinks as much as most tasks need"},`+
			`{"effort":"high","description":"Thinks longer about hard tasks"}]`...)
	} else {
		b = append(b, `,"supported_reasoning_levels":[]`...)
	}
	b = append(b, `,"shell_type":"shell_command","visibility":"list","supported_in_api":true,"priority":`...)
	b = strconv.AppendInt(b, int64(priority), 10)
	b = appendString(append(b, `,"upgrade":null,"base_instructions":`...), codexInstructions)
	b = strconv.AppendBool(append(b, `,"supports_reasoning_summaries":`...), reasons)
	b = append(b, `,"support_verbosity":false,"default_verbosity":null,"apply_patch_tool_type":"freeform",`+
		`"truncation_policy":{"mode":"tokens","limit":10000},"supports_parallel_tool_calls":true`...)
	if m.Context > 0 {
		b = strconv.AppendInt(append(b, `,"context_window":`...), int64(m.Context), 10)
	}
	b = append(b, `,"effective_context_window_percent":95,"experimental_supported_tools":[],"service_tiers":[],"input_modalities":["text"`...)
	if images, known := m.Caps.Get(catalog.Vision); images || !known {
		b = append(b, `,"image"`...)
	}
	return append(b, "]}"...)
}

// setETag adds the ETag by which Codex notices a changed list.
func setETag(resp *httpmsg.Response, body []byte) {
	sum := fnv.New64a()
	sum.Write(body)
	resp.Header.Add("etag", `"`+strconv.FormatUint(sum.Sum64(), 36)+`"`)
}
