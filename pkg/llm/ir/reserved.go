package ir

import (
	"strconv"
	"strings"
)

// reservedOutput reads the message of an upstream for a request that is too long only
// with the tokens reserved for its answer:
//
//	maximum context length is C tokens. However, you requested N tokens (A in the messages, B in the completion)
//	maximum context length is C tokens. However, you requested about N tokens (A of text input, B in the output)
//	maximum context length is C tokens. However, your request has A input tokens plus B 'max_tokens'
//	'max_tokens' or 'max_completion_tokens' is too large: B. This model's maximum context length is C tokens and your request has A input tokens
//
// ok is false if the message is another one, or if the input alone is too long.
// Sources: https://github.com/vllm-project/vllm/issues/33418,
// https://github.com/OpenHands/OpenHands/issues/9937.
func reservedOutput(message string) (input, output, limit int64, ok bool) {
	limit, ok = numberAfter(message, "maximum context length is ")
	if !ok {
		return 0, 0, 0, false
	}
	input, ok = firstNumber(message, numberBefore, " in the messages", " of text input", " input tokens")
	if !ok || input >= limit {
		return 0, 0, 0, false
	}
	if output, ok = firstNumber(message, numberBefore, " in the completion", " in the output", " 'max_tokens'"); !ok {
		output, ok = numberAfter(message, "is too large: ")
	}
	return input, output, limit, ok && output > limit-input
}

// firstNumber returns the number at the first of the texts that has one.
func firstNumber(s string, find func(s, text string) (int64, bool), texts ...string) (int64, bool) {
	for _, text := range texts {
		if n, ok := find(s, text); ok {
			return n, true
		}
	}
	return 0, false
}

// maxNumber is the length of a number of tokens, in digits.
const maxNumber = 12

func numberAfter(s, text string) (int64, bool) {
	_, rest, ok := strings.Cut(s, text)
	if !ok {
		return 0, false
	}
	n := 0
	for n < len(rest) && n <= maxNumber && isDigit(rest[n]) {
		n++
	}
	return number(rest[:n])
}

func numberBefore(s, text string) (int64, bool) {
	rest, _, ok := strings.Cut(s, text)
	if !ok {
		return 0, false
	}
	n := len(rest)
	for n > 0 && len(rest)-n <= maxNumber && isDigit(rest[n-1]) {
		n--
	}
	return number(rest[n:])
}

func number(digits string) (int64, bool) {
	if digits == "" || len(digits) > maxNumber {
		return 0, false
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	return n, err == nil
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
