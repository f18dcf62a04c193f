// Package catalog knows model ids and their kinds, as data.
package catalog

import "strings"

// Kind is what a model is for. Spec 1.6.
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

// Known tells whether k is one of the kinds above.
func (k Kind) Known() bool {
	switch k {
	case LLM, Image, TTS, STT, Embedding, ImageToText, WebSearch, WebFetch, Video, Music, Rerank:
		return true
	}
	return false
}

// EntryKind is the kind of a catalogue entry: its kind, or by its type where
// it has none. A type other than image, tts, embedding, stt and imageToText
// means llm, and so does none. Spec 2.7.
func EntryKind(kind, typ string) Kind {
	if k := Kind(kind); k.Known() {
		return k
	}
	switch k := Kind(typ); k {
	case Image, TTS, Embedding, STT, ImageToText:
		return k
	}
	return LLM
}

// The parts of an id that tell a kind, in the order they are tried. Spec 4.1.4.7.
var inferred = []struct {
	kind  Kind
	parts []string
}{
	{Embedding, []string{"embed"}},
	{TTS, []string{"tts", "speech", "audio", "voice"}},
	{Image, []string{"image", "imagen", "dall-e", "dalle", "flux", "sdxl", "sd-", "stable-diffusion"}},
}

// InferKind guesses the kind of an id that no catalogue knows, from its
// letters alone, whatever their case. Spec 4.1.4.7.
func InferKind(id string) Kind {
	for _, rule := range inferred {
		for _, part := range rule.parts {
			if containsFold(id, part) {
				return rule.kind
			}
		}
	}
	return LLM
}

// containsFold tells whether s contains part, which is in lower case ASCII.
func containsFold(s, part string) bool {
	first := part[0]
	for i := 0; i+len(part) <= len(s); i++ {
		if lower(s[i]) != first {
			continue
		}
		j := 1
		for j < len(part) && lower(s[i+j]) == part[j] {
			j++
		}
		if j == len(part) {
			return true
		}
	}
	return false
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

// videoParts are parts of the ids of video models. An id with one of them is
// looked up before it is believed.
var videoParts = []string{"video", "veo", "t2v", "i2v", "r2v", "seedance", "hailuo", "imagine", "gen4", "ray-", "wan3", "happyhorse", "aleph"}

// KnownVideo tells whether some provider has a video model of this id, and
// none a model of another kind; also for the last part of an id with slashes.
func KnownVideo(id string) bool {
	for _, part := range videoParts {
		if !containsFold(id, part) {
			continue
		}
		found := Find(id)
		if i := strings.LastIndexByte(id, '/'); found == nil && i >= 0 {
			found = Find(id[i+1:])
		}
		for i := range found {
			if found[i].Kind != Video {
				return false
			}
		}
		return found != nil
	}
	return false
}
