package images

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"strings"

	"github.com/tidwall/gjson"

	"weir/pkg/endpoint"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/multipart"
)

// together has OpenAI's answer, and its own names for the size and the form of
// the images.
var together = shape{
	providers: []string{"together"}, edits: true,
	create: func(in *input, model string) (*plan, error) {
		prompt, err := in.prompt()
		if err != nil {
			return nil, err
		}
		body := map[string]any{"model": model, "prompt": prompt}
		if w, h := in.size(); w > 0 {
			body["width"], body["height"] = w, h
		}
		switch in.text("response_format") {
		case "b64_json":
			body["response_format"] = "base64"
		case "url":
			body["response_format"] = "url"
		}
		if images := in.images(); len(images) > 0 {
			body["image_url"] = images[0]
		}
		in.rest(body)
		return jsonBody(body)
	},
	read: readData,
}

// xai has OpenAI's answer and an aspect ratio instead of a size. Edits name
// the image in JSON.
var xai = shape{
	providers: []string{"xai"}, edits: true, apart: true,
	create: func(in *input, model string) (*plan, error) {
		prompt, err := in.prompt()
		if err != nil {
			return nil, err
		}
		body := map[string]any{"model": model, "prompt": prompt}
		set(body, "aspect_ratio", in.ratio())
		set(body, "response_format", in.text("response_format"))
		set(body, "n", in.get("n"))
		set(body, "resolution", in.get("resolution"))
		set(body, "user", in.get("user"))
		var sources []any
		for _, a := range in.images() {
			sources = append(sources, map[string]string{"url": a, "type": "image_url"})
		}
		switch len(sources) {
		case 0:
		case 1:
			body["image"] = sources[0]
		default:
			body["images"] = sources
		}
		return jsonBody(body)
	},
	read: readData,
}

// readData reads {data[{url|b64_json, revised_prompt}]}.
func readData(raw []byte, _ string) (*made, error) {
	m := &made{}
	for _, d := range gjson.GetBytes(raw, "data").Array() {
		i := image{url: d.Get("url").Str, b64: d.Get("b64_json").Str, mime: d.Get("media_type").Str,
			text: d.Get("revised_prompt").Str}
		i.mime = cmp.Or(i.mime, "image/png")
		if i.url != "" || i.b64 != "" {
			m.images = append(m.images, i)
		}
	}
	if u := gjson.GetBytes(raw, "usage"); u.IsObject() {
		m.usage = json.RawMessage(u.Raw)
	}
	return m, nil
}

// stability takes a form even without a file, and makes one image:
//
//	POST v2beta/stable-image/generate/{core|ultra|sd3} (accept: application/json) → {image: base64, finish_reason}
//
// The models of Stable Diffusion 3 share one endpoint and differ in the field
// model.
var stability = shape{
	providers: []string{"stability"},
	route: func(model string) string {
		if strings.HasPrefix(model, "sd3") {
			return "imagesSd3"
		}
		return ""
	},
	create: func(in *input, model string) (*plan, error) {
		prompt, err := in.prompt()
		if err != nil {
			return nil, err
		}
		sum := sha256.Sum256([]byte(prompt))
		w := multipart.NewWriter("weir-" + hex.EncodeToString(sum[:16]))
		w.Field("prompt", prompt)
		if strings.HasPrefix(model, "sd3") && model != "sd3" {
			w.Field("model", model)
		}
		if r := in.ratio(); r != "" {
			w.Field("aspect_ratio", r)
		}
		format := cmp.Or(in.str("output_format"), "png")
		w.Field("output_format", format)
		for _, name := range []string{"negative_prompt", "seed", "style_preset"} {
			if v := in.get(name); v.Exists() {
				w.Field(name, v.String())
			}
		}
		if in.doc.Get("n").Int() == 1 {
			in.get("n")
		}
		return &plan{contentType: w.ContentType(), body: w.Close()}, nil
	},
	read: func(raw []byte, _ string) (*made, error) {
		doc := gjson.ParseBytes(raw)
		if doc.Get("finish_reason").Str == "CONTENT_FILTERED" {
			return nil, apierr.New(400, "content_filter", "The provider's moderation blocked the image.")
		}
		return &made{images: one(doc.Get("image").Str, "image/png")}, nil
	},
}

// miniMax is MiniMax's own API: data.image_urls or data.image_base64, with
// errors in base_resp.
var miniMax = shape{
	providers: []string{"minimax"},
	create: func(in *input, model string) (*plan, error) {
		prompt, err := in.prompt()
		if err != nil {
			return nil, err
		}
		body := map[string]any{"model": model, "prompt": prompt, "response_format": "url"}
		if in.text("response_format") == "b64_json" {
			body["response_format"] = "base64"
		}
		set(body, "aspect_ratio", in.ratio())
		set(body, "n", in.get("n"))
		set(body, "seed", in.get("seed"))
		return jsonBody(body)
	},
	read: func(raw []byte, _ string) (*made, error) {
		if err := endpoint.MiniMaxError(raw); err != nil {
			return nil, err
		}
		m := &made{}
		for _, u := range gjson.GetBytes(raw, "data.image_urls").Array() {
			m.images = append(m.images, image{url: u.Str})
		}
		for _, b := range gjson.GetBytes(raw, "data.image_base64").Array() {
			m.images = append(m.images, one(b.Str, "image/jpeg")...)
		}
		return m, nil
	},
}

// huggingFace is the task route of text to image: the answer is the image.
var huggingFace = shape{
	providers: []string{"huggingface"},
	create: func(in *input, _ string) (*plan, error) {
		prompt, err := in.prompt()
		if err != nil {
			return nil, err
		}
		body, how := map[string]any{"inputs": prompt}, map[string]any{}
		if w, h := in.size(); w > 0 {
			how["width"], how["height"] = w, h
		}
		for _, name := range []string{"seed", "guidance_scale", "num_inference_steps", "negative_prompt"} {
			set(how, name, in.get(name))
		}
		if len(how) > 0 {
			body["parameters"] = how
		}
		if in.doc.Get("n").Int() == 1 {
			in.get("n")
		}
		p, err := jsonBody(body)
		if err == nil {
			p.header = httpmsg.Header{{Name: "x-wait-for-model", Value: "true"}}
		}
		return p, err
	},
	read: func(raw []byte, contentType string) (*made, error) {
		if !strings.HasPrefix(contentType, "image/") {
			return nil, errNoImage
		}
		return &made{images: one(base64.StdEncoding.EncodeToString(raw), contentType)}, nil
	},
}

func one(b64, mime string) []image {
	if b64 == "" {
		return nil
	}
	return []image{{b64: b64, mime: mime}}
}
