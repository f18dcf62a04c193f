package audio

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"weir/pkg/accounts"
	"weir/pkg/endpoint"
	"weir/pkg/provider"
	"weir/pkg/routing"
)

// speaker is how a provider's text to speech is spoken to
// (docs/reference/api-shapes.md, 13).
type speaker struct {
	providers []string // ids of the rows that have it
	endpoint  string   // of the row, "speech" when empty
	// build makes the body and the query; nil sends the client's body with the
	// upstream's model.
	build func(s *spoken, to *routing.Target) (body map[string]any, query string, err error)
	// read takes the audio out of an answer; nil passes it on as it comes.
	read func(raw []byte, s *spoken) (audio []byte, contentType string, err error)
	// binary: an answer that is not JSON is the audio, though there is a read.
	binary bool
	// finish returns the address of the audio if the answer, which read has
	// kept, only starts a job or contains an address.
	finish func(ctx context.Context, h *Handler, s *spoken, res *accounts.Result) (address string, err error)
}

// openAISpeech is OpenAI's own shape.
var openAISpeech = speaker{}

var speakers = [...]*speaker{
	&elevenLabsSpeech, &deepgramSpeech, &cartesiaSpeech, &inworldSpeech, &mistralSpeech, &xaiSpeech, &miniMaxSpeech,
	&geminiSpeech,
	&cloudflareSpeech, &falSpeech, &runwaySpeech, &dashScopeSpeech,
	{providers: []string{"replicate"}, endpoint: "none"}, // not adapted, and not listed
}

// speakerOf returns the shape of a provider.
func speakerOf(d *provider.Descriptor) *speaker {
	for _, s := range speakers {
		for _, id := range s.providers {
			if id == d.ID {
				return s
			}
		}
	}
	return &openAISpeech
}

func (s *speaker) at() string {
	if s.endpoint != "" {
		return s.endpoint
	}
	return "speech"
}

// elevenLabsSpeech has the voice in the path and the format in the query. WAV
// is not offered as a stream.
var elevenLabsSpeech = speaker{
	providers: []string{"elevenlabs"}, endpoint: "speechStream",
	build: func(s *spoken, to *routing.Target) (map[string]any, string, error) {
		format := s.choose([2]string{"mp3", "mp3_44100_128"}, [2]string{"pcm", "pcm_24000"},
			[2]string{"opus", "opus_48000_64"}, [2]string{"wav", "wav_44100"})
		if s.format == "wav" {
			s.route = "speech"
		}
		body := map[string]any{"text": s.input, "model_id": to.Model}
		if s.speed != "" {
			body["voice_settings"] = map[string]any{"speed": json.RawMessage(s.speed)}
		}
		s.unknown(s.hint, "instructions")
		return body, "output_format=" + format, nil
	},
}

// deepgramSpeech has a model per voice, and all options in the query.
var deepgramSpeech = speaker{
	providers: []string{"deepgram"},
	build: func(s *spoken, to *routing.Target) (map[string]any, string, error) {
		format := s.choose([2]string{"mp3", "encoding=mp3"}, [2]string{"opus", "encoding=opus&container=ogg"},
			[2]string{"wav", "encoding=linear16&container=wav"}, [2]string{"pcm",
				"encoding=linear16&container=none&sample_rate=24000"},
			[2]string{"flac", "encoding=flac"}, [2]string{"aac", "encoding=aac"})
		model := to.Model
		if strings.HasPrefix(s.voice, "aura-") {
			model = s.voice
		}
		s.unknown(s.speed, "speed")
		s.unknown(s.hint, "instructions")
		return map[string]any{"text": s.input}, "model=" + queryValue(model) + "&" + format, nil
	},
}

// cartesiaSpeech describes the format by an object.
var cartesiaSpeech = speaker{
	providers: []string{"cartesia"},
	build: func(s *spoken, to *routing.Target) (map[string]any, string, error) {
		body := map[string]any{"model_id": to.Model, "transcript": s.input,
			"voice": map[string]string{"mode": "id", "id": s.voice}}
		switch s.choose([2]string{"mp3", "mp3"}, [2]string{"wav", "wav"}, [2]string{"pcm", "raw"}) {
		case "wav":
			body["output_format"] = map[string]any{"container": "wav", "encoding": "pcm_s16le", "sample_rate": 44100}
		case "raw":
			body["output_format"] = map[string]any{"container": "raw", "encoding": "pcm_s16le", "sample_rate": 24000}
		default:
			body["output_format"] = map[string]any{"container": "mp3", "sample_rate": 44100, "bit_rate": 128000}
		}
		if s.speed != "" {
			body["generation_config"] = map[string]any{"speed": json.RawMessage(s.speed)}
		}
		s.unknown(s.hint, "instructions")
		return body, "", nil
	},
}

// inworldSpeech answers {audioContent: base64}.
var inworldSpeech = speaker{
	providers: []string{"inworld"},
	build: func(s *spoken, to *routing.Target) (map[string]any, string, error) {
		audio := map[string]any{"audioEncoding": s.choose([2]string{"mp3", "MP3"}, [2]string{"wav", "LINEAR16"},
			[2]string{"opus", "OGG_OPUS"}, [2]string{"flac", "FLAC"})}
		if s.speed != "" {
			audio["speakingRate"] = json.RawMessage(s.speed)
		}
		s.unknown(s.hint, "instructions")
		return map[string]any{"text": s.input, "voiceId": s.voice, "modelId": to.Model, "audioConfig": audio}, "", nil
	},
	read: base64At("audioContent"),
}

