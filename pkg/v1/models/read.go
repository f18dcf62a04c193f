package models

import (
	"math"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"weir/pkg/catalog"
	"weir/pkg/provider"
	"weir/pkg/wire/jsonscan"
)

const (
	maxModels = 5000 // read from one list
	maxID     = 256  // bytes of an id
)

// unlisted is the kind of models that clients cannot call: moderation, realtime sockets,
// voice changers. No list contains it.
const unlisted catalog.Kind = "none"

// model is one element of a list as it was read.
type model struct {
	catalog.Model
	profileOnly bool // Bedrock: callable through an inference profile only
	off         bool // the upstream says that it does not serve it
}

// readList reads the models of a body. For a compatible provider it is
// docs/reference/spec.md, 4.2.7 to the letter: an array, or an object's data,
// else models, else results; an element's id is its id, else name, else model.
// For the others the row names array and id field. ok is false for any
// other body.
func readList(row *provider.Descriptor, body []byte) ([]model, bool) {
	if !jsonscan.Valid(body) {
		return nil, false
	}
	root := gjson.ParseBytes(body)
	var found []model
	seen := map[string]bool{}
	read := func(array gjson.Result, kind catalog.Kind) {
		array.ForEach(func(_, el gjson.Result) bool {
			id := elementID(row, el)
			if id == "" || seen[id] || len(id) > maxID || row.Models.Skip != "" && strings.HasPrefix(id, row.Models.Skip) {
				return true
			}
			seen[id] = true
			m := details(el)
			m.ID = strings.Clone(id)
			if kind != "" {
				m.Kind = kind
			}
			if row.Compatible {
				m.Kind = "" // inferred, as docs/reference/spec.md, 4.1.4.7 says
			}
			if !m.off {
				found = append(found, m)
			}
			return len(found) < maxModels
		})
	}
	if !row.Compatible && row.Models.Array != "" {
		arrays := 0
		for _, name := range strings.Fields(row.Models.Array) {
			array := root.Get(name)
			if !array.IsArray() {
				continue
			}
			arrays++
			kind := catalog.Kind("")
			if k := catalog.Kind(name); k.Known() {
				kind = k // the arrays of speech vendors are named for their kind
			}
			read(array, kind)
		}
		if arrays > 0 {
			return found, true
		}
	}
	array := root
	if root.IsObject() {
		for _, name := range [...]string{"data", "models", "results"} {
			if array = root.Get(name); array.IsArray() {
				break
			}
		}
	}
	if !array.IsArray() {
		return nil, false
	}
	read(array, "")
	return found, true
}

// elementID returns the id of one element, or "".
func elementID(row *provider.Descriptor, el gjson.Result) string {
	if !el.IsObject() {
		return ""
	}
	if row.Compatible {
		for _, name := range [...]string{"id", "name", "model"} {
			switch v := el.Get(name); v.Type {
			case gjson.String:
				if v.Str != "" {
					return v.Str
				}
			case gjson.Number, gjson.True, gjson.JSON:
				return "" // there, but not a string
			}
		}
		return ""
	}
	if first, second, joined := strings.Cut(row.Models.ID, "/"); joined {
		a, b := el.Get(first), el.Get(second)
		if a.Type != gjson.String || b.Type != gjson.String || a.Str == "" || b.Str == "" {
			return ""
		}
		return a.Str + "/" + b.Str
	}
	v := el.Get(row.Models.ID)
	if v.Type != gjson.String {
		return ""
	}
	return strings.TrimPrefix(v.Str, row.Models.IDPrefix)
}

