package gemini

import (
	"encoding/base64"
	"strings"

	"weir/pkg/llm/ir"
)

// A thoughtSignature is bytes in base64, and Google's Python client decodes it. One
// of another issuer is the base64 of
//
//	weir.<issuer>.<signature>
//
// with "redacted." before the signature of a redacted thought. On a function call it
// is followed by a line feed and the text of the last thought before the call: Gemini
// CLI sends signatures back on calls only. The first call of every answer has one, so that
// a Gemini model later in the conversation is not sent a call without.
const (
	redactedMark = "redacted."

	// encodedMark begins the base64 of ir.SignatureMark and a lower-case letter.
	encodedMark = "d2Vpci5"
)

// maxThought is the maximum length of a thought in a signature, in bytes.
const maxThought = 256 << 10

// encodeSignature returns the thoughtSignature of a thought. text is that of the
// thought before a call.
func encodeSignature(b *ir.Block, text string) string {
	issuer := b.IssuerOrUnsigned()
	if issuer == ir.IssuerGemini && !b.Redacted && b.Signature != "" {
		return b.Signature
	}
	sig := b.Signature
	if b.Redacted {
		sig = redactedMark + sig
	}
	sig = ir.WrapSignature(issuer, sig)
	if text != "" && len(text) <= maxThought && strings.IndexByte(sig, '\n') < 0 {
		sig += "\n" + text
	}
	return base64.StdEncoding.EncodeToString([]byte(sig))
}

// decodeSignature returns the thought of a thoughtSignature of another issuer, or
// false for one of Gemini.
func decodeSignature(s string) (b ir.Block, foreign bool) {
	if !strings.HasPrefix(s, encodedMark) {
		return b, false
	}
	text, ok := decodeBase64(s)
	if !ok || !strings.HasPrefix(text, ir.SignatureMark) {
		return b, false
	}
	b.Kind = ir.ThinkingBlock
	text, b.Text, _ = strings.Cut(text, "\n")
	b.Issuer, b.Signature = ir.UnwrapSignature(text, "")
	if rest, ok := strings.CutPrefix(b.Signature, redactedMark); ok {
		b.Redacted, b.Signature = true, rest
	}
	return b, b.Issuer != ""
}

// callSignature returns the thoughtSignature of a call: its own, that of the thought
// since the last call, or for the first call of an answer the mark of a foreign call.
func callSignature(call, thought *ir.Block, first bool) string {
	switch {
	case call.Signature != "":
		return encodeSignature(call, "")
	case thought != nil:
		return encodeSignature(thought, thought.Text)
	case first:
		return encodeSignature(&ir.Block{}, "")
	}
	return ""
}
