package provider

import (
	"slices"

	"weir/pkg/catalog"
)

// unadapted are the models that providers have and that cannot be called
// through the gateway: those of a shape that is not spoken, and those that take
// more than an endpoint's request has. They are not listed. Without models all
// of the kind are meant.
var unadapted = [...]struct {
	provider string
	kind     catalog.Kind
	models   []string
}{
	{"fal", catalog.TTS, []string{"fal-ai/dia-tts/voice-clone", "fal-ai/minimax/voice-clone", "fal-ai/minimax/voice-design"}}, // they need a recording, or make a voice
	{"minimax", catalog.STT, nil},
	{"replicate", catalog.STT, nil},
	{"replicate", catalog.TTS, nil},
	{"runway", catalog.TTS, []string{"eleven_v3", "seed_audio"}},
	{"vertex", catalog.TTS, []string{"chirp-3-hd"}}, // of Cloud Text-to-Speech
}

// Callable reports whether a model of a kind can be called through the gateway.
func (d *Descriptor) Callable(kind catalog.Kind, model string) bool {
	for i := range unadapted {
		if u := &unadapted[i]; u.provider == d.ID && u.kind == kind {
			return u.models != nil && !slices.Contains(u.models, model)
		}
	}
	return true
}
