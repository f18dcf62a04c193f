package llm

import "weir/pkg/wire/apierr"

// finish is why an answer ended.
type finish uint8

const (
	finishUnset finish = iota
	finishStop
	finishSequence // one of the stop sequences came up
	finishLength
	finishTools
	finishFilter
	finishPause
	finishWindow // the context is full
)

// answer is a whole answer.
type answer struct {
	id, model string
	blocks    []block
	finish    finish
	stopSeq   string
	explain   string // why it was refused
	usage     Usage
	tier      string
	logprobs  string // raw JSON, chat's form
	failure   *apierr.Error
}

func (a *answer) hasTools() bool {
	for i := range a.blocks {
		if a.blocks[i].kind == toolUseBlock {
			return true
		}
	}
	return false
}

// reason is the finish, corrected for upstreams that say stop after a call.
func (a *answer) reason() finish { return settle(a.finish, a.hasTools()) }

func settle(f finish, tools bool) finish {
	if tools && (f == finishStop || f == finishUnset) {
		return finishTools
	}
	if f == finishUnset {
		return finishStop
	}
	return f
}

func messagesFinish(s string) finish {
	switch s {
	case "":
		return finishUnset
	case "max_tokens":
		return finishLength
	case "stop_sequence":
		return finishSequence
	case "tool_use":
		return finishTools
	case "refusal":
		return finishFilter
	case "pause_turn":
		return finishPause
	case "model_context_window_exceeded":
		return finishWindow
	}
	return finishStop
}
