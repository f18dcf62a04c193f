package responses

import (
	"encoding/base64"
	"strings"

	"github.com/tidwall/gjson"

	"weir/pkg/llm/ir"
	"weir/pkg/wire/apierr"
)

// triggerType is the type of the item that ends a request for a compaction:
//
//	{"type":"compaction_trigger"}
//
// The answer has one item {"type":"compaction","encrypted_content"}, which stands
// for the conversation in later requests (docs/reference/clients.md, 2.5). Where
// the vendor cannot compact, the model writes a summary, and encrypted_content is
// that, marked and encoded: it holds nothing that its client does not know.
const triggerType = "compaction_trigger"

const compactInstruction = "Summarize this conversation for another model that goes on with the work. " +
	"It will see your summary and the latest messages of the user, and nothing else. " +
	"State the user's goals and instructions, the decisions and their reasons, what has been done (files, commands and their results), " +
	"the present state, and what remains to be done. Keep names, paths, identifiers and figures exactly. " +
	"Do not call tools. Reply with the summary alone."

const summaryHead = "The conversation so far was compacted. Its summary:\n\n"

// EndsWithTrigger reports whether the input of a request ends with a
// compaction_trigger.
func EndsWithTrigger(input []byte) bool {
	var last gjson.Result
	ir.Each(gjson.Parse(ir.View(input)), func(_, item gjson.Result) bool { last = item; return true })
	return last.Get("type").Str == triggerType
}

// compact turns a request into one for a summary. The tools stay, because some
// vendors refuse the calls of a conversation without them.
func compact(q *ir.Request, opt *ir.Options) {
	if opt.Settings == nil {
		opt.Settings = &ir.Settings{}
	}
	opt.Settings.Compact = true
	q.Messages = append(q.Messages, ir.Message{Role: ir.RoleUser, Blocks: []ir.Block{{Text: compactInstruction}}})
	if len(q.Tools) > 0 {
		q.ToolChoice = ir.ToolChoice{Mode: ir.ChoiceNone}
	}
	q.Format, q.SearchWeb, q.Stop = ir.Format{}, false, nil
}

// summaryOf returns the text for the model that a compaction made by weir stands
// for.
func summaryOf(item gjson.Result) (text string, ok bool) {
	issuer, encoded := ir.UnwrapSignature(ir.Str(item.Get("encrypted_content")), "")
	if issuer != ir.IssuerCompaction {
		return "", false
	}
	raw, err := base64.StdEncoding.DecodeString(encoded)
	return summaryHead + strings.ToValidUTF8(string(raw), ""), err == nil
}

func writeCompaction(d *ir.Writer, id, summary string) {
	d.Open("", '{')
	d.Str("id", id)
	d.Str("type", "compaction")
	d.Str("encrypted_content", ir.WrapSignature(ir.IssuerCompaction, base64.StdEncoding.EncodeToString([]byte(summary))))
	d.Close('}')
}

// errNoSummary returns the failure of a compaction without a text.
func errNoSummary() *apierr.Error {
	return apierr.New(502, "bad_upstream_body",
		"The model returned no summary of the conversation. Try again, or compact with another model.")
}

// answerText returns the text of an answer.
func answerText(a *ir.Answer) string {
	var b strings.Builder
	for i := range a.Blocks {
		if a.Blocks[i].Kind == ir.TextBlock {
			b.WriteString(a.Blocks[i].Text)
		}
	}
	return strings.TrimSpace(b.String())
}

// CheckSummary returns a failure for the answer to a request for a compaction that
// has no text.
func CheckSummary(a *ir.Answer) *apierr.Error {
	if answerText(a) == "" {
		return errNoSummary()
	}
	return nil
}

// compacted writes the events of a stream whose answer is a compaction: the text
// becomes one item, and all else is left out.
func (s *sink) compacted(e *ir.Event) {
	switch e.Kind {
	case ir.EventText:
		s.text = append(s.text, e.Text...)
	case ir.EventFinish:
		s.finish = ir.SettleFinish(e.Finish, false)
	case ir.EventEnd:
		summary := strings.TrimSpace(ir.Unescape(string(s.text)))
		if summary == "" {
			s.fail(errNoSummary())
			return
		}
		for _, name := range [...]string{"response.output_item.added", "response.output_item.done"} {
			d := s.frame(name)
			d.Int("output_index", 0)
			d.Key("item")
			at := len(d.Buf)
			writeCompaction(d, itemID(s.opt, "cmp_", 0), summary)
			if name == "response.output_item.done" {
				s.items = append(s.items, append([]byte(nil), d.Buf[at:]...))
			}
			s.done(d)
		}
		status := statusName(s.finish)
		s.response("response."+status, status, s.finish, nil)
	}
}
