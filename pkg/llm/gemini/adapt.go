package gemini

import (
	"strings"

	"github.com/tidwall/gjson"

	"weir/pkg/llm/ir"
)

// Marks are the strings in a request without which Adapt leaves its arrays unread.
var Marks = []string{encodedMark}

// Adapt removes from a body for Gemini what other issuers have signed. The signatures
// of their calls, which Gemini 3 requires, become the one that stands for a missing
// signature.
func Adapt(p ir.Patch, opt ir.Options) ir.Patch {
	if !p.Marked(0) {
		return p
	}
	signs, own := signsCalls(opt.Model), opt.IssuerOr(ir.IssuerGemini)
	p.Each("contents", func(content gjson.Result) (string, bool) {
		parts := content.Get("parts")
		if !parts.IsArray() || !strings.Contains(parts.Raw, `"thought`) {
			return content.Raw, true
		}
		d := ir.Writer{Buf: make([]byte, 0, len(parts.Raw))}
		d.Open("", '[')
		parts.ForEach(func(_, v gjson.Result) bool {
			if raw, keep := ownPart(&p, v, own, signs); keep {
				d.Raw("", raw)
			}
			return true
		})
		d.Close(']')
		if len(d.Buf) == len("[]") {
			return "", false
		}
		return ir.SetMember(content, "parts", string(d.Buf)), true
	})
	return p
}

// ownPart returns a part without the signature of another issuer. A thought that Gemini
// has not signed may be of another issuer, and Gemini does without its own.
func ownPart(p *ir.Patch, v gjson.Result, own string, signs bool) (raw string, keep bool) {
	var signed ir.Block
	var signature string
	foreign, thought := false, false
	members(v, func(name string, v gjson.Result) bool {
		switch name {
		case "thoughtSignature":
			signature = ir.Str(v)
			signed, foreign = decodeSignature(signature)
		case "thought":
			thought = v.Type == gjson.True
		}
		return true
	})
	instead := unsignedCall
	switch {
	case !foreign:
		return v.Raw, signature != "" || !thought
	case signed.Issuer == own && signed.Signature != "":
		instead, signs = signed.Signature, true
	default:
		p.Note("contents.parts.thoughtSignature")
		if thought {
			return "", false
		}
	}
	return ir.MapMembers(v, func(name string, v gjson.Result) (string, bool) {
		if camel(name) != "thoughtSignature" {
			return v.Raw, true
		}
		return ir.Quote(instead), signs
	}), true
}
