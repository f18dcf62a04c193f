// Package catalog knows model ids and their kinds, as data.
package catalog

// Kind is what a model is for. See docs/reference/spec.md, 1.6.
type Kind string

// The kinds of models and combos.
const (
	LLM         Kind = "llm"
	Image       Kind = "image"
	TTS         Kind = "tts"
	STT         Kind = "stt"
	Embedding   Kind = "embedding"
	ImageToText Kind = "imageToText"
	WebSearch   Kind = "webSearch"
	WebFetch    Kind = "webFetch"
	Video       Kind = "video"
	Music       Kind = "music"
	Rerank      Kind = "rerank"
)

// Realtime is the kind of the catalogue's models that a session over a WebSocket alone
// reaches. No list of models that clients can call has them, and no combo is of that kind.
const Realtime Kind = "realtime"

// Known reports whether k is one of the kinds above.
func (k Kind) Known() bool {
	switch k {
	case LLM, Image, TTS, STT, Embedding, ImageToText, WebSearch, WebFetch, Video, Music, Rerank:
		return true
	}
	return false
}

// InferKind guesses the kind of an unknown model from its id, ignoring case: embedding
// has precedence over tts, tts over image, and any other id is a chat model.
// See docs/reference/spec.md, 4.1.4.7.
func InferKind(id string) Kind {
	found := LLM
	for i := 0; i+1 < len(id); i++ {
		// The first two letters decide which piece it can be; folding by a bit
		// lets through too much, which startsFold then refuses.
		kind, text := LLM, ""
		switch c, d := id[i]|0x20, id[i+1]|0x20; c {
		case 'e':
			if d == 'm' {
				kind, text = Embedding, "embed"
			}
		case 't':
			if d == 't' {
				kind, text = TTS, "tts"
			}
		case 'a':
			if d == 'u' {
				kind, text = TTS, "audio"
			}
		case 'v':
			if d == 'o' {
				kind, text = TTS, "voice"
			}
		case 'i':
			if d == 'm' {
				kind, text = Image, "image" // and so imagen
			}
		case 'f':
			if d == 'l' {
				kind, text = Image, "flux"
			}
		case 'd':
			if d == 'a' {
				kind, text = Image, "dalle"
				if len(id) > i+4 && id[i+4] == '-' {
					text = "dall-e"
				}
			}
		case 's':
			switch d {
			case 'p':
				kind, text = TTS, "speech"
			case 't':
				kind, text = Image, "stable-diffusion"
			case 'd':
				kind, text = Image, "sdxl"
				if len(id) > i+2 && id[i+2] == '-' {
					text = "sd-"
				}
			}
		}
		if text == "" || !startsFold(id[i:], text) {
			continue
		}
		if kind == Embedding {
			return Embedding
		}
		if kind == TTS || found == LLM {
			found = kind
		}
	}
	return found
}

// startsFold reports whether s starts with text, which is in lower case ASCII.
func startsFold(s, text string) bool {
	if len(s) < len(text) {
		return false
	}
	for i := 0; i < len(text); i++ {
		if lower(s[i]) != text[i] {
			return false
		}
	}
	return true
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

// looksVideo reports whether an id contains a part that is typical of video models.
func looksVideo(id string) bool {
	for i := 0; i+1 < len(id); i++ {
		text := ""
		switch c, d := id[i]|0x20, id[i+1]|0x20; c {
		case 'v':
			switch d {
			case 'e':
				text = "veo"
			case 'i':
				text = "video"
			}
		case 't', 'r':
			switch d {
			case '2' | 0x20:
				text = "t2v"
				if c == 'r' {
					text = "r2v"
				}
			case 'a':
				text = "ray-"
			}
		case 'i':
			switch d {
			case '2' | 0x20:
				text = "i2v"
			case 'm':
				text = "imagine"
			}
		case 's':
			if d == 'e' {
				text = "seedance"
			}
		case 'h':
			if d == 'a' {
				text = "hailuo"
				if len(id) > i+2 && id[i+2]|0x20 == 'p' {
					text = "happyhorse"
				}
			}
		case 'g':
			if d == 'e' {
				text = "gen4"
			}
		case 'w':
			if d == 'a' {
				text = "wan3"
			}
		}
		if text != "" && startsFold(id[i:], text) {
			return true
		}
	}
	return false
}