// mistralSpeech answers {audio_data: base64}.
var mistralSpeech = speaker{
	providers: []string{"mistral"},
	build: func(s *spoken, to *routing.Target) (map[string]any, string, error) {
		format := s.choose([2]string{"mp3", "mp3"}, [2]string{"wav", "wav"}, [2]string{"pcm", "pcm"},
			[2]string{"flac", "flac"}, [2]string{"opus", "opus"})
		s.unknown(s.speed, "speed")
		s.unknown(s.hint, "instructions")
		return map[string]any{"model": to.Model, "input": s.input, "voice_id": s.voice, "response_format": format}, "", nil
	},
	read: base64At("audio_data"),
}

// xaiSpeech answers the audio itself.
var xaiSpeech = speaker{
	providers: []string{"xai"},
	build: func(s *spoken, _ *routing.Target) (map[string]any, string, error) {
		format := map[string]any{"codec": s.choose([2]string{"mp3", "mp3"}, [2]string{"wav", "wav"}, [2]string{"pcm", "pcm"})}
		if s.format == "pcm" {
			format["sample_rate"] = 24000
		}
		s.unknown(s.speed, "speed")
		s.unknown(s.hint, "instructions")
		return map[string]any{"text": s.input, "voice_id": s.voice, "language": "auto", "output_format": format}, "", nil
	},
}

// miniMaxSpeech answers {data.audio: hex}.
var miniMaxSpeech = speaker{
	providers: []string{"minimax"},
	build: func(s *spoken, to *routing.Target) (map[string]any, string, error) {
		audio := map[string]any{"format": s.choose([2]string{"mp3", "mp3"}, [2]string{"wav", "wav"}, [2]string{"pcm", "pcm"},
			[2]string{"flac", "flac"})}
		voice := map[string]any{"voice_id": s.voice}
		if s.speed != "" {
			voice["speed"] = json.RawMessage(s.speed)
		}
		s.unknown(s.hint, "instructions")
		return map[string]any{"model": to.Model, "text": s.input, "stream": false, "voice_setting": voice,
			"audio_setting": audio}, "", nil
	},
	read: func(raw []byte, s *spoken) ([]byte, string, error) {
		if err := endpoint.MiniMaxError(raw); err != nil {
			return nil, "", err
		}
		audio, err := hex.DecodeString(gjson.GetBytes(raw, "data.audio").Str)
		return audio, contentType(s.format), err
	},
}

// geminiSpeech answers PCM inside JSON, which becomes a WAV file.
var geminiSpeech = speaker{
	providers: []string{"gemini", "vertex"},
	build: func(s *spoken, _ *routing.Target) (map[string]any, string, error) {
		s.choose([2]string{"wav", "wav"}, [2]string{"pcm", "pcm"})
		text := s.input
		if s.hint != "" {
			text = s.hint + ": " + text
		}
		s.unknown(s.speed, "speed")
		return map[string]any{
			"contents": []any{map[string]any{"role": "user", "parts": []any{map[string]string{"text": text}}}},
			"generationConfig": map[string]any{
				"responseModalities": []string{"AUDIO"},
				"speechConfig":       map[string]any{"voiceConfig": map[string]any{"prebuiltVoiceConfig": map[string]string{"voiceName": s.voice}}},
			},
		}, "", nil
	},
	read: func(raw []byte, s *spoken) ([]byte, string, error) {
		var pcm []byte
		mime := ""
		for _, p := range gjson.GetBytes(raw, "candidates.0.content.parts").Array() {
			data := p.Get("inlineData")
			b, err := base64.StdEncoding.DecodeString(data.Get("data").Str)
			if err != nil {
				return nil, "", err
			}
			if pcm = append(pcm, b...); mime == "" {
				mime = strings.ToLower(data.Get("mimeType").Str)
			}
		}
		if len(pcm) == 0 {
			return nil, "", errors.New("audio: the answer has no audio")
		}
		if mime != "" && !strings.HasPrefix(mime, "audio/l16") && !strings.HasPrefix(mime, "audio/pcm") {
			return pcm, mime, nil
		}
		if s.format == "pcm" {
			return pcm, "audio/pcm", nil
		}
		rate := 24000
		if _, r, ok := strings.Cut(mime, "rate="); ok {
			r, _, _ = strings.Cut(r, ";")
			if n, err := strconv.Atoi(r); err == nil && n > 0 && n < 1000000 {
				rate = n
			}
		}
		return wav(pcm, rate), "audio/wav", nil
	},
}

// wav puts the header of a WAV file before 16 bit mono samples.
func wav(pcm []byte, rate int) []byte {
	h := make([]byte, 0, 44+len(pcm))
	le := binary.LittleEndian
	h = le.AppendUint32(append(h, "RIFF"...), uint32(36+len(pcm)))
	h = le.AppendUint32(append(h, "WAVEfmt "...), 16)
	h = le.AppendUint16(le.AppendUint16(h, 1), 1) // PCM, one channel
	h = le.AppendUint32(le.AppendUint32(h, uint32(rate)), uint32(2*rate))
	h = le.AppendUint16(le.AppendUint16(h, 2), 16) // bytes a sample, bits
	h = le.AppendUint32(append(h, "data"...), uint32(len(pcm)))
	return append(h, pcm...)
}

// base64At reads audio that is base64 at a path of the answer.
func base64At(path string) func([]byte, *spoken) ([]byte, string, error) {
	return func(raw []byte, s *spoken) ([]byte, string, error) {
		audio, err := base64.StdEncoding.DecodeString(gjson.GetBytes(raw, path).Str)
		return audio, contentType(s.format), err
	}
}

// unknown notes a field that was given and that the provider does not know.
func (s *spoken) unknown(value, name string) {
	if value != "" {
		s.drop(name)
	}
}

// queryValue encodes a model id for a query.
func queryValue(s string) string {
	return strings.NewReplacer("%", "%25", "&", "%26", "+", "%2B", "#", "%23", " ", "%20", "=", "%3D").Replace(s)
}
