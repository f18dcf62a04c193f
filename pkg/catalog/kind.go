// Package catalog knows model ids and their kinds, as data.
package catalog

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
