package ir

import (
	"slices"
	"strings"
)

// CacheMarks names the places where the gateway has marked the end of a cached
// prefix, for a model that caches nothing without marks.
type CacheMarks struct {
	Added []string // tools, system, user; user once for each turn
	// Auto marks only what is likely to be sent again: a request with tools or an answer
	// of the model is one of a session. A prefix that is written and never read costs more.
	Auto bool
}

// markedTurns is the number of turns of the user that are marked, the last ones. The
// mark of the one before was the last of the previous call, whose cache is read. With
// tools and system these are the four marks that Anthropic and Amazon Bedrock allow.
const markedTurns = 2

// MarkCache marks the tools, the system prompt and the last two turns of the user if
// the options ask for that and the client has set no mark itself. In the first call of a
// conversation without tools the turn of the user is not marked.
//
// The rule depends on the conversation alone, so that the next call of it marks the
// same prefixes.
func (q *Request) MarkCache(opt *Options) {
	marks := opt.CacheMarks
	if marks == nil {
		return
	}
	marks.Added = nil
	session := len(q.Tools) > 0 || slices.ContainsFunc(q.Messages, func(m Message) bool { return m.Role == RoleAssistant })
	if q.hasCacheMark() || marks.Auto && !session {
		return
	}
	if t := q.lastTool(); t != nil {
		t.Cache = "5m"
		marks.Added = append(marks.Added, "tools")
	}
	lead := q.Lead()
	for i := lead - 1; i >= 0; i-- {
		if b := lastMarkable(q.Messages[i:i+1], TextBlock); b != nil {
			b.Cache = "5m"
			marks.Added = append(marks.Added, "system")
			break
		}
	}
	if !session {
		return
	}
	var turns [markedTurns][]Message
	for list := q.Messages[lead:]; len(list) > 0; {
		turn := Turn(list)
		list = list[len(turn):]
		if turn[0].Role != RoleAssistant {
			copy(turns[:], turns[1:])
			turns[markedTurns-1] = turn
		}
	}
	for _, turn := range turns {
		b := lastMarkable(turn, TextBlock, ImageBlock, DocumentBlock)
		if b == nil { // results are written before the other blocks
			b = lastMarkable(turn, ToolResultBlock)
		}
		if b != nil {
			b.Cache = "5m"
			marks.Added = append(marks.Added, "user")
		}
	}
}

// hasCacheMark reports whether the client has marked the end of a cached prefix.
func (q *Request) hasCacheMark() bool {
	if q.Cache != "" {
		return true
	}
	for i := range q.Tools {
		if q.Tools[i].Cache != "" {
			return true
		}
	}
	for i := range q.Messages {
		for j := range q.Messages[i].Blocks {
			b := &q.Messages[i].Blocks[j]
			if b.Cache != "" {
				return true
			}
			for k := range b.Parts {
				if b.Parts[k].Cache != "" {
					return true
				}
			}
		}
	}
	return false
}

// lastTool returns the last tool that the model may call, or nil.
func (q *Request) lastTool() *Tool {
	if q.ToolChoice.Mode == ChoiceNone {
		return nil
	}
	may := map[string]bool{}
	for _, name := range q.ToolChoice.Allowed {
		may[name] = true
	}
	for i := len(q.Tools) - 1; i >= 0; i-- {
		if t := &q.Tools[i]; len(may) == 0 || may[t.Name] {
			return t
		}
	}
	return nil
}

// lastMarkable returns the last block of one of the kinds, or nil. Blank texts are not
// sent.
func lastMarkable(turn []Message, kinds ...BlockKind) *Block {
	for i := len(turn) - 1; i >= 0; i-- {
		for j := len(turn[i].Blocks) - 1; j >= 0; j-- {
			b := &turn[i].Blocks[j]
			for _, kind := range kinds {
				if b.Kind == kind && (kind != TextBlock || strings.TrimSpace(b.Text) != "") {
					return b
				}
			}
		}
	}
	return nil
}
