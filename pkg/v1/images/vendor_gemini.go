package images

import (
	"cmp"
	"strings"

	"github.com/tidwall/gjson"

	"weir/pkg/endpoint/download"
	"weir/pkg/wire/apierr"
)

// gemini is an image model of Gemini, which speaks with images:
//
//	POST models/{m}:generateContent {contents, generationConfig{responseModalities[TEXT, IMAGE], imageConfig{aspectRatio}}}
//	  → {candidates[].content.parts[].inlineData{mimeType, data}}
//
// One image comes of one call.
var gemini = shape{
	providers: []string{"gemini", "vertex"}, edits: true,
	create: func(in *input, _ string) (*plan, error) {
		prompt, err := in.prompt()
		if err != nil {
			return nil, err
		}
		parts := []any{map[string]string{"text": prompt}}
		for _, a := range in.images() {
			mime, data, ok := download.DataURI(a)
			if !ok {
				return nil, apierr.Invalid("image", "The provider of this model takes images as data: addresses only.")
			}
			parts = append(parts, map[string]any{"inlineData": map[string]string{"mimeType": mime, "data": data}})
		}
		config := map[string]any{"responseModalities": []string{"TEXT", "IMAGE"}}
		if r := in.ratio(); r != "" {
			config["imageConfig"] = map[string]string{"aspectRatio": r}
		}
		if in.doc.Get("n").Int() == 1 {
			in.get("n")
		}
		return jsonBody(map[string]any{"contents": []any{map[string]any{"role": "user", "parts": parts}},
			"generationConfig": config})
	},
	read: func(raw []byte, _ string) (*made, error) {
		doc := gjson.ParseBytes(raw)
		m := &made{}
		text := ""
		for _, c := range doc.Get("candidates").Array() {
			for _, p := range c.Get("content.parts").Array() {
				if d := p.Get("inlineData"); d.Get("data").Str != "" && !p.Get("thought").Bool() {
					m.images = append(m.images, image{b64: d.Get("data").Str, mime: d.Get("mimeType").Str})
				}
				text += p.Get("text").Str
			}
		}
		reason := cmp.Or(doc.Get("promptFeedback.blockReason").Str, doc.Get("candidates.0.finishReason").Str)
		if len(m.images) == 0 && reason != "" {
			// The call was answered: there is no image because of the prompt.
			return nil, apierr.New(400, "content_filter", "The provider made no image from this prompt.")
		}
		if u := doc.Get("usageMetadata"); u.IsObject() {
			m.usage = map[string]int64{
				"input_tokens": u.Get("promptTokenCount").Int(), "output_tokens": u.Get("candidatesTokenCount").Int() +
					u.Get("thoughtsTokenCount").Int(),
				"total_tokens": u.Get("totalTokenCount").Int(),
			}
		}
		if text = strings.TrimSpace(text); text != "" && len(m.images) > 0 {
			m.images[0].text = text
		}
		return m, nil
	},
}
