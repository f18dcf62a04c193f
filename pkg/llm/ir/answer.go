package ir

import "weir/pkg/wire/apierr"

// Finish is the reason why an answer ended.
type Finish uint8

// The reasons.
const (
	FinishUnset Finish = iota
	FinishStop
	FinishSequence // a stop sequence was generated
	FinishLength
	FinishTools
	FinishFilter
	FinishPause
	FinishWindow // the context is full
)

// Answer is a whole answer.
type Answer struct {
	ID, Model    string
	Blocks       []Block
	Finish       Finish
	StopSequence string
	Explanation  string // why it was refused
	Usage        Usage
	ServiceTier  string
	Logprobs     string // raw JSON, chat's form
	Failure      *apierr.Error
}

// HasCalls reports whether the answer has tool calls.
func (a *Answer) HasCalls() bool {
	for i := range a.Blocks {
		if a.Blocks[i].Kind == ToolCallBlock {
			return true
		}
	}
	return false
}

// FinishReason returns the reason, corrected for upstreams that report stop
// after a call.
func (a *Answer) FinishReason() Finish { return SettleFinish(a.Finish, a.HasCalls()) }

// SettleFinish returns f, corrected for upstreams that report stop after a
// call, or no reason; calls reports whether the answer has tool calls.
func SettleFinish(f Finish, calls bool) Finish {
	if calls && (f == FinishStop || f == FinishUnset) {
		return FinishTools
	}
	if f == FinishUnset {
		return FinishStop
	}
	return f
}

// Name returns the reason as telemetry has it, or "".
func (f Finish) Name() string {
	return [...]string{FinishStop: "stop", FinishSequence: "stop", FinishLength: "length", FinishTools: "tool_calls",
		FinishFilter: "content_filter", FinishPause: "pause", FinishWindow: "length"}[f]
}

// ClaudeFinish reads a stop_reason of Claude.
func ClaudeFinish(s string) Finish {
	switch s {
	case "":
		return FinishUnset
	case "max_tokens":
		return FinishLength
	case "stop_sequence":
		return FinishSequence
	case "tool_use":
		return FinishTools
	case "refusal":
		return FinishFilter
	case "pause_turn":
		return FinishPause
	case "model_context_window_exceeded":
		return FinishWindow
	}
	return FinishStop
}