// details reads what an element says of itself, in one pass. Vendors use
// different names for the same thing and none uses one name for two, so no
// vendor needs to be known here (docs/reference/api-shapes.md, 1, provider
// rows).
func details(el gjson.Result) model {
	var m model
	var in, out catalog.Modality
	el.ForEach(func(k, v gjson.Result) bool {
		switch k.Str {
		case "display_name", "displayName", "modelName":
			m.Name = text(v)
		case "name":
			if m.Name == "" && el.Get("id").Type != gjson.Null {
				m.Name = text(v)
			}
		case "context_length", "context_window", "max_context_length", "max_model_len", "inputTokenLimit", "max_input_tokens":
			m.Context = count(v)
		case "max_completion_tokens", "max_output_tokens", "outputTokenLimit":
			m.MaxOutput = count(v)
		case "max_tokens":
			// Elsewhere than beside Anthropic's max_input_tokens it may be
			// the whole context.
			if el.Get("max_input_tokens").Type != gjson.Null {
				m.MaxOutput = count(v)
			}
		case "top_provider", "metadata":
			if n := count(v.Get("context_length")); n > 0 && m.Context == 0 {
				m.Context = n
			}
			for _, name := range [...]string{"max_completion_tokens", "max_tokens"} {
				if n := count(v.Get(name)); n > 0 && m.MaxOutput == 0 {
					m.MaxOutput = n
				}
			}
			if contains(v.Get("tags"), "vision") {
				m.Caps.Set(catalog.Vision, true)
			}
		case "active":
			m.off = m.off || v.Type == gjson.False
		case "lifecycle":
			m.off = m.off || v.Str == "retired"
		case "architecture":
			in, out = in|modalities(v.Get("input_modalities")), out|modalities(v.Get("output_modalities"))
		case "input_modalities", "inputModalities":
			in |= modalities(v)
		case "output_modalities", "outputModalities":
			out |= modalities(v)
		case "inferenceTypesSupported":
			m.profileOnly = v.IsArray() && !contains(v, "ON_DEMAND")
		case "pricing":
			m.Price = perToken(v)
		case "supported_parameters":
			if v.IsArray() {
				m.Caps.Set(catalog.Tools, contains(v, "tools"))
				m.Caps.Set(catalog.Reasoning, contains(v, "reasoning"))
				m.Caps.Set(catalog.StructuredOutputs, contains(v, "structured_outputs"))
			}
		case "capabilities":
			abilities(&m, v)
		case "features":
			for _, f := range [...]struct {
				name string
				cap  catalog.Cap
			}{{"tools", catalog.Tools}, {"vision", catalog.Vision}, {"reasoning", catalog.Reasoning}} {
				if contains(v, f.name) {
					m.Caps.Set(f.cap, true)
				}
			}
		case "thinking":
			if v.IsBool() {
				m.Caps.Set(catalog.Reasoning, v.Bool())
			}
		default:
			if kind := kindField(k.Str, v); kind != "" && m.Kind == "" {
				m.Kind = kind
			}
		}
		return true
	})
	if in != 0 {
		m.Input = in
		m.Caps.Set(catalog.Vision, in&catalog.Images != 0)
		m.Caps.Set(catalog.PDF, in&catalog.File != 0)
		m.Caps.Set(catalog.AudioInput, in&catalog.Audio != 0)
		m.Caps.Set(catalog.VideoInput, in&catalog.Videos != 0)
	}
	if out != 0 {
		m.Output = out
		m.Caps.Set(catalog.ImageOutput, out&catalog.Images != 0)
		m.Caps.Set(catalog.AudioOutput, out&catalog.Audio != 0)
		if m.Kind == "" {
			m.Kind = kindOfOutput(in, out)
		}
	}
	return m
}

// kindField returns the kind that a field states, or "".
func kindField(name string, v gjson.Result) catalog.Kind {
	var table []struct {
		word string
		kind catalog.Kind
	}
	switch name {
	case "type", "model_type":
		if v.Type != gjson.String {
			return ""
		}
		table = types
	case "endpoints", "supportedGenerationMethods":
		if !v.IsArray() {
			return ""
		}
		// A model that answers generateContent may draw or speak; its id says so.
		if contains(v, "generateContent") {
			return ""
		}
		table = methods
	case "task":
		if v = v.Get("name"); v.Type != gjson.String {
			return ""
		}
		table = tasks
	case "can_do_text_to_speech":
		if v.IsBool() && v.Bool() {
			return catalog.TTS
		}
		return unlisted
	}
	for _, t := range table {
		if v.Type == gjson.String && v.Str == t.word || v.IsArray() && contains(v, t.word) {
			return t.kind
		}
	}
	return ""
}

// The words by which lists state a kind.
var (
	types = []struct {
		word string
		kind catalog.Kind
	}{
		{"chat", catalog.LLM}, {"language", catalog.LLM}, {"code", catalog.LLM}, {"image", catalog.Image},
		{"embedding", catalog.Embedding}, {"rerank", catalog.Rerank}, {"audio", catalog.TTS},
		{"transcribe", catalog.STT}, {"video", catalog.Video}, {"moderation", unlisted},
	}
	methods = []struct {
		word string
		kind catalog.Kind
	}{
		{"chat", catalog.LLM}, {"embed", catalog.Embedding}, {"rerank", catalog.Rerank}, {"transcriptions", catalog.STT},
		{"embedContent", catalog.Embedding}, {"predictLongRunning", catalog.Video}, {"predict", catalog.Image},
		{"bidiGenerateContent", unlisted},
	}
	tasks = []struct {
		word string
		kind catalog.Kind
	}{
		{"Text Generation", catalog.LLM}, {"Text Embeddings", catalog.Embedding}, {"Text-to-Image", catalog.Image},
		{"Automatic Speech Recognition", catalog.STT}, {"Text-to-Speech", catalog.TTS},
		{"Image-to-Text", catalog.ImageToText},
		{"Translation", unlisted}, {"Summarization", unlisted}, {"Text Classification", unlisted},
		{"Image Classification", unlisted}, {"Object Detection", unlisted}, {"Voice Activity Detection", unlisted},
	}
)

