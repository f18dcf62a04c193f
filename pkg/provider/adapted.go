package provider

import (
	"slices"

	"weir/pkg/catalog"
)

// unadapted lists the providers' models that cannot be called through the
// gateway, because their API is not supported or needs more than an endpoint's
// request has. They are not listed by /v1/models. A row without models means all
// of the kind.
var unadapted = [...]struct {
	provider string
	kind     catalog.Kind
	models   []string
}{
	// they need a recording, or make a voice
	{"fal", catalog.TTS, []string{"fal-ai/dia-tts/voice-clone", "fal-ai/minimax/voice-clone",
		"fal-ai/minimax/voice-design"}},
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