func kindOfOutput(in, out catalog.Modality) catalog.Kind {
	switch {
	case out&catalog.Text != 0 && in == catalog.Audio:
		return catalog.STT
	case out&catalog.Text != 0:
		return catalog.LLM
	case out&catalog.Vectors != 0:
		return catalog.Embedding
	case out&catalog.Images != 0:
		return catalog.Image
	case out&catalog.Videos != 0:
		return catalog.Video
	}
	return catalog.TTS
}

// abilities reads a capabilities field: an object of booleans, or of objects
// with "supported", or an array of words. Other shapes say nothing.
func abilities(m *model, v gjson.Result) {
	if v.IsArray() {
		m.Caps.Set(catalog.Tools, contains(v, "tools"))
		m.Caps.Set(catalog.Vision, contains(v, "vision"))
		m.Caps.Set(catalog.Reasoning, contains(v, "thinking"))
		if contains(v, "embedding") {
			m.Kind = catalog.Embedding
		}
		return
	}
	v.ForEach(func(k, v gjson.Result) bool {
		if v.IsObject() {
			v = v.Get("supported") // as Anthropic's list has it
		}
		if !v.IsBool() {
			return true
		}
		switch k.Str {
		case "image_input":
			m.Caps.Set(catalog.Vision, v.Bool())
		case "pdf_input":
			m.Caps.Set(catalog.PDF, v.Bool())
		case "structured_outputs":
			m.Caps.Set(catalog.StructuredOutputs, v.Bool())
		case "thinking":
			m.Caps.Set(catalog.Reasoning, v.Bool())
		case "function_calling":
			m.Caps.Set(catalog.Tools, v.Bool())
		case "reasoning":
			m.Caps.Set(catalog.Reasoning, v.Bool())
		case "vision":
			m.Caps.Set(catalog.Vision, v.Bool())
		case "completion_chat":
			if v.Bool() {
				m.Kind = catalog.LLM
			}
		case "ocr":
			if v.Bool() && m.Kind == "" {
				m.Kind = catalog.ImageToText
			}
		case "audio_transcription":
			if v.Bool() && m.Kind == "" {
				m.Kind = catalog.STT
			}
		case "audio_speech":
			if v.Bool() && m.Kind == "" {
				m.Kind = catalog.TTS
			}
		}
		return true
	})
}

func text(v gjson.Result) string {
	if v.Type != gjson.String || len(v.Str) > 200 {
		return ""
	}
	return strings.Clone(v.Str)
}

func count(v gjson.Result) int {
	if v.Type != gjson.Number || v.Num < 1 || v.Num > 1e9 {
		return 0
	}
	return int(v.Num)
}

func contains(array gjson.Result, word string) bool {
	found := false
	if array.IsArray() {
		array.ForEach(func(_, v gjson.Result) bool {
			found = v.Type == gjson.String && v.Str == word
			return !found
		})
	}
	return found
}

func modalities(array gjson.Result) catalog.Modality {
	var m catalog.Modality
	if array.IsArray() {
		array.ForEach(func(_, v gjson.Result) bool {
			m |= catalog.ModalityOf(v.String())
			return true
		})
	}
	return m
}

// perToken reads a price object that counts in USD per token, as prompt and
// completion do wherever they are used. Other shapes have no price: their unit
// is not known.
func perToken(v gjson.Result) catalog.Price {
	rate := func(name string) float64 {
		f, err := strconv.ParseFloat(v.Get(name).String(), 64)
		if err != nil || math.IsNaN(f) || f < 0 || f > 1 {
			return -1
		}
		return math.Round(f*1e12) / 1e6
	}
	r := catalog.NoRates()
	r[catalog.PerInput], r[catalog.PerOutput] = rate("prompt"), rate("completion")
	r[catalog.PerCacheRead], r[catalog.PerCacheWrite] = rate("input_cache_read"), rate("input_cache_write")
	if r[catalog.PerInput] < 0 || r[catalog.PerOutput] < 0 {
		return ""
	}
	return r.Price()
}
